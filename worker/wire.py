# SPDX-License-Identifier: Apache-2.0
# Bytes on the wire: tensors, and the blobs that children answer with (PROTOCOL.md).
import hashlib
import json
import struct

import torch

from failure import Failure
from trace_format import LAYOUTS, MEMORY_FORMATS, OPERATOR

DTYPES = {name: getattr(torch, name) for name in (
    "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool")}
WORDS = {"layout": {name: getattr(torch, name) for name in LAYOUTS},
         "memory_format": {name: getattr(torch, name) for name in MEMORY_FORMATS}}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}


def dtype_name(dtype):
    """torch's short name; LookupError for dtypes the protocol does not carry."""
    if dtype not in DTYPE_NAMES:
        raise LookupError(f"tensors of dtype {str(dtype).removeprefix('torch.')} are not supported")
    return DTYPE_NAMES[dtype]


def encode_init(value):
    """A constructor argument, or an input that is no tensor, as JSON. Tuples travel as {"tuple": [...]}."""
    if isinstance(value, tuple):
        return {"tuple": [encode_init(item) for item in value]}
    if isinstance(value, list):
        return [encode_init(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise Failure("not_recordable", "init", f"a constructor argument or input of type {type(value).__name__}")


def decode_init(value):
    if isinstance(value, dict):
        return tuple(decode_init(item) for item in value["tuple"])
    return [decode_init(item) for item in value] if isinstance(value, list) else value


class InitArguments:
    """What get_init_inputs() gives: a list of arguments; names with values; or both, [[...], {name: value}]."""

    def __init__(self, given):
        both = isinstance(given, (list, tuple)) and len(given) == 2 and isinstance(given[0], (list, tuple)) and \
            isinstance(given[1], dict)
        self.positional, self.named = ([], given) if isinstance(given, dict) else given if both else (given, {})
        if not all(isinstance(name, str) for name in self.named):
            raise Failure("not_recordable", "init", "get_init_inputs() names an argument by what is no text")

    def call(self, model_class):
        return model_class(*self.positional, **self.named)

    def encoded(self):
        positional = [encode_init(value) for value in self.positional]
        if not self.named:
            return positional
        return {"positional": positional, "named": {name: encode_init(value) for name, value in self.named.items()}}

    @classmethod
    def decoded(cls, value):
        if isinstance(value, dict):
            named = {name: decode_init(item) for name, item in value["named"].items()}
            return cls([[decode_init(item) for item in value["positional"]], named])
        return cls([[decode_init(item) for item in value], {}])


def decode_argument(arg, tensors):
    """What an argument of a step is for the CPU; `tensors` by their value's id."""
    (kind, body), = arg.items()
    if kind == "t":
        return tensors[body]
    if kind == "l":
        return [decode_argument(item, tensors) for item in body]
    if kind == "dtype":
        return DTYPES[body]
    if kind == "device":
        return torch.device("cpu")
    if kind in WORDS:
        return WORDS[kind][body]
    return float(body) if kind == "f" else body


def operator_of(text):
    """The overload that a step names; None for what is no operator. Nothing but operators can be reached by a name."""
    if not OPERATOR.fullmatch(text):
        return None
    _, name, overload = text.split(".")
    packet = getattr(torch.ops.aten, name, None)
    op = getattr(packet, overload, None) if isinstance(packet, torch._ops.OpOverloadPacket) else None
    return op if isinstance(op, torch._ops.OpOverload) else None


def call(op, step, tensors):
    """The result of a step's operator on its recorded arguments."""
    return op(*(decode_argument(arg, tensors) for arg in step["args"]),
              **{key: decode_argument(arg, tensors) for key, arg in step["kwargs"].items()})


def tensor_bytes(tensor):
    """Contiguous row-major bytes of a CPU tensor, as a numpy array of bytes (no copy where there is none to make)."""
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()


def content_hash(tensor):
    """Hash of dtype, shape and bytes: equal for parameters that were initialised alike."""
    text = f"{dtype_name(tensor.dtype)}{list(tensor.shape)}".encode()
    return hashlib.sha256(text + tensor_bytes(tensor).tobytes()).hexdigest()[:32]


class BlobWriter:
    """Collects tensors, then makes `u32 header length | header | tensors`."""

    def __init__(self):
        self._parts = []
        self._size = 0

    def add(self, tensor, with_stride=False):
        data = tensor_bytes(tensor)
        self._pad()
        ref = {"shape": list(tensor.shape), "dtype": dtype_name(tensor.dtype), "offset": self._size,
               "nbytes": data.nbytes}
        if with_stride:
            ref["stride"] = list(tensor.stride())
        self._parts.append(data)
        self._size += data.nbytes
        return ref

    def append(self, other):
        """The place of another one's tensors, one after the other, whose references count from there."""
        self._pad()
        self._parts += other._parts
        self._size += other._size
        return {"offset": self._size - other._size, "nbytes": other._size}

    def _pad(self):
        if self._size % 16:
            self._parts.append(bytes(-self._size % 16))
            self._size += -self._size % 16

    def add_bytes(self, data):
        return self.add(torch.frombuffer(bytearray(data), dtype=torch.uint8))

    def finish(self, header):
        text = json.dumps(header, allow_nan=False).encode()
        return b"".join([struct.pack("<I", len(text)), text, *(memoryview(part) for part in self._parts)])


def read_tensor(ref, area):
    """A fresh CPU tensor from a reference into `area`."""
    shape, dtype = [int(n) for n in ref["shape"]], DTYPES[ref["dtype"]]
    data = bytearray(memoryview(area)[ref["offset"]:ref["offset"] + ref["nbytes"]])
    if len(data) != ref["nbytes"]:
        raise ValueError("a tensor reference points outside of the payload")
    if not data:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(data, dtype=dtype).reshape(shape)
