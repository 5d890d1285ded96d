# SPDX-License-Identifier: Apache-2.0
# Recorder: writes host code down as an SSA tape of ATen calls and Triton launches (a CASE_TRACE of PROTOCOL.md).
#
# One forward() at least; __init__ and get_inputs() before it where a case wants them on the tape.
# A dispatch mode above the fake mode sees every ATen call. Composite operations are decomposed first, so that layout
# code ends in a handful of primitive views and copies; those that compute (linear, conv2d, softmax, ...) are kept
# whole. Values are tensors by identity *and* metadata, and are kept alive, so that an id never means two things.
import bisect
import contextlib

import torch
from torch._C import DispatchKey
from torch._subclasses import fake_tensor as fakes
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_map

import fake_cuda
from composites import FILLS, SHAPES, TAKEN_APART
from failure import Failure
from known_values import KnownValues
from wire import dtype_name

VALUE_ERRORS = (fakes.DataDependentOutputException, fakes.DynamicOutputShapeException)
UNSUPPORTED_ERRORS = (fakes.UnsupportedFakeTensorException, fakes.UnsupportedOperatorException,
                      fakes.UnsupportedMutationAliasingException)
DROPOUTS = frozenset(f"aten::{name}{end}" for name in ("dropout", "feature_dropout", "alpha_dropout",
                                                       "feature_alpha_dropout") for end in ("", "_"))
ADDRESS_BASE = 0x7F10_0000_0000
MAX_TABLE = 1 << 16  # Elements of a constant that may be addresses.
SECTION = 512  # Virtual addresses of storages are multiples of it, as a CUDA allocator's are.


class UnknownTensor(BaseException):
    """A tensor that was made where nothing is recorded."""


def is_fake(tensor):
    return isinstance(tensor, FakeTensor)


class Recorder(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls):
        return False  # It would wrap the dispatch of every call, for a compiler that never runs here.

    def __init__(self, fake_mode):
        super().__init__()
        self.fake_mode = fake_mode
        self.recording = False
        self.phase = "forward"
        self.all_on_cuda = False    # In __init__ and get_inputs(): what they make is moved to the GPU before forward().
        self.known = KnownValues(self)
        self.sticky = None          # The first "not_recordable"; a candidate may not swallow it.
        self.values, self.tape, self.parameters = [], [], []
        self.constants = []         # (name, real tensor): made from Python numbers, or unregistered in the module.
        self._by_tensor = {}        # id(tensor) -> (value id, metadata).
        self._storages = {}         # torch's storage identity -> storage number.
        self._in_storage = {}       # storage number -> [(value id, tensor)].
        self._alive = []
        self._addresses, self._bases = {}, []  # storage identity -> address; sorted [(address, end, storage number)].
        self._next_address = ADDRESS_BASE
        self._pointers = {}         # address handed out -> tensor.
        self._host, self._forced_host = False, None

    # --- Values.

    @staticmethod
    def _metadata(tensor):
        return (tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset(), tensor.dtype,
                tensor.untyped_storage()._cdata)

    def add(self, tensor, host=False):
        """A new value for what `tensor` is now."""
        shape, stride, offset, dtype, storage = metadata = self._metadata(tensor)
        number = self._storages.setdefault(storage, len(self._storages))
        value = len(self.values)
        self.values.append({"id": value, "shape": list(shape), "stride": list(stride), "offset": offset,
                            "dtype": self._dtype(dtype), "storage": number})
        self._by_tensor[id(tensor)] = (value, metadata)
        self._in_storage.setdefault(number, []).append((value, tensor))
        self._alive.append((tensor, tensor.untyped_storage()))
        if host and is_fake(tensor):
            tensor._tritonrl_host = True
        return value

    def _dtype(self, dtype):
        try:
            return dtype_name(dtype)
        except LookupError as error:
            raise Failure("not_recordable", self.phase, str(error)) from None

    def value(self, tensor):
        """The id of the value that `tensor` holds. Makes one for real tensors and unseen aliases."""
        known = self._by_tensor.get(id(tensor))
        metadata = self._metadata(tensor)
        if known is not None and known[1] == metadata:
            return known[0]
        if not is_fake(tensor):
            return self._constant(tensor)
        number = self._storages.get(metadata[4])
        if number is None:
            raise UnknownTensor()
        for value, other in self._in_storage[number]:
            if other.dtype == tensor.dtype:
                alias = self.add(tensor, fake_cuda.on_host(other))
                self.tape.append({"op": "aten.as_strided.default", "args": [
                    {"t": value}, {"l": [{"i": n} for n in metadata[0]]}, {"l": [{"i": n} for n in metadata[1]]},
                    {"i": metadata[2]}], "kwargs": {}, "out": {"id": alias}, "alias": True})
                return alias
        raise Failure("not_recordable", self.phase, "a tensor was re-interpreted behind the recorder's back")

    def _no_addresses(self, real):
        """Addresses here are made up, and only arguments of launches are mapped back: a table of them leads nowhere."""
        if real.dtype == torch.int64 and 0 < real.numel() <= MAX_TABLE:
            with _disable_current_modes(), torch._C.DisableTorchFunction():
                inside = ((real >= ADDRESS_BASE) & (real < self._next_address)).any().item()
            if inside:
                self._refuse_table()

    def _refuse_table(self):
        self.refuse(self.phase, "a table of addresses in a tensor cannot be recorded")

    def _constant(self, real):
        self._no_addresses(real)
        fake = self.fake_mode.from_tensor(real)
        if self._by_tensor.get(id(fake)) is None and self._storages.get(fake.untyped_storage()._cdata) is None:
            self.parameter(f"constant:{len(self.constants)}", fake)
            self.constants.append((f"constant:{len(self.constants)}", real))
        value = self.value(fake)
        self._by_tensor[id(real)] = (value, self._metadata(real))
        self._alive.append((real, None))
        return value

    def parameter(self, name, fake):
        number = self._storages.get(fake.untyped_storage()._cdata)
        known = self._by_tensor.get(id(fake))
        value = known[0] if known is not None and number is not None else self.add(fake)
        self.parameters.append([name, value])
        return value

    def fake_of(self, tensor):
        return tensor if is_fake(tensor) else self.fake_mode.from_tensor(tensor)

    # --- Virtual addresses.

    def address(self, tensor):
        with torch._C.DisableTorchFunction():
            storage = tensor.untyped_storage()
            base = self._addresses.get(storage._cdata)
            if base is None:
                base = self._addresses[storage._cdata] = self._next_address
                self._next_address += max(SECTION, -(-storage.nbytes() // SECTION) * SECTION) + SECTION
                self._bases.append((base, self._next_address))
                self._alive.append((tensor, storage))
            pointer = base + tensor.storage_offset() * tensor.element_size()
            self._pointers[pointer] = tensor
            return pointer

    def tensor_at(self, pointer):
        """The tensor a raw pointer was taken from, or None for a plain integer."""
        if pointer in self._pointers:
            return self._pointers[pointer]
        at = bisect.bisect_right(self._bases, (pointer, 1 << 62)) - 1
        if at >= 0 and self._bases[at][0] <= pointer < self._bases[at][1]:
            raise Failure("not_recordable", "launch", "pointer arithmetic in host code")
        return None

    # --- Which device a new tensor would be on.

    @contextlib.contextmanager
    def creating(self, host, explicit):
        saved = self._host, self._forced_host
        self._host = host
        if explicit:
            self._forced_host = host
        try:
            yield
        finally:
            self._host, self._forced_host = saved

    @contextlib.contextmanager
    def forcing(self, host):
        saved, self._forced_host = self._forced_host, host
        try:
            yield
        finally:
            self._forced_host = saved

    @contextlib.contextmanager
    def paused(self):
        """Nothing is recorded inside: the autotuner tries configurations."""
        saved, self.recording = self.recording, False
        try:
            yield
        finally:
            self.recording = saved

    # --- ATen calls.

    def refuse(self, phase, message):
        failure = Failure("not_recordable", phase, message)
        self.sticky = self.sticky or failure
        raise failure

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        with fake_cuda.truth():
            if func is torch.ops.prim.device.default:
                return args[0].device
            if not self.recording or func.namespace == "prim":
                return func(*args, **kwargs)
            fake_cuda.check_stream()
            try:
                if fake_cuda.names_cuda(kwargs.get("device")):  # torch.ops.aten.* called directly: no function mode.
                    with self.creating(host=False, explicit=True):
                        return self._call(func, args, {**kwargs, "device": fake_cuda.CPU})
                return self._call(func, args, kwargs)
            except VALUE_ERRORS as error:
                what = str(getattr(error, "func", func)).replace("aten.", "").split(".")[0]
                what = "a tensor's value is read" if what in ("_local_scalar_dense", "is_nonzero") else what
                self.refuse(self.phase, f"{what}: host code that depends on tensor values cannot be recorded")
            except UNSUPPORTED_ERRORS as error:
                self.refuse(self.phase, f"{func}: {str(error)[:300]}")
            except Failure as failure:
                if failure.rule == "not_recordable":
                    self.sticky = self.sticky or failure
                raise

    def _call(self, func, args, kwargs):
        name = func.name().split(".")[0]
        if name in TAKEN_APART and torch._C._dispatch_has_kernel_for_dispatch_key(
                func.name(), DispatchKey.CompositeImplicitAutograd):
            with self:
                out = func.decompose(*args, **kwargs)
            if out is not NotImplemented:
                return out
        if name in ("aten::lift_fresh", "aten::lift_fresh_copy", "aten::lift") and not is_fake(args[0]):
            self._no_addresses(args[0])
            if self.all_on_cuda and args[0].dim() == 0:
                with _disable_current_modes():
                    number = args[0].item()
                with self:
                    return torch.ops.aten.full.default([], number, dtype=args[0].dtype, device=fake_cuda.CPU)
            out = func(*args, **kwargs)
            fake = self.fake_of(out)
            self.constants.append((f"constant:{len(self.constants)}", args[0]))
            self.parameters.append([self.constants[-1][0], self.add(fake, self._new_host([]))])
            return fake
        if name in DROPOUTS and not (args[1] > 0 and args[2]) or name in ("aten::detach_", "aten::requires_grad_"):
            return args[0]
        if name in ("aten::detach", "aten::alias"):
            return self._same_value(func(*args, **kwargs), args[0])
        if name == "aten::_local_scalar_dense" and (real := self.read(args[0])) is not None:
            with _disable_current_modes():
                return real.item()
        tensors = []
        encoded_args = [self._argument(arg, tensors) for arg in args]
        encoded_kwargs = {key: self._argument(arg, tensors) for key, arg in kwargs.items() if key != "pin_memory"}
        args, kwargs = tree_map(self._faked, (tuple(args), dict(kwargs)))
        out = args[0] if name in FILLS and is_fake(args[0]) else None
        if name in SHAPES and not kwargs:
            out = SHAPES[name](*args)
        if out is None:
            out = func(*args, **kwargs)
        if not func._schema.is_mutable and self._nothing_new(out):
            return out
        host = self._new_host(tensors)
        if "device" in encoded_kwargs:
            encoded_kwargs["device"] = {"device": "cpu" if host else "cuda"}
        step = {"op": str(func), "args": encoded_args, "kwargs": encoded_kwargs, "out": None}
        step["out"] = self._results(out, host)
        self.tape.append(step)
        return out

    def _nothing_new(self, out):
        """A result that is an argument again (dropout in eval mode), or no tensor at all."""
        if isinstance(out, torch.Tensor):
            known = self._by_tensor.get(id(out))
            return known is not None and known[1] == self._metadata(out)
        return not isinstance(out, (list, tuple))

    def read(self, tensor):
        """The real tensor behind a value that depends on no input, weight or random number; else None."""
        return self.known.read(self.value(tensor))

    def _same_value(self, out, source):
        """`out` is `source` under another Python object: no step, no new value."""
        self._by_tensor[id(out)] = (self.value(source), self._metadata(out))
        self._alive.append((out, None))
        if fake_cuda.on_host(source):
            out._tritonrl_host = True
        return out

    def _faked(self, arg):
        return self.fake_of(arg) if isinstance(arg, torch.Tensor) else arg

    def _new_host(self, tensors):
        if self.all_on_cuda:
            return False
        if self._forced_host is not None:
            return self._forced_host
        return all(fake_cuda.on_host(t) for t in tensors) if tensors else self._host

    def _argument(self, arg, tensors):
        if isinstance(arg, torch.Tensor):
            value = self.value(arg)
            tensors.append(self.fake_of(arg))
            return {"t": value}
        if type(arg) is int and ADDRESS_BASE <= arg < self._next_address:
            self._refuse_table()
        return encode(arg, lambda item: self._argument(item, tensors))

    def _results(self, out, host):
        if isinstance(out, torch.Tensor):
            known = self._by_tensor.get(id(out))
            if known is not None and known[1] == self._metadata(out):
                return {"id": known[0]}
            return {"id": self.add(out, host)}
        if isinstance(out, (list, tuple)):
            return {"list" if isinstance(out, list) else "tuple": [self._results(item, host) for item in out]}
        return {"value": None}

    # --- What forward() returns.

    def structure(self, out):
        if isinstance(out, torch.Tensor):
            return {"id": self.value(out)}
        if isinstance(out, (list, tuple)):
            return {"list" if isinstance(out, list) else "tuple": [self.structure(item) for item in out]}
        if isinstance(out, dict):
            return {"dict": [[str(key), self.structure(item)] for key, item in out.items()]}
        if out is None or isinstance(out, (bool, int, float, str)):
            return {"value": repr(out) if isinstance(out, float) and out - out != 0 else out}
        raise Failure("forward_failed", "forward", f"forward() returns a {type(out).__name__}, not tensors")


def encode(arg, recurse):
    """An ARG of the protocol, for everything but tensors."""
    if arg is None:
        return {"n": None}
    if isinstance(arg, bool):
        return {"b": arg}
    if isinstance(arg, int):
        return {"i": int(arg)}
    if isinstance(arg, float):
        return {"f": float(arg) if arg - arg == 0 else repr(float(arg))}
    if isinstance(arg, str):
        return {"s": str(arg)}
    if isinstance(arg, (list, tuple)):
        return {"l": [recurse(item) for item in arg]}
    if isinstance(arg, torch.dtype):
        return {"dtype": str(arg).removeprefix("torch.")}
    if isinstance(arg, torch.device):
        return {"device": "cuda"}
    if isinstance(arg, torch.layout):
        return {"layout": str(arg).removeprefix("torch.")}
    if isinstance(arg, torch.memory_format):
        return {"memory_format": str(arg).removeprefix("torch.")}
    raise Failure("not_recordable", "forward", f"an argument of type {type(arg).__name__} cannot be recorded")
