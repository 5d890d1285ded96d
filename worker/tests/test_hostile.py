# SPDX-License-Identifier: Apache-2.0
# Hostile children, and the life of a broker and its fork server.
import contextlib
import glob
import os
import subprocess
import sys
import time
import unittest

from harness import ForkServer, parse_blob
from test_worker import TASK, WithForkServers, model
from truth import truth


SANDBOXED = os.environ.get("TRITONRL_SANDBOX_LIBRARY")

COMPUTE = """
import os, time
os.sched_setaffinity(0, [{core}])
while time.process_time() < {seconds}:
    pass
raise RuntimeError("done")
"""

CHILDREN_HOARD = """
import os, time
for _ in range({children}):
    if os.fork() == 0:
        hoard = bytearray(os.urandom(1 << 20)) * {mib}
        time.sleep(0.7)
        os._exit(0)
for _ in range({children}):
    os.wait()
"""

FILES_HOARD = """
import os, time
for i in range({children}):
    file = open(f"hoard{{i}}", "wb")
    os.unlink(f"hoard{{i}}")
    for _ in range({mib}):
        file.write(os.urandom(1 << 20))
    file.flush()
    globals()[f"file{{i}}"] = file
time.sleep(0.2)
"""

MAPPED_FILES_HOARD = """
import mmap, os, time
maps = []
for i in range({children}):
    file = open(f"hoard{{i}}", "w+b")
    file.truncate({mib} << 20)
    maps.append(mmap.mmap(file.fileno(), 0))
    for at in range(0, {mib} << 20, 4096):
        maps[-1][at] = 1
    time.sleep(0.05)
time.sleep(0.2)
"""

SHARED_HOARD = """
import os, time
hoard = bytearray(os.urandom(1 << 20)) * {mib}
for _ in range({children}):
    if os.fork() == 0:
        time.sleep(0.7)
        os._exit(0)
for _ in range({children}):
    os.wait()
"""

# Bombs take a token for each fork and compute when there is none left, so that they end whatever the code under test does.
FORK_BOMB = """
import os
read_end, write_end = os.pipe()
os.write(write_end, b"." * 80)
os.set_blocking(read_end, False)
while True:
    try:
        if os.read(read_end, 1):
            os.fork()
    except OSError:
        pass
"""

SHORT_LIVED_BOMB = """
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
tokens = 300
while True:
    try:
        tokens -= 1
        if tokens > 0 and os.fork() == 0:
            os._exit(0)
    except OSError:
        pass
"""


@contextlib.contextmanager
def busy(core, processes):
    """Others who compute on that core."""
    source = f"import os\nos.sched_setaffinity(0, [{core}])\nwhile True: pass"
    others = [subprocess.Popen([sys.executable, "-c", source]) for _ in range(processes)]
    try:
        time.sleep(0.3)
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


class Hostile(WithForkServers):
    def setUp(self):
        self.answer, _ = truth(TASK)

    def send(self, source, **limits):
        started = time.monotonic()
        broker = self.pair.recorder
        broker.submit("record", self.pair.record_args(TASK, source, self.answer), **limits)
        done, payload = broker.receive()
        done["waited"] = time.monotonic() - started
        return done, payload

    def tearDown(self):  # Whatever happened: the fork server works on.
        good = model("y = torch.empty_like(x); kernel[(2,)](x, y, 200, BLOCK=128); return y")
        self.assertTrue(self.record(good, compile=False)[1]["ok"])

    def test_infinite_loop(self):
        done, payload = self.send("while True: pass", deadline_s=1.0)
        self.assertEqual((done["status"], payload), ("deadline", b""))
        self.assertLess(done["waited"], 5)

    @unittest.skipUnless(SANDBOXED, "the library keeps the clock")
    def test_own_clock(self):
        done, payload = self.send("while True: pass", deadline_s=1.0)
        self.assertEqual((done["status"], done["code"], payload), ("deadline", 9, b""))
        self.assertGreater(done["processor_s"], 0.8)
        self.assertLess(done["processor_s"], 1.5)
        done, _ = self.send("import time\ntime.sleep(60)", deadline_s=1.0)  # Sleep counts: nobody waits for it.
        self.assertEqual(done["status"], "deadline")
        self.assertLess(done["processor_s"], 0.5)
        self.assertLess(done["waited"], 3)
        done, _ = self.send(self.CHILD_COMPUTES)
        self.assertGreaterEqual(done["processor_s"], 0.5)
        self.assertGreaterEqual(done["own_s"], 0.5)

    @unittest.skipUnless(SANDBOXED, "the library keeps the clock")
    def test_own_clock_stands_while_others_have_the_processor(self):
        core = sorted(os.sched_getaffinity(0))[0]
        with busy(core, 4):  # A fifth of it is left.
            honest = COMPUTE.format(core=core, seconds=0.9)  # Even with half of it, where a scheduler groups the others.
            done, payload = self.send(honest, deadline_s=1.5)
            self.assertEqual(done["status"], "exited")
            self.assertEqual(parse_blob(payload)[0]["failure"]["message"].splitlines()[-1], "RuntimeError: done")
            self.assertGreater(done["seconds"], 1.5)
            self.assertLess(done["own_s"], 1.2)
            # One that gets nothing to speak of is not late: this machine is.
            done, _ = self.send(COMPUTE.format(core=core, seconds=60), deadline_s=30, patience_s=1.5)
            self.assertEqual(done["status"], "starved")
            self.assertLess(done["own_s"], 1.2)

    @unittest.skipUnless(SANDBOXED, "the library counts memory")
    def test_memory_of_all_processes_together(self):
        cap = 256 << 20
        for hoard in (CHILDREN_HOARD, FILES_HOARD, MAPPED_FILES_HOARD):
            done, payload = self.send(hoard.format(children=6, mib=180), memory_bytes=cap, deadline_s=10)
            self.assertEqual((done["status"], payload), ("memory", b""))
            self.assertGreater(done["peak_bytes"], cap)
            self.assertLess(done["peak_bytes"], 3 * cap)
        for hoard in (CHILDREN_HOARD, FILES_HOARD):
            done, _ = self.send(hoard.format(children=4, mib=40), memory_bytes=cap, deadline_s=10)
            self.assertEqual(done["status"], "exited")
            self.assertLess(done["peak_bytes"], cap)
            self.assertGreater(done["peak_bytes"], 100 << 20)

    @unittest.skipUnless(SANDBOXED, "the library counts memory")
    def test_pages_that_processes_share_count_once(self):
        done, _ = self.send(SHARED_HOARD.format(mib=150, children=4), memory_bytes=256 << 20, deadline_s=10)
        self.assertEqual(done["status"], "exited")
        self.assertLess(done["peak_bytes"], 256 << 20)

    CHILD_COMPUTES = """
import os
import time
if os.fork() == 0:
    while time.process_time() < 0.5:
        pass
    os._exit(0)
os.wait()
"""

    def test_exit(self):
        done, payload = self.send("import os; os._exit(0)")
        self.assertEqual((done["status"], done["code"], payload), ("exited", 0, b""))
        done, _ = self.send("import sys; sys.exit(3)")
        self.assertEqual((done["status"], done["code"]), ("exited", 0))  # A SystemExit is reported, not obeyed.
        done, _ = self.send("import os; os.abort()")
        self.assertEqual(done["status"], "signaled")  # The first process of a PID namespace cannot abort: it crashes.

    def test_floods(self):
        done, payload = self.send("while True: print('x' * 1000)", deadline_s=1.0)
        self.assertEqual((done["status"], payload), ("deadline", b""))
        done, _ = self.send("import os\nwhile True: os.write(2, b'spam ' * 1000)")
        self.assertEqual(done["status"], "overflow")
        self.assertLessEqual(len(done["stderr"]), 8192)

    WRITE = """
import glob
import os
for fd in range(3, 64):
    try:
        os.write(fd, b"\\xff\\x00 garbage " * {times})
    except OSError:
        pass
{rest}
"""

    def test_garbage_on_the_result_pipe(self):
        done, payload = self.send(self.WRITE.format(times=10, rest="os._exit(0)"))
        self.assertEqual(done["status"], "exited")
        self.assertTrue(payload.startswith(b"\xff"))
        self.assertEqual(parse_blob(payload), (None, b""))

    def test_huge_result(self):
        done, payload = self.send(self.WRITE.format(times=20 << 20, rest=""), max_result_bytes=1 << 20)
        self.assertEqual((done["status"], len(payload)), ("overflow", 1 << 20))

    def test_memory(self):
        done, payload = self.send("hoard = [bytearray(1 << 28) for _ in range(64)]", memory_bytes=1 << 30)
        self.assertEqual(parse_blob(payload)[0]["failure"]["outcome"], "out_of_memory")

    def test_children_of_a_child_die(self):
        def alive():
            count = 0
            for path in glob.glob("/proc/[0-9]*/cmdline"):
                try:
                    with open(path, "rb") as file:
                        count += file.read() == command_line
                except OSError:
                    pass
            return count

        with open(f"/proc/{self.pair.recorder.process.pid}/cmdline", "rb") as file:
            command_line = file.read()  # Forks keep it.
        before = alive()  # Broker and fork server.
        done, _ = self.send("""
import os, time
for _ in range(5):
    if os.fork() == 0:
        try:
            os.setsid()
        except PermissionError:
            pass
        time.sleep(100)
        os._exit(0)
os._exit(5)
""")
        self.assertEqual((done["status"], done["code"]), ("exited", 5))
        self.assertLess(done["waited"], 5)
        deadline = time.monotonic() + 5
        while alive() > before and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(alive(), before)

    @unittest.skipUnless(SANDBOXED, "needs the sandbox")
    def test_fork_bomb(self):
        done, _ = self.send(FORK_BOMB, deadline_s=1.0)
        self.assertEqual(done["status"], "deadline")
        self.assertLess(done["waited"], 20)  # Here nothing limits processes; they are slow to end.
        self.assertEqual(self.send(SHORT_LIVED_BOMB, deadline_s=1.0)[0]["status"], "deadline")

    SPY = """
table = bytes((c + 1) % 256 for c in range(256))
needle = bytes(reversed({needle!r}))  # Translated: as it is, it shall not be in this process.
found = 0
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
    for line in maps.read().splitlines():
        span, mode = line.split()[:2]
        at, end = (int(part, 16) for part in span.split("-"))
        while mode.startswith("rw") and at < end:
            memory.seek(at)
            try:
                data = memory.read(min(end - at, 1 << 22))
            except OSError:
                break
            found += data.translate(table).count(needle)
            at += max(1, len(data))
raise RuntimeError(f"found {{found}}")
"""

    def test_a_child_holds_nothing_of_other_jobs(self):
        marker = b"the-secret-of-another-job"
        translated = bytes(c + 1 for c in marker)
        broker = self.pair.recorder
        busy = self.WRITE.format(times=f"1 + {marker!r} * 100", rest="import time; time.sleep(3)")
        for _ in range(3):
            broker.submit("record", self.pair.record_args(TASK, busy, self.answer))
        time.sleep(0.7)
        source = self.SPY.format(needle=translated[::-1])
        spy = broker.submit("record", self.pair.record_args(TASK, source, self.answer))
        answers = {}
        while len(answers) < 4:
            done, payload = broker.receive()
            answers[done["id"]] = payload
        self.assertIn("found 0", parse_blob(answers[spy])[0]["failure"]["message"])

    def test_jobs_overlap_and_can_be_killed(self):
        broker = self.pair.recorder
        started = time.monotonic()
        args = self.pair.record_args(TASK, "import time; time.sleep(1)", self.answer)
        ids = {broker.submit("record", args) for _ in range(3)}
        victim = broker.submit("record", self.pair.record_args(TASK, "import time; time.sleep(60)", self.answer))
        broker.send({"type": "kill", "id": victim})
        done = [broker.receive()[0] for _ in range(4)]
        self.assertLess(time.monotonic() - started, 2.9)
        self.assertEqual({d["id"]: d["status"] for d in done if d["id"] == victim}, {victim: "killed"})
        self.assertEqual({d["id"] for d in done}, ids | {victim})


class Life(unittest.TestCase):
    def test_broker_ends_with_its_socket_and_takes_its_jobs_along(self):
        broker = ForkServer("record")
        broker.submit("record", {"reference": True, "task_source": "while True: pass", "weight_seed": 0,
                                 "cases": [{"name": "full"}]}, deadline_s=60)
        time.sleep(0.3)
        broker.close()
        self.assertEqual(broker.process.returncode, 0)


if __name__ == "__main__":
    unittest.main()
