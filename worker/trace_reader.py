# SPDX-License-Identifier: Apache-2.0
# unpack(): the bytes of a trace (docs/trace.md) as the dicts of PROTOCOL.md. It reads what the C++ parser accepted.
import json
import math
import struct

from trace_format import (BOOL, DECORATORS, DESCRIPTOR, DEVICE, DTYPE, DTYPES, FLOAT, FUNCTION, GLOBALS, INT, LAYOUT, LIST,
                          MEMORY_FORMAT, NEST, NONE, PADDINGS, SECONDS, TENSOR, TEXT, TRITON_DTYPE, UNSIGNED, VERSION)


def unpack(data):
    """The dicts again. Each "tensor" is a reference into `data`."""
    return _Reader(data).file()


class _Reader:
    def __init__(self, data):
        self._data = memoryview(data)
        self._at = 0

    # --- Primitives.

    def _raw(self, size):
        if size > len(self._data) - self._at:
            raise ValueError("the trace is cut short")
        self._at += size
        return self._data[self._at - size:self._at]

    def _number(self, form, size):
        return struct.unpack(form, self._raw(size))[0]

    def u8(self):
        return self._number("<B", 1)

    def u32(self):
        return self._number("<I", 4)

    def u64(self):
        return self._number("<Q", 8)

    def f64(self):
        return self._number("<d", 8)

    def text(self):
        return str(self._raw(self.u32()), "utf-8")

    def json(self):
        return json.loads(self.text())

    def bytes(self, shape=None, dtype="uint8"):
        size = self.u64()
        self._raw(size)
        return {"shape": [size] if shape is None else shape, "dtype": dtype, "offset": self._at - size, "nbytes": size}

    def list(self, read):
        return [read() for _ in range(self.u32())]

    # --- Arguments.

    def arg(self):
        kind = self.u8()
        if kind == NONE:
            return {"n": None}
        if kind == TENSOR:
            return {"t": self.u32()}
        if kind == INT:
            return {"i": self._number("<q", 8)}
        if kind == UNSIGNED:
            return {"i": self.u64()}
        if kind == FLOAT:
            number = self.f64()
            return {"f": number if math.isfinite(number) else repr(number)}
        if kind == BOOL:
            return {"b": bool(self.u8())}
        if kind in (TEXT, LAYOUT, MEMORY_FORMAT):
            return {{TEXT: "s", LAYOUT: "layout", MEMORY_FORMAT: "memory_format"}[kind]: self.text()}
        if kind == LIST:
            return {"l": self.list(self.arg)}
        if kind == DTYPE:
            return {"dtype": DTYPES[self.u8()]}
        if kind == DEVICE:
            return {"device": "cuda" if self.u8() else "cpu"}
        if kind == TRITON_DTYPE:
            return {"dtype": f"tl.{self.text()}"}
        if kind == FUNCTION:
            return {"s": f"jit:{self.u32()}"}
        if kind == DESCRIPTOR:
            return {"desc": {"t": self.u32(), "shape": self.list(self.u64), "strides": self.list(self.u64),
                             "block_shape": self.list(self.u64), "padding": PADDINGS[self.u8()]}}
        raise ValueError("an unknown kind of argument")

    def pair(self):
        return [self.text(), self.arg()]

    def nest(self):
        kind = NEST[self.u8()]
        if kind == "id":
            return {"id": self.u32()}
        if kind == "value":
            return {"value": self.json()}
        return {kind: self.list(self.nest if kind != "dict" else lambda: [self.text(), self.nest()])}

    # --- Kernels and cubins.

    def kernel(self):
        return {"name": self.text(), "source": self.text(), "decorator": DECORATORS[self.u8()], "line": self.u32(),
                "globals": self.list(self.global_)}

    def global_(self):
        item = {"name": self.text(), "kind": GLOBALS[self.u8()]}
        if item["kind"] == "jit":
            item["kernel"] = self.u32()
        elif item["kind"] in ("constexpr", "value"):
            item["value"] = self.arg()
        elif item["kind"] in ("module", "member"):
            item["path"] = self.text()
        if item["kind"] == "member":
            item["member"] = self.text()
        return item

    def cubin(self):
        cubin = {"kernel": self.u32(), "name": self.text(), "signature": ",".join(self.list(self.text)),
                 "constants": dict(self.list(self.pair)), "num_warps": self.u32(), "num_stages": self.u32(),
                 "num_ctas": self.u32(), "cluster_dims": [self.u32() for _ in range(3)], "shared": self.u32(),
                 "global_scratch": self.u64(), "profile_scratch": self.u64()}
        flags = self.u8()
        return {**cubin, "cooperative": bool(flags & 1), "dependent_launch": bool(flags & 2),
                "descriptors": self.json(), "tensor": self.bytes()}

    # --- Cases.

    def value(self, values):
        dtype, storage, offset, rank = DTYPES[self.u8()], self.u32(), self.u64(), self.u8()
        values.append({"id": len(values), "shape": [self.u64() for _ in range(rank)],
                       "stride": [self.u64() for _ in range(rank)], "offset": offset, "dtype": dtype,
                       "storage": storage})

    def input(self):
        if self.u8() == 0:
            return self.u32()
        value = self.json()
        return None if value is None else {"value": value}

    def parameter(self, values):
        """(the trace's entry, the case's entry)."""
        name, value, is_buffer = self.text(), self.u32(), bool(self.u8())
        own = values[value]
        entry = {"name": name, "shape": own["shape"], "dtype": own["dtype"]}
        if self.u8():
            entry["tensor"] = self.bytes(own["shape"], own["dtype"])
        return [name, value, is_buffer], entry

    def step(self):
        if self.u8() == 0:
            return {"op": self.text(), "args": self.list(self.arg), "kwargs": dict(self.list(self.pair)),
                    "out": self.nest()}
        step = {"launch": self.u32(), "line": self.u32() or None}
        choices = self.list(self.choice)
        return {**step, **choices[0], "choices": choices}

    def choice(self):
        return {"grid": [self.u32() for _ in range(3)], "num_warps": self.u32(), "num_stages": self.u32(),
                "cubin": self.u32() if self.u8() else None, "spec": self.u32() if self.u8() else None,
                "args": self.list(self.pair)}

    def case(self):
        case = {"name": self.text(), "init_steps": self.u32(), "input_steps": self.u32()}
        values = []
        for _ in range(self.u32()):
            self.value(values)
        inputs = self.list(self.input)
        parameters = self.list(lambda: self.parameter(values))
        case_trace = {"values": values, "inputs": inputs, "parameters": [entry for entry, _ in parameters],
                "tape": self.list(self.step), "outputs": self.nest()}
        return {**case, "trace": case_trace, "parameters": [entry for _, entry in parameters],
                "seconds": {name: self.f64() for name in SECONDS}, "notes": self.json()}

    def file(self):
        if self._raw(4) != b"TRPL" or self.u32() != VERSION:
            raise ValueError("this is no trace of a known version")
        trace = {"trace_version": VERSION, "kernels": self.list(self.kernel), "cubins": self.list(self.cubin),
                     "specs": self.list(self.json), "cases": self.list(self.case)}
        if self._at != len(self._data):
            raise ValueError("the trace continues after its end")
        return trace
