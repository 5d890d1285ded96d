# SPDX-License-Identifier: Apache-2.0
# References on the tape: what is recorded of __init__, get_inputs() and forward(), and that replaying it is the same.
import tempfile
import unittest

import torch
from harness import read_tensor, record_reference, recorder
from replay import check

HEAD = """
import math
import random
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

N = 8
"""


def task(init, forward, inputs="torch.randn(4, N)", arguments=""):
    return HEAD + f"""
class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        {init}

    def forward(self, x{arguments}):
        {forward}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return [N]
"""


class Tapes(unittest.TestCase):
    def record(self, source, constants=None):
        answer, area = record_reference(source, constants)
        self.assertTrue(answer["ok"], answer.get("failure"))
        return answer["cases"][0], area

    def failure(self, source):
        answer, _ = record_reference(source)
        self.assertFalse(answer["ok"])
        return answer["failure"]

    def ops(self, source):
        case, _ = self.record(source)
        names = [step["op"].removeprefix("aten.") for step in case["trace"]["tape"]]
        init, inputs = case["init_steps"], case["init_steps"] + case["input_steps"]
        return names[:init], names[init:inputs], names[inputs:]

    def check(self, source, tolerance=0.0, constants=None):
        case, area = self.record(source, constants)
        bytes_of = {p["name"]: read_tensor(p["tensor"], area) for p in case["parameters"] if "tensor" in p}
        with tempfile.TemporaryDirectory() as folder:
            self.assertLessEqual(max(check(source, case, bytes_of, folder)), tolerance)
        return case

    def test_three_sections(self):
        case = self.check(task("self.linear = nn.Linear(n, 3)", "return F.gelu(self.linear(x))"))
        self.assertEqual(case["notes"], {"init_inputs": [8], "constants": {"N": 8}})
        self.assertEqual([step["op"] for step in case["trace"]["tape"]], [
            "aten.empty.memory_format", "aten.empty.memory_format", "aten.uniform_.default", "aten.uniform_.default",
            "aten.randn.default", "aten.linear.default", "aten.gelu.default"])
        self.assertEqual((case["init_steps"], case["input_steps"]), (4, 1))
        self.assertEqual(case["trace"]["parameters"], [["linear.weight", 0, False], ["linear.bias", 1, False]])
        self.assertEqual(case["trace"]["inputs"], [2])
        devices = [step["kwargs"]["device"] for step in case["trace"]["tape"] if "device" in step["kwargs"]]
        self.assertEqual(devices, [{"device": "cuda"}] * 3)

    def test_operators_with_kernels_of_their_own_stay_whole(self):
        for init, forward, expected in [
                ("pass", "return F.softmax(x, dim=1)", ["softmax.int"]),
                ("pass", "return F.cross_entropy(x, torch.zeros(4, dtype=torch.int64, device=x.device))",
                 ["zeros.default", "cross_entropy_loss.default"]),
                ("pass", "return F.mse_loss(x, x * 2)", ["mul.Tensor", "mse_loss.default"]),
                ("pass", "return F.relu6(F.hardtanh(F.silu(x)))", ["silu.default", "hardtanh.default",
                                                                  "relu6.default"]),
                ("self.norm = nn.BatchNorm1d(n)", "return self.norm(x)", ["batch_norm.default"]),
                ("self.norm = nn.InstanceNorm1d(n)", "return self.norm(x[None])",
                 ["unsqueeze.default", "instance_norm.default"]),
                ("self.norm = nn.GroupNorm(2, n)", "return self.norm(x)", ["group_norm.default"]),
                ("self.drop = nn.Dropout(0.5)", "return self.drop(x) + 1", ["add.Tensor"]),
                ("pass", "return F.dropout(x, 0.5)", ["dropout.default"]),
                ("pass", "return F.scaled_dot_product_attention(x, x, x)", ["scaled_dot_product_attention.default"]),
                ("self.rnn = nn.LSTM(n, 5, 2)", "return self.rnn(x[None])[0]", ["unsqueeze.default", "lstm.input"]),
                ("self.cell = nn.GRUCell(n, 5)", "return self.cell(x)", ["gru_cell.default"]),
                ("pass", "return torch.cdist(x, x)", ["cdist.default"]),
                ("pass", "return F.avg_pool1d(F.max_pool1d(x[None], 2), 2)",
                 ["unsqueeze.default", "max_pool1d.default", "avg_pool1d.default"])]:
            with self.subTest(forward):
                ops = self.ops(task(init, forward))[2]
                self.assertEqual([op for op in ops if op not in ("select.int", "slice.Tensor", "zeros.default")],
                                 [op for op in expected if op != "zeros.default"])

    def test_initialisers_replay_in_order(self):
        self.check(task("""self.a = nn.Parameter(torch.empty(n, n))
        nn.init.kaiming_normal_(self.a)
        self.b = nn.Parameter(torch.rand(n) * 2 - 1)
        nn.init.trunc_normal_(self.b, std=0.02)
        self.e = nn.Embedding(5, n, padding_idx=0)
        self.o = nn.Linear(n, n)
        nn.init.orthogonal_(self.o.weight)
        with torch.no_grad():
            self.o.bias.copy_(torch.arange(n).float()).mul_(0.5)
        self.register_buffer("mask", torch.tril(torch.ones(n, n)))
        self.register_buffer("scale", torch.tensor([1.0, 2.0, 3.0, 4.0]))
        self.register_buffer("numbers", torch.from_numpy(np.arange(n, dtype=np.float32)))
        self.o.weight.data.normal_(0, 0.1)
        self.o.bias.data = torch.rand(n)
        self.plain = torch.randn(n)
        self.clip = torch.tensor(3.0)""", """h = self.o(x * self.b + self.numbers + self.plain.to(x.device)) @ self.a
        return (h @ self.mask) * self.scale[:, None] + self.e(torch.tensor([1, 0], device=x.device)).sum() + self.clip
        """), 1e-6)

    def test_tied_parameters_share_a_value(self):
        case = self.check(task("self.a = nn.Linear(n, n, bias=False); self.b = nn.Linear(n, n, bias=False); "
                               "self.b.weight = self.a.weight", "return self.b(self.a(x))"))
        values = dict(entry[:2] for entry in case["trace"]["parameters"])
        self.assertEqual(values["a.weight"], values["b.weight"])

    def test_weights_of_recurrent_layers_lie_in_one_buffer(self):
        case = self.check(task("self.rnn = nn.GRU(n, 3, 2, bidirectional=True)", "return self.rnn(x[None])"))
        values = [case["trace"]["values"][value] for _, value, _ in case["trace"]["parameters"]]
        self.assertEqual(len({value["storage"] for value in values}), 1)
        self.assertEqual(max(value["offset"] for value in values), sum(
            torch.Size(value["shape"]).numel() for value in values) - 9)

    def test_scalars_need_no_bytes(self):
        case = self.check(task("self.norm = nn.BatchNorm1d(n)", "return self.norm(x)"))
        self.assertEqual([name for name, _, is_buffer in case["trace"]["parameters"] if is_buffer],
                         ["norm.running_mean", "norm.running_var", "norm.num_batches_tracked"])
        self.assertFalse(any("tensor" in parameter for parameter in case["parameters"]))

    def test_copied_modules_have_parameters_of_their_own(self):
        case = self.check(task("layer = nn.TransformerEncoderLayer(n, 2, 16); "
                               "self.net = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)",
                               "return self.net(x[None])"), 1e-6)
        values = [value for _, value, _ in case["trace"]["parameters"]]
        self.assertEqual(len(values), len(set(values)))

    def test_values_that_depend_on_nothing_may_be_read(self):
        ops = self.ops(task("self.rates = [r.item() for r in torch.linspace(0, 0.5, 3)]; "
                            "self.steps = torch.arange(n)[::2].tolist()", "return x * self.rates[1] + self.steps[1]"))
        self.assertEqual(ops[2], ["mul.Tensor", "add.Tensor"])
        for init, forward in [("self.k = torch.rand(n)[0].item()", "return x * self.k"),
                              ("pass", "return x * x.max().item()"),
                              ("pass", "return x if x.sum() > 0 else -x")]:
            self.assertEqual(self.failure(task(init, forward))["outcome"], "unsupported")

    def test_inputs(self):
        case = self.check(task("pass", "return {'y': x.T * k, 'all': (flag, [x.sum()])}",
                               "torch.randint(0, 9, (N, random.randint(2, 5))).float().T, N // 2, True",
                               ", k, flag"))
        self.assertEqual(case["trace"]["inputs"][1:], [{"value": 4}, {"value": True}])
        self.assertEqual(case["input_steps"], 3)
        self.check(task("pass", "return x + y", "torch.from_numpy(np.random.rand(2, N)), torch.zeros(2, 1)", ", y"))
        shared = task("pass", "return x + y", "a, a", ", y")
        shared = shared.replace("    return [a", "    a = torch.rand(3)\n    return [a")
        inputs = self.check(shared)["trace"]["inputs"]
        self.assertEqual(inputs[0], inputs[1])

    def test_sizes_can_be_rebound(self):
        source = task("self.linear = nn.Linear(n, 3)", "return self.linear(x)")
        case, _ = self.record(source, {"N": 6})
        self.assertEqual(case["notes"], {"init_inputs": [6], "constants": {"N": 6}})
        self.assertEqual(case["trace"]["values"][0]["shape"], [3, 6])

    def test_arguments_by_name(self):
        source = task("self.n, self.k = n, k", "return x * self.n + self.k").replace("__init__(self, n)", "__init__(self, n, *, k=1)")
        for given, said in (("[[N], {'k': 3}]", {"positional": [8], "named": {"k": 3}}), ("[[N], {}]", [8]), ("(N,)", [8]),
                            ("{'k': (1, 2)[1], 'n': N}", {"positional": [], "named": {"k": 2, "n": 8}})):
            named = source.replace("return [N]", f"return {given}")
            case, _ = self.record(named)
            self.assertEqual(case["notes"]["init_inputs"], said)
            self.check(named)
        self.assertIn("unexpected keyword", self.failure(source.replace("return [N]", "return [[N], {'j': 3}]"))["message"])
        self.assertIn("no text", self.failure(source.replace("return [N]", "return {1: 3}"))["message"])

    def test_what_cannot_be_recorded_says_why(self):
        failure = self.failure("import no_such_library\n" + task("pass", "return x"))
        self.assertEqual(failure["outcome"], "unsupported")
        self.assertIn("no_such_library", failure["message"])
        source = task("pass", "return x", "torch.randn(4, N, generator=torch.Generator().manual_seed(1))")
        self.assertEqual(self.failure(source)["outcome"], "unsupported")
        failure = self.failure(task("pass", "return x @ torch.ones(3, 3)"))
        self.assertEqual((failure["outcome"], failure["phase"]), ("runtime_error", "forward"))
        self.assertIn("task.py:17 in forward", failure["message"])


class InitOnTheTape(unittest.TestCase):
    def record(self, candidate, inputs=({"shape": [4, 8], "dtype": "float32", "stride": [8, 1]},)):
        _, answer, _ = recorder().run("record", {
            "task_source": task("pass", "return x"), "candidate_source": candidate,
            "init_inputs": [8], "cases": [{"name": "full", "constants": {}, "inputs": list(inputs), "compile": False}]})
        return answer

    def test_parameters_come_from_steps(self):
        answer = self.record(task("""self.linear = nn.Linear(n, n)
        self.register_buffer("shift", torch.full((n,), 2.0))""", "return self.linear(x) + self.shift").replace(
            "class Model", "class ModelNew"))
        self.assertTrue(answer["ok"], answer.get("failure"))
        case = answer["cases"][0]
        self.assertEqual((case["init_steps"], case["input_steps"]), (5, 0))
        self.assertEqual(case["trace"]["parameters"], [["linear.weight", 0, False], ["linear.bias", 1, False],
                                                      ["shift", 2, True]])
        self.assertEqual(case["trace"]["inputs"], [3])
        self.assertFalse(any("tensor" in parameter for parameter in case["parameters"]))

    def test_init_that_reads_values_is_unsupported(self):
        answer = self.record(task("self.k = float(torch.randn(n).max())", "return x * self.k").replace(
            "class Model", "class ModelNew"))
        self.assertEqual((answer["failure"]["outcome"], answer["failure"]["phase"]), ("unsupported", "init"))
        self.assertIn("candidate.py:14 in __init__", answer["failure"]["message"])

    def test_weights_have_no_values_where_host_code_runs(self):
        for read in ("torch.tensor((torch.randn(n).numpy() * 2).tolist())", "torch.tensor([float(torch.randn(n)[0])] * n)",
                     "torch.frombuffer(bytearray(torch.randn(n).untyped_storage()), dtype=torch.float32)",
                     "torch.from_numpy(__import__('numpy').from_dlpack(torch.randn(n)).copy())",
                     "torch.tensor(eval(repr(torch.randn(n)).replace('torch.', '').replace('tensor', '')))"):
            answer = self.record(task(f"self.w = {read}", "return x * self.w").replace("class Model", "class ModelNew"))
            self.assertFalse(answer["ok"], read)

    def test_threads_are_on_the_tape_or_make_nothing_of_use(self):
        answer = self.record(task("""import threading
        weight = torch.randn(n)
        def work():
            self.w = weight * weight
        one = threading.Thread(target=work)
        one.start()
        one.join()""", "return x * self.w").replace("class Model", "class ModelNew"))
        self.assertFalse(answer["ok"])


if __name__ == "__main__":
    unittest.main()
