# SPDX-License-Identifier: Apache-2.0
# One job = two processes: fork server -> monitor -> grandchild. Only the grandchild meets candidate code.
#
# The monitor enters new namespaces (sandbox library) and forks again, so that the grandchild is PID 1 of its own PID
# namespace: when it dies, everything it started dies. The monitor waits for it, reaps stragglers (it is their
# sub-reaper where there are no namespaces), kills it when all its processes together take more memory or time than they
# may (job_watch.h), and reports how it ended through a pipe the grandchild does not have.
# A grandchild that does not say "set up" before it meets the candidate counts as never started.
# SIGTERM to the monitor kills the job.
import ctypes
import math
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback

SETUP_FAILED = 113  # Exit code: the sandbox could not be put up. Reported as fork_failed, which no candidate can fake.
TMP_BYTES = 1 << 30
PR_SET_CHILD_SUBREAPER = 36
FORK_FAILED = -1         # No process, or no sandbox around it: our fault, never the candidate's.
PROCESSOR_SPARE_S = 5    # Beyond its deadline the kernel ends each process by itself.


class Report(ctypes.Structure):
    """How a job ended: TritonrlJobReport of sandbox_abi.h."""
    _fields_ = [("wait_status", ctypes.c_int32), ("ended_by", ctypes.c_int32), ("processor_s", ctypes.c_double),
                ("own_s", ctypes.c_double), ("peak_bytes", ctypes.c_uint64), ("machine_ran_out", ctypes.c_int32)]


ENDED_BY = (None, "memory", "deadline")

_libc = ctypes.CDLL(None, use_errno=True)


class Sandbox:
    """The C library, or nothing (development without a jail)."""

    def __init__(self, path=None):
        self._library = None
        if path:
            self._library = ctypes.CDLL(path)
            self._library.tritonrl_sandbox_enter.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int,
                                                             ctypes.c_int, ctypes.c_int]
            self._library.tritonrl_sandbox_watch.argtypes = [ctypes.c_int, ctypes.c_uint64, ctypes.c_double,
                                                             ctypes.POINTER(Report)]

    @property
    def active(self):
        return self._library is not None

    def monitor(self):
        return self._library.tritonrl_sandbox_monitor() if self._library else 0

    def enter(self, memory_bytes, processor_s, keep_a, keep_b):
        if self._library:
            return self._library.tritonrl_sandbox_enter(memory_bytes, TMP_BYTES, keep_a, keep_b, processor_s)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (processor_s,) * 2)
        with open("/proc/self/statm", encoding="ascii") as file:
            mapped = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        limit = mapped + memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        return 0

    def watch(self, first, memory_bytes, deadline_s):
        """In the monitor, with SIGTERM and SIGCHLD blocked: waits for the grandchild. Its Report."""
        report = Report()
        if self._library:
            error = self._library.tritonrl_sandbox_watch(first, memory_bytes, deadline_s, report)
            if error:
                raise OSError(-error, os.strerror(-error))
            return report
        started = time.monotonic()
        while True:  # Nobody looks at memory here, and the clock is the wall's.
            left = started + deadline_s - time.monotonic()
            came = signal.sigtimedwait({signal.SIGTERM, signal.SIGCHLD}, max(left, 0.01))
            if came is None:
                report.ended_by = ENDED_BY.index("deadline")
            if came is None or came.si_signo == signal.SIGTERM:
                os.kill(first, signal.SIGKILL)
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == first:
                report.wait_status, report.processor_s = status, usage.ru_utime + usage.ru_stime
                report.own_s = time.monotonic() - started
                return report

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
        """After status_fd became readable: the Report; its wait status is FORK_FAILED where nothing was started."""
        data = os.read(self.status_fd, ctypes.sizeof(Report))
        os.close(self.status_fd)
        if len(data) == ctypes.sizeof(Report):
            return Report.from_buffer_copy(data)
        return Report(wait_status=FORK_FAILED)  # The monitor itself is gone.

    def reap(self):
        """Blocks until the monitor is gone (it dies right after its report)."""
        select.select([self.pidfd], [], [])
        os.close(self.pidfd)


def launch(limits, body, sandbox, job_fd, result_fd, stderr_fd, status_fd):
    """Forks a job; returns its monitor's pid. The caller closes its descriptors.

    `limits`: {"memory_bytes", "deadline_s"}. `body(job, write_result, work_folder)` runs in the grandchild, where `job`
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
    awaited = {signal.SIGTERM, signal.SIGCHLD}
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
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
            signal.pthread_sigmask(signal.SIG_UNBLOCK, awaited)
            _grandchild(limits, body, sandbox, job_fd, result_fd, stderr_fd, setup_write, work)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    for fd in (job_fd, result_fd, setup_write):
        os.close(fd)
    report = sandbox.watch(child, int(limits["memory_bytes"]), float(limits["deadline_s"]))
    if os.WIFEXITED(report.wait_status) and not os.read(setup_read, 1):
        report.wait_status = FORK_FAILED
    _kill_stragglers()
    if not sandbox.active:
        shutil.rmtree(work, ignore_errors=True)
    os.write(status_fd, bytes(report))
    os._exit(0)


def _report(status_fd, status, stderr_fd, text):
    os.write(stderr_fd, text.encode())
    os.write(status_fd, bytes(Report(wait_status=status)))
    os._exit(0)


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
    processor_s = math.ceil(float(limits["deadline_s"])) + PROCESSOR_SPARE_S
    error = sandbox.enter(int(limits["memory_bytes"]), processor_s, result_fd, setup_fd)
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
