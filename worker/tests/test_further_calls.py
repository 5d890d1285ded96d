# SPDX-License-Identifier: Apache-2.0
# Further calls of forward(): which leave a case of their own, and what __init__ notes of weights.
import unittest

from harness import pair, record_reference
from truth import truth

HEAD = """
import torch, triton, triton.language as tl
import torch.nn as nn

@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
"""
TASK = """
import torch, torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8))
        self.kept = None
    def forward(self, x):
        BODY
        return x * 1.0
def get_inputs():
    return [torch.randn(8)]
def get_init_inputs():
    return []
"""
PLAIN = TASK.replace("BODY", "pass")


def candidate(forward, init="pass"):
    lines = "".join(f"        {line}\n" for line in forward.strip().splitlines())
    return f"""{HEAD}
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept, self.calls = None, 0
        {init}
    def forward(self, x):
{lines}"""


def launch(x, y):
    return f"copy_kernel[(1,)]({x}, {y}, 8, BLOCK=8)"


class FurtherCalls(unittest.TestCase):
    def cases(self, forward, init="pass"):
        answer, _ = truth(PLAIN, None)
        done, trace, _ = pair().recorder.run("record", pair().record_args(PLAIN, candidate(forward, init), answer,
                                                                          compile=False))
        self.assertTrue(trace and trace["ok"], trace or done)
        self.trace = trace
        return [case["name"] for case in trace["cases"]]

    def test_calls_that_repeat_the_first_leave_nothing(self):
        self.assertEqual(self.cases(f"y = torch.empty_like(x)\n{launch('x', 'y')}\nreturn y"), ["full"])
        constants = f"y = torch.tensor([1.0, 2.0]).cuda().repeat(4)\n{launch('x', 'y')}\nreturn y"
        self.assertEqual(self.cases(constants), ["full"])
        view = f"y = torch.empty_like(x)\n{launch('self.w', 'y')}\nreturn y"
        self.assertEqual(self.cases(view, "self.w = nn.Parameter(torch.randn(4, 2)).t()"), ["full"])
        counter = f"self.calls += 1\ny = torch.empty_like(x)\n{launch('x', 'y')}\nreturn y"
        self.assertEqual(self.cases(counter), ["full"])

    def test_what_is_kept_leaves_a_case(self):
        buffer = f"""
if self.kept is None:
    self.kept = torch.empty_like(x)
{launch('x', 'self.kept')}
return self.kept"""
        self.assertEqual(self.cases(buffer), ["full", "full.again"])
        again = self.trace["cases"][1]["trace"]
        self.assertEqual(len(again["inputs"]), 2)
        self.assertEqual([step["op"] for step in again["tape"] if "op" in step], ["aten.empty_like.default"])
        self.assertEqual(sum("launch" in step for step in again["tape"]), 2)
        first = f"self.kept = x if self.kept is None else self.kept\ny = torch.empty_like(x)\n{launch('self.kept', 'y')}\nreturn y"
        self.assertEqual(self.cases(first), ["full", "full.again"])
        counter = f"self.calls += 1\ny = torch.empty_like(x)\ncopy_kernel[(1,)](x, y, 8 // self.calls, BLOCK=8)\nreturn y"
        self.assertEqual(self.cases(counter), ["full", "full.again", "full.third"])

    def test_the_same_tensors_with_other_values(self):
        by_address = f"""
self.kept = self.kept or {{}}
if x.data_ptr() not in self.kept:
    self.kept[x.data_ptr()] = y = torch.empty_like(x)
    {launch('x', 'y')}
return self.kept[x.data_ptr()]"""
        self.assertEqual(self.cases(by_address), ["full", "full.third"])
        third = self.trace["cases"][1]["trace"]
        self.assertEqual(len(third["inputs"]), 3)
        self.assertIn("aten.copy_.default", [step.get("op") for step in third["tape"]])

    def test_a_later_call_that_fails_is_the_candidates(self):
        answer, _ = truth(PLAIN, None)
        text = candidate("self.calls += 1\nassert self.calls < 2\ny = torch.empty_like(x)\n"
                         f"{launch('x', 'y')}\nreturn y")
        _, answer, _ = pair().recorder.run("record", pair().record_args(PLAIN, text, answer, compile=False))
        self.assertEqual(answer["failure"]["rule"], "forward_failed")
        self.assertIn("in a further call", answer["failure"]["message"])

    def test_runs_that_share_a_child_are_as_if_alone(self):
        answer, area = truth(PLAIN, None)
        text = candidate(f"y = torch.empty_like(x)\n{launch('x', 'y')}\nreturn y")
        _, trace, own = pair().recorder.run("record", pair().record_args(PLAIN, text, answer, compile=False))
        _, alone, bytes_alone = pair().interpret(trace, own, answer, area)
        del alone["nonce"], alone["ok"]
        runs = [{"poison": 8}, {"launches": False}, {"poison": 9, "max_programs": 0}, {"poison": 10}]
        _, first, together = pair().interpret(trace, own, answer, area, others=runs)
        self.assertEqual(len(first["others"]), 2, "what comes after one that fails is asked for again")
        (second, at), (third, _) = ((one["answer"], one["tensors"]) for one in first.pop("others"))
        self.assertEqual({key: first[key] for key in alone}, alone)
        self.assertEqual(second, alone)
        self.assertEqual(together[at["offset"]:at["offset"] + at["nbytes"]], bytes_alone)
        self.assertEqual(third["programs"], 0)

    def test_references_say_whether_they_keep_something(self):
        self.assertNotIn("keeps_state", record_reference(PLAIN)[0]["cases"][0]["notes"])
        kept = TASK.replace("BODY", "self.kept = x if self.kept is None else self.kept; x = self.kept")
        self.assertTrue(record_reference(kept)[0]["cases"][0]["notes"]["keeps_state"])
        raises = TASK.replace("BODY", "assert self.kept is None; self.kept = 1")
        self.assertTrue(record_reference(raises)[0]["cases"][0]["notes"]["keeps_state"])


if __name__ == "__main__":
    unittest.main()
