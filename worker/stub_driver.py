# SPDX-License-Identifier: Apache-2.0
# Stub Triton driver: compiles without a GPU, keeps the cubins, and records launches instead of making them.
#
# Covers kernel[grid](...), .run, .warmup, heuristics and autotune (every configuration, at most MAX_CHOICES).
import functools
import time

import torch
import triton
import triton.testing
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime import autotuner
from triton.runtime.jit import JITFunction

import fake_cuda
import session
from cubin_info import resources
from trace_limits import MAX_CHOICES



class _Launcher:
    """What Triton calls instead of the compiled launcher."""

    def __init__(self, src, metadata):
        self._src, self._metadata = src, metadata

    def __call__(self, x, y, z, stream, _function, _packed, _launch_metadata, _enter, _exit, *values):
        cubin = session.current.add_cubin(self._src.fn, self._src.signature, self._src.constants, self._metadata,
                                          _function.binary)
        session.current.launch(self._src.fn, (x, y, z), values, self._metadata.num_warps, self._metadata.num_stages,
                               stream, cubin=cubin)


class _Function:
    """The handle of a loaded binary."""

    def __init__(self, binary):
        self.binary = binary


class _Utils:
    def load_binary(self, _name, binary, _shared, _device):
        registers, stack = resources(binary)
        return None, _Function(binary), registers, stack // 4, 1024

    def get_device_properties(self, _device):
        return {"max_shared_mem": fake_cuda.target["shared"],
                "multiprocessor_count": fake_cuda.target["multiprocessors"],
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
        return GPUTarget("cuda", fake_cuda.target["arch"], 32)

    def get_active_torch_device(self):
        return fake_cuda.CUDA

    def get_current_device(self):
        return 0

    def set_current_device(self, _device):
        pass

    def get_current_stream(self, _device=0):
        return fake_cuda.current_stream().cuda_stream

    def get_device_capability(self, _device=0):
        return fake_cuda.capability()

    def get_benchmarker(self):
        return _bench

    def get_device_interface(self):
        return torch.cuda

    def get_empty_cache_for_benchmark(self):
        return torch.empty(1)

    def clear_cache(self, _cache):
        pass


class _Uncompiled:
    """A kernel of a case that asks for no compilation; compiled once host code asks for one of the RESULTS."""
    function = module = packed_metadata = None
    RESULTS = ("n_regs", "n_spills", "n_max_threads", "metadata", "asm", "name", "hash", "kernel", "src",
               "metadata_group")

    def __init__(self, function, options, spec, compile_now):
        self._function, self._options, self._spec, self._compile_now = function, options, spec, compile_now
        self._compiled = None

    def __getattr__(self, name):
        if name not in self.RESULTS:
            raise AttributeError(name)
        if self._compiled is None:
            self._compiled = self._compile_now()
            self._compiled._init_handles()
        return getattr(self._compiled, name)

    def _init_handles(self):
        pass

    def launch_metadata(self, *_):
        return None

    def run(self, x, y, z, stream, _function, _packed, _launch_metadata, _enter, _exit, *values):
        session.current.launch(self._function, (x, y, z), values, self._options.num_warps, self._options.num_stages,
                               stream, cubin=None, spec=self._spec)

    def __getitem__(self, grid):
        return lambda *args, stream=None: self.run(*(*grid, 1, 1)[:3], stream, None, None, None, None, None, *args)


def _compile(plain):
    @functools.wraps(plain)
    def do_compile(function, key, signature, device, constexprs, options, attrs, warmup):
        now = session.current

        def compile_now():
            started = time.perf_counter()
            try:
                return plain(function, key, signature, device, constexprs, options, attrs, warmup)
            except Exception as error:
                error.tritonrl_phase = "compile"
                raise
            finally:
                if now is not None:
                    now.compile_seconds += time.perf_counter() - started

        def checked(kernel):
            try:
                kernel._init_handles()
            except Exception as error:  # Out of shared memory or of threads.
                error.tritonrl_phase = "compile"
                raise
            return kernel

        if now is None:
            return compile_now()
        if options.launch_pdl and now.recorder is not None:  # Kernels have no way to wait for the one before.
            now.recorder.refuse("launch", "launch_pdl lets a launch begin before the one before it has ended: "
                                          "this cannot be recorded")
        if now.compile is not True:
            if now.compile == "try":
                checked(compile_now())
            spec = now.add_spec(function, signature, constexprs, options, attrs)
            kernel = _Uncompiled(function, options, spec, compile_now)
            function.device_caches[device][0][key] = kernel
            return kernel
        kernel = checked(compile_now())
        now.add_cubin(function, signature, constexprs, kernel.metadata, kernel.kernel)
        return kernel
    return do_compile


# --- The autotuner.

_ticks = 0


def _bench(kernel_call, quantiles=None, **_):
    """Runs once. Each later one is "slower", so that the first configuration that works is chosen."""
    global _ticks
    _ticks += 1
    now = session.current
    if now is not None and now.recorder is not None:
        with now.recorder.paused():
            if now.compile or now.collected is not None:
                kernel_call()
    return [float(_ticks)] * len(quantiles) if quantiles else float(_ticks)


def _autotuned(plain):
    """Launches every configuration off the tape, then the first that compiles on it, with all of them as choices."""
    def run(tuner, *args, **kwargs):
        now = session.current
        if now is None or now.recorder is None or not now.recorder.recording or now.collected is not None:
            return plain(tuner, *args, **kwargs)
        tuner.nargs = dict(zip(tuner.arg_names, args))
        configs = tuner.prune_configs(kwargs)[:MAX_CHOICES] if len(tuner.configs) > 1 else tuner.configs
        if len(configs) == 1:
            chosen, choices = configs[0], None
        else:
            chosen, choices = _try(tuner, configs, args, kwargs, now)
        tuner.best_config = chosen
        full = {**tuner.nargs, **kwargs, **chosen.all_kwargs()}
        if choices is not None and id(tuner) not in now.tuned:
            now.tuned[id(tuner)] = tuner
            tuner.pre_hook(full, reset_only=True)  # As after the benchmark of a first call.
        if chosen.pre_hook is not None:
            chosen.pre_hook(full)
        now.choices = choices
        try:
            return tuner.fn.run(*args, **kwargs, **chosen.all_kwargs())
        finally:
            now.choices = tuner.nargs = None
    return run


def _try(tuner, configs, args, kwargs, now):
    """(first configuration that compiles, the launches of all that do)"""
    found, choices, failed = [], [], None
    for config in configs:
        now.collected = []
        try:
            works = tuner._bench(*args, config=config, **kwargs)[0] != float("inf")
        except Exception as error:
            if not getattr(error, "tritonrl_phase", ""):
                raise
            works, failed = False, error
        finally:
            launches, now.collected = now.collected, None
        if works:
            found.append(config)
            choices += launches[-1:]
    if not found:
        raise failed or RuntimeError("no configuration of the autotuner compiles")
    return found[0], (choices if len(choices) == len(found) else None)


def install():
    """Once per process, in the record fork server."""
    triton.runtime.driver.set_active(StubDriver())
    JITFunction._do_compile = _compile(JITFunction._do_compile)
    autotuner.Autotuner.run = _autotuned(autotuner.Autotuner.run)
    autotuner.Autotuner.do_bench = property(lambda tuner: _bench, lambda tuner, value: None)
    triton.testing.do_bench = _bench
    triton.testing.do_bench_cudagraph = _bench
