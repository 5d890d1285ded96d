# SPDX-License-Identifier: Apache-2.0
# Job `interpret`: walks the trace of one case on the CPU. ATen steps run on real tensors, launches in Triton's interpreter.
#
# Every storage lives between two guard zones, and all memory starts as poison (NaN, or a seeded pattern for integers):
# what a kernel forgets to write or reads out of bounds shows up in the outputs; what it writes out of bounds shows up
# in the guards.
import math
import mmap
import os
import random
from typing import NamedTuple

import numpy as np
import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

import interpreter
import rounding
from failure import Failure, describe, is_out_of_memory, line_in_file
from further_calls import repeated
from hints import FalseHint
from kernels import Rebuilder, decode_constant
from known_values import tensors_of
from trace_reader import unpack
from wire import DTYPES, BlobWriter, decode_argument, operator_of, read_tensor

# The memory is laid out as the replay lays out a GPU's (src/verify/replay/guarded_memory.cpp), so that no address tells
# which of the two it is: guards of a page, sizes in units of 512 bytes (large ones of 2 MiB), one after another in slabs
# that begin at 2 MiB, mapped far above the heap.
GUARD = 4096  # Bytes on either side of a storage.
ALIGN = 512
LARGE, SLAB, UNIT = 4 << 20, 16 << 20, 2 << 20
MOST_KEPT = 64 << 20  # Bytes that are kept while programs may get stuck.
FRESH = frozenset(("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"))
# Quiet NaNs: (integers of that width, the pattern, free bits below it).
NANS = {torch.float64: (torch.int64, 0x7FF8 << 48, 51), torch.float32: (torch.int32, 0x7FC0 << 16, 22),
        torch.float16: (torch.int16, 0x7E00, 9), torch.bfloat16: (torch.int16, 0x7FC0, 6)}


class Poison:
    """Fills of guard zones and of memory that nobody has written. NaN shows best what a kernel should not have read, and a
    kernel may know it by that: in the second manner of MANNERS the fills look like anybody's numbers, in the fourth all is
    zero."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        self._likely, self._zero = seed % 4 == 1, seed % 4 == 3

    def number(self):
        """A seed for something else."""
        return self._random.getrandbits(32)

    def fill(self, tensor):
        """Overwrites a contiguous tensor. No two fills look alike, so that poison copied elsewhere still shows."""
        if self._zero:
            tensor.zero_()
        elif self._likely and tensor.dtype != torch.bool:
            draws = torch.Generator().manual_seed(self.number())
            tensor.normal_(generator=draws) if tensor.is_floating_point() else tensor.random_(0, 4, generator=draws)
        elif tensor.is_floating_point():
            bits, quiet, payload = NANS[tensor.dtype]
            tensor.view(bits).fill_(quiet | self._random.randrange(1, 1 << payload))
        elif tensor.dtype == torch.bool:
            pattern = torch.tensor([self._random.random() < 0.5 for _ in range(61)])
            tensor.copy_(pattern.repeat(-(-tensor.numel() // 61))[:tensor.numel()])
        else:
            top = torch.iinfo(tensor.dtype).max
            tensor.fill_(self._random.randint(top // 2, top - 1))


class Slabs:
    """Memory for storages, in pieces of mappings of its own."""

    def __init__(self):
        self._slab, self._used = None, SLAB

    def take(self, size, alone):
        """(the bytes of a mapping, where in it the piece begins)."""
        if alone:
            return self._map(size), 0
        if self._used + size > SLAB:
            self._slab, self._used = self._map(SLAB), 0
        self._used += size
        return self._slab, self._used - size

    @staticmethod
    def _map(size):
        try:
            memory = mmap.mmap(-1, size + UNIT, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # No shared one in the jail.
        except OSError:
            raise MemoryError from None
        whole = np.frombuffer(memory, np.uint8)
        skip = -whole.__array_interface__["data"][0] % UNIT
        return torch.from_numpy(whole[skip:skip + size])


class Manner(NamedTuple):
    """How launches are walked, by the last two bits of the poison's seed: no two of a candidate's first runs alike."""
    order: str
    eager: bool     # Programs that meet change over all the time.
    rounding: bool  # As a GPU does; else as IEEE says.
    variant: int    # Of what is right in several ways.


MANNERS = (Manner("shuffled", True, True, 0), Manner("forwards", True, False, 1), Manner("backwards", False, False, 2),
           Manner("shuffled", True, False, 3))


class Walker:
    def __init__(self, case_trace, kernels, specs, poison, manner):
        self._trace, self._kernels, self._poison, self._manner = case_trace, kernels, poison, manner
        self._specs, self._rounding_seed = specs, poison.number()
        self._values = {value["id"]: value for value in case_trace["values"]}
        self._slabs = Slabs()
        self._extents = {}     # storage number -> bytes up to the end of what the trace knows of it.
        for value in case_trace["values"]:
            self._extents[value["storage"]] = max(self._extents.get(value["storage"], 0), self._extent(value))
        self._tensors = {}
        self._starts = {}      # storage number -> address of its buffer.
        self._guards = {}      # storage number -> (buffer, start of the zone, start of the data, bytes, zone, rim).
        self.broken = set()
        self.written = set()   # Storages that a launch or an operation stored to.
        self.programs = 0

    # --- Memory.

    def bind(self, value_id, tensor):
        """Gives a trace value the bytes of `tensor` in a guarded buffer, in the value's own layout."""
        value = self._values[value_id]
        if list(tensor.shape) != value["shape"] or DTYPES[value["dtype"]] != tensor.dtype:
            raise ValueError(f"value {value_id}: the tensor has shape {list(tensor.shape)} and dtype {tensor.dtype}, "
                             f"the trace says {value['shape']} and {value['dtype']}")
        if value["storage"] not in self._guards:  # Else another piece of it, or a parameter that is tied to one.
            self._allocate(value["storage"], self._extents[value["storage"]], tensor.dtype)
        target = self._tensors[value_id] = self._view(value)
        for dim, (size, stride) in enumerate(zip(value["shape"], value["stride"])):
            if size > 1 and stride == 0:  # Expanded: one of them is all of them.
                target, tensor = target.narrow(dim, 0, 1), tensor.narrow(dim, 0, 1)
        target.copy_(tensor)

    def view(self, value_id):
        """Another value of a storage that is there."""
        self._tensors[value_id] = self._view(self._values[value_id])

    @staticmethod
    def _extent(value):
        """Bytes from the start of the storage to the end of the value."""
        if 0 in value["shape"]:
            return 0
        last = value["offset"] + sum((n - 1) * s for n, s in zip(value["shape"], value["stride"]))
        return (last + 1) * DTYPES[value["dtype"]].itemsize

    def _allocate(self, number, nbytes, dtype):
        unit = ALIGN if nbytes < LARGE else UNIT
        size = -(-max(nbytes, 1) // unit) * unit
        buffer, skip = self._slabs.take(size + 2 * GUARD, alone=nbytes >= LARGE)
        start, end = skip + GUARD, skip + size + 2 * GUARD
        self._poison.fill(buffer[skip:end].view(dtype))
        rim = torch.cat((buffer[skip:start], buffer[start + nbytes:end]))
        self._guards[number] = (buffer, skip, start, nbytes, size + 2 * GUARD, rim)
        address = buffer.data_ptr()
        self._starts[number] = address + skip
        interpreter.memory.allow(address + skip, address + end)
        return start

    def _view(self, value):
        """A trace value on its guarded storage."""
        buffer, _, start, _, _, _ = self._guards[value["storage"]]
        dtype = DTYPES[value["dtype"]]
        base = torch.empty(0, dtype=dtype)
        return base.set_(buffer.untyped_storage(), start // dtype.itemsize + value["offset"], value["shape"],
                         value["stride"])

    def _bytes(self):
        """All that is held, for another try; None where that is much."""
        pieces = self._pieces()
        return [piece.clone() for piece in pieces] if sum(map(len, pieces)) <= MOST_KEPT else None

    def _pieces(self):
        return [buffer[skip:skip + total] for buffer, skip, _, _, total, _ in self._guards.values()]

    def _check_guards(self):
        for number, (buffer, skip, start, nbytes, total, rim) in self._guards.items():
            now = torch.cat((buffer[skip:start], buffer[start + nbytes:skip + total]))
            if not torch.equal(now, rim):
                self.broken.add(number)

    # --- Steps.

    def make(self, seed, pins):
        """Runs the steps of __init__; `pins`: {number of a step: [(value id, tensor that it holds from there on)]}."""
        torch.manual_seed(seed)
        for number, step in enumerate(self._trace["tape"]):
            self._call(step)
            for value_id, tensor in pins.get(number, ()):
                self._tensors[value_id].copy_(tensor)

    def value(self, value_id):
        return self._tensors[value_id]

    def run(self):
        for step in self._trace["tape"]:
            self._launch(step) if "launch" in step else self._call(step)

    def _call(self, step):
        op = operator_of(step["op"])
        if op is None:
            raise Failure("not_interpretable", "launch", f"the operator {step['op']} is not known here")
        name = step["op"].split(".")[1]
        args = [decode_argument(arg, self._tensors) for arg in step["args"]]
        kwargs = {key: decode_argument(arg, self._tensors) for key, arg in step["kwargs"].items()}
        if name == "as_strided" and len(args) > 3:
            args[3] += self._shift(step["args"][0]["t"])
        elif name in ("set_", "resize_"):
            raise Failure("not_interpretable", "launch", f"{name} needs a GPU")
        if op._schema.is_mutable:
            self.written.update(self._values[value]["storage"] for value in tensors_of([step["args"], step["kwargs"]]))
        self._bind_results(step["out"], op(*args, **kwargs), name)

    def _shift(self, value_id):
        value = self._values[value_id]
        return self._guards[value["storage"]][2] // DTYPES[value["dtype"]].itemsize

    def _bind_results(self, out, result, name):
        if "id" in out:
            value = self._values[out["id"]]
            if value["storage"] in self._guards:
                self._tensors[out["id"]] = self._view(value)
            elif name in FRESH:
                self._allocate(value["storage"], self._extent(value), result.dtype)
                self._tensors[out["id"]] = self._view(value)
            else:
                self.bind(out["id"], result)
            return
        children = out.get("list", out.get("tuple", ()))
        for child, item in zip(children, result if isinstance(result, (list, tuple)) else ()):
            self._bind_results(child, item, name)

    def _launch(self, step):
        kernel = self._kernels[step["launch"]]
        arguments = {name: self._launch_argument(arg) for name, arg in step["args"]}
        grid = tuple(step["grid"])
        self.programs += math.prod(grid)
        spec = step.get("spec")
        signature = self._specs[spec].get("signature", {}) if spec is not None else {}
        options = self._specs[spec].get("options", {}) if spec is not None else {}
        rounding.use(self._manner.rounding and bool(options.get("enable_fp_fusion", True)), self._manner.rounding,
                     self._rounding_seed, self._manner.variant)
        seed, warps = self._poison.number(), step["num_warps"]
        before = self._bytes() if self._manner.eager and interpreter.may_meet(kernel) else None
        what = kernel, grid, arguments, signature
        try:
            interpreter.launch(*what, self._manner.order, self._manner.eager, seed, warps)
        except interpreter.Stuck:
            if before is None:
                raise
            for piece, content in zip(self._pieces(), before):
                piece.copy_(content)
            interpreter.launch(*what, "forwards", True, seed, warps, wide=True)
        stored = interpreter.memory.races.stored()
        self.written.update(number for number, start in self._starts.items() if start in stored)
        self._check_guards()

    def _launch_argument(self, arg):
        if "t" in arg:
            return self._tensors[arg["t"]]
        if "desc" in arg:
            desc = arg["desc"]
            return TensorDescriptor(self._tensors[desc["t"]], desc["shape"], desc["strides"], desc["block_shape"],
                                    desc["padding"])
        if "l" in arg:
            return tuple(self._launch_argument(item) for item in arg["l"])
        return decode_constant(arg, self._kernels)

    # --- Results.

    def structure(self, out, blob):
        if "id" in out:
            return blob.add(self._tensors[out["id"]], with_stride=True)
        (kind, body), = out.items()
        if kind == "dict":
            return {"dict": [[key, self.structure(item, blob)] for key, item in body]}
        return {kind: body if kind == "value" else [self.structure(item, blob) for item in body]}

    def changed(self, value_id, before):
        now = self._tensors[value_id]
        return not (torch.equal(now.contiguous().view(torch.uint8), before.contiguous().view(torch.uint8))
                    if now.dim() else torch.equal(now.reshape(1).view(torch.uint8), before.reshape(1).view(torch.uint8)))

    def after(self, value_id, before, blob):
        """A reference to an input's bytes where the walk changed them, else None."""
        return blob.add(self._tensors[value_id]) if self.changed(value_id, before) else None

    def kept(self, parameters, before):
        """Places of the parameters that the walk changed; `before(reference)`: what one was."""
        return [place for place, (value_id, reference) in enumerate(parameters) if reference is not None
                and self._values[value_id]["storage"] in self.written and self.changed(value_id, before(reference))]


def _innermost(error):
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _failure(error, rebuilder_folder, entries):
    cause = _innermost(error)
    text = describe(cause, "", rebuilder_folder)
    where = _kernel_line(error, entries) or _kernel_line(cause, entries)
    if is_out_of_memory(cause):
        return Failure("out_of_memory", "launch", text, *where)
    if isinstance(cause, interpreter.MemoryFault):
        return Failure("memory_fault", "launch", text, *where)
    if isinstance(cause, interpreter.Race):
        return Failure("race", "launch", text, *where)
    if isinstance(cause, FalseHint):
        return Failure("false_hint", "launch", text, *where)
    if isinstance(cause, AssertionError):
        return Failure("kernel_failed", "launch", text, *where)
    if isinstance(cause, interpreter.Stuck):
        return Failure("not_interpretable", "launch", text + ": this needs a GPU", *where)
    if isinstance(cause, NameError) or isinstance(cause, AttributeError) and "module 'triton" in str(cause):
        return Failure("kernel_name", "launch", text, *where)
    # The kernel did compile, so what is left is a limit of the interpreter.
    return Failure("not_interpretable", "launch",
                   "the interpreter cannot run this kernel (a GPU can, perhaps): " + text, *where)


def _kernel_line(error, entries):
    """(name, line of the candidate's file) of the innermost kernel that an error passed through, or ()."""
    trace, found = error.__traceback__, ()
    while trace is not None:
        name = os.path.basename(trace.tb_frame.f_code.co_filename)
        if name.startswith("tritonrl_kernel_"):
            entry = entries[int(name.removeprefix("tritonrl_kernel_").removesuffix(".py"))]
            found = entry["name"], line_in_file(entry, trace.tb_lineno)
        trace = trace.tb_next
    return found


def chosen(tape, choices):
    """The tape with the configurations that are asked for: launch n of those with several takes choices[n % size]."""
    number = 0
    for step in tape:
        if choices and len(step.get("choices", ())) > 1:
            choice = step["choices"][choices[number % len(choices)] % len(step["choices"])]
            step, number = {**step, **choice}, number + 1
        yield step


def run(job, payload, blob, work):
    args = job["args"]
    trace = unpack(memoryview(payload)[:args["trace"]])
    folder = os.path.join(work, "kernels")
    os.makedirs(folder, exist_ok=True)
    rebuilder = Rebuilder(trace["kernels"], folder, {"jit": triton.jit, "constexpr_function": triton.constexpr_function})
    area = memoryview(payload)[args["tensors"]:]
    if "init" in args:
        return make_weights(trace, rebuilder, args, area, blob)
    answer = walk(trace, rebuilder, args, area, blob)
    for other in args.get("others", ()):  # Each is as if it were alone; the first that fails is asked for again.
        own = BlobWriter()
        try:
            interpreter.memory.forget()
            one = walk(trace, rebuilder, {**args, **other}, area, own)
        except (Failure, MemoryError):
            break
        answer.setdefault("others", []).append({"answer": one, "tensors": blob.append(own)})
    return answer


def _case(trace, name):
    """(CASE_TRACE, how many of its steps are __init__'s)."""
    return next((dict(case["trace"]), case["init_steps"]) for case in trace["cases"] if case["name"] == name)


def make_weights(trace, rebuilder, args, area, blob):
    case_trace, init_steps = _case(trace, args["case"])
    case_trace["tape"] = case_trace["tape"][:init_steps]
    walker = Walker(case_trace, rebuilder, trace["specs"], Poison(args["poison"]), MANNERS[1])
    for value_id, reference in args["parameters"]:
        walker.bind(value_id, read_tensor(reference, area))
    pins = {}
    for value_id, reference, number in args["init"]["pins"]:
        pins.setdefault(number, []).append((value_id, read_tensor(reference, area)))
    try:
        with torch.no_grad():
            walker.make(args["init"]["seed"], pins)
    except Failure:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise Failure("out_of_memory", "init", describe(error, "", rebuilder.folder)) from None
        raise Failure("operator_failed", "init", describe(error, "", rebuilder.folder)) from None
    return {"values": [blob.add(walker.value(value_id)) for value_id in args["init"]["want"]]}


def walk(trace, rebuilder, args, area, blob):
    case_trace, init_steps = _case(trace, args["case"])
    case_trace["tape"] = case_trace["tape"][init_steps:]
    case_trace["parameters"] = [["", value_id] for value_id, _ in args["parameters"]]
    if case_trace["inputs"]:
        case_trace = repeated(case_trace, len(args["inputs"]) // len(case_trace["inputs"]))
    if not args["launches"]:
        case_trace["tape"] = [step for step in case_trace["tape"] if "launch" not in step]
    case_trace["tape"] = list(chosen(case_trace["tape"], args.get("choices")))
    planned = sum(math.prod(step["grid"]) for step in case_trace["tape"] if "launch" in step)
    if planned > args["max_programs"]:
        raise Failure("not_interpretable", "launch", f"{planned} program instances are too many for the interpreter "
                                                     f"(limit {args['max_programs']}): this needs a GPU")
    poison = Poison(args["poison"])
    walker = Walker(case_trace, rebuilder, trace["specs"], poison, MANNERS[args["poison"] % 4])
    for value_id, reference in args["parameters"]:
        walker.view(value_id) if reference is None else walker.bind(value_id, read_tensor(reference, area))
    inputs = [read_tensor(spec, area) if value_id is not None else None
              for value_id, spec in zip(case_trace["inputs"], args["inputs"])]
    for value_id, tensor in zip(case_trace["inputs"], inputs):
        if value_id is not None:
            walker.bind(value_id, tensor)
    try:
        with torch.no_grad():
            walker.run()
    except Failure:
        raise
    except Exception as error:
        raise _failure(error, rebuilder.folder, trace["kernels"]) from None
    return {"outputs": walker.structure(case_trace["outputs"], blob), "programs": walker.programs,
            "inputs_after": [None if value_id is None else walker.after(value_id, tensor, blob)
                             for value_id, tensor in zip(case_trace["inputs"], inputs)],
            "kept": walker.kept(args["parameters"], lambda reference: read_tensor(reference, area)),
            "guards_broken": sorted(walker.broken)}
