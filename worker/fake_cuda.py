# SPDX-License-Identifier: Apache-2.0
# Fake CUDA: lets candidates believe that their tensors are on a GPU, on machines that have none.
#
# Fake tensors on a real "cuda" device reach for the driver in many operations. Ours are fake *CPU* tensors; three
# things make the difference invisible to honest host code:
#   - DeviceMode maps "cuda" to "cpu" in every torch call and answers .cuda(), .to("cuda"), .cpu() itself;
#   - FakeTensor.device / is_cuda / is_cpu / get_device answer as if on cuda:0, except while torch's own code is looking
#     (inside `truth()`: every torch function and every dispatch);
#   - torch.cuda.* gives the answers of the target GPU and does nothing else.
# Tensors that a candidate creates without naming a device stay on the "host", as they would for real: Triton
# refuses them at launch.
import types

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

from failure import Failure

CUDA = torch.device("cuda", 0)
CPU = torch.device("cpu")
# The GPU that host code believes in and kernels are compiled for; src/verify/trace/target_gpu.h.
target = {"arch": 90, "name": "NVIDIA H100", "memory": 80 << 30, "multiprocessors": 132, "shared": 232448,
          "shared_per_multiprocessor": 233472, "threads_per_multiprocessor": 2048, "l2": 50 << 20}



def set_target(gpu):
    """Before a job is done; what `gpu` does not say stays."""
    target.update(gpu)


def capability(_device=None):
    return divmod(target["arch"], 10)


_truths = 0
recorder = None  # The tape.Recorder that listens at the moment, or None.


class truth:
    """While open, fake tensors tell where they really are."""

    def __enter__(self):
        global _truths
        _truths += 1

    def __exit__(self, *_):
        global _truths
        _truths -= 1


def names_cuda(device):
    if isinstance(device, torch.device):
        return device.type == "cuda"
    if isinstance(device, str):
        return device.split(":")[0] == "cuda"
    return isinstance(device, int) and not isinstance(device, bool)


def on_host(tensor):
    return getattr(tensor, "_tritonrl_host", False)


def host_read(what):
    recorder.refuse(recorder.phase, f"{what}: host code that depends on tensor values cannot be recorded")


def move(tensor, device):
    """`tensor` as seen from `device` (None = where it is)."""
    if device is None or recorder is None or not recorder.recording or recorder.all_on_cuda:
        return tensor
    to_cuda = names_cuda(device)
    if to_cuda != on_host(tensor):
        return tensor
    if not to_cuda:
        host_read("a tensor is moved to the CPU in forward()")
    with recorder.forcing(host=False):
        return torch.ops.aten._to_copy.default(tensor)


def _to(tensor, *rest, device=None, dtype=None, non_blocking=False, copy=False, memory_format=None, other=None):
    rest = list(rest)
    if rest and isinstance(rest[0], torch.Tensor):
        other = rest.pop(0)
    elif rest and isinstance(rest[0], (torch.device, str)) or rest and isinstance(rest[0], int):
        device = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], torch.dtype)):
            dtype = rest.pop(0)
    elif rest and isinstance(rest[0], torch.dtype):
        dtype = rest.pop(0)
    elif rest and rest[0] is None:
        rest.pop(0)
        if rest and isinstance(rest[0], torch.dtype):
            dtype = rest.pop(0)
    if len(rest) > 1:
        copy = rest[1]
    if other is not None:
        device, dtype = (CPU if on_host(other) else CUDA), other.dtype
    if isinstance(device, torch.device) and device.type == "meta" or device == "meta":
        raise Failure("not_recordable", "forward", "tensors on the meta device")
    moved = move(tensor, device)
    options = {} if memory_format is None else {"memory_format": memory_format}
    return moved.to(dtype=dtype or moved.dtype, copy=bool(copy) and moved is tensor, **options)


def _type(tensor, dtype=None, non_blocking=False, **_):
    if dtype is None:
        return tensor.type().replace("torch.", "torch.cuda.", 1)
    if isinstance(dtype, str):
        dtype = dtype.replace("torch.cuda.", "torch.")
    return tensor.type(dtype)


def _read(name):
    def call(tensor, *args, **kwargs):
        if recorder is not None and recorder.recording:
            tensor = recorder.read(tensor)
            if tensor is None:
                host_read(name)
            with _disable_current_modes():
                return getattr(torch.Tensor, name)(tensor, *args, **kwargs)
        return getattr(torch.Tensor, name)(tensor, *args, **kwargs)
    return call


def _deepcopy(tensor, memo):
    if id(tensor) in memo:
        return memo[id(tensor)]
    new = tensor.clone()
    if getattr(tensor, "_is_param", False):
        new = torch.nn.Parameter(new, tensor.requires_grad)
    memo[id(tensor)] = new
    return new


_METHODS = {
    torch.Tensor.__deepcopy__: _deepcopy,
    torch.Tensor.to: _to,
    torch.Tensor.cuda: lambda tensor, device=None, non_blocking=False, memory_format=None: move(tensor, CUDA),
    torch.Tensor.cpu: lambda tensor, memory_format=None: move(tensor, CPU),
    torch.Tensor.type: _type,
    torch.Tensor.get_device: lambda tensor: -1 if on_host(tensor) else 0,
    torch.Tensor.pin_memory: lambda tensor, device=None: tensor,
    torch.Tensor.is_pinned: lambda tensor, device=None: False,
    torch.Tensor.record_stream: lambda tensor, stream: None,
    **{getattr(torch.Tensor, name): _read(name) for name in ("numpy", "tolist", "__array__", "__dlpack__")},
}


class DeviceMode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if (method := _METHODS.get(func)) is not None:
            with truth():
                return method(*args, **kwargs)
        host = True
        if "device" in kwargs:
            host = not names_cuda(kwargs["device"])
            if not host:
                kwargs["device"] = CPU
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        with truth():
            if recorder is None:
                return func(*args, **kwargs)
            explicit = kwargs.get("device") is not None
            with recorder.creating(host, explicit):
                return func(*args, **kwargs)


def _device(tensor):
    if _truths or tensor.fake_mode.in_kernel_invocation:
        return _real_device(tensor)
    return CPU if on_host(tensor) else CUDA


def _data_ptr(tensor):
    return recorder.address(tensor) if recorder is not None else 0


_real_device = FakeTensor.device.fget


class _Anything:
    """Streams, events and the like: every method is harmless."""
    cuda_stream = 0
    stream_id = 0
    device = CUDA
    device_index = 0

    def __init__(self, *args, **kwargs):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def query(self):
        return True

    def elapsed_time(self, _end):
        return 1.0

    def _nothing(self, *args, **kwargs):
        return None

    record = wait = synchronize = wait_event = wait_stream = _nothing

    def record_event(self, event=None):
        return event or _Anything()


class _Stream(_Anything):
    _made = 0

    def __init__(self, *args, **kwargs):
        _Stream._made += 1
        self.cuda_stream = self.stream_id = _Stream._made << 8

    def __enter__(self):
        self._context = _StreamContext(self)
        return self._context.__enter__() or self

    def __exit__(self, *_):
        self._context.__exit__()


class _StreamContext(_Anything):
    def __init__(self, stream=None):
        self._stream = stream

    def __enter__(self):
        self._before = current_stream()
        set_stream(self._stream)

    def __exit__(self, *_):
        set_stream(self._before)


_default_stream = _current_stream = _Stream()
_default_stream.cuda_stream = _default_stream.stream_id = 0


def current_stream(_device=None):
    return _current_stream


def set_stream(stream):
    global _current_stream
    _current_stream = _current_stream if stream is None else stream


def check_stream(stream=None):
    """What is recorded is a row of steps, and no wait is among them. Streams run side by side: what two of them do to one
    tensor is ordered by waits alone. `stream`: the handle that a launch names; None = the current one."""
    if stream is None:
        stream = current_stream().cuda_stream
    if stream != 0 and recorder is not None:
        recorder.refuse(recorder.phase, "work on another stream than the default one cannot be recorded")


def device_properties(_device=None):
    major, minor = capability()
    return types.SimpleNamespace(
        name=target["name"], major=major, minor=minor, total_memory=target["memory"],
        multi_processor_count=target["multiprocessors"], warp_size=32,
        max_threads_per_multi_processor=target["threads_per_multiprocessor"], max_threads_per_block=1024,
        regs_per_multiprocessor=65536, shared_memory_per_block=49152, shared_memory_per_block_optin=target["shared"],
        shared_memory_per_multiprocessor=target["shared_per_multiprocessor"], L2_cache_size=target["l2"],
        is_integrated=0, is_multi_gpu_board=0, gcnArchName="")


def _no_graphs(*_args, **_kwargs):
    raise Failure("not_recordable", "forward", "CUDA graphs are not supported")


def _same_module(module, *_args, **_kwargs):
    return module


def _compile(model=None, *_args, **_kwargs):
    return model if model is not None else (lambda function: function)


def install():
    """Once per process, in the fork server. Only the record fork server does it."""
    FakeTensor.device = property(_device)
    FakeTensor.is_cuda = property(lambda tensor: _device(tensor).type == "cuda")
    FakeTensor.is_cpu = property(lambda tensor: _device(tensor).type == "cpu")
    FakeTensor.data_ptr = _data_ptr
    answers = dict(
        is_available=lambda: True, is_initialized=lambda: True, init=lambda: None, device_count=lambda: 1,
        current_device=lambda: 0, set_device=lambda device: None, synchronize=lambda device=None: None,
        get_device_name=lambda device=None: target["name"], get_device_properties=device_properties,
        get_device_capability=capability,
        is_bf16_supported=lambda *args, **kwargs: True, empty_cache=lambda: None, ipc_collect=lambda: None,
        memory_allocated=lambda device=None: 0, max_memory_allocated=lambda device=None: 0,
        memory_reserved=lambda device=None: 0, reset_peak_memory_stats=lambda device=None: None,
        mem_get_info=lambda device=None: (target["memory"] - (1 << 30), target["memory"]), manual_seed=lambda seed: None,
        manual_seed_all=lambda seed: None, device=_Anything, device_of=_Anything, stream=_StreamContext, Stream=_Stream,
        Event=_Anything, StreamContext=_StreamContext, ExternalStream=_Stream, get_stream_from_external=_Stream,
        current_stream=current_stream, default_stream=lambda device=None: _default_stream, set_stream=set_stream,
        CUDAGraph=_no_graphs, graph=_no_graphs,
        make_graphed_callables=_no_graphs, _lazy_init=lambda: None)
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    torch._C._cuda_getCurrentRawStream = lambda index: current_stream().cuda_stream
    torch._C._cuda_getDevice = lambda: 0
    torch.backends.cudnn.is_acceptable = lambda tensor: False  # RNNs must not ask it to flatten their weights.
    torch.set_default_device = lambda device: None
    torch.compile = _compile
    torch.jit.script = _same_module
    torch.jit.trace = _same_module
    torch.nn.Module.cuda = _same_module
    torch.nn.Module.cpu = _same_module
    plain_to = torch.nn.Module.to

    def module_to(module, *args, **kwargs):
        args = [arg for arg in args if not isinstance(arg, (str, int)) and not isinstance(arg, torch.device)]
        kwargs = {name: value for name, value in kwargs.items() if name == "dtype" and value is not None}
        return plain_to(module, *args, **kwargs) if args or kwargs else module

    torch.nn.Module.to = module_to
