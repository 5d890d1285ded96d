# SPDX-License-Identifier: Apache-2.0
# One job = two processes: fork server -> monitor -> grandchild. Only the grandchild meets candidate code.
#
# The monitor enters new namespaces (sandbox library) and forks again, so that the grandchild is PID 1 of its own PID
# namespace: when it dies, everything it started dies. The monitor waits for it, reaps stragglers (it is their
# sub-reaper where there are no namespaces), and reports the wait status and the processor time that was used through a
# pipe the grandchild does not have.
# A grandchild that does not say "set up" before it meets the candidate counts as never started.
# SIGTERM to the monitor kills the job.
import ctypes
import math
import os
import resource
import select
import shutil
import signal
import struct
import sys
import tempfile
import traceback

SETUP_FAILED = 113  # Exit code: the sandbox could not be put up. Reported as fork_failed, which no candidate can fake.
TMP_BYTES = 1 << 30
PR_SET_CHILD_SUBREAPER = 36
FORK_FAILED = -1         # No process, or no sandbox around it: our fault, never the candidate's.
REPORT = struct.Struct("<id")  # Wait status, seconds of processor time.

_libc = ctypes.CDLL(None, use_errno=True)


class Sandbox:
    """The C library, or nothing (development without a jail)."""

    def __init__(self, path=None):
        self._library = None
        if path:
            self._library = ctypes.CDLL(path)
            self._library.tritonrl_sandbox_enter.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int,
                                                             ctypes.c_int, ctypes.c_int]

    @property
    def active(self):
        return self._library is not None

    def monitor(self):
        return self._library.tritonrl_sandbox_monitor() if self._library else 0

    def enter(self, memory_bytes, processor_s, keep_a, keep_b):
        if self._library:
            return self._library.tritonrl_sandbox_enter(memory_bytes, TMP_BYTES, keep_a, keep_b, math.ceil(processor_s))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(processor_s),) * 2)
        with open("/proc/self/statm", encoding="ascii") as file:
            mapped = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        limit = mapped + memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        return 0

    def missing(self):
        """Called in the grandchild, after enter()."""
        if not self._library:
            return ["sandbox"]
        if not hasattr(self._library, "tritonrl_sandbox_missing"):
            return []
        self._library.tritonrl_sandbox_missing.restype = ctypes.c_char_p
        text = self._library.tritonrl_sandbox_missing().decode()
        return [name for name in text.split(",") if name]


class Process:
    """What the broker holds of a running job."""

    def __init__(self, pid, pidfd, result_fd, stderr_fd, status_fd):
        self.pid, self.pidfd = pid, pidfd
        self.result_fd, self.stderr_fd, self.status_fd = result_fd, stderr_fd, status_fd

    def kill(self):
        """Asks the monitor to kill the job; it does so at once."""
        try:
            signal.pidfd_send_signal(self.pidfd, signal.SIGTERM)
        except ProcessLookupError:
            pass

    def kill_monitor(self):
        try:
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass

    def end_status(self):
        """After status_fd became readable: the grandchild's wait status (FORK_FAILED where there was none) and the
        seconds of processor time that it and what it waited for have used."""
        data = os.read(self.status_fd, REPORT.size)
        os.close(self.status_fd)
        return REPORT.unpack(data) if len(data) == REPORT.size else (signal.SIGKILL, 0.0)

    def reap(self):
        """Blocks until the monitor is gone (it dies right after its report)."""
        select.select([self.pidfd], [], [])
        os.close(self.pidfd)


def launch(limits, body, sandbox, job_fd, result_fd, stderr_fd, status_fd):
    """Forks a job; returns its monitor's pid. The caller closes its descriptors.

    `limits`: {"memory_bytes", "processor_s"}. `body(job, write_result, work_folder)` runs in the grandchild, where `job`
    is what the file `job_fd` holds (None when that is empty).
    """
    pid = os.fork()
    if pid == 0:
        try:
            _monitor(limits, body, sandbox, job_fd, result_fd, stderr_fd, status_fd)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    return pid


def _close_all_but(*keep):
    low = 0
    for fd in sorted(keep):
        if low < fd:  # closerange(0, 0) would close everything.
            os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, 1 << 16)


def _monitor(limits, body, sandbox, job_fd, result_fd, stderr_fd, status_fd):
    child = 0

    def on_term(_signal, _frame):
        if child:
            os.kill(child, signal.SIGKILL)

    signal.signal(signal.SIGTERM, on_term)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    os.setsid()
    _close_all_but(0, 1, 2, job_fd, result_fd, stderr_fd, status_fd)  # Not the fork server's socket.
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    work = "/tmp" if sandbox.active else tempfile.mkdtemp(prefix="tritonrl-job-")
    error = sandbox.monitor()
    if error:
        _report(status_fd, FORK_FAILED, stderr_fd, f"sandbox monitor: {os.strerror(-error)}")
    setup_read, setup_write = os.pipe()  # A byte comes through once the sandbox is up; before that it is our fault.
    try:
        child = os.fork()
    except OSError as failure:
        _report(status_fd, FORK_FAILED, stderr_fd, f"fork: {failure}")
    if child == 0:
        try:
            os.close(status_fd)
            os.close(setup_read)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            _grandchild(limits, body, sandbox, job_fd, result_fd, stderr_fd, setup_write, work)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    for fd in (job_fd, result_fd, setup_write):
        os.close(fd)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    status, processor_s = _wait(child)
    if os.WIFEXITED(status) and not os.read(setup_read, 1):
        status = FORK_FAILED
    _kill_stragglers()
    if not sandbox.active:
        shutil.rmtree(work, ignore_errors=True)
    os.write(status_fd, REPORT.pack(status, processor_s))
    os._exit(0)


def _report(status_fd, status, stderr_fd, text):
    os.write(stderr_fd, text.encode())
    os.write(status_fd, REPORT.pack(status, 0.0))
    os._exit(0)


def _wait(child):
    while True:
        pid, status, usage = os.wait4(-1, 0)
        if pid == child:
            return status, usage.ru_utime + usage.ru_stime


def _kill_stragglers():
    """Kills and reaps what the grandchild left behind. With a PID namespace there is nothing."""
    for _ in range(1000):
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            children = [int(pid) for pid in file.read().split()]
        if not children:
            return
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        for _ in children:
            os.waitpid(-1, 0)


def read_whole(fd):
    size = os.fstat(fd).st_size
    data, done = bytearray(size), 0
    while done < size:
        count = os.preadv(fd, [memoryview(data)[done:]], done)
        if count == 0:
            raise EOFError("a job is shorter than its file")
        done += count
    return data


def _grandchild(limits, body, sandbox, job_fd, result_fd, stderr_fd, setup_fd, work):
    job = read_whole(job_fd) or None  # Before the limit on memory counts.
    null = os.open("/dev/null", os.O_RDWR)
    for fd, source in ((0, null), (1, null), (2, stderr_fd)):
        os.dup2(source, fd, inheritable=True)
    _close_all_but(0, 1, 2, result_fd, setup_fd)
    error = sandbox.enter(int(limits["memory_bytes"]), float(limits["processor_s"]), result_fd, setup_fd)
    if error:
        os.write(2, f"sandbox: {os.strerror(-error)}".encode())
        os._exit(SETUP_FAILED)
    os.write(setup_fd, b"1")
    os.close(setup_fd)
    keep = {name: value for name, value in os.environ.items()
            if name in ("PATH", "LANG", "LC_ALL", "TRITON_INTERPRET") or name.endswith("_NUM_THREADS")}
    os.environ.clear()
    os.environ.update(keep, HOME=work, TMPDIR=work, TRITON_HOME=work, TRITON_CACHE_DIR=os.path.join(work, "triton"),
                      TRITON_STORE_BINARY_ONLY="1", TRITON_DISABLE_LINE_INFO="1")
    tempfile.tempdir = None
    cwd = os.path.join(work, "cwd")
    os.makedirs(cwd, exist_ok=True)
    os.chdir(cwd)
    sys.argv = ["candidate"]

    def write_result(blob):
        view = memoryview(blob)
        while view:
            view = view[os.write(result_fd, view):]

    body(job, write_result, work)
    os._exit(0)
