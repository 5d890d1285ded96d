# SPDX-License-Identifier: Apache-2.0
# Warm-up: everything a job would otherwise import, compile or initialise for itself is done once, in the fork server.
import ctypes
import logging
import os
import re
import shutil
import tempfile
import warnings

import torch

TASK = """
import torch
import torch.nn as nn
import torch.nn.functional as F

N = 8

class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = nn.Linear(n, n)

    def forward(self, x):
        return torch.softmax(F.gelu(self.linear(x)), dim=-1)

def get_inputs():
    return [torch.rand(N, N)]

def get_init_inputs():
    return [N]
"""

CANDIDATE = """
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl

@triton.jit
def half(x):
    return x * 0.5

@triton.jit
def kernel(x_ptr, w_ptr, y_ptr, rows, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    x = tl.load(x_ptr + row * n + columns, mask=mask, other=0.0)
    w = tl.load(w_ptr + columns, mask=mask, other=0.0)
    z = half(tl.exp(x - tl.max(x, axis=0)) * w)
    a = tl.reshape(tl.arange(0, 256), (16, 16)).to(tl.float32)
    acc = tl.dot(a, a)
    z = tl.where(z > tl.sum(tl.sum(acc, axis=1), axis=0), tl.sigmoid(z), z)
    tl.store(y_ptr + row * n + columns, z / tl.sum(z, axis=0), mask=mask)

class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = nn.Linear(n, n)

    def forward(self, x):
        x = x.contiguous().view(-1, x.shape[-1])
        y = torch.empty_like(x)
        kernel[(x.shape[0],)](x, self.linear.weight, y, x.shape[0], x.shape[1], BLOCK=16)
        return y.reshape(x.shape).to(torch.float32).transpose(0, 1)
"""

_ARGS = {"task_source": TASK, "candidate_source": CANDIDATE, "init_inputs": [8],
         "cases": [{"name": "full", "constants": {}, "compile": True,
                    "inputs": [{"shape": [8, 8], "dtype": "float32", "stride": [8, 1]}]}]}


def warm_up(mode):
    """Returns {job name: run}. Leaves one thread and no CUDA behind."""
    warnings.filterwarnings("ignore")
    logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)  # It logs what candidates get wrong.
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    folder = tempfile.mkdtemp(prefix="tritonrl-warm-")
    saved = {name: os.environ.get(name) for name in ("TRITON_CACHE_DIR", "TRITON_STORE_BINARY_ONLY")}
    os.environ.update(TRITON_CACHE_DIR=os.path.join(folder, "triton"), TRITON_STORE_BINARY_ONLY="1")
    try:
        return _record(folder) if mode == "record" else _interpret(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for name, value in saved.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


HUGE_PAGE = 2 << 20
MADV_COLLAPSE = 25


def collapse_heap():
    """Moves the heap onto huge pages: a fork then copies 200 table entries instead of 90,000.

    Halves what a fork and the exit of a child cost. Where the kernel cannot do it (before Linux 6.1), nothing changes.
    """
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    with open("/proc/self/maps", encoding="ascii") as file:
        lines = file.read().splitlines()
    for line in lines:
        match = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw-p \S+ 00:00 0\s*(?:\[heap\])?$", line)
        if not match:
            continue
        start = -(-int(match[1], 16) // HUGE_PAGE) * HUGE_PAGE
        end = int(match[2], 16) // HUGE_PAGE * HUGE_PAGE
        for address in range(start, end, HUGE_PAGE):
            libc.madvise(address, HUGE_PAGE, MADV_COLLAPSE)  # Refused for holes and untouched pages: fine.


def _record(folder):
    import compile
    import fake_cuda
    import inductor_shim
    import own_operators
    import record
    import session
    import stub_driver
    from wire import BlobWriter
    fake_cuda.install()
    stub_driver.install()
    inductor_shim.install()
    own_operators.install()
    record.run({"args": _ARGS}, b"", BlobWriter(), folder)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "warm_reference.py"), encoding="utf-8") as file:
        text = file.read()
    record.run({"args": {"reference": True, "task_source": text, "weight_seed": 0,
                         "cases": [{"name": "full", "constants": {"N": 8}}]}}, b"", BlobWriter(), folder)
    uncompiled = {**_ARGS, "cases": [{**_ARGS["cases"][0], "compile": False}]}
    answer = record.record(uncompiled, folder)
    compile.run({"args": {"kernels": answer["kernels"], "spec": answer["specs"][0]}}, b"", BlobWriter(), folder)
    session.current = None
    return {"record": record.run, "compile": compile.run}


def _interpret(folder):
    import interpret
    import interpreter
    from wire import BlobWriter
    interpreter.install()
    interpret.run(*_interpreter_job(), BlobWriter(), folder)
    interpreter.memory.__init__()
    return {"interpret": interpret.run}


def _interpreter_job():
    """(job, payload) of a hand-made trace that launches the kernel above."""
    import ast
    from trace_format import pack
    text = {node.name: ast.get_source_segment(CANDIDATE, node) for node in ast.parse(CANDIDATE).body
            if isinstance(node, ast.FunctionDef)}
    value = {"shape": [8, 8], "stride": [8, 1], "offset": 0, "dtype": "float32"}
    module = {"name": "tl", "kind": "module", "path": "triton.language"}
    case_trace = {"values": [{"id": i, "storage": i, **value} for i in range(3)], "inputs": [0],
            "parameters": [["w", 1]], "outputs": {"id": 2},
            "tape": [{"op": "aten.empty_like.default", "args": [{"t": 0}], "kwargs": {}, "out": {"id": 2}},
                     {"launch": 1, "grid": [2, 1, 1], "cubin": None, "num_warps": 4, "num_stages": 3, "line": 1,
                      "args": [["x_ptr", {"t": 0}], ["w_ptr", {"t": 1}], ["y_ptr", {"t": 2}], ["rows", {"i": 8}],
                               ["n", {"i": 8}], ["BLOCK", {"i": 16}]]}]}
    trace = pack({
        "kernels": [{"name": "half", "source": text["half"], "globals": [module], "line": 1},
                    {"name": "kernel", "source": text["kernel"],
                     "globals": [module, {"name": "half", "kind": "jit", "kernel": 0}], "line": 1}],
        "cubins": [], "cases": [{"name": "full", "trace": case_trace, "parameters": []}]})
    ref = {"shape": [8, 8], "dtype": "float32", "offset": 0, "nbytes": 256}
    job = {"args": {"trace": len(trace), "tensors": len(trace), "case": "full", "launches": True, "parameters": [[1, ref]],
                    "inputs": [ref], "poison": 1, "max_programs": 100}}
    return job, trace + bytes(256)
