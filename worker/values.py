# SPDX-License-Identifier: Apache-2.0
# What a case makes of a task's inputs and weights: other values, another precision. gpu/values.cpp has the same values
# by name, with other random numbers.
import torch

from failure import Failure

PRECISIONS = {torch.float32: torch.float16, torch.float16: torch.float32}


def transformed(name, inputs, seed):
    """The inputs with every floating-point tensor transformed; integers and tensors with shared elements stay."""
    generator = torch.Generator().manual_seed(seed)
    return [_transformed(name, value, generator) for value in inputs]


def _transformed(name, value, generator):
    if not isinstance(value, torch.Tensor) or not value.is_floating_point() or value.numel() == 0 or \
            not torch.ops.aten.is_non_overlapping_and_dense(value):
        return value
    x = value.float()
    out = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
    return out.copy_(value * EXACT[name] if name in EXACT else TRANSFORMS[name](x, generator))


def _normal(x, generator):
    return torch.randn(x.shape, generator=generator)


def _uniform(x, generator):
    return torch.rand(x.shape, generator=generator)


def _heavy_tail(x, generator):
    """Student's t with two degrees of freedom."""
    exponential = -torch.log(_uniform(x, generator).clamp_min(1e-6))
    return (_normal(x, generator) / exponential.clamp_min(1e-6).sqrt()).clamp(-1e4, 1e4)


def _cancelling(x, generator):
    """+1000, -1000, ... along the last dimension, and noise: sums lose most of their digits."""
    signs = 1 - 2 * (torch.arange(x.shape[-1]) % 2) if x.dim() else torch.ones(())
    return 1000.0 * signs + _normal(x, generator)


def _equal_rows(x, _generator):
    return x if x.dim() < 2 else x[:1].expand_as(x)


def _magnitudes(x, _generator):
    """1, 1/2, 1/4, ... 2^-23, and again, along the rows: what a norm's epsilon is for shows in the last of them."""
    if x.dim() == 0:
        return x
    steps = torch.exp2(-(torch.arange(x.shape[0]) % 24).float())
    return x * steps.view(-1, *[1] * (x.dim() - 1))


EXACT = {"doubled": 2, "negated": -1}  # In the inputs' own dtype.
TRANSFORMS = {
    "small": lambda x, _generator: x / 128,
    "magnitudes": _magnitudes,
    "uniform": lambda x, generator: 2 * _uniform(x, generator) - 1,
    "large": lambda x, generator: 100 * _normal(x, generator),
    "heavy_tail": _heavy_tail,
    "sparse": lambda x, generator: x * (_uniform(x, generator) < 0.1),
    "integers": lambda x, generator: torch.floor(17 * _uniform(x, generator)) - 8,
    "cancelling": _cancelling,
    "equal_rows": _equal_rows,
}


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
