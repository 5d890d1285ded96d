# SPDX-License-Identifier: Apache-2.0
# Operators that a candidate registers for itself (torch.library.custom_op, triton_op, wrap_triton): calls of their bodies.
#
# Registering wraps a function for torch.compile and autograd, neither of which has any part here. What the function does
# goes on the tape; an operator of a candidate's own could not.
import functools

import torch

METHODS = ("register_fake", "register_autograd", "register_vmap", "register_torch_dispatch", "impl_abstract",
           "register_effect", "register_autocast")
GPU = (None, "cuda", ("cuda",), ["cuda"])

_operators = {}  # "mylib::swish" -> _Operator.


class _Operator:
    """What the decorators give: the function, under all the names that an operator has."""

    def __init__(self, function):
        self._function = function
        functools.update_wrapper(self, function)
        self.default = self

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def register_kernel(self, device_types, function=None, /):
        def register(chosen):
            if device_types in GPU or "cuda" in (device_types or ()):
                self._function = chosen
            return chosen
        return register if function is None else register(function)


def _ignored(self, *args, **_):
    """What only torch.compile and autograd look at."""
    return args[0] if args and callable(args[0]) else lambda function: function


for _method in METHODS:
    setattr(_Operator, _method, _ignored)


def _define(name, function=None, /, **_):
    def decorate(body):
        operator = _operators[name] = _Operator(body)
        namespace, short = name.split("::")
        setattr(getattr(torch.ops, namespace), short.split(".")[0], operator)
        return operator
    return decorate if function is None else decorate(function)


def _by_name(method, plain):
    """torch.library.register_fake("mylib::swish") and the like; what is not a candidate's is PyTorch's."""
    def register(op, *args, **kwargs):
        own = op if isinstance(op, _Operator) else _operators.get(op) if isinstance(op, str) else None
        return getattr(own, method)(*args) if own is not None else plain(op, *args, **kwargs)
    return register


def install():
    """Once per process, in the record fork server."""
    torch.library.custom_op = torch.library.triton_op = _define
    torch.library.wrap_triton = lambda kernel: kernel
    for method in (*METHODS, "register_kernel"):
        if hasattr(torch.library, method):
            setattr(torch.library, method, _by_name(method, getattr(torch.library, method)))
