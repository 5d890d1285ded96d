# SPDX-License-Identifier: Apache-2.0
# Traces as bytes (docs/trace.md) and as the dicts of PROTOCOL.md.
#
# pack() is the recorder's: what the format cannot hold is `unsupported`, so that an honest candidate is never taken for
# a forger. trace_reader.py has unpack(). Needs no torch.
import json
import math
import re
import struct

from failure import Failure
from trace_limits import *  # noqa: F403  (MAX_...)

VERSION = 2
DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool")
SECONDS = ("import", "init", "forward", "compile", "total")
NEST = ("id", "value", "list", "tuple", "dict")
GLOBALS = ("jit", "constexpr", "value", "module", "member", "opaque")
DECORATORS = ("jit", "constexpr_function")
PADDINGS = ("zero", "nan")
LAYOUTS = ("strided",)
MEMORY_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
TRITON_DTYPES = ("bfloat16", "float16", "float32", "float64", "float8e4b15", "float8e4b8", "float8e4nv", "float8e5",
                 "float8e5b16", "int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "void")
OPERATOR = re.compile(r"aten\.(?!from_file\.)\w+\.[A-Za-z0-9]\w*", re.ASCII)  # A namespace, a name and an overload.
(NONE, TENSOR, INT, FLOAT, BOOL, TEXT, LIST, DTYPE, DEVICE, LAYOUT, MEMORY_FORMAT, TRITON_DTYPE, FUNCTION, DESCRIPTOR,
 UNSIGNED) = range(15)



def _refuse(what):
    raise Failure("not_recordable", "forward", f"the trace cannot hold {what}")


def pack(trace, area=b""):
    """Bytes of {"kernels", "cubins", "cases"}. A "tensor" among them is bytes, or a reference into `area`."""
    writer = _Writer(area)
    writer.file(trace)
    if writer.size > MAX_BYTES:
        _refuse(f"more than {MAX_BYTES >> 20} MiB")
    return b"".join(writer.parts)


class _Writer:
    def __init__(self, area):
        self.parts, self.size = [], 0
        self._area = memoryview(area)
        self._functions = {}
        self._items = self._json_bytes = 0

    # --- Primitives.

    def _raw(self, data):
        self.parts.append(data)
        self.size += len(data)

    def _number(self, form, what, value, low, high):
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            _refuse(f"{what} outside of [{low}, {high}]")
        self._raw(struct.pack(form, value))

    def u8(self, value):
        self._raw(struct.pack("<B", value))

    def u32(self, value, what="a number", low=0, high=(1 << 32) - 1):
        self._number("<I", what, value, low, high)

    def u64(self, value, what="a number", high=MAX_ELEMENTS):
        self._number("<Q", what, value, 0, high)

    def f64(self, value):
        self._raw(struct.pack("<d", value))

    def text(self, value, most=MAX_NAME, what="a name"):
        try:
            data = value.encode()
        except UnicodeEncodeError:
            _refuse(f"{what} with lone surrogates")
        if len(data) > most:
            _refuse(f"{what} of {len(data)} bytes")
        self._raw(struct.pack("<I", len(data)))
        self._raw(data)

    def json(self, value, most=MAX_JSON):
        try:
            text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError):
            _refuse("an input or output that is not plain data")
        self._json_bytes += 4 * len(text)  # At most.
        if self._json_bytes > MAX_JSON_IN_ALL:
            _refuse("so much plain data")
        self.text(text, most, "plain data")

    def word(self, value, known):
        if value not in known:
            _refuse(f"tensors of {value}")
        self.text(value)

    def bytes(self, tensor):
        if isinstance(tensor, dict):
            tensor = self._area[tensor["offset"]:tensor["offset"] + tensor["nbytes"]]
        self._raw(struct.pack("<Q", len(tensor)))
        self._raw(tensor)

    def list(self, items, write, what="items", most=MAX_LIST):
        items = list(items)
        if len(items) > most:
            _refuse(f"{len(items)} {what}")
        self._raw(struct.pack("<I", len(items)))
        for item in items:
            write(item)

    def _item(self):
        self._items += 1
        if self._items > MAX_ITEMS:
            _refuse("so many values, steps and arguments")

    # --- Arguments.

    def tag(self, kind):
        self._item()
        self.u8(kind)

    def arg(self, arg, functions=False, depth=0):
        (kind, body), = arg.items()
        if kind == "n":
            self.tag(NONE)
        elif kind == "t":
            self.tag(TENSOR)
            self.u32(body)
        elif kind == "i":
            unsigned = body >= 1 << 63
            self.tag(UNSIGNED if unsigned else INT)
            self._number("<Q" if unsigned else "<q", "an integer", body, -1 << 63, (1 << 64) - 1)
        elif kind == "f":
            self.tag(FLOAT)
            self.f64(float(body))
        elif kind == "b":
            self.tag(BOOL)
            self.u8(bool(body))
        elif kind == "s" and functions and body in self._functions:
            self.tag(FUNCTION)
            self.u32(self._functions[body])
        elif kind == "s":
            self.tag(TEXT)
            self.text(body, MAX_TEXT, "an argument")
        elif kind in ("layout", "memory_format"):
            self.tag({"layout": LAYOUT, "memory_format": MEMORY_FORMAT}[kind])
            self.word(body, {"layout": LAYOUTS, "memory_format": MEMORY_FORMATS}[kind])
        elif kind == "l":
            if depth == MAX_ARG_DEPTH:
                _refuse("an argument nested so deeply")
            self.tag(LIST)
            self.list(body, lambda item: self.arg(item, functions, depth + 1), "elements of a list")
        elif kind == "dtype":
            self.dtype_arg(body)
        elif kind == "device":
            self.tag(DEVICE)
            self.u8(body != "cpu")
        elif kind == "desc":
            self.descriptor(body)
        else:
            raise ValueError(f"an argument of kind {kind}")

    def dtype_arg(self, name):
        if name.startswith("tl."):
            self.tag(TRITON_DTYPE)
            self.word(name[3:], TRITON_DTYPES)
        else:
            self.tag(DTYPE)
            self.dtype(name)

    def dtype(self, name):
        if name not in DTYPES:
            _refuse(f"tensors of dtype {name}")
        self.u8(DTYPES.index(name))

    def descriptor(self, body):
        self.tag(DESCRIPTOR)
        self.u32(body["t"])
        for key in ("shape", "strides", "block_shape"):
            self.list(body[key], lambda n: (self._item(), self.u64(n, "a descriptor's size")), "dimensions", MAX_RANK)
        self._item()
        if body.get("padding", "zero") not in PADDINGS:
            _refuse("this padding of a descriptor")
        self.u8(PADDINGS.index(body.get("padding", "zero")))

    def named(self, pairs, functions):
        def write(pair):
            self.text(pair[0])
            self.arg(pair[1], functions)
        self.list(pairs, write, "arguments")

    def nest(self, nest, depth=0):
        if depth > MAX_NEST_DEPTH:
            _refuse("outputs nested so deeply")
        (kind, body), = nest.items()
        self.tag(NEST.index(kind))
        if kind == "id":
            self.u32(body)
        elif kind == "value":
            self.json(body, MAX_TEXT)
        elif kind == "dict":
            self.list(body, lambda pair: (self.text(pair[0]), self.nest(pair[1], depth + 1)), "outputs")
        else:
            self.list(body, lambda item: self.nest(item, depth + 1), "outputs")

    # --- Kernels and cubins.

    def kernel(self, kernel):
        self.text(kernel["name"])
        self.text(kernel["source"], MAX_SOURCE, "a kernel's text")
        self.u8(DECORATORS.index(kernel.get("decorator", "jit")))
        self.u32(kernel["line"], "a line", 0, MAX_LINE)
        self.list(kernel["globals"], self.global_, "globals of a kernel")

    def global_(self, item):
        self._item()
        kind = item["kind"]
        if kind == "jit" and item["kernel"] < 0:  # Itself.
            kind = "opaque"
        self.text(item["name"])
        self.u8(GLOBALS.index(kind))
        if kind == "jit":
            self.u32(item["kernel"])
        elif kind in ("constexpr", "value"):
            self.arg(item["value"], functions=True)
        elif kind in ("module", "member"):
            self.text(item["path"])
        if kind == "member":
            self.text(item["member"])

    def cubin(self, cubin):
        self.u32(cubin["kernel"])
        self.text(cubin["name"])
        signature = cubin["signature"]
        if isinstance(signature, str):
            signature = re.split(r",(?![^<(\[]*[>)\]])", signature) if signature else []
        self.list(signature, lambda kind: (self._item(), self.text(kind, MAX_TEXT)), "parameters of a kernel")
        self.named(cubin["constants"].items(), functions=True)
        self.u32(cubin["num_warps"], "num_warps", 1, 64)
        self.u32(cubin["num_stages"], "num_stages", 0, 64)
        self.u32(cubin["num_ctas"], "num_ctas", 1, 16)
        for size in cubin.get("cluster_dims") or (1, 1, 1):
            self.u32(size, "a cluster", 1, 16)
        self.u32(cubin["shared"], "shared memory", 0, (1 << 31) - 1)
        self.u64(cubin["global_scratch"], "scratch memory")
        self.u64(cubin.get("profile_scratch") or 0, "scratch memory")
        self.u8((1 if cubin.get("cooperative") else 0) | (2 if cubin.get("dependent_launch") else 0))
        self.json(cubin.get("descriptors") or [])
        self.bytes(cubin["tensor"])

    # --- Cases.

    def value(self, value):
        self._item()
        rank = len(value["shape"])
        if rank > MAX_RANK:
            _refuse(f"a tensor of {rank} dimensions")
        self.dtype(value["dtype"])
        self.u32(value["storage"])
        self.u64(value["offset"], "an offset")
        self.u8(rank)
        for size in value["shape"]:
            self.u64(size, "a size")
        for stride in value["stride"]:
            self.u64(stride, "a stride")
        spans = [(n, s) for n, s in zip(value["shape"], value["stride"]) if n > 1]
        if math.prod(n for n, _ in spans) > MAX_ELEMENTS or any(s > MAX_ELEMENTS // n for n, s in spans) or \
                value["offset"] + sum((n - 1) * s for n, s in spans) > MAX_ELEMENTS:
            _refuse("so large a tensor")

    def input(self, entry):
        self._item()
        if isinstance(entry, int):
            self.u8(0)
            self.u32(entry)
        else:
            self.u8(1)
            self.json(None if entry is None else entry["value"])

    def parameter(self, entry, known):
        self._item()
        name, value, *is_buffer = entry
        own = known.get(name, {})
        self.text(name)
        self.u32(value)
        self.u8(any(is_buffer))
        self.u8("tensor" in own)
        if "tensor" in own:
            self.bytes(own["tensor"])

    def step(self, step):
        self._item()
        if "launch" in step:
            self.u8(1)
            self.u32(step["launch"])
            self.u32(step.get("line") or 0, "a line", 0, MAX_LINE)
            self.list(step.get("choices") or [step], self.choice, "configurations of a launch", MAX_CHOICES)
            return
        self.u8(0)
        if not OPERATOR.fullmatch(step["op"]):
            _refuse(f"the operator {step['op'][:80]}")
        self.text(step["op"], MAX_OP)
        self.list(step["args"], self.arg, "arguments")
        self.named(step["kwargs"].items(), functions=False)
        self.nest(step["out"])

    def choice(self, choice):
        self._item()
        for size, limit in zip(choice["grid"], (MAX_GRID_X, MAX_GRID_YZ, MAX_GRID_YZ)):
            self.u32(size, "a grid", 0, limit)
        self.u32(choice["num_warps"], "num_warps", 1, 64)
        self.u32(choice["num_stages"], "num_stages", 0, 64)
        self.u8(choice["cubin"] is not None)
        if choice["cubin"] is not None:
            self.u32(choice["cubin"])
        spec = choice.get("spec")
        self.u8(spec is not None)
        if spec is not None:
            self.u32(spec)
        self.named(choice["args"], functions=True)

    def case(self, case):
        case_trace = case["trace"]
        if [value["id"] for value in case_trace["values"]] != list(range(len(case_trace["values"]))):
            raise ValueError("values are not in the order of their ids")
        names = [entry[0] for entry in case_trace["parameters"]]
        if len(set(names)) < len(names):
            _refuse("two parameters of one name")
        known = {entry["name"]: entry for entry in case["parameters"]}
        self.text(case["name"])
        self.u32(case.get("init_steps", 0))
        self.u32(case.get("input_steps", 0))
        self.list(case_trace["values"], self.value, "tensors", MAX_VALUES)
        self.list(case_trace["inputs"], self.input, "inputs")
        self.list(case_trace["parameters"], lambda entry: self.parameter(entry, known), "parameters", MAX_VALUES)
        self.list(case_trace["tape"], self.step, "steps", MAX_STEPS)
        self.nest(case_trace["outputs"])
        for name in SECONDS:
            self.f64(case.get("seconds", {}).get(name, 0.0))
        self.json(case.get("notes", {}))

    def file(self, trace):
        self._functions = {f"jit:{index}": index for index in range(len(trace["kernels"]))}
        self._raw(b"TRPL")
        self.u32(VERSION)
        self.list(trace["kernels"], self.kernel, "kernels", MAX_KERNELS)
        self.list(trace["cubins"], self.cubin, "compiled kernels", MAX_CUBINS)
        self._specs = len(trace.get("specs", ()))
        self.list(trace.get("specs", ()), self.json, "specialised kernels", MAX_CUBINS)
        self.list(trace["cases"], self.case, "cases", MAX_CASES)
