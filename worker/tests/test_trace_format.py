# SPDX-License-Identifier: Apache-2.0
# Traces as bytes: what is packed comes back, what the format cannot hold is refused as unsupported.
import copy
import math
import unittest

import torch

from harness import Pair, tensors  # Puts worker/ on the path.
from truth import truth
from test_worker import TASK, model

from failure import Failure
from trace_format import pack
from trace_reader import unpack
from wire import operator_of

VALUE = {"shape": [4], "stride": [1], "offset": 0, "dtype": "float32"}
CHOICE = {"grid": [2, 1, 1], "num_warps": 4, "num_stages": 3, "cubin": 0, "spec": 0,
          "args": [["x", {"t": 0}], ["BLOCK", {"i": 64}], ["T", {"dtype": "tl.float16"}], ["f", {"s": "jit:0"}]]}


def sample():
    """A trace with every optional member set, in the form that unpack() gives."""
    choices = [CHOICE, {**CHOICE, "grid": [4, 1, 1], "num_warps": 8}]
    descriptor = {"t": 1, "shape": [4], "strides": [1], "block_shape": [2], "padding": "nan"}
    args = [{"n": None}, {"t": 0}, {"i": -(1 << 63)}, {"i": (1 << 64) - 1}, {"f": 0.1}, {"f": "-inf"}, {"b": True},
            {"s": "jit:0"}, {"l": [{"i": 1}, {"l": []}]}, {"dtype": "bfloat16"}, {"device": "cpu"},
            {"layout": "strided"}, {"memory_format": "channels_last"}, {"desc": descriptor}]
    case_trace = {"values": [{"id": i, **VALUE, "storage": i} for i in range(3)],
            "inputs": [0, None, {"value": [1, {"tuple": ["ü", 2.5]}]}],
            "parameters": [["w", 1, False], ["constant:0", 2, True]],
            "tape": [{"launch": 1, "line": 7, **choices[0], "choices": choices},
                     {"op": "aten.everything.default", "args": args, "kwargs": {"alpha": {"f": 2.0}},
                      "out": {"tuple": [{"id": 1}, {"value": None}]}},
                     {"launch": 1, "line": None, **CHOICE, "cubin": None, "choices": [{**CHOICE, "cubin": None}]}],
            "outputs": {"dict": [["a", {"id": 1}], ["b", {"list": [{"value": "text"}]}]]}}
    parameters = [{"name": "w", "shape": [4], "dtype": "float32"},
                  {"name": "constant:0", "shape": [4], "dtype": "float32", 
                   "tensor": bytes(range(16))}]
    module = {"name": "tl", "kind": "module", "path": "triton.language"}
    kernels = [{"name": "f", "source": "def f(): pass", "decorator": "constexpr_function", "line": 1,
                "globals": [module, {"name": "N", "kind": "constexpr", "value": {"i": 3}},
                            {"name": "m", "kind": "member", "path": "math", "member": "sqrt"},
                            {"name": "o", "kind": "opaque"}]},
               {"name": "g", "source": "def g(): f()", "decorator": "jit", "line": 3,
                "globals": [{"name": "f", "kind": "jit", "kernel": 0}]}]
    cubin = {"kernel": 1, "name": "g", "signature": "*fp32,tensordesc<fp16[64, 64]>,constexpr",
             "constants": {"BLOCK": {"i": 64}}, "num_warps": 4, "num_stages": 3, "num_ctas": 2,
             "cluster_dims": [2, 1, 1], "shared": 10, "global_scratch": 20, "profile_scratch": 30, "cooperative": True,
             "dependent_launch": False, "descriptors": [{"swizzle": 3}], "tensor": b"\x7fELF..."}
    seconds = {"import": 0.1, "init": 0.2, "forward": 0.3, "compile": 0.4, "total": 1.0}
    case = {"name": "full", "init_steps": 0, "input_steps": 0, "trace": case_trace, "parameters": parameters,
            "seconds": seconds, "notes": {"init_inputs": [1], "constants": {"N": 3}}}
    return {"trace_version": 2, "kernels": kernels, "cubins": [cubin],
            "specs": [{"kernel": 1, "key": "k"}], "cases": [case]}


def with_bytes(trace, area):
    """References into `area` replaced by what they name."""
    trace = copy.deepcopy(trace)
    for entry in [*trace["cubins"], *(p for case in trace["cases"] for p in case["parameters"])]:
        if "tensor" in entry:
            ref = entry["tensor"]
            entry["tensor"] = bytes(area[ref["offset"]:ref["offset"] + ref["nbytes"]])
    return trace


class Samples(unittest.TestCase):
    def test_all_comes_back(self):
        data = pack(sample())
        self.assertEqual(with_bytes(unpack(data), data), sample())
        self.assertEqual(pack(unpack(data), data), data)

    def test_references_name_shape_and_dtype(self):
        data = pack(sample())
        self.assertEqual(unpack(data)["cases"][0]["parameters"][1]["tensor"]["shape"], [4])
        self.assertEqual(unpack(data)["cubins"][0]["tensor"]["dtype"], "uint8")

    def test_what_may_be_left_out(self):
        short = sample()
        for key in ("cluster_dims", "profile_scratch", "cooperative", "dependent_launch", "descriptors"):
            del short["cubins"][0][key]
        case = short["cases"][0]
        for key in ("init_steps", "input_steps", "notes", "seconds"):
            del case[key]
        case["trace"]["parameters"] = [["w", 1], ["constant:0", 2]]
        for step in case["trace"]["tape"]:
            step.pop("choices", None)
            step.pop("spec", None)
        del short["specs"]
        del short["kernels"][1]["decorator"]
        back = unpack(pack(short))
        self.assertEqual(back["cubins"][0]["cluster_dims"], [1, 1, 1])
        self.assertEqual((back["cases"][0]["init_steps"], back["cases"][0]["notes"]), (0, {}))
        choice, = back["cases"][0]["trace"]["tape"][0]["choices"]
        self.assertIsNone(choice["spec"])
        self.assertEqual(back["kernels"][1]["decorator"], "jit")

    def test_nan(self):
        trace = sample()
        trace["cases"][0]["trace"]["tape"][1]["args"] = [{"f": "nan"}]
        back = unpack(pack(trace))
        self.assertEqual(back["cases"][0]["trace"]["tape"][1]["args"], [{"f": "nan"}])

    def test_what_does_not_fit_is_unsupported(self):
        def case_trace(trace):
            return trace["cases"][0]["trace"]

        damages = [
            lambda r: case_trace(r)["tape"].extend(case_trace(r)["tape"] * 7000),
            lambda r: case_trace(r)["tape"][1]["args"].extend([{"n": None}] * 1024),
            lambda r: case_trace(r)["tape"][1].update(args=[{"i": 1 << 64}]),
            lambda r: case_trace(r)["tape"][1].update(args=[{"s": "\ud800"}]),
            lambda r: case_trace(r)["tape"][1].update(args=[{"s": "x" * 5000}]),
            lambda r: case_trace(r)["tape"][1].update(args=[{"dtype": "complex64"}]),
            lambda r: case_trace(r)["tape"][1].update(args=[{"dtype": "tl.load"}]),
            lambda r: case_trace(r)["tape"][1].update(args=[{"layout": "sparse_coo"}]),
            lambda r: case_trace(r)["tape"][1].update(args=[{"memory_format": "matmul"}]),
            lambda r: case_trace(r)["tape"][1].update(op="mylib.op.default"),
            lambda r: case_trace(r)["tape"][1].update(op="aten.view.__setattr__"),
            lambda r: case_trace(r)["tape"][1].update(op="aten.from_file.default"),
            lambda r: case_trace(r)["tape"][1].update(args=[{"l": [{"l": [{"l": [{"l": [{"l": []}]}]}]}]}]),
            lambda r: case_trace(r)["tape"][1].update(out={"list": [{"list": []}] * 1025}),
            lambda r: case_trace(r)["tape"][0].update(choices=[CHOICE] * 17),
            lambda r: case_trace(r)["tape"][2]["choices"][0].update(grid=[1, 1 << 16, 1]),
            lambda r: case_trace(r)["values"][0].update(shape=[1] * 17, stride=[1] * 17),
            lambda r: case_trace(r)["values"][0].update(shape=[1 << 30, 1 << 30], stride=[0, 0]),
            lambda r: case_trace(r)["values"][0].update(shape=[1 << 30, 1 << 30, 0], stride=[0, 0, 0]),
            lambda r: case_trace(r)["values"][0].update(shape=[2], stride=[1 << 40]),
            lambda r: case_trace(r)["inputs"].append({"value": math.nan}),
            lambda r: case_trace(r)["inputs"].append({"value": "x" * (1 << 17)}),
            lambda r: case_trace(r)["parameters"].append(["w", 1]),
            lambda r: r["kernels"][0].update(source="#" * (1 << 21)),
            lambda r: r["cubins"][0].update(num_warps=128)]
        for i, damage in enumerate(damages):
            with self.subTest(i):
                trace = copy.deepcopy(sample())
                damage(trace)
                with self.assertRaises(Failure) as caught:
                    pack(trace)
                self.assertEqual(caught.exception.rule, "not_recordable")

    def test_names_reach_operators_only(self):
        self.assertIs(operator_of("aten.mul.Tensor"), torch.ops.aten.mul.Tensor)
        self.assertIs(operator_of("aten.__and__.Tensor"), torch.ops.aten.__and__.Tensor)
        for text in ("aten.view.__setattr__", "aten.view.op", "aten.view.name", "aten.view.overloads", "aten.view",
                     "aten.__class__.mro", "aten._dir.append", "aten.name.upper", "aten.no_such_thing.default",
                     "prims.mul.default", "aten.from_file.default", "aten.mul.Tensor\n"):
            self.assertIsNone(operator_of(text), text)

    def test_no_prefix_is_a_trace(self):
        data = pack(sample())
        for size in range(len(data)):
            with self.assertRaises((ValueError, IndexError)):
                unpack(data[:size])
        with self.assertRaises(ValueError):
            unpack(data + b"\0")


class RealTraces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pair = Pair()
        cls.addClassCleanup(cls.pair.close)

    CANDIDATES = (
        model("y = torch.empty_like(x); kernel[(2,)](x, y, 200, BLOCK=128); return y"),
        model("y = torch.empty_like(x); kernel[(2,)](x + self.shift, y, 200, BLOCK=128); return (y, {'z': [y, 1.5]})",
              "self.shift = torch.zeros(200)"),
        model("return torch.cat([x, x.flip(0)]).to(torch.float16).view(2, -1) * float('inf')"))

    def test_are_the_same_when_packed_again(self):
        for candidate in self.CANDIDATES:
            answer, _ = truth(TASK)
            done, trace, area = self.pair.recorder.run("record", self.pair.record_args(TASK, candidate, answer))
            self.assertTrue(trace and trace["ok"], (done, trace))
            self.assertEqual(pack(trace, area), area)
            self.assertEqual(pack(with_bytes(trace, area)), area)

    def test_without_launches_memory_stays_poison(self):
        answer, area = truth(TASK)
        args = self.pair.record_args(TASK, self.CANDIDATES[0], answer)
        _, trace, own = self.pair.recorder.run("record", args)
        for launches in (True, False):
            _, result, out = self.pair.interpret(trace, own, answer, area, launches=launches)
            self.assertEqual(bool(tensors(result["outputs"], out).isfinite().all()), launches)

    def test_triton_dtypes_and_functions_as_constants(self):
        candidate = model("y = torch.empty_like(x); kernel[(2,)](x, y, 200, twice, tl.float32, BLOCK=128); return y")
        candidate = candidate.replace("n, BLOCK: tl.constexpr", "n, f: tl.constexpr, T: tl.constexpr, "
                                      "BLOCK: tl.constexpr").replace("mask=mask) * 2.0", "mask=mask).to(T) * f(1.0)")
        candidate = candidate.replace("@triton.jit", "@triton.jit\ndef twice(x):\n    return x * 2\n\n@triton.jit", 1)
        outcome, detail = self.pair.judge(TASK, candidate)
        self.assertEqual(outcome, "pass", detail)
        args = dict(detail["cases"][0]["trace"]["tape"][-1]["args"])
        self.assertEqual((args["T"], args["f"]), ({"dtype": "tl.float32"}, {"s": "jit:1"}))
        self.assertEqual(detail["kernels"][1]["name"], "twice")


if __name__ == "__main__":
    unittest.main()
