# SPDX-License-Identifier: Apache-2.0
# What another precision makes of a task's inputs and weights.
import torch

from failure import Failure

PRECISIONS = {torch.float32: torch.float16, torch.float16: torch.float32}


def other_precision(inputs):
    """float16 for inputs of float32 and the other way round."""
    kinds = {value.dtype for value in inputs if isinstance(value, torch.Tensor) and value.is_floating_point()}
    if len(kinds) != 1 or not kinds <= PRECISIONS.keys():
        raise Failure("not_recordable", "init", "its inputs are not all of float32 or all of float16")
    return PRECISIONS[kinds.pop()]


def cast(value, dtype):
    return value.to(dtype) if isinstance(value, torch.Tensor) and value.dtype in PRECISIONS else value


def cast_module(model, dtype):
    """Casts a module's parameters and buffers of float32 and float16; what was shared stays shared."""
    done = {}
    for module in model.modules():
        for key, tensor in list(module._parameters.items()):
            if tensor is not None and tensor.dtype in PRECISIONS and tensor.dtype != dtype:
                if id(tensor) not in done:  # The entry keeps `tensor`, and with it its id.
                    done[id(tensor)] = (tensor, torch.nn.Parameter(tensor.to(dtype), requires_grad=False))
                setattr(module, key, done[id(tensor)][1])
        for key, tensor in list(module._buffers.items()):
            if tensor is not None and tensor.dtype in PRECISIONS and tensor.dtype != dtype:
                done.setdefault(id(tensor), (tensor, tensor.to(dtype)))
                module._buffers[key] = done[id(tensor)][1]
