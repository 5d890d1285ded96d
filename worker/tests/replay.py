# SPDX-License-Identifier: Apache-2.0
# Replays a recorded reference on real CPU tensors, as the replayer does on a GPU: operator by name, recorded arguments.
import random

import numpy
import torch

from candidate import load
from wire import DTYPES, InitArguments, call, decode_init, operator_of


class Replay:
    """The tape of a case without launches. `bytes_of`: {parameter name: real tensor} of its constants."""

    def __init__(self, case_trace, bytes_of):
        self.case_trace, self.values = case_trace, {}
        for name, value, *_ in case_trace["parameters"]:
            if name in bytes_of:
                self.values[value] = bytes_of[name].clone()

    def walk(self, first, last):
        with torch.no_grad():
            for step in self.case_trace["tape"][first:last]:
                self._bind(step["out"], call(operator_of(step["op"]), step, self.values))

    def _bind(self, out, result):
        if "id" in out:
            shape = self.case_trace["values"][out["id"]]["shape"]
            assert list(result.shape) == shape, f"a result of shape {list(result.shape)}, recorded as {shape}"
            assert result.dtype == DTYPES[self.case_trace["values"][out["id"]]["dtype"]]
            self.values[out["id"]] = result
            return
        for child, item in zip(out.get("list", out.get("tuple", ())), result if "value" not in out else ()):
            self._bind(child, item)

    def structure(self, out):
        (kind, body), = out.items()
        if kind == "id":
            return self.values[body]
        if kind == "dict":
            return {key: self.structure(item) for key, item in body}
        return body if kind == "value" else [self.structure(item) for item in body]


def run_for_real(source, folder, seed, weight_seed):
    """(parameters and buffers by name, inputs, outputs) of the task itself, drawn in the tape's order."""
    random.seed(weight_seed)
    numpy.random.seed(weight_seed)
    torch.manual_seed(seed)
    module, _ = load(source, folder, "real_task")
    torch.manual_seed(seed)
    with torch.no_grad():
        model = InitArguments(module.get_init_inputs()).call(module.Model).eval()
        state = {name: t.detach().clone() for name, t in [*model.named_parameters(remove_duplicate=False),
                                                          *model.named_buffers(remove_duplicate=False)]}
        inputs = module.get_inputs()
        kept = [value.clone() if isinstance(value, torch.Tensor) else value for value in inputs]
        return state, kept, model(*inputs)


def difference(ours, theirs):
    """The largest relative difference of two nests of tensors; infinite where they are built differently."""
    if isinstance(theirs, torch.Tensor):
        if not isinstance(ours, torch.Tensor) or ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return float("inf")
        if ours.numel() == 0 or torch.equal(ours, theirs):
            return 0.0
        both_nan = torch.isnan(ours) & torch.isnan(theirs) if ours.is_floating_point() else torch.zeros(())
        gap = (ours.double() - theirs.double()).abs().masked_fill(both_nan.bool(), 0)
        return float(gap.max() / theirs.double().nan_to_num().abs().max().clamp(min=1e-12))
    if isinstance(theirs, dict):
        return difference([ours.get(str(key)) for key in theirs], list(theirs.values()))
    if isinstance(theirs, (list, tuple)):
        if len(ours) != len(theirs):
            return float("inf")
        return max([difference(*pair) for pair in zip(ours, theirs)], default=0.0)
    return 0.0 if ours == theirs else float("inf")


def check(source, case, bytes_of, folder, seed=5, weight_seed=7):
    """Differences of (parameters, inputs, outputs) between a recorded reference and the task itself."""
    case_trace, sections = case["trace"], case["init_steps"] + case["input_steps"]
    state, inputs, outputs = run_for_real(source, folder, seed, weight_seed)
    replay = Replay(case_trace, bytes_of)
    torch.manual_seed(seed)
    replay.walk(0, sections)
    parameters = {name: replay.values[value].clone() for name, value, *_ in case_trace["parameters"] if name in state}
    given = [replay.values[entry].clone() if isinstance(entry, int) else decode_init(entry["value"])
             for entry in case_trace["inputs"]]
    replay.walk(sections, None)
    return (difference(parameters, state), difference(given, inputs),
            difference(replay.structure(case_trace["outputs"]), outputs))
