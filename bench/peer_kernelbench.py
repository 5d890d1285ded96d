# SPDX-License-Identifier: Apache-2.0
"""KernelBench's harness over candidates.jsonl of make_verifier_stream.py, each in a Python process of its own.

    peer_kernelbench.py KERNELBENCH CANDIDATES.jsonl OUT.jsonl [--set mixed] [--budget S] [--timeout S] [--seed N] [--dry-run]

Calls eval_kernel_against_ref as scripts/run_and_check.py does (backend triton, 5 correctness trials, 100 timed ones), without
that script's further timing of the reference. Candidates are taken in a shuffled order until the budget is spent: what is
done is a fair sample. Ids that OUT holds already are skipped. Of KERNELBENCH only src/kernelbench/{__init__,eval,timing,
dataset,utils}.py is read. Packages that its modules import and evaluation does not use are stubbed where they are missing.
An answer without code never reaches this harness (its generator refuses it): no seconds are charged.
Lines of OUT: id, seconds (process: start to end), call_s (the function alone), compiled, correct, error, runtime_ms.
"""
import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import types

UNUSED = {"dotenv": ["load_dotenv"], "openai": ["OpenAI"], "litellm": ["completion"], "tqdm": ["tqdm"], "requests": []}


def stub_missing():
    """Stands in for packages that are not installed. Returns their names."""
    import importlib.util
    stubbed = []
    for name, members in UNUSED.items():
        if importlib.util.find_spec(name) is None:
            module = types.ModuleType(name)
            for member in members:
                setattr(module, member, lambda *arguments, **keywords: None)
            sys.modules[name] = module
            stubbed.append(name)
    if importlib.util.find_spec("pydantic") is None:
        class BaseModel:
            """As much of pydantic's as a result needs: fields with defaults."""

            def __init__(self, **values):
                for cls in reversed(type(self).__mro__):
                    for field in getattr(cls, "__annotations__", {}):
                        default = getattr(cls, field)
                        setattr(self, field, dict(default) if isinstance(default, dict) else default)
                self.__dict__.update(values)

        module = types.ModuleType("pydantic")
        module.BaseModel = BaseModel
        sys.modules["pydantic"] = module
        stubbed.append("pydantic")
    return stubbed


def evaluate(folder, row, dry_run, times=True):
    """In the candidate's process."""
    stubbed = stub_missing()
    sys.path.insert(0, str(pathlib.Path(folder) / "src"))
    import torch
    from kernelbench import eval as harness
    result = {"stubbed": stubbed}
    if dry_run:
        made = harness.KernelExecResult(compiled=False, metadata={"dry": 1})
        return {**result, "call_s": 0.0, "compiled": made.compiled, "correct": made.correctness, "error": "dry run",
                "runtime_ms": made.runtime}
    start = time.perf_counter()
    try:
        made = harness.eval_kernel_against_ref(
            original_model_src=row["task"], custom_model_src=row["code"], measure_performance=times,
            timing_method="cuda_event", verbose=False, num_correct_trials=5, num_perf_trials=100, build_dir=None,
            device=torch.device("cuda:0"), backend="triton", precision=torch.float32)
        metadata = made.metadata if made else {}
        error = next((str(metadata[key]) for key in ("compilation_error", "runtime_error", "correctness_issue", "error_during_performance")
                      if key in metadata), "" if made else "no result")
        if metadata.get("max_difference"):
            error += ", by up to " + max(metadata["max_difference"], key=float)
        result.update(compiled=bool(made and made.compiled), correct=bool(made and made.correctness), error=error[:300],
                      runtime_ms=made.runtime if made else -1, reference_ms=made.ref_runtime if made else -1)
    except Exception as failure:  # run_and_check.py catches the same and calls it not compiled.
        result.update(compiled=False, correct=False, error=f"{type(failure).__name__}: {failure}"[:300], runtime_ms=-1)
    result["call_s"] = time.perf_counter() - start
    return result


def run_one(arguments, row, cache):
    """Seconds and result of one fresh process."""
    environment = {**os.environ, "TRITON_CACHE_DIR": cache}
    command = [sys.executable, __file__, arguments.kernelbench, "-", "-", "--one"]
    command += (["--dry-run"] if arguments.dry_run else []) + ([] if getattr(arguments, "times", True) else ["--no-times"])
    start = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=environment, start_new_session=True)
    try:
        out, err = process.communicate(json.dumps(row), timeout=arguments.timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return {"seconds": time.perf_counter() - start, "compiled": False, "correct": False, "error": "timeout", "runtime_ms": -1}
    seconds = time.perf_counter() - start
    marked = [line for line in out.splitlines() if line.startswith("RESULT ")]
    if not marked:
        return {"seconds": seconds, "compiled": False, "correct": False, "runtime_ms": -1,
                "error": f"ended with exit code {process.returncode}: {err[-300:]}"}
    return {"seconds": seconds, **json.loads(marked[-1][7:])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernelbench")
    parser.add_argument("candidates")
    parser.add_argument("out")
    parser.add_argument("--set", default="mixed", help="which candidates: mixed or correct")
    parser.add_argument("--budget", type=float, default=300, help="seconds; no process is started after them, one that runs then is ended")
    parser.add_argument("--timeout", type=float, default=180, help="seconds for one candidate")
    parser.add_argument("--seed", type=int, default=0, help="of the order")
    parser.add_argument("--first", type=int, default=0, help="only so many")
    parser.add_argument("--dry-run", action="store_true", help="import the harness, evaluate nothing (needs no GPU)")
    parser.add_argument("--no-times", dest="times", action="store_false", help="correctness alone")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        result = evaluate(arguments.kernelbench, json.loads(sys.stdin.read()), arguments.dry_run, arguments.times)
        print("\nRESULT " + json.dumps(result), flush=True)
        return
    rows = [row for row in map(json.loads, open(arguments.candidates)) if row["set"] == arguments.set]
    random.Random(arguments.seed).shuffle(rows)
    rows = rows[:arguments.first] if arguments.first else rows
    out = pathlib.Path(arguments.out)
    done = {json.loads(line)["id"] for line in out.open()} if out.exists() else set()
    until = time.monotonic() + arguments.budget
    with out.open("a") as lines, tempfile.TemporaryDirectory() as cache:
        for row in rows:
            if row["id"] in done:
                continue
            left = until - time.monotonic()
            if left <= 0:
                break
            if row["code"] is None:
                result = {"seconds": 0.0, "compiled": False, "correct": False, "error": "never evaluated", "runtime_ms": -1}
            else:
                wanted, arguments.timeout = arguments.timeout, min(arguments.timeout, left)
                result = run_one(arguments, row, cache)
                cut_short = result["error"] == "timeout" and arguments.timeout < wanted
                arguments.timeout = wanted
                if cut_short:  # By the budget: not a result.
                    break
            lines.write(json.dumps({"id": row["id"], "set": row["set"], **result}) + "\n")
            lines.flush()


if __name__ == "__main__":
    main()
