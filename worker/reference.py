# SPDX-License-Identifier: Apache-2.0
# ReferenceCase: records a task's own module for one case.
import os
import random

import numpy
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import fake_cuda
from candidate import load, rebind
from case import Case
from failure import Failure
from further_calls import further_cases
from values import cast, other_precision
from wire import InitArguments, encode_init


class ReferenceCase(Case):
    """A task's own module: __init__, get_inputs() and forward(), all on one tape."""

    def _run(self):
        self._seed()
        self.path = os.path.join(self.work, self.spec["name"], "candidate.py")
        self.session.source_path = self.path
        source = rebind(self.args["task_source"], self.spec.get("constants") or {})
        with fake_cuda.DeviceMode():
            module, _ = self._timed("import", load, source, os.path.dirname(self.path), self.module_name)
            for name in ("Model", "get_inputs", "get_init_inputs"):
                if not hasattr(module, name):
                    raise Failure("import_failed", "import", f"the task defines no {name}")
            if self.spec.get("dtype"):
                with FakeTensorMode():
                    self.dtype = other_precision(module.get_inputs())
                self._seed()
            self.init_inputs = InitArguments(module.get_init_inputs())
            model, recorder = self._record_init(lambda: self.init_inputs.call(module.Model))
            with self._on_tape(recorder, "init"):
                inputs = [self._scalar(value) for value in module.get_inputs()]
                if self.dtype is not None:
                    inputs = [cast(value, self.dtype) for value in inputs]
                entries = [self._entry(value, recorder) for value in inputs]
            self.sections["input_steps"] = len(recorder.tape) - self.sections["init_steps"]
            self.sections["notes"] = {"init_inputs": self.init_inputs.encoded(),
                                      "constants": {name: value for name, value in vars(module).items()
                                                    if name.isupper() and type(value) is int}}
            return self._forward(model, recorder, inputs, entries)

    def _scalar(self, value):
        """Where the case has other scalars, numbers with a fraction's type are three quarters of what they were."""
        return 0.75 * value if self.spec.get("scalars") and type(value) is float else value

    def _seed(self):
        seed = int(self.args["weight_seed"])
        random.seed(seed)  # For shapes that get_inputs() draws; the tape's own numbers come from the replayer.
        numpy.random.seed(seed % (1 << 32))
        torch.default_generator.manual_seed(seed)

    def run(self):
        try:
            return super().run()
        except Failure as failure:
            failure.message = failure.message.replace("candidate.py", "task.py")
            raise

    def _failure(self, error):
        if self.phase == "import" and isinstance(error, ModuleNotFoundError):
            return Failure("module_missing", "import", f"the task needs a module that is not installed: {error.name}")
        return super()._failure(error)

    def _before_first_use(self, model):
        for module in model.modules():
            if isinstance(module, torch.nn.RNNBase):
                _lay_out_weights(module)

    def _call_again(self, model, recorder, first, inputs, entries):
        """A task whose host code keeps something is judged by single calls: there is no telling what others should give."""
        try:
            cases = further_cases(recorder, first, entries, lambda tensors: self._call(
                model, recorder, [value if tensor is None else tensor for value, tensor in zip(inputs, tensors)]),
                third=False)
        except BaseException:
            cases = [None]
        if cases:
            self.sections["notes"]["keeps_state"] = True

    @staticmethod
    def _entry(value, recorder):
        return recorder.value(value) if isinstance(value, torch.Tensor) else {"value": encode_init(value)}


def _lay_out_weights(rnn):
    """Puts the weights of a recurrent layer into one buffer, as cuDNN wants them; else each call copies them there."""
    names = [name for layer in rnn._all_weights for name in layer]
    names = [name for name in names if "weight" in name] + [name for name in names if "bias" in name]
    weights = [getattr(rnn, name) for name in names]
    if rnn.proj_size or len({id(weight) for weight in weights}) < len(weights) or \
            len({weight.dtype for weight in weights}) > 1:
        return
    sizes = [weight.numel() for weight in weights]
    buffer = torch.empty(sum(sizes), dtype=weights[0].dtype)
    for name, weight, piece in zip(names, weights, buffer.split(sizes)):
        piece = piece.view(weight.shape)
        piece.copy_(weight)
        setattr(rnn, name, torch.nn.Parameter(piece))
