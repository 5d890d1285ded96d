# SPDX-License-Identifier: Apache-2.0
# Job `oracle`: runs a task's own reference module. Its answer is the truth that candidates are judged by, so the child
# that runs it never sees a byte of any candidate.
import hashlib
import os

import torch
from torch.overrides import TorchFunctionMode

import controls
from candidate import load, rebind
from failure import RAISED_IN, Failure, describe, is_out_of_memory
from values import cast, cast_module, other_precision, transformed
from wire import content_hash, encode_init

NOISE = 0.1


def _stream(weight_seed, name):
    digest = hashlib.sha256(f"{weight_seed}:{name}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "little"))


def perturb(name, tensor, weight_seed, is_buffer):
    """Moves a constant tensor (gamma of ones, bias of zeros, running statistics) away from an identity, in place."""
    if not tensor.is_floating_point() or tensor.numel() == 0 or not bool(torch.isfinite(tensor).all()):
        return
    if not bool((tensor == tensor.flatten()[0]).all()):
        return
    noise = NOISE * torch.randn(tensor.shape, generator=_stream(weight_seed, name), dtype=torch.float32)
    moved = tensor.float() + noise
    if is_buffer and name.split(".")[-1] == "running_var":
        moved = moved.abs() + 0.01
    tensor.copy_(moved.to(tensor.dtype))


class _InDouble(TorchFunctionMode):
    """Casts to a lower floating precision become casts to float64."""
    FLOATS = (torch.float32, torch.float16, torch.bfloat16)
    CASTS = (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in self.CASTS:
            return args[0].double()
        args = tuple(torch.float64 if isinstance(a, torch.dtype) and a in self.FLOATS else a for a in args)
        if kwargs.get("dtype") in self.FLOATS:
            kwargs = {**kwargs, "dtype": torch.float64}
        return func(*args, **kwargs)


def structure(out, leaf):
    if isinstance(out, torch.Tensor):
        return leaf(out)
    if isinstance(out, (list, tuple)):
        return {"list" if isinstance(out, list) else "tuple": [structure(item, leaf) for item in out]}
    if isinstance(out, dict):
        return {"dict": [[str(key), structure(item, leaf)] for key, item in out.items()]}
    if out is None or isinstance(out, (bool, int, float, str)):
        return {"value": repr(out) if isinstance(out, float) and out - out != 0 else out}
    raise Failure("not_recordable", "forward", f"the reference returns a {type(out).__name__}")


def _clone(value, double=False):
    if not isinstance(value, torch.Tensor):
        return value
    return value.double() if double and value.is_floating_point() else value.clone()


def _same(a, b):
    if not isinstance(a, torch.Tensor):
        return True
    return bool(((a == b) | ((a != a) & (b != b))).all())


def _input(value, blob):
    if isinstance(value, torch.Tensor):
        return {"kind": "tensor", "tensor": blob.add(value, with_stride=True)}
    return {"kind": "value", "value": encode_init(value)}


def run(job, payload, blob, work):
    phase, path = "import", os.path.join(work, "task", "candidate.py")
    try:
        args = job["args"]
        source = rebind(args["source"], args.get("constants") or {})
        module, path = load(source, os.path.join(work, "task"), "task")
        for name in ("Model", "get_inputs", "get_init_inputs"):
            if not hasattr(module, name):
                raise Failure("import_failed", "import", f"the task defines no {name}")
        phase = "init"
        init_inputs = list(module.get_init_inputs())
        torch.manual_seed(args["weight_seed"])
        model = module.Model(*init_inputs).eval()
        parameters = []
        with torch.no_grad():
            dtype = other_precision(module.get_inputs()) if args.get("dtype") else None
            if dtype is not None:
                cast_module(model, dtype)
            tensors = [(name, t, False) for name, t in model.named_parameters(remove_duplicate=False)]
            tensors += [(name, t, True) for name, t in model.named_buffers(remove_duplicate=False)]
            for name, tensor, _ in tensors:
                parameters.append({"name": name, "init_hash": content_hash(tensor)})
            done = set()
            for entry, (name, tensor, is_buffer) in zip(parameters, tensors):
                if tensor.data_ptr() not in done:
                    perturb(name, tensor, args["weight_seed"], is_buffer)
                    done.add(tensor.data_ptr())
                entry["tensor"] = blob.add(tensor)
            phase = "forward"
            torch.manual_seed(args["input_seed"])
            inputs = list(module.get_inputs())
            if args.get("values"):
                inputs = transformed(args["values"], inputs, args["input_seed"] + 1)
            if dtype is not None:
                inputs = [cast(value, dtype) for value in inputs]
            first = [_clone(value) for value in inputs]
            torch.manual_seed(args["input_seed"])
            out = model(*first)
            mutated = [i for i, (a, b) in enumerate(zip(inputs, first)) if not _same(a, b)]
            outputs = structure(out, blob.add)
            extra = {}
            if args.get("controls"):
                extra = controls.run(model, inputs, args["input_seed"], int(args["controls"]),
                                     lambda value: structure(value, blob.add))
            outputs64 = _in_double(model, inputs, args["input_seed"], blob)
            constants = {name: value for name, value in vars(module).items()
                         if name.isupper() and type(value) is int}
            return {**extra, "parameters": parameters, "outputs": outputs, "outputs64": outputs64,
                    "inputs": [_input(value, blob) for value in inputs],
                    "init_inputs": [encode_init(value) for value in init_inputs], "constants": constants,
                    "inputs_mutated": mutated}
    except Failure:
        raise
    except BaseException as error:
        rule = "out_of_memory" if is_out_of_memory(error) else RAISED_IN[phase]
        raise Failure(rule, phase, describe(error, path, work).replace("candidate.py", "task.py")) from None


def _in_double(model, inputs, input_seed, blob):
    """The same forward in float64. Integers and booleans keep their type."""
    torch.manual_seed(input_seed)
    model.double()
    torch.set_default_dtype(torch.float64)
    try:
        with _InDouble():
            out = model(*[_clone(value, double=True) for value in inputs])
    finally:
        torch.set_default_dtype(torch.float32)
    return structure(out, lambda t: blob.add(t.double() if t.is_floating_point() else t))
