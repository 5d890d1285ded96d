# SPDX-License-Identifier: Apache-2.0
# Further calls of forward(): what a module does when it is called again.
#
# One call on the tape says nothing of what host code keeps for the next one: a result, a counter, a workspace. So
# forward() is recorded twice more: on other tensors, then on those very tensors with other values in them. A call that
# repeats an earlier one step for step leaves no trace. One that does not is a case of its own, NAME.again or
# NAME.third: all calls up to it on one tape, the inputs of all of them one after the other, its own outputs.
import torch
from torch.utils._python_dispatch import _disable_current_modes


class Call:
    """Where a call lies on the recorder's tape, and what it was given and gave."""

    def __init__(self, recorder, inputs):
        self.inputs, self.outputs = inputs, None  # Value ids (None: no tensor); a STRUCTURE.
        self.steps, self.values = [len(recorder.tape)], len(recorder.values)

    def end(self, recorder, outputs):
        self.outputs = outputs
        self.steps.append(len(recorder.tape))
        self.until = len(recorder.values), len(recorder.parameters)

    def case_trace(self, recorder, inputs):
        """Everything up to its end."""
        values, parameters = self.until
        return {"values": recorder.values[:values], "inputs": inputs, "parameters": recorder.parameters[:parameters],
                "tape": recorder.tape[:self.steps[1]], "outputs": self.outputs}


def further_cases(recorder, first, entries, call, third=True):
    """[(suffix of the case's name, CASE_TRACE)] of the calls that do not repeat an earlier one.

    `first`: the call that was recorded; `entries`: its inputs in the trace; `call(tensors)`: calls forward() with
    fresh or given tensors in the place of the first call's, and answers with the STRUCTURE it gives."""
    cases, calls = [], [first]
    fresh = [None if value is None else _like(recorder, value) for value in first.inputs]
    second = Call(recorder, [None if tensor is None else recorder.add(tensor) for tensor in fresh])
    second.values = len(recorder.values)
    second.end(recorder, call(fresh))
    given = entries + _entries(entries, second.inputs)
    if not _repeats(recorder, first, second):
        cases.append((".again", second.case_trace(recorder, given)))
    if not third or not any(value is not None for value in first.inputs):
        return cases
    calls.append(second)
    others = [None if tensor is None else recorder.add(_like(recorder, value))
              for tensor, value in zip(fresh, first.inputs)]
    for value, other in zip(second.inputs, others):
        if value is not None:
            recorder.tape.append({"op": "aten.copy_.default", "args": [{"t": value}, {"t": other}], "kwargs": {},
                                  "out": {"id": value}})
    last = Call(recorder, second.inputs)
    last.end(recorder, call(fresh))
    if not any(_repeats(recorder, earlier, last) for earlier in calls):
        cases.append((".third", last.case_trace(recorder, given + _entries(entries, others))))
    return cases


def _like(recorder, value):
    """A tensor that is another one in all but its values."""
    entry = recorder.values[value]
    with recorder.fake_mode:
        return torch.empty_strided(entry["shape"], entry["stride"], dtype=getattr(torch, entry["dtype"]), device="cpu")


def _entries(entries, values):
    return [entry if value is None else value for entry, value in zip(entries, values)]


def _repeats(recorder, one, other):
    return _Match(recorder, one, other).holds()


class _Match:
    """Is one call what another was, but for the names of its values?"""

    def __init__(self, recorder, one, other):
        self._values, self._one, self._other = recorder.values, one, other
        self._tapes = [recorder.tape[slice(*call.steps)] for call in (one, other)]
        of_name = dict(entry[:2] for entry in recorder.parameters)
        self._constants = {of_name[name]: real for name, real in recorder.constants if name in of_name}
        self._kept = set()    # Names for what was there before, made by the recorder.
        self._to, self._storages = {}, {}
        for a, b in zip(one.inputs, other.inputs):
            if a is not None:
                self._bind(a, b)

    def holds(self):
        one, other = self._tapes
        at = 0
        for step in one:
            if step.get("alias") and self._there(step["args"][0]["t"]):
                self._kept.add(step["out"]["id"])
                if at < len(other) and other[at].get("alias"):
                    at += self._step(step, other[at])
            elif at == len(other) or not self._step(step, other[at]):
                return False
            else:
                at += 1
        return at == len(other) and self._same(self._one.outputs, self._other.outputs)

    def _step(self, a, b):
        if a.keys() != b.keys():
            return False
        parts = [key for key in a if key not in ("out", "line")]
        return all(self._same(a[key], b[key]) for key in parts) and \
            ("out" not in a or self._results(a["out"], b["out"]))

    def _same(self, a, b):
        if type(a) is not type(b):
            return False
        if isinstance(a, dict):
            return a.keys() == b.keys() and all(
                self._named(a[key], b[key]) if key in ("t", "id") and isinstance(a[key], int)
                else self._same(a[key], b[key]) for key in a)
        if isinstance(a, (list, tuple)):
            return len(a) == len(b) and all(map(self._same, a, b))
        return a == b

    def _there(self, value):
        """Was it there before both calls?"""
        return value < self._one.values or value in self._constants or value in self._kept

    def _named(self, a, b):
        if a in self._to:
            return self._to[a] == b
        if a == b:
            return self._there(a)
        return a in self._constants and b in self._constants and _equal(self._constants[a], self._constants[b])

    def _results(self, a, b):
        if a.keys() != b.keys():
            return False
        (kind, body), = a.items()
        if kind == "id":
            known = body in self._to or self._there(body)
            return self._named(body, b["id"]) if known else self._bind(body, b["id"])
        if kind == "value":
            return body == b["value"]
        return len(body) == len(b[kind]) and all(map(self._results, body, b[kind]))

    def _bind(self, a, b):
        one, other = self._values[a], self._values[b]
        if any(one[key] != other[key] for key in ("shape", "stride", "offset", "dtype")):
            return False
        self._to[a] = b
        return self._storages.setdefault(one["storage"], other["storage"]) == other["storage"]


def _equal(a, b):
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)


# --- The same call again, where it is the kernels that keep something.

def repeated(case_trace, times):
    """A CASE_TRACE of one call as one of `times` calls. REQUIRES: no sections before forward()."""
    values, tape = list(case_trace["values"]), list(case_trace["tape"])
    inputs = list(case_trace["inputs"])
    given = {value for _, value, *_ in case_trace["parameters"]}
    storages = {values[value]["storage"] for value in given}
    made = {value for value in case_trace["inputs"] if value is not None and not isinstance(value, dict)}
    for step in case_trace["tape"]:
        made.update(_leaves(step["out"]) if "op" in step else ())
    made -= given
    outputs = case_trace["outputs"]
    for _ in range(times - 1):
        names, places = {}, {}
        for value in sorted(made):
            entry = dict(values[value])
            if entry["storage"] not in storages:
                entry["storage"] = places.setdefault(entry["storage"], len(values))
            names[value] = entry["id"] = len(values)
            values.append(entry)
        tape += [_renamed(step, names) for step in case_trace["tape"]]
        inputs += [names.get(value, value) if isinstance(value, int) else value for value in case_trace["inputs"]]
        outputs = _renamed(case_trace["outputs"], names)
    return {**case_trace, "values": values, "tape": tape, "inputs": inputs, "outputs": outputs}


def _leaves(out):
    (kind, body), = out.items()
    if kind == "id":
        yield body
    elif kind != "value":
        for item in body:
            yield from _leaves(item)


def _renamed(nest, names):
    if isinstance(nest, dict):
        return {key: names.get(item, item) if key in ("t", "id") and isinstance(item, int) else _renamed(item, names)
                for key, item in nest.items()}
    return [_renamed(item, names) for item in nest] if isinstance(nest, (list, tuple)) else nest
