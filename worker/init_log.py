# SPDX-License-Identifier: Apache-2.0
# InitLog: what a real __init__ does with weights, for the call rules.
#
# Where __init__ is really run, its tape is not kept: the trace brings the bytes it left. Which operators made them of
# random numbers is kept (the notes of the case, docs/trace.md): a product of two weights is work that forward() leaves
# out. Whoever reads weights on the host could do the rest in Python, which is not recorded anywhere.
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from failure import Failure

# The last ones say where values lie, or hand over the memory itself.
READS = frozenset(getattr(torch.Tensor, name) for name in (
    "numpy", "tolist", "__array__", "item", "__dlpack__", "data_ptr", "untyped_storage", "storage", "_typed_storage"))


OVERWRITE = frozenset(("copy_", "fill_", "zero_"))
SHAPES_ONLY = ("new_", "empty", "zeros", "ones", "full")


def _is_whole(tensor):
    return tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()


def _storage(tensor):
    return tensor.untyped_storage()._cdata


def _tensors(nest):
    if isinstance(nest, torch.Tensor):
        yield nest
    elif isinstance(nest, dict):
        yield from _tensors(list(nest.values()))
    elif isinstance(nest, (list, tuple)):
        for item in nest:
            yield from _tensors(item)


class InitLog(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self._made_by = {}  # Storage of what depends on random numbers -> operators between them and it.
        self._known = []    # No storage is taken for another one: while these are here, its number is not given again.

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        with torch._C.DisableTorchFunction():
            return self._log(func, args, kwargs, out)

    def _log(self, func, args, kwargs, out):
        name = func._schema.name.split("::")[1]
        random = torch.Tag.nondeterministic_seeded in func.tags
        sources = [args, kwargs or {}]
        if name.endswith("_like") or name.startswith(SHAPES_ONLY):
            sources = []
        elif (random and name.endswith("_") or name in OVERWRITE) and _is_whole(args[0]):
            self._made_by.pop(_storage(args[0]), None)
            sources = [args[1:], kwargs or {}]
        given = [tensor for tensor in _tensors(sources) if _storage(tensor) in self._made_by]
        if not random and not given:
            return out
        if not isinstance(out, torch.Tensor) and not isinstance(out, (list, tuple)):
            if given:
                self.host_read()
            return out
        operators = {str(func)}.union(*(self._made_by[_storage(tensor)] for tensor in given)) if given else set()
        for tensor in _tensors(out):
            self._made_by[_storage(tensor)] = operators | self._made_by.get(_storage(tensor), set())
            self._known.append(StorageWeakRef(tensor.untyped_storage()))
        return out

    @staticmethod
    def host_read():
        raise Failure("not_recordable", "init", "__init__ reads the values of weights on the host")

    def operators(self, tensor):
        """Names of the operators that made a tensor of random numbers; [] where it is not made of any."""
        return sorted(self._made_by.get(_storage(tensor), ()))

    def knows(self, tensor):
        return _storage(tensor) in self._made_by


class HostReads(TorchFunctionMode):
    """Sees what does not reach a dispatch mode."""

    def __init__(self, log):
        super().__init__()
        self._log = log

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in READS and args and self._log.knows(args[0]):
            self._log.host_read()
        return func(*args, **(kwargs or {}))
