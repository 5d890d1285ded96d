# SPDX-License-Identifier: Apache-2.0
# Session: what one `record` job has seen of Triton. Kernels, launches, cubins or specs (what a cubin is made from).
import dataclasses
import hashlib
import json
import operator
import sys

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend
from triton._utils import BITWIDTH_DICT, canonicalize_dtype
from triton.tools.tensor_descriptor import TensorDescriptor

import fake_cuda
from failure import Failure
from kernels import KernelTable, closure, decode_constant, encode_constant, handles, renumbered
from trace_limits import MAX_GRID_X, MAX_GRID_YZ

MAX_GRID = (MAX_GRID_X, MAX_GRID_YZ, MAX_GRID_YZ)
# What a launch may ask of the compiler. Everything else keeps Triton's default.
ALWAYS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
OPTIONS = ALWAYS + ("enable_fp_fusion", "enable_reflect_ftz", "launch_cooperative_grid", "debug", "sanitize_overflow",
                    "default_dot_input_precision", "max_num_imprecise_acc_default")

current = None  # The Session of the job at hand.


def _flat(kind):
    return "(" + ";".join(map(_flat, kind)) + ")" if isinstance(kind, tuple) else str(kind)


def flat_signature(signature):
    """Types by parameter; a tuple's as "(*fp32;(i32;constexpr))"."""
    return [_flat(kind) for kind in signature.values()]


def cubin_entry(kernel, signature, constants, metadata):
    """The description of a cubin, from Triton's own metadata. `constants`: {parameter: ARG}."""
    return {"kernel": kernel, "signature": ",".join(flat_signature(signature)), "constants": constants,
            "num_warps": metadata.num_warps, "num_stages": metadata.num_stages, "num_ctas": metadata.num_ctas,
            "cluster_dims": [metadata.num_ctas, 1, 1], "shared": metadata.shared,
            "global_scratch": metadata.global_scratch_size, "profile_scratch": metadata.profile_scratch_size,
            "cooperative": bool(metadata.launch_cooperative_grid), "dependent_launch": bool(metadata.launch_pdl),
            "descriptors": list(getattr(metadata, "tensordesc_meta", None) or []), "name": metadata.name}


# --- Specs.

def _path(parameters, path):
    return ".".join([parameters[path[0]], *map(str, path[1:])])


def _unpath(parameters, text):
    first, *rest = text.split(".")
    return (parameters.index(first), *map(int, rest))


def _nested(kind, build):
    return build(_nested(item, build) for item in kind) if isinstance(kind, (list, tuple)) else str(kind)


def make_spec(table, function, signature, constants, options, attrs):
    """What Triton would compile, as data. Of the backend's `options` only what differs from the default stays."""
    plain = make_backend(GPUTarget("cuda", fake_cuda.target["arch"], 32)).parse_options({})
    chosen = {}
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if field.name in ALWAYS or value != getattr(plain, field.name):
            if field.name not in OPTIONS:
                raise Failure("not_recordable", "launch", f"the launch option {field.name} is not supported")
            chosen[field.name] = value
    names = [p.name for p in function.params]
    kernel = table.index_of(function)
    spec = {"kernel": kernel, "signature": {name: _nested(kind, list) for name, kind in signature.items()},
            "constants": {_path(names, path): encode_constant(value, table) for path, value in constants.items()},
            "attrs": {_path(names, path): [list(pair) for pair in pairs] for path, pairs in attrs.items() if pairs},
            "options": chosen, "arch": fake_cuda.target["arch"]}
    return {**spec, "key": spec_key(table.entries, spec)}


def spec_kernels(spec):
    """Indices of the kernel and of the functions among its constants."""
    return [spec["kernel"], *[int(text[4:]) for arg in spec["constants"].values() for text in handles(arg)]]


def spec_key(kernels, spec):
    """Hash of everything a cubin depends on: the texts of the kernel and its helpers, and the specialisation."""
    texts, order = closure(kernels, spec_kernels(spec))
    constants = {name: renumbered(arg, order) for name, arg in spec["constants"].items()}
    rest = {key: value for key, value in spec.items() if key not in ("kernel", "key", "constants")}
    text = json.dumps([triton.__version__, texts, constants, rest], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def decode_spec(spec, function, functions):
    """(signature, constants, attrs) as triton.compiler.ASTSource wants them."""
    names = [p.name for p in function.params]
    if set(spec["signature"]) != set(names):
        raise ValueError("the spec's signature does not fit the kernel")
    return ({name: _nested(spec["signature"][name], tuple) for name in names},
            {_unpath(names, path): decode_constant(arg, functions) for path, arg in spec["constants"].items()},
            {_unpath(names, path): [list(pair) for pair in pairs] for path, pairs in spec["attrs"].items()})


def _fits(number, kind):
    """May an integer be given where a parameter is annotated as `kind` ("i32", "u64", ...)?"""
    if kind[:1] not in ("i", "u"):
        return True
    bits = BITWIDTH_DICT[kind]
    return 0 <= number < 1 << bits if kind[0] == "u" else -(1 << bits - 1) <= number < 1 << bits - 1


class Session:
    def __init__(self, source_path=""):
        self.kernels = KernelTable()
        self.cubins = []      # (entry, bytes)
        self.specs = []
        self.recorder = None
        self.compile = True
        self.source_path = source_path
        self.compile_seconds = 0.0
        self.collected = None  # A list while the autotuner tries configurations: launches go there, not on the tape.
        self.choices = None    # All configurations of the launch that comes next.
        self.tuned = {}        # Autotuners that have run before, by id.
        self._cubin_of = {}    # id(CompiledKernel's binary) -> index.
        self._spec_of = {}     # key -> index.

    def add_cubin(self, function, signature, constants, metadata, binary):
        key = id(binary)
        if key in self._cubin_of:
            return self._cubin_of[key]
        names = [p.name for p in function.params]
        entry = cubin_entry(self.kernels.index_of(function), signature,
                            {names[path[0]]: encode_constant(value, self.kernels)
                             for path, value in constants.items() if len(path) == 1}, metadata)
        self.cubins.append((entry, binary))
        self._cubin_of[key] = len(self.cubins) - 1
        return len(self.cubins) - 1

    def add_spec(self, function, signature, constants, options, attrs):
        try:
            spec = make_spec(self.kernels, function, signature, constants, options, attrs)
        except Failure as failure:
            self.recorder.sticky = self.recorder.sticky or failure
            raise
        if spec["key"] not in self._spec_of:
            self._spec_of[spec["key"]] = len(self.specs)
            self.specs.append(spec)
        return self._spec_of[spec["key"]]

    # --- Launches.

    def launch(self, function, grid, values, num_warps, num_stages, stream, **image):
        """`image`: cubin=index or None, and spec=index where nothing was compiled."""
        if self.recorder is None or not (self.recorder.recording or self.collected is not None):
            return
        fake_cuda.check_stream(stream)
        grid = [operator.index(size) for size in grid]
        if any(size < 0 or size > limit for size, limit in zip(grid, MAX_GRID)):
            raise RuntimeError(f"Triton Error [CUDA]: invalid argument (grid {tuple(grid)})")
        with torch._C.DisableTorchFunction():
            args = [[p.name, self._argument(i, p, value)] for i, (p, value) in enumerate(zip(function.params, values))]
        choice = {"grid": grid, "args": args, "num_warps": num_warps, "num_stages": num_stages, **image}
        if self.collected is not None:
            self.collected.append(choice)
            return
        choices = self.choices if self.choices and self.choices[0] == choice else [choice]
        self.recorder.tape.append({"launch": self.kernels.index_of(function), **choice, "line": self._line(),
                                   "choices": choices})

    def _argument(self, index, parameter, value):
        if isinstance(value, torch.Tensor):
            if fake_cuda.on_host(value):
                raise ValueError(f"Pointer argument (at {index}) cannot be accessed from Triton (cpu tensor?)")
            said = parameter.annotation_type
            if said[:1] == "*" and said.lstrip("*k") != canonicalize_dtype(value.dtype):
                self.recorder.refuse("launch", f"argument {parameter.name} is annotated {said} and given {value.dtype}")
            return {"t": self.recorder.value(value)}
        if isinstance(value, TensorDescriptor):
            return {"desc": {**self._argument(index, parameter, value.base), "padding": value.padding,
                             **{name: [operator.index(n) for n in getattr(value, name)]
                                for name in ("shape", "strides", "block_shape")}}}
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1 << 40:
            tensor = self.recorder.tensor_at(value)
            if tensor is not None:
                return {"t": self.recorder.value(tensor)}
        if type(value) is int and not _fits(value, parameter.annotation_type):
            raise OverflowError(f"argument {parameter.name}: {value} is no {parameter.annotation_type}")
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
