# SPDX-License-Identifier: Apache-2.0
# Broker: stands between the verifier and the children (PROTOCOL.md). Never runs candidate code.
#
#   python -I broker.py --mode record|interpret [--sandbox-library PATH] [--fd 3]
#
# Two processes. The fork server (fork_server.py) imports torch and Triton once and forks a sandboxed child per job. The
# broker, this one, owns the socket and all bytes of all jobs; as nothing is forked from it, no child holds another
# job's. One thread, one selectors loop: jobs from the socket, bytes from the children's pipes, ends. Deadlines are the
# monitors' to keep, on the jobs' own clocks; here is only the wall's, for jobs that the machine gives nothing.
import argparse
import collections
import json
import os
import selectors
import signal
import socket
import sys
import time

for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_name] = "1"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import fork_server  # noqa: E402  (the path above has to be set first; `python -I` does not)
from frames import FRAME, MAX_HEADER, MAX_PAYLOAD, pack_frame  # noqa: E402
from jail import ENDED_BY, Process, Sandbox  # noqa: E402

STDERR_KEPT = 8 << 10
STDERR_LIMIT = 4 << 20  # A child that writes more is stopped.
GRACE_S = 2.0           # How long a monitor may take to die after SIGTERM.


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=("record", "interpret"), required=True)
    parser.add_argument("--sandbox-library", default=None)
    parser.add_argument("--fd", type=int, default=3)
    return parser.parse_args()


class Job:
    """A running child: what it has written, and how it is to be described when it ends."""

    def __init__(self, spec, process):
        self.id, self.process = spec["id"], process
        self.limit = int(spec["max_result_bytes"])
        self.started = time.monotonic()
        self.give_up_at = self.started + float(spec["patience_s"])
        self.verdict = None        # "starved", "overflow" or "killed" once we decided to end it.
        self.killed_at = None
        self.result, self.result_size = [], 0
        self.stderr, self.stderr_size = collections.deque(), 0

    def stop(self, verdict):
        if self.verdict is None:
            self.verdict = verdict
            self.killed_at = time.monotonic()
            self.process.kill()

    def take(self, fd):
        """Reads what a pipe holds. False at its end."""
        try:
            data = os.read(fd, 1 << 18)
        except BlockingIOError:
            return True
        if not data:
            return False
        if fd == self.process.result_fd:
            room = self.limit - self.result_size
            self.result.append(data[:room])
            self.result_size += min(len(data), room)
            if len(data) > room:
                self.stop("overflow")
        else:
            self.stderr.append(data)
            self.stderr_size += len(data)
            while sum(map(len, self.stderr)) - len(self.stderr[0]) >= STDERR_KEPT:
                self.stderr.popleft()
            if self.stderr_size > STDERR_LIMIT:
                self.stop("overflow")
        return True

    def header(self, report):
        wait_status, code = report.wait_status, 0
        status = self.verdict or ENDED_BY[report.ended_by]
        if os.WIFSIGNALED(wait_status):
            code = os.WTERMSIG(wait_status)
            status = status or "signaled"
        elif wait_status < 0:
            status = status or "fork_failed"
        else:
            code = os.WEXITSTATUS(wait_status)
            status = status or "exited"
        text = b"".join(self.stderr)[-STDERR_KEPT:].decode("utf-8", "replace")
        return {"type": "done", "id": self.id, "status": status, "code": code,
                "seconds": round(time.monotonic() - self.started, 6), "processor_s": round(report.processor_s, 6),
                "own_s": round(report.own_s, 6), "peak_bytes": report.peak_bytes,
                "machine_ran_out": bool(report.machine_ran_out), "stderr": text}


class Broker:
    def __init__(self, connection, control):
        self._socket, self._control = connection, control
        self._selector = selectors.DefaultSelector()
        self._socket.setblocking(False)
        self._selector.register(self._socket, selectors.EVENT_READ, None)
        self._jobs = {}
        self._input, self._output = bytearray(), collections.deque()
        self._running = True

    # --- Frames.

    def send(self, header, payload=b""):
        self._output.append(memoryview(pack_frame(header, payload)))
        self._flush()

    def _flush(self):
        while self._output:
            try:
                sent = self._socket.send(self._output[0])
            except BlockingIOError:
                break
            except OSError:
                self._running = False
                return
            if sent == len(self._output[0]):
                self._output.popleft()
            else:
                self._output[0] = self._output[0][sent:]
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._output else 0)
        self._selector.modify(self._socket, events, None)

    def _receive(self):
        try:
            data = self._socket.recv(1 << 20)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._running = False
            return
        self._input += data
        while len(self._input) >= FRAME.size:
            header_size, payload_size = FRAME.unpack_from(self._input)
            if header_size > MAX_HEADER or payload_size > MAX_PAYLOAD:
                sys.exit("broker: a frame is too large")
            total = FRAME.size + header_size + payload_size
            if len(self._input) < total:
                return
            header = json.loads(self._input[FRAME.size:FRAME.size + header_size])
            with memoryview(self._input) as view, view[:total] as frame:
                self._handle(header, frame)
            del self._input[:total]

    def _handle(self, header, frame):
        kind = header.get("type")
        if kind == "job":
            self._start(header, frame)
        elif kind == "kill":
            if header["id"] in self._jobs:
                self._jobs[header["id"]].stop("killed")
        elif kind == "quit":
            self._running = False
        else:
            sys.exit(f"broker: unknown frame type {kind!r}")

    # --- Jobs.

    def _start(self, spec, frame):
        try:
            process = start(self._control, {key: spec[key] for key in ("memory_bytes", "deadline_s")}, frame)
        except OSError as error:
            self.send({"type": "done", "id": spec["id"], "status": "fork_failed", "code": error.errno or 0,
                       "seconds": 0.0, "processor_s": 0.0, "own_s": 0.0, "peak_bytes": 0, "machine_ran_out": False,
                       "stderr": str(error)})
            return
        job = self._jobs[spec["id"]] = Job(spec, process)
        for fd in (process.result_fd, process.stderr_fd, process.status_fd):
            self._selector.register(fd, selectors.EVENT_READ, job)

    def _finish(self, job):
        process = job.process
        self._selector.unregister(process.status_fd)
        report = process.end_status()
        self._selector.register(process.pidfd, selectors.EVENT_READ, process)
        for fd in (process.result_fd, process.stderr_fd):
            if fd is not None:
                self._drain(job, fd)
        del self._jobs[job.id]
        self.send(job.header(report), b"".join(job.result))

    def _drain(self, job, fd):
        """What is left in a pipe after the end; bounded, because a straggler might still write."""
        for _ in range(64):
            before = job.result_size + job.stderr_size
            if not job.take(fd) or job.result_size + job.stderr_size == before:
                break
        self._close(job, fd)

    def _close(self, job, fd):
        self._selector.unregister(fd)
        os.close(fd)
        if fd == job.process.result_fd:
            job.process.result_fd = None
        else:
            job.process.stderr_fd = None

    def _ready(self, job, fd):
        if fd == job.process.status_fd:
            self._finish(job)
        elif not job.take(fd):
            self._close(job, fd)

    def _check_deadlines(self):
        now, nearest = time.monotonic(), None
        for job in list(self._jobs.values()):
            if job.verdict is None and now >= job.give_up_at:
                job.stop("starved")
            limit = job.give_up_at if job.killed_at is None else job.killed_at + GRACE_S
            if job.killed_at is not None and now >= limit:
                job.process.kill_monitor()
                job.killed_at = now
                limit = now + GRACE_S
            nearest = limit if nearest is None else min(nearest, limit)
        return None if nearest is None else max(0.0, nearest - now)

    def serve(self):
        while self._running:
            for key, events in self._selector.select(self._check_deadlines()):
                if key.data is None:
                    if events & selectors.EVENT_WRITE:
                        self._flush()
                    if events & selectors.EVENT_READ and self._running:
                        self._receive()
                elif key.fileobj not in self._selector.get_map():
                    continue  # Closed by an earlier event of this round.
                elif isinstance(key.data, Job):
                    self._ready(key.data, key.fileobj)
                else:
                    self._selector.unregister(key.fileobj)
                    key.data.reap()
        for job in self._jobs.values():
            job.process.kill()
        for job in self._jobs.values():
            job.process.reap()


def start(control, limits, frame=b""):
    """Has a job forked. OSError when there is no process."""
    job_fd = os.memfd_create("job")
    pipes = []
    try:
        view = memoryview(frame)
        while view:
            view = view[os.write(job_fd, view):]
        for _ in range(3):
            pipes.append(os.pipe())
        pid, pidfd = fork_server.ask(control, limits, [job_fd, *(write for _, write in pipes)])
    except OSError:
        for read, _ in pipes:
            os.close(read)
        raise
    finally:
        for fd in (job_fd, *(write for _, write in pipes)):
            os.close(fd)
    for read, _ in pipes:
        os.set_blocking(read, False)
    return Process(pid, pidfd, *[read for read, _ in pipes])


def probe_sandbox(control):
    """Puts up the sandbox once, around nothing: the list of protections that this machine cannot give."""
    process = start(control, {"memory_bytes": 1 << 28, "deadline_s": 10})
    selector = selectors.DefaultSelector()
    selector.register(process.status_fd, selectors.EVENT_READ)
    if not selector.select(10):
        process.kill_monitor()
    status = process.end_status().wait_status
    process.reap()
    text = os.read(process.result_fd, 4096) if status == 0 else b""
    error = os.read(process.stderr_fd, 4096) if status != 0 else b""
    os.close(process.result_fd)
    os.close(process.stderr_fd)
    selector.close()
    if status != 0:
        return ["sandbox: " + error.decode("utf-8", "replace")]
    return [name for name in text.decode().split(",") if name]


def main():
    arguments = parse_arguments()
    sandbox = Sandbox(arguments.sandbox_library)
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        os.close(arguments.fd)
        control.close()
        fork_server.run(theirs, arguments.mode, sandbox)
        os._exit(0)
    theirs.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the verifier's to handle.
    connection = socket.socket(fileno=arguments.fd)
    if not fork_server.await_ready(control):
        sys.exit("broker: the warm-up failed")
    broker = Broker(connection, control)
    broker.send({"type": "ready", "pid": os.getpid(), "missing": probe_sandbox(control)})
    broker.serve()


if __name__ == "__main__":
    main()
