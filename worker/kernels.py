# SPDX-License-Identifier: Apache-2.0
# Kernels as data: takes a @triton.jit function apart into KERNEL entries (PROTOCOL.md) and puts it together again.
#
# An entry holds the function's own text and the globals that this text names: helpers by index, constants by value,
# modules by name from a short list. The host code of a candidate is not needed (and not run) to rebuild a kernel.
import ast
import importlib
import inspect
import json
import os
import sys
import types

import torch
import triton
import triton.language as tl
from triton.runtime.jit import ConstexprFunction, JITFunction, get_jit_fn_file_line

from failure import Failure
from kernel_rules import builtins_for, check_kernel, check_member, is_plain_text
from tape import encode
from trace_format import TRITON_DTYPES
from wire import DTYPES

MODULES = frozenset((
    "triton", "triton.language", "triton.language.core", "triton.language.math", "triton.language.standard",
    "triton.language.random", "triton.language.extra", "triton.language.extra.libdevice",
    "triton.language.extra.cuda", "triton.language.extra.cuda.libdevice", "math",
    "torch._inductor.runtime.triton_helpers"))

TRITON_TYPES = {name: getattr(tl, name) for name in TRITON_DTYPES}
TRITON_NAMES = {str(kind): name for name, kind in TRITON_TYPES.items()}  # "fp32" -> "float32".


def base_function(kernel):
    """The JITFunction beneath autotune and heuristics; None for something else."""
    for _ in range(8):
        if isinstance(kernel, (JITFunction, ConstexprFunction)):
            return kernel
        kernel = getattr(kernel, "fn", None)
    return None


def encode_constant(value, kernels):
    """ARG of a compile-time value. Triton dtypes travel as {"dtype": "tl.float32"}, functions as {"s": "jit:INDEX"}."""
    if isinstance(value, tl.constexpr):
        value = value.value
    if isinstance(value, tl.dtype):
        if str(value) not in TRITON_NAMES:
            raise Failure("not_recordable", "launch", f"the type {value} as a compile-time constant")
        return {"dtype": f"tl.{TRITON_NAMES[str(value)]}"}
    if kernels is not None and isinstance(value, (JITFunction, ConstexprFunction)):
        return {"s": f"jit:{kernels.index_of(value)}"}
    if isinstance(value, torch.Tensor):
        raise Failure("not_recordable", "launch", "a tensor is used as a compile-time constant")
    return encode(value, lambda item: encode_constant(item, kernels))


def decode_constant(arg, functions=()):
    (kind, body), = arg.items()
    if kind == "dtype":
        return TRITON_TYPES[body[3:]] if body.startswith("tl.") else DTYPES[body]
    if kind == "l":
        return tuple(decode_constant(item, functions) for item in body)
    if kind == "s" and body.startswith("jit:"):
        return functions[int(body[4:])]
    if kind == "s" and not is_plain_text(body):
        raise Failure("kernel_python", "compile", "a kernel may not use a format string")
    return float(body) if kind == "f" else body


def free_names(source):
    """Names that a function's text reads and does not bind."""
    read, bound = [], set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            read.append(node.id) if isinstance(node.ctx, ast.Load) else bound.add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
    return [name for name in dict.fromkeys(read) if name not in bound]


def closure(entries, roots):
    """(entries without line numbers, {old index: new}) of some kernels and all they call, numbered in that order."""
    order, queue = {}, list(roots)
    while queue:
        index = queue.pop(0)
        if index not in order and 0 <= index < len(entries):
            order[index] = len(order)
            queue += [item["kernel"] for item in entries[index]["globals"] if item["kind"] == "jit"]
            queue += [int(text[4:]) for item in entries[index]["globals"] for text in handles(item.get("value"))]
    return [{**entries[index], "line": 0, "globals": [_renumbered(item, order) for item in entries[index]["globals"]]}
            for index in order], order


def handles(arg):
    if isinstance(arg, dict):
        (kind, body), = arg.items()
        if kind == "s" and body.startswith("jit:"):
            yield body
        elif kind == "l":
            for item in body:
                yield from handles(item)


def _renumbered(item, order):
    if item["kind"] == "jit":
        return {**item, "kernel": order.get(item["kernel"], -1)}
    return {**item, "value": renumbered(item["value"], order)} if "value" in item else item


def renumbered(arg, order):
    (kind, body), = arg.items()
    if kind == "l":
        return {"l": [renumbered(item, order) for item in body]}
    return {"s": f"jit:{order.get(int(body[4:]), -1)}"} if kind == "s" and body.startswith("jit:") else arg


class KernelTable:
    """The KERNEL entries of one trace; equal entries (of the full and the tiny case) are stored once."""

    def __init__(self):
        self.entries = []
        self._index = {}     # id(function) -> index.
        self._by_text = {}
        self._alive = []

    def index_of(self, function):
        function = base_function(function)
        if function is None:
            raise Failure("not_recordable", "launch", "this is not a @triton.jit function")
        if id(function) in self._index:
            return self._index[id(function)]
        self._alive.append(function)
        source = function.src if isinstance(function.src, str) else ""
        entry = {"name": function.__name__, "source": source,
                 "decorator": "jit" if isinstance(function, JITFunction) else "constexpr_function",
                 "globals": [], "line": int(get_jit_fn_file_line(function)[1])}
        self._index[id(function)] = -1  # A recursive kernel does not compile; do not hang here.
        scope = dict(function.__globals__)
        scope.update(inspect.getclosurevars(function.fn).nonlocals)
        for name in free_names(source):
            if name in scope:  # Else a builtin, or unknown: the compiler says so.
                entry["globals"].append(self._global(name, scope[name]))
        check_kernel(entry)
        text = json.dumps({**entry, "line": 0})
        if text not in self._by_text:
            self._by_text[text] = len(self.entries)
            self.entries.append(entry)
        self._index[id(function)] = self._by_text[text]
        return self._by_text[text]

    def _global(self, name, value):
        if isinstance(value, types.ModuleType):
            path = value.__name__ if value.__name__ in MODULES else ""
            return {"name": name, "kind": "module", "path": path}
        home = getattr(value, "__module__", None)
        if not isinstance(value, tl.constexpr) and home in MODULES and callable(value):
            return {"name": name, "kind": "member", "path": home, "member": getattr(value, "__name__", name)}
        if (function := base_function(value)) is not None:
            return {"name": name, "kind": "jit", "kernel": self.index_of(function)}
        kind = "constexpr" if isinstance(value, (tl.constexpr, tl.dtype)) else "value"
        try:
            return {"name": name, "kind": kind, "value": encode_constant(value, self)}
        except Failure:
            return {"name": name, "kind": "opaque"}  # Compiles only where it is not really used.


class Rebuilder:
    """Makes functions from KERNEL entries; text goes to files in `folder`, because Triton reads sources back."""

    def __init__(self, entries, folder, decorators, names=None, builtins=None):
        """`names`: {index: number in names of files and modules}; `builtins`: what texts may use (when compiling)."""
        self._entries, self.folder, self._decorators = entries, folder, decorators
        self._names, self._builtins, self._compiling = names or {}, builtins, builtins is not None
        self._functions = {}

    def __getitem__(self, index):
        if index not in self._functions:
            if not 0 <= index < len(self._entries):
                raise ValueError("a kernel index is out of range")
            self._functions[index] = self._build(index, self._entries[index])
        return self._functions[index]

    def _build(self, index, entry):
        check_kernel(entry)
        name = f"tritonrl_kernel_{self._names.get(index, index)}"
        path = os.path.join(self.folder, name + ".py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(entry["source"])
        module = types.ModuleType(name)
        module.__file__ = path
        sys.modules[name] = module
        scope = module.__dict__
        scope["__builtins__"] = builtins_for(entry.get("decorator") == "constexpr_function")
        scope.setdefault("tl", tl)
        scope.setdefault("triton", triton)
        for item in entry["globals"]:
            value = self._value(item)
            if value is not None:
                scope[item["name"]] = value
        exec(compile(entry["source"], path, "exec"), scope)
        seen = "".join(inspect.getsourcelines(scope[entry["name"]])[0])  # What Triton is going to parse.
        if seen.rstrip("\n") != entry["source"].rstrip("\n"):
            raise Failure("kernel_text", "compile", "the text of a kernel is not one function")
        return self._decorators[entry.get("decorator", "jit")](scope[entry["name"]])

    def _value(self, item):
        kind = item["kind"]
        if kind in ("module", "member"):
            if item["path"] not in MODULES:
                return None
            if kind == "member":
                check_member(item["path"], item["member"])
            module = importlib.import_module(item["path"])
            return module if kind == "module" else getattr(module, item["member"])
        if kind == "jit":
            return self[item["kernel"]]
        if kind in ("constexpr", "value"):
            value = decode_constant(item["value"], self)
            wrapped = self._compiling and kind == "constexpr" and not isinstance(value, tl.dtype)
            return tl.constexpr(value) if wrapped else value
        return None
