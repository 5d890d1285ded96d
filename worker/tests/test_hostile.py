# SPDX-License-Identifier: Apache-2.0
# Hostile children, and the life of a broker and its fork server.
import glob
import os
import time
import unittest

from harness import ForkServer, parse_blob
from test_worker import TASK, WithForkServers, model
from truth import truth


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

    def test_processor_time_is_told_and_limited(self):
        done, payload = self.send("while True: pass", processor_s=1.0)
        self.assertEqual((done["status"], done["code"], payload), ("signaled", 9, b""))
        self.assertGreater(done["processor_s"], 0.8)  # The kernel counts ticks.
        self.assertLess(done["processor_s"], 2)
        done, _ = self.send("import time\ntime.sleep(60)", deadline_s=1.0)  # Waiting is not computing.
        self.assertEqual(done["status"], "deadline")
        self.assertLess(done["processor_s"], 0.5)
        done, _ = self.send(self.CHILD_COMPUTES)
        self.assertGreaterEqual(done["processor_s"], 0.5)

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

    @unittest.skipUnless(os.environ.get("TRITONRL_SANDBOX_LIBRARY"), "needs the sandbox")
    def test_fork_bomb(self):
        done, _ = self.send("import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass",
                            deadline_s=1.0)
        self.assertEqual(done["status"], "deadline")
        self.assertLess(done["waited"], 8)

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
