# SPDX-License-Identifier: Apache-2.0
# Truth: what a task's own module answers, for the tests of the worker. The verifier has it from its judge.
import os
import tempfile

import torch

from candidate import load, rebind
from values import cast, cast_module, other_precision
from wire import BlobWriter, InitArguments, content_hash, encode_init


def truth(task, constants=None, weight_seed=11, input_seed=22, other=False):
    """({"parameters", "inputs", "init_inputs", "outputs", "outputs64", "inputs_mutated"}, tensor area). Parameters that
    start as constants are moved, or leaving them out would go unseen."""
    blob = BlobWriter()
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        module, _ = load(rebind(task, constants or {}), os.path.join(folder, "task"), "task")
        init_inputs = InitArguments(module.get_init_inputs())
        torch.manual_seed(weight_seed)
        model = init_inputs.call(module.Model).eval()
        dtype = other_precision(module.get_inputs()) if other else None
        if dtype is not None:
            cast_module(model, dtype)
        tensors = [*model.named_parameters(), *model.named_buffers()]
        parameters = [{"name": name, "init_hash": content_hash(tensor)} for name, tensor in tensors]
        for entry, (name, tensor) in zip(parameters, tensors):
            if tensor.is_floating_point() and bool((tensor == tensor.flatten()[0]).all()):
                tensor.add_(0.1 * torch.rand_like(tensor.float()).to(tensor.dtype))
            entry["tensor"] = blob.add(tensor)
        torch.manual_seed(input_seed)
        inputs = [cast(value, dtype) if dtype is not None else value for value in module.get_inputs()]
        given = [value.clone() if isinstance(value, torch.Tensor) else value for value in inputs]
        outputs = structure(model(*given), blob.add)
        mutated = [i for i, (a, b) in enumerate(zip(inputs, given)) if isinstance(a, torch.Tensor) and not a.equal(b)]
        exact = model.double()(*[_double(value) for value in inputs])
        answer = {"parameters": parameters, "init_inputs": init_inputs.encoded(),
                  "inputs": [{"kind": "tensor", "tensor": blob.add(value, with_stride=True)}
                             if isinstance(value, torch.Tensor) else {"kind": "value", "value": encode_init(value)}
                             for value in inputs],
                  "outputs": outputs, "outputs64": structure(exact, lambda t: blob.add(_double(t))),
                  "inputs_mutated": mutated}
    return answer, blob.finish({})[6:]  # Behind the frame of an empty header.


def _double(value):
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def structure(out, leaf):
    if isinstance(out, torch.Tensor):
        return leaf(out)
    if isinstance(out, (list, tuple)):
        return {"list" if isinstance(out, list) else "tuple": [structure(item, leaf) for item in out]}
    if isinstance(out, dict):
        return {"dict": [[str(key), structure(item, leaf)] for key, item in out.items()]}
    return {"value": out}
