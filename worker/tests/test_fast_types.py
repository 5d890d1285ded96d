# SPDX-License-Identifier: Apache-2.0
# fast_types: Triton's types made once are the types that Triton makes.
import os
import subprocess
import sys
import unittest

from harness import WORKER

SEEN = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import triton.language as tl
from triton.language import core
from triton.runtime import interpreter as shipped

def seen():
    semantic, handle = shipped.interpreter_semantic, shipped.TensorHandle
    a, b = core.block_type(tl.float32, [4, core.constexpr(8)]), core.block_type(tl.float32, core.tuple([4, 8]))
    pointer, half = tl.pointer_type(tl.float32), a.with_element_ty(tl.float16)
    yield bool(a == b), bool(a != b), bool(a == half), bool(half.with_element_ty(tl.float32) == a), bool(a == tl.float32)
    yield list(a.shape.values), a.numel, str(half.scalar), a.nbytes, a.mangle(), a.is_block(), half.scalar.primitive_bitwidth
    yield tl.float32 == tl.float32, tl.float32 == core.constexpr(tl.float32), tl.float32 == tl.int32, tl.float32 == 3
    yield pointer == tl.pointer_type(tl.float32), pointer == tl.pointer_type(tl.int32), hash(tl.int8) == hash(tl.dtype("int8"))
    for type, data in ((a, np.float32), (tl.int32, np.int32), (pointer, np.uint64), (core.block_type(pointer, [2]), np.uint64)):
        tensor = core.tensor(handle(np.zeros(1, data), type.scalar), type)
        yield [repr(size) for size in tensor.shape], repr(tensor.numel), str(tensor.dtype), len(tensor.shape), tensor.shape.type == core.tuple(tensor.shape.values).type
    mixed = core.tuple([core.constexpr(3), tl.float32, 2.5])
    yield mixed.type.mangle(), mixed[0].value, len(mixed + mixed), str(core.tuple([1], core.tuple_type([core.constexpr_type(1)])).type)
    named = core.tuple([core.constexpr(3)], core.tuple_type([core.constexpr_type(3)], ["x"]))
    yield named.x.value, bool(core.tuple([1, 2]) == core.tuple([1, 2])), hash(core.tuple([1])) == hash(core.tuple([1]))
    for shape in ([], [3], [2.0], [1 << 21]):
        try:
            core.block_type(tl.float32, shape)
        except Exception as error:
            yield type_name(error), str(error)
    row, column = (core.tensor(handle(np.arange(4, dtype=np.int32).reshape(at), tl.int32), core.block_type(tl.int32, at)) for at in ([1, 4], [4, 1]))
    for one, other in ((row, column), (row, row), (row, 3), (column, -5), (row, 2.5)):
        out = semantic.add(one, other, True)
        yield list(out.shape.values), str(out.dtype), out.handle.data.tolist()

def type_name(error):
    return error.__class__.__name__
"""
COMPARE = """
before = list(map(repr, seen()))
import fast_types
fast_types.install()
after = list(map(repr, seen()))
print([pair for pair in zip(before, after) if pair[0] != pair[1]] or f"{len(after)} the same")
"""


class FastTypes(unittest.TestCase):
    def test_what_can_be_seen_is_the_same(self):
        done = subprocess.run([sys.executable, "-c", SEEN + COMPARE, WORKER], capture_output=True, text=True,
                              env={**os.environ, "TRITON_INTERPRET": "1"}, check=False)
        self.assertRegex(done.stdout, r"^\d+ the same$", done.stderr[-2000:])


if __name__ == "__main__":
    unittest.main()
