# SPDX-License-Identifier: Apache-2.0
# Fork server: the process with torch and Triton imported, from which every job is forked.
#
# A child inherits its parent's memory, so this process never holds a byte of any job: a request says how much memory
# and time there is and brings descriptors, of which one is a file with the job in it. The child reads that file.
import gc
import json
import os
import signal
import socket
import sys

from frames import unpack_job
from jail import launch


def ask(control, request, descriptors=()):
    """From the broker: (pid, pidfd) of a new monitor. OSError when there is none."""
    try:
        socket.send_fds(control, [json.dumps(request).encode()], descriptors)
        message, received, _, _ = socket.recv_fds(control, 4096, 1)
    except ConnectionError:
        message = b""
    if not message:
        sys.exit("broker: the fork server is gone")
    answer = json.loads(message)
    if not received:
        raise OSError(answer["errno"], answer["error"])
    return answer["pid"], received[0]


def await_ready(control):
    """Blocks until the fork server can fork; False when it never will."""
    return control.recv(4096) == b"ready"


def run(control, mode, sandbox):
    """The fork server's life: warm up, then fork until the broker is gone."""
    from warm_up import collapse_heap, warm_up  # Imports torch; Triton only once TRITON_INTERPRET is set.
    if mode == "interpret":
        os.environ["TRITON_INTERPRET"] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    body = make_body(warm_up(mode), sandbox)
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        sys.exit(f"fork server: {threads} threads after warm-up; forking would not be safe")
    gc.collect()
    gc.freeze()
    collapse_heap()
    control.send(b"ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 4096, 4)
        if not message:
            return
        _reap()
        _fork(control, json.loads(message), descriptors, body, sandbox)


def _fork(control, request, descriptors, body, sandbox):
    pidfd = None
    try:
        pid = launch(request, body, sandbox, *descriptors)
        pidfd = os.pidfd_open(pid)
        socket.send_fds(control, [json.dumps({"pid": pid}).encode()], [pidfd])
    except OSError as error:
        control.send(json.dumps({"errno": error.errno or 0, "error": str(error)}).encode())
    finally:
        for fd in descriptors if pidfd is None else [*descriptors, pidfd]:
            os.close(fd)


def _reap():
    """Monitors that ended since; the broker has watched them through their pidfds."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def make_body(runners, sandbox):
    """What a grandchild does: run the job, write one blob."""
    from failure import Failure
    from wire import BlobWriter

    def body(frame, write_result, work):
        if frame is None:  # A probe: which protections are missing?
            write_result(",".join(sandbox.missing()).encode())
            return
        gc.disable()
        job, blob = unpack_job(frame), BlobWriter()
        try:
            answer = {"ok": True, **runners[job["job"]](job, job["payload"], blob, work)}
        except Failure as failure:
            blob = BlobWriter()
            answer = {"ok": False, "failure": failure.to_json()}
        except MemoryError:
            blob = BlobWriter()
            answer = {"ok": False, "failure": Failure("out_of_memory", "forward", "out of memory").to_json()}
        write_result(blob.finish({"nonce": job["nonce"], **answer}))
    return body
