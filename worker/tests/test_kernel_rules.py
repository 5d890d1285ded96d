# SPDX-License-Identifier: Apache-2.0
# What the rules make of kernel texts. Nothing here runs a kernel.
import unittest

from harness import OUTCOMES

from failure import Failure
from kernel_rules import check_kernel

GLOBALS = [
    {"name": "tl", "kind": "module", "path": "triton.language"},
    {"name": "triton", "kind": "module", "path": "triton"},
    {"name": "math", "kind": "module", "path": "math"},
    {"name": "libdevice", "kind": "module", "path": "triton.language.extra.cuda.libdevice"},
    {"name": "torch", "kind": "module", "path": ""},
    {"name": "SCALE", "kind": "constexpr", "value": {"f": 2.0}},
    {"name": "helper", "kind": "jit", "kernel": 0},
]


def outcome(body, decorator="jit", parameters="x_ptr, y_ptr, n, BLOCK: tl.constexpr", text=None):
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    entry = {"name": "k", "source": text or f"def k({parameters}):\n{lines}", "decorator": decorator,
             "globals": GLOBALS, "line": 1}
    try:
        check_kernel(entry)
    except Failure as failure:
        return OUTCOMES[failure.rule]
    return "pass"


class KernelRules(unittest.TestCase):
    def each(self, expected, bodies, **options):
        for body in bodies:
            with self.subTest(body):
                self.assertEqual(outcome(body, **options), expected)

    def test_triton_passes(self):
        self.each("pass", [
            "o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
            "x = tl.load(x_ptr + o, mask=o < n, other=-float('inf'))",
            "for i in tl.static_range(0, 4, 1):\n    x = i\nfor j in range(0, tl.cdiv(n, BLOCK)):\n    pass",
            "i = 0\nwhile i < n:\n    i += BLOCK\n    if i > 7:\n        i = n",
            "tl.device_print('x = %d', n)\ntl.static_assert(BLOCK % 2 == 0, 'an even block')\nprint('n: ', n)",
            "'''100 % plain'''\nx = tl.sum(tl.arange(0, 4), axis=0).to(tl.float32).to(x_ptr.dtype.element_ty)",
            "_mean, _ = helper(n, SCALE)\nreturn _mean, (n, BLOCK)",
            "tl.atomic_add(y_ptr, 1.0, sem='relaxed')\ntl.debug_barrier()",
            "a = tl.zeros((16, 16), dtype=tl.float32)\na = tl.dot(a, tl.trans(a), acc=a, input_precision='ieee').T",
            "p = tl.make_block_ptr(x_ptr, shape=(n, n), strides=(n, 1), offsets=(0, 0), block_shape=(16, 16), "
            "order=(1, 0))\np = tl.advance(p, (0, 16))\nx = tl.load(p, boundary_check=(0, 1))",
            "x = libdevice.tanh(tl.math.exp2(math.log2(math.e) * 1.0))\ny = tl.extra.cuda.libdevice.erf(x)",
            "x = tl.reduce(tl.arange(0, 4), 0, helper)\ny = tl.associative_scan(tl.arange(0, 4), 0, helper)",
            "assert n > 0\nx = n if y_ptr is not None else None\ny = min(n, BLOCK) + max(1, 2) + len(x.shape)",
            "z: tl.constexpr = triton.next_power_of_2(BLOCK) // 2\nw = helper(*(z, z))",
            "x = tl.inline_asm_elementwise('mov.b32 $0, %laneid;', '=r', [], dtype=tl.int32, is_pure=True, pack=1)",
            "x = tl.sort(tl.arange(0, 8))[None, :].reshape((8,)).cast(tl.int64, bitcast=False)",
            "x = tl.max(n, propagate_nan=tl.PropagateNan.ALL)",
        ])
        self.assertEqual(outcome("pass", parameters="x, A: tl.constexpr = 'relu', d: tl.constexpr = tl.float32, b=-1"),
                         "pass")
        self.assertEqual(outcome("return sorted([abs(n), round(1.5)])[0]", "constexpr_function", "n"), "pass")

    def test_ways_out_break_the_rules(self):
        self.each("rule_break", [
            "if hasattr(x_ptr.handle, 'data'):\n    n = 1",
            "n = n.handle",
            "n = n.data",
            "n = tl.arange.__name__",
            "n = hasattr(tl.sum, 'cache_key')",
            "n = tl.core.knobs.runtime.interpret",
            "n = triton.knobs.runtime.interpret",
            "n = triton.runtime",
            "n = tl.target_info.is_cuda()",
            "n = tl.math.core",
            "n = tl.math.wraps",
            "n = libdevice.core",
            "n = __import__('torch')",
            "n = __builtins__",
            "def g():\n    return 1",
            "import torch",
            "from os import path",
            "n = type(n)",
            "n = eval('n')",
            "n = open('/tmp/x')",
            "n = tl.load(x_ptr, _semantic=None)",
            "n = helper.fn",
            "n = helper.src",
            "n = (1).__class__",
            "n = x_ptr.type._shape",
        ])
        self.each("rule_break", ["return __import__('torch')", "return getattr(n, 'x')", "return n.__class__"],
                  decorator="constexpr_function")

    def test_python_that_no_kernel_needs_is_unsupported(self):
        self.each("unsupported", [
            "f = lambda x: x",
            "class A:\n    pass",
            "try:\n    pass\nexcept:\n    pass",
            "with n:\n    pass",
            "global z\nz = 1",
            "n = [i for i in range(3)]",
            "n = f'{n}'",
            "yield n",
            "n = (m := 1)",
            "del n",
            "n = {1: 2}",
            "n = helper(**n)",
            "n = n is helper",
            "n = '%s' % tl.sum",
            "n = helper(tl.sum, '%s')",
            "m = tl",
            "m = tl.math",
            "n.x = 1",
            "x_ptr[0] = 1",
            "helper[(1,)](n)",
            "n = isinstance(n, tl.tensor)",
            "n = str(n)",
            "n = b'1'",
            "n = n.item()",
        ])
        self.assertEqual(outcome("pass", parameters="n=helper(1)"), "unsupported")
        self.assertEqual(outcome("pass", parameters="*n"), "unsupported")

    def test_names_that_mean_nothing_do_not_compile(self):
        self.each("compile_error", ["n = tl.no_such_function(n)", "n = torch.sum(n)", "n = np.zeros(3)", "n = n.foo",
                                    "n = interpreter_builder", "n = n +"])

    def test_a_text_is_one_function_to_every_reader(self):
        for text in (
            "x = 1\n\ndef k(x):\n    pass",
            "@helper\ndef k(x):\n    pass",
            "async def k(x):\n    pass",
            "def other(x):\n    pass",
            "def k(x): pass\nx = 1",
            " \ndef k(x):\n    pass",
            "def k(x):\n    '''\n    def k(x):\n        evil()\n#'''",
            "def \\\n  k(x):\n    '''\ndef k(x): evil()\n#'''",
            "def\tk(x):\n    pass",
            "\n",
        ):
            with self.subTest(text):
                self.assertEqual(outcome("", text=text), "rule_break")


if __name__ == "__main__":
    unittest.main()
