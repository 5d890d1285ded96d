# SPDX-License-Identifier: Apache-2.0
# Known values: what host code may read of a trace, because it depends on no input, weight or random number.
#
# `[x.item() for x in torch.linspace(0, 0.1, depth)]` is honest and common. When a value is read, the tape so far is
# walked with real tensors, as far as small deterministic results of known values go.
import torch
from torch.utils._python_dispatch import _disable_current_modes

from wire import call, operator_of

MAX_ELEMENTS = 4096


class KnownValues:
    def __init__(self, recorder):
        self._recorder = recorder
        self._at = self._constants = 0  # Steps of the tape and constants of the recorder that were seen.
        self._real = {}                 # value id -> real tensor.

    def read(self, value):
        """The real tensor behind a value, or None."""
        with _disable_current_modes(), torch._C.DisableTorchFunction(), torch.no_grad():
            self._take_constants()
            tape = self._recorder.tape
            while self._at < len(tape):
                self._step(tape[self._at])
                self._at += 1
        return self._real.get(value)

    def _take_constants(self):
        of_name = dict(entry[:2] for entry in self._recorder.parameters)
        for name, real in self._recorder.constants[self._constants:]:
            if real.numel() <= MAX_ELEMENTS:
                self._real[of_name[name]] = real.detach().clone()
        self._constants = len(self._recorder.constants)

    def _step(self, step):
        if "op" not in step:
            for value in tensors_of(list(step["args"])):
                self._forget(value)
            return
        outs = list(_ids(step["out"]))
        op = operator_of(step["op"])
        if op is not None and not self._evaluate(op, step["op"].split(".")[1], step, outs):
            for value in outs + (list(tensors_of(step["args"])) if op._schema.is_mutable else []):
                self._forget(value)

    def _evaluate(self, op, name, step, outs):
        values = self._recorder.values
        given = list(tensors_of([step["args"], step["kwargs"]]))
        if torch.Tag.nondeterministic_seeded in op.tags or "empty" in name or \
                any(_elements(values[value]) > MAX_ELEMENTS for value in outs) or \
                any(value not in self._real for value in given):
            return False
        try:
            result = call(op, step, self._real)
        except Exception:
            return False
        return self._bind(step["out"], result)

    def _bind(self, out, result):
        if "id" in out and isinstance(result, torch.Tensor):
            self._real[out["id"]] = result
            return True
        children = out.get("list", out.get("tuple"))
        return children is not None and all([self._bind(*pair) for pair in zip(children, result)])

    def _forget(self, value):
        storage = self._recorder.values[value]["storage"]
        for other in [other for other in self._real if self._recorder.values[other]["storage"] == storage]:
            del self._real[other]


def _elements(value):
    count = 1
    for size in value["shape"]:
        count *= size
    return count


def tensors_of(nest):
    """Value ids among arguments."""
    if isinstance(nest, dict):
        for key, item in nest.items():
            if key == "t" and isinstance(item, int):
                yield item
            else:
                yield from tensors_of(item)
    elif isinstance(nest, (list, tuple)):
        for item in nest:
            yield from tensors_of(item)


def _ids(out):
    (kind, body), = out.items()
    if kind == "id":
        yield body
    elif kind != "value":
        for item in body:
            yield from _ids(item)
