# SPDX-License-Identifier: Apache-2.0
# Stub Triton driver: compiles for sm_90 without a GPU, keeps the cubins, and records launches instead of making them.
#
# Covers kernel[grid](...), .run, .warmup, heuristics and autotune. The autotuner's benchmark runs every configuration
# once (at most MAX_CONFIGS) with recording paused, so that each is compiled; the first that compiles is recorded.
import functools
import operator
import sys
import time
import types

import torch
import triton
import triton.testing
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime import autotuner
from triton.runtime.jit import JITFunction

import fake_cuda
from failure import Failure
from kernels import KernelTable, encode_constant

MAX_CONFIGS = 16
MAX_GRID = ((1 << 31) - 1, 65535, 65535)

session = None  # The Session of the job at hand.


class Session:
    """What one recording job has seen: kernels, cubins, and the Recorder of the case at hand."""

    def __init__(self, source_path=""):
        self.kernels = KernelTable()
        self.cubins = []      # (entry, bytes)
        self.recorder = None
        self.compile = True
        self.source_path = source_path
        self.compile_seconds = 0.0
        self._cubin_of = {}   # id(CompiledKernel's binary) -> index.

    def add_cubin(self, function, signature, constants, metadata, binary):
        key = id(binary)
        if key in self._cubin_of:
            return self._cubin_of[key]
        names = [p.name for p in function.params]
        entry = {"kernel": self.kernels.index_of(function), "signature": ",".join(_flat(signature)),
                 "constants": {names[path[0]]: encode_constant(value, self.kernels)
                               for path, value in constants.items() if len(path) == 1},
                 "num_warps": metadata.num_warps, "num_stages": metadata.num_stages, "num_ctas": metadata.num_ctas,
                 "shared": metadata.shared, "global_scratch": metadata.global_scratch_size, "name": metadata.name}
        self.cubins.append((entry, binary))
        self._cubin_of[key] = len(self.cubins) - 1
        return len(self.cubins) - 1

    def launch(self, function, grid, values, num_warps, num_stages, cubin):
        if self.recorder is None or not self.recorder.recording:
            return
        grid = [operator.index(size) for size in grid]
        if any(size < 0 or size > limit for size, limit in zip(grid, MAX_GRID)):
            raise RuntimeError(f"Triton Error [CUDA]: invalid argument (grid {tuple(grid)})")
        with torch._C.DisableTorchFunction():
            args = [[p.name, self._argument(i, p, value)] for i, (p, value) in enumerate(zip(function.params, values))]
            self.recorder.tape.append({
                "launch": self.kernels.index_of(function), "grid": grid, "args": args, "num_warps": num_warps,
                "num_stages": num_stages, "cubin": cubin, "line": self._line()})

    def _argument(self, index, parameter, value):
        if isinstance(value, torch.Tensor):
            if fake_cuda.on_host(value):
                raise ValueError(f"Pointer argument (at {index}) cannot be accessed from Triton (cpu tensor?)")
            return {"t": self.recorder.value(value)}
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1 << 40:
            tensor = self.recorder.tensor_at(value)
            if tensor is not None:
                return {"t": self.recorder.value(tensor)}
        if hasattr(value, "data_ptr"):
            self.recorder.refuse("launch", f"argument {parameter.name}: a {type(value).__name__} cannot be recorded")
        if isinstance(value, (tuple, list)):
            return {"l": [self._argument(index, parameter, item) for item in value]}
        try:
            return encode_constant(value, self.kernels)
        except Failure:
            self.recorder.refuse("launch", f"argument {parameter.name}: a {type(value).__name__} cannot be recorded")

    def _line(self):
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == self.source_path:
                return frame.f_lineno
            frame = frame.f_back
        return None


def _flat(signature):
    return [str(kind) if not isinstance(kind, tuple) else "(" + ";".join(map(str, kind)) + ")"
            for kind in signature.values()]


class _Launcher:
    """What Triton calls instead of the compiled launcher."""

    def __init__(self, src, metadata):
        self._src, self._metadata = src, metadata

    def __call__(self, x, y, z, _stream, _function, _packed, _launch_metadata, _enter, _exit, *values):
        cubin = session.add_cubin(self._src.fn, self._src.signature, self._src.constants, self._metadata,
                                  _function.binary)
        session.launch(self._src.fn, (x, y, z), values, self._metadata.num_warps, self._metadata.num_stages, cubin)


class _Function:
    """The handle of a loaded binary."""

    def __init__(self, binary):
        self.binary = binary


class _Utils:
    def load_binary(self, _name, binary, _shared, _device):
        return None, _Function(binary), 32, 0, 1024

    def get_device_properties(self, _device):
        return {"max_shared_mem": fake_cuda.MAX_SHARED, "multiprocessor_count": fake_cuda.MULTIPROCESSORS,
                "max_num_regs": 65536, "warpSize": 32, "sm_clock_rate": 1980000, "mem_clock_rate": 2619000,
                "mem_bus_width": 5120}

    def unload_module(self, _module):
        pass


class StubDriver(DriverBase):
    def __init__(self):
        super().__init__()
        self.utils, self.launcher_cls = _Utils(), _Launcher

    @classmethod
    def is_active(cls):
        return True

    def map_python_to_cpp_type(self, ty):
        return ty

    def get_current_target(self):
        return GPUTarget("cuda", fake_cuda.TARGET_ARCH, 32)

    def get_active_torch_device(self):
        return fake_cuda.CUDA

    def get_current_device(self):
        return 0

    def set_current_device(self, _device):
        pass

    def get_current_stream(self, _device=0):
        return 0

    def get_device_capability(self, _device=0):
        return (fake_cuda.TARGET_ARCH // 10, fake_cuda.TARGET_ARCH % 10)

    def get_benchmarker(self):
        return _bench

    def get_device_interface(self):
        return torch.cuda

    def get_empty_cache_for_benchmark(self):
        return torch.empty(1)

    def clear_cache(self, _cache):
        pass


class _Uncompiled:
    """Stands in for a compiled kernel where a case asks for no compilation."""
    hash = name = ""
    function = module = packed_metadata = None
    n_regs, n_spills, n_max_threads = 32, 0, 1024

    def __init__(self, function, options):
        self._function, self._options = function, options
        self.metadata = types.SimpleNamespace(shared=0, name=function.__name__, **{
            name: getattr(options, name) for name in ("num_warps", "num_stages", "num_ctas")})

    def _init_handles(self):
        pass

    def launch_metadata(self, *_):
        return None

    def run(self, x, y, z, _stream, _function, _packed, _launch_metadata, _enter, _exit, *values):
        session.launch(self._function, (x, y, z), values, self._options.num_warps, self._options.num_stages, None)


_ticks = 0


def _bench(kernel_call, quantiles=None, **_):
    """Compiles one configuration; each later one is "slower", so that the first that works is chosen."""
    global _ticks
    _ticks += 1
    if session is not None and session.recorder is not None:
        with session.recorder.paused():
            if session.compile:
                kernel_call()
    return [float(_ticks)] * len(quantiles) if quantiles else float(_ticks)


def _compile(plain):
    @functools.wraps(plain)
    def do_compile(function, key, signature, device, constexprs, options, attrs, warmup):
        if session is None or session.compile:
            started = time.perf_counter()
            try:
                kernel = plain(function, key, signature, device, constexprs, options, attrs, warmup)
                if session is not None and kernel is not None:
                    kernel._init_handles()
                    session.add_cubin(function, signature, constexprs, kernel.metadata, kernel.kernel)
                return kernel
            except Exception as error:
                error.tritonrl_phase = "compile"
                raise
            finally:
                if session is not None:
                    session.compile_seconds += time.perf_counter() - started
        kernel = _Uncompiled(function, options)
        function.device_caches[device][0][key] = kernel
        return kernel
    return do_compile


def install():
    """Once per process, in the record zygote."""
    triton.runtime.driver.set_active(StubDriver())
    JITFunction._do_compile = _compile(JITFunction._do_compile)
    plain_prune = autotuner.Autotuner.prune_configs
    autotuner.Autotuner.prune_configs = lambda tuner, kwargs: plain_prune(tuner, kwargs)[:MAX_CONFIGS]
    autotuner.Autotuner.do_bench = property(lambda tuner: _bench, lambda tuner, value: None)
    triton.testing.do_bench = _bench
    triton.testing.do_bench_cudagraph = _bench
