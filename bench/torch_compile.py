# SPDX-License-Identifier: Apache-2.0
"""torch.compile beside PyTorch eager on the references of a task set: torch_compile.py TASKS.jsonl --out compile.json

TASKS.jsonl is a task set as `tritonrl data import` writes it; compile.json is what `tritonrl eval --peer` reads. Needs a GPU
(exit 3 without one) and a python3 with torch and triton. Each task has a process of its own, in which its module runs both
ways; several tasks are prepared and compiled at a time, and while one is timed all others are stopped (SIGSTOP) and a lock on
a file keeps out a second call on the same machine. A module that fails, or is not done by its deadline, has an "error" in
place of times. A second call with the same arguments continues where the first one ended.

As the verifier times a reference: modules in eval mode without gradients, inputs and weights on the GPU, PyTorch's own
settings of precision (matrix products in float32, cuDNN's convolutions in TF32; --no-tf32 turns that off as well), no
autocast; device time, without the gaps of the host, which has queued a whole reading before the device may begin.

One reading is a number of runs of each side, order alternating, the L2 cache flushed before each. The ratio is that of eager
to compiled, so above 1 torch.compile is faster: the trimmed mean of the readings' log-ratios, with Student's 95 % interval
(winsorised variance). Times are trimmed means.
"""
import argparse
import contextlib
import fcntl
import hashlib
import json
import math
import os
import pathlib
import queue
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

TRIM = 0.1             # Share of the readings left out at either end.
SPAN_MS = 0.4          # Device time that a reading covers, at least, of the faster side;
MOST_RUNS = 16         # with so many runs of each at most.
FLUSH_BYTES = 256 << 20
LOCK = pathlib.Path(tempfile.gettempdir()) / "tritonrl_torch_compile.lock"


# --- Arithmetic: no torch.

def trimmed(values, share=TRIM):
    """What is left of the sorted values without `share` of them at either end."""
    values, cut = sorted(values), int(len(values) * share)
    return values[cut:len(values) - cut]


def student(df):
    """Student's 97.5 % quantile: an expansion around the normal one, to three digits from 5 degrees of freedom on."""
    z = statistics.NormalDist().inv_cdf(0.975)
    terms = ((z ** 3 + z) / 4, (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96, (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384)
    return z + sum(term / df ** (power + 1) for power, term in enumerate(terms))


def ratio_of(pairs):
    """(ratio, low, high) of eager to compiled from [(eager, compiled), ...]: 10 readings or more."""
    logs = sorted(math.log(eager / compiled) for eager, compiled in pairs)
    kept = trimmed(logs)
    cut, middle = (len(logs) - len(kept)) // 2, statistics.mean(kept)
    winsorised = [min(max(value, kept[0]), kept[-1]) for value in logs]
    half = student(len(kept) - 1) * statistics.stdev(winsorised) / ((1 - 2 * cut / len(logs)) * math.sqrt(len(logs)))
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def source_hash(source):
    return hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()


def one_line(text, most=300):
    return " ".join(str(text).split())[:most]


# --- A task's process.

def on_device(value, device):
    import torch
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, (list, tuple)):
        return type(value)(on_device(each, device) for each in value)
    return value


def init_arguments(given):
    """What get_init_inputs() gives: a list, names with values, or both as [[...], {name: value}]."""
    if isinstance(given, dict):
        return [], given
    both = len(given) == 2 and isinstance(given[0], (list, tuple)) and isinstance(given[1], dict)
    return given if both else (list(given), {})


def load(source, device):
    """(model, inputs) of a task, drawn on the device."""
    import importlib.util

    import torch
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:  # torch.compile wants a source file.
        file.write(source)
    spec = importlib.util.spec_from_file_location("task_module", file.name)
    module = importlib.util.module_from_spec(spec)
    sys.modules["task_module"] = module
    for place in (torch.device(device), torch.device("cpu")):  # The second where something can only be drawn there.
        try:
            torch.manual_seed(7)
            with place:
                spec.loader.exec_module(module)
                positional, named = init_arguments(module.get_init_inputs())
                named = {name: on_device(value, place) for name, value in named.items()}
                model = module.Model(*on_device(list(positional), place), **named).to(device).eval()
                return model, on_device(list(module.get_inputs()), device)
        except RuntimeError:
            if place.type == "cpu":
                raise


def difference(a, b):
    """Largest distance of two results in units of the first one's root mean square; None where they cannot be compared."""
    import torch
    if isinstance(a, (list, tuple)):
        parts = [difference(x, y) for x, y in zip(a, b)]
        return max((part for part in parts if part is not None), default=None)
    if not isinstance(a, torch.Tensor) or not a.is_floating_point() or a.shape != b.shape or a.numel() == 0:
        return None
    scale = a.double().square().mean().sqrt().item()
    worst = (a.double() - b.double()).abs().max().item()
    return worst / scale if scale > 0 and math.isfinite(worst) else None


class Stopwatch:
    """Readings of two sides. The stream is held by a spinning kernel until the host has queued a whole reading."""

    def __init__(self, sides):
        import torch
        self.torch, self.sides = torch, sides
        self.cache = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
        self.sink = torch.zeros((), dtype=torch.int64, device="cuda")
        clock = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        clock[0].record()
        torch.cuda._sleep(20_000_000)
        clock[1].record()
        torch.cuda.synchronize()
        self.cycles_per_ms = 20_000_000 / clock[0].elapsed_time(clock[1])
        self.host_ms = 20.0  # What queueing one run takes; measured with every reading.
        self.runs, self.turn = 1, 0

    def reading(self):
        """Mean milliseconds of a run of each side."""
        torch = self.torch
        torch.cuda.synchronize()
        torch.cuda._sleep(int(self.cycles_per_ms * min(400.0, 1.5 * self.host_ms * self.runs * 2)))
        start, spans = time.perf_counter(), ([], [])
        for run in range(self.runs):
            for side in (0, 1) if (run + self.turn) % 2 == 0 else (1, 0):
                self.cache.zero_()
                events = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                events[0].record()
                self.sides[side]()
                events[1].record()
                spans[side].append(events)
        self.turn += 1
        self.host_ms = max(0.02, 1e3 * (time.perf_counter() - start) / (2 * self.runs))
        torch.cuda.synchronize()
        return tuple(statistics.mean(a.elapsed_time(b) for a, b in of) for of in spans)

    def measure(self, warm_ups, readings, half_width, most_s):
        """Pairs of readings: `readings` at least, more until the ratio's interval is that narrow or `most_s` are over."""
        for _ in range(warm_ups):
            first = self.reading()
        self.runs = max(1, min(MOST_RUNS, math.ceil(SPAN_MS / max(1e-4, min(first)))))
        self.reading()
        pairs, begun = [], time.perf_counter()
        while True:
            pair = self.reading()
            if min(pair) > 0:
                pairs.append(pair)
            over = time.perf_counter() - begun > most_s
            if len(pairs) >= readings or (over and len(pairs) >= 10):
                _, low, high = ratio_of(pairs)
                if over or math.log(high / low) / 2 <= half_width:
                    return pairs
            elif over:
                raise RuntimeError("fewer than 10 readings in time")


def work(options):
    """In a task's process: prepares, says READY, waits for a line, times, prints the result."""
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: a stopped child must not outlive its parent.
    task = json.loads(sys.stdin.readline())
    import torch
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = not options.no_tf32
    model, inputs = load(task["source"], "cuda")
    with torch.no_grad():
        expected = model(*inputs)
        start = time.perf_counter()
        compiled = torch.compile(model, mode=None if options.mode == "default" else options.mode)
        got = compiled(*inputs)
        torch.cuda.synchronize()
        compile_s = time.perf_counter() - start
        distance = difference(expected, got)
        del expected, got
        for _ in range(3):
            compiled(*inputs)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        print("READY", flush=True)
        sys.stdin.readline()
        watch = Stopwatch((lambda: model(*inputs), lambda: compiled(*inputs)))
        pairs = watch.measure(options.warm_ups, options.readings, options.half_width, options.most_s)
    ratio, low, high = ratio_of(pairs)
    eager, fast = (statistics.mean(trimmed([pair[side] for pair in pairs])) for side in (0, 1))
    print("RESULT " + json.dumps({"eager_ms": eager, "compiled_ms": fast, "ratio": ratio, "low": low, "high": high,
                                  "readings": len(pairs), "runs": watch.runs, "compile_s": round(compile_s, 2),
                                  "difference": distance}), flush=True)


# --- The parent.

class Fleet:
    """The children that live. While one is timed the others are stopped; their clocks stand still as long."""

    def __init__(self):
        self.lock, self.timing, self.live, self.paused_s = threading.Lock(), threading.Lock(), {}, 0.0

    def add(self, child):
        with self.timing, self.lock:  # Nobody begins while somebody is timed.
            self.live[child.pid] = child

    def remove(self, child):
        with self.lock:
            self.live.pop(child.pid, None)

    def signal_others(self, child, number):
        with self.lock:
            for pid in self.live:
                if pid != child.pid:
                    try:
                        os.killpg(pid, number)
                    except ProcessLookupError:
                        pass

    def alone(self, child, call):
        with self.timing, open(LOCK, "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            start = time.monotonic()
            self.signal_others(child, signal.SIGSTOP)
            try:
                time.sleep(0.05)  # What they have queued ends.
                return call()
            finally:
                self.signal_others(child, signal.SIGCONT)
                self.paused_s += time.monotonic() - start


def end(child):
    for number in (signal.SIGCONT, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            pass
    child.wait()
    if child.stdin:
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()


def lines_of(child):
    """A queue of the lines of a child's stdout; None at its end."""
    lines = queue.Queue()

    def read():
        with child.stdout:
            for line in child.stdout:
                lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines


def await_line(lines, word, seconds, paused_s):
    """The next line that begins with `word`; seconds in which everything stood still do not count. None: there is none;
    raises TimeoutError."""
    begun, before = time.monotonic(), paused_s()
    while True:
        left = seconds - (time.monotonic() - begun - (paused_s() - before))
        if left <= 0:
            raise TimeoutError
        try:
            line = lines.get(timeout=min(left, 1.0))
        except queue.Empty:
            continue
        if line is None or line.startswith(word):
            return line


def run_task(task, options, fleet):
    """Its times, or {"error"}."""
    words = [sys.executable, __file__, "-", "--out", "-", "--worker", "--mode", options.mode, "--readings", str(options.readings),
             "--warm-ups", str(options.warm_ups), "--half-width", str(options.half_width), "--most-s", str(options.most_s)]
    words += ["--no-tf32"] if options.no_tf32 else []
    environment = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": options.cache,
                   "TRITON_CACHE_DIR": options.cache + "/triton"}
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True, env=environment,
                                 start_new_session=True)
        fleet.add(child)
        lines = lines_of(child)

        def times():
            child.stdin.write("go\n")
            child.stdin.flush()
            return await_line(lines, "RESULT ", options.most_s * 4 + 60, lambda: 0.0)

        stage = "compiling"
        try:
            child.stdin.write(json.dumps({"source": task["source"]}) + "\n")
            child.stdin.flush()
            line = await_line(lines, "READY", options.deadline, lambda: fleet.paused_s)
            if line is not None:
                stage = "timing"
                line = fleet.alone(child, times)
        except TimeoutError:
            return {"error": f"deadline passed while {stage}"}
        except BrokenPipeError:
            line = None
        finally:
            fleet.remove(child)
            end(child)
        if line is not None:
            return json.loads(line[len("RESULT "):])
        said.seek(0)
        told = [each for each in said.read().splitlines() if each.strip()]
        return {"error": one_line(told[-1] if told else f"ended with exit code {child.returncode}")}


def run_all(tasks, options, run=run_task, done=lambda task, row: None):
    """Rows by id. `run` and `done` may be called by several threads, `done` by one at a time."""
    rows, waiting, lock, fleet = {}, queue.Queue(), threading.Lock(), Fleet()
    for task in tasks:
        waiting.put(task)

    def serve():
        while True:
            try:
                task = waiting.get_nowait()
            except queue.Empty:
                return
            row = run(task, options, fleet)
            if row is None:  # Never begun.
                continue
            row = {"source": source_hash(task["source"]), **row}
            with lock:
                rows[task["id"]] = row
                done(task, row)

    threads = [threading.Thread(target=serve) for _ in range(max(1, options.jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return rows


def machine(options):
    """What the times hold for; a file with other words here is not continued."""
    import torch
    if not torch.cuda.is_available():
        print("torch_compile.py: no GPU: times of torch.compile are measured on one", file=sys.stderr)
        sys.exit(3)
    return {"peer": "torch.compile", "mode": options.mode, "torch": torch.__version__, "device": torch.cuda.get_device_name(),
            "tf32": {"matmul": False, "cudnn": not options.no_tf32}}


def read_tasks(path, level):
    tasks = [json.loads(line) for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
    return [task for task in tasks if not level or task["level"] in level]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks")
    parser.add_argument("--out", required=True)
    parser.add_argument("--mode", default="default", choices=["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"])
    parser.add_argument("--level", type=int, action="append", help="these levels only (may be given several times)")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 2), help="tasks compiled at a time")
    parser.add_argument("--deadline", type=float, default=180, help="seconds until a task is compiled")
    parser.add_argument("--budget", type=float, default=0, help="seconds after which no task is begun; 0 = none")
    parser.add_argument("--warm-ups", type=int, default=10)
    parser.add_argument("--readings", type=int, default=25, help="at least")
    parser.add_argument("--half-width", type=float, default=0.02, help="more readings until the ratio's interval is as narrow, relative;")
    parser.add_argument("--most-s", type=float, default=3, help="or so many seconds are over")
    parser.add_argument("--no-tf32", action="store_true", help="convolutions of cuDNN without TF32 too; the verifier's reference has it")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.readings < 10:
        parser.error("--readings must be at least 10")
    if options.worker:
        return work(options)
    about, tasks, out = machine(options), read_tasks(options.tasks, options.level), pathlib.Path(options.out)
    known = json.loads(out.read_text()) if out.exists() else {**about, "tasks": {}}
    if {key: known.get(key) for key in about} != about:
        parser.error(f"{out} holds times of other settings or another machine")
    rows, until = known["tasks"], time.monotonic() + options.budget if options.budget else math.inf
    left = [task for task in tasks if rows.get(task["id"], {}).get("source") != source_hash(task["source"])]

    def save(task, row):
        rows[task["id"]] = row
        partial = out.with_name(out.name + ".partial")
        partial.write_text(json.dumps({**about, "tasks": dict(sorted(rows.items()))}, indent=1) + "\n")
        partial.replace(out)
        print(f"{len(rows)} of {len(tasks)}: {task['id']}: " +
              (row["error"] if "error" in row else f"{row['eager_ms']:.4f} -> {row['compiled_ms']:.4f} ms, {row['ratio']:.2f}x"), flush=True)

    with tempfile.TemporaryDirectory() as cache:
        options.cache = cache
        run_all(left, options, done=save, run=lambda task, *rest: run_task(task, *rest) if time.monotonic() < until else None)
    good = [row["ratio"] for row in rows.values() if "error" not in row]
    print(f"{len(good)} of {len(tasks)} tasks measured" + (f"; geometric mean of eager / compiled "
          f"{math.exp(statistics.mean(map(math.log, good))):.3f}, faster than eager on {sum(r > 1 for r in good)}" if good else ""))


if __name__ == "__main__":
    sys.exit(main())
