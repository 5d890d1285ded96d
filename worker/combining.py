# SPDX-License-Identifier: Apache-2.0
# tl.reduce and tl.associative_scan by a function of the kernel's own, in an order that depends on the run.
#
# A GPU combines what a thread holds, then what lanes hold who are 16, 8, 4 ... apart, then what warps hold: a tree whose
# shape is the compiler's choice, and in which (a reduction's, as compiled by Triton 3.6) operands do not keep their order.
# One element after the other, as shipped, is right for functions that are not associative at all. Here groups of
# neighbours are combined one after the other, as in a thread, and the groups in a tree; how large they are, and whether
# the tree joins neighbours or halves, is the run's.
import numpy as np
import triton.language as tl
from triton.runtime import interpreter as shipped

import rounding
from compiled_python import BeyondInterpreter, constant

_REDUCED_IN, _SCANNED_IN = (1, 4, 1, 4), (1, 4, 2, 8)  # Sizes of the groups, by the variant of the run.


class _Function:
    """Calls the combining function of an operation on rows of many elements at once: arrays [rows, elements of a row]."""

    def __init__(self, operation, kinds):
        self._operation, self._kinds, self._at_once = operation, kinds, True

    def __call__(self, left, right):
        shape = left[0].shape
        sides = [np.ascontiguousarray(array).reshape(-1) for array in (*left, *right)]
        if self._at_once:
            try:
                return [array.reshape(shape) for array in self._call(sides)]
            except BeyondInterpreter:
                self._at_once = False  # A condition on one of its operands.
        lanes = [self._call([side[lane] for side in sides]) for lane in range(sides[0].size)]
        return [np.concatenate(lane).reshape(shape) for lane in zip(*lanes)]

    def _call(self, sides):
        kinds = (*self._kinds, *self._kinds)
        out = self._operation.combine_fn.fn(*[self._operation.to_tensor(*pair) for pair in zip(sides, kinds)])
        outs = out.values if isinstance(out, tl.tuple) else out if isinstance(out, tuple) else (out,)
        datas = [each.handle.data if isinstance(each, tl.tensor) else np.array(constant(each)) for each in outs]
        return [np.broadcast_to(data.reshape(-1), max(1, sides[0].size)).astype(shipped._get_np_dtype(kind))
                for data, kind in zip(datas, self._kinds)]


def _picked(arrays, rows):
    return [array[rows] for array in arrays]


def _reduced(arrays, combine):
    """[1, elements of a row]"""
    size = arrays[0].shape[0]
    group = min(size, _REDUCED_IN[rounding.variant])
    out = _picked(arrays, slice(0, None, group))
    for place in range(1, group):
        out = combine(out, _picked(arrays, slice(place, None, group)))
    while out[0].shape[0] > 1:
        half = out[0].shape[0] // 2
        pair = (slice(0, None, 2), slice(1, None, 2)) if rounding.variant in (1, 2) else (slice(half), slice(half, None))
        out = combine(*[_picked(out, rows) for rows in pair])
    return out


def _scanned(arrays, combine):
    size, step = arrays[0].shape[0], 1
    group = min(size, _SCANNED_IN[rounding.variant])
    arrays = [array.copy() for array in arrays]
    for place in range(1, group):
        _assign(arrays, slice(place, None, group),
                combine(_picked(arrays, slice(place - 1, None, group)), _picked(arrays, slice(place, None, group))))
    totals = _picked(arrays, slice(group - 1, None, group))
    while step < size // group:  # D. Hillis, G. Steele: Data Parallel Algorithms, 1986.
        before = [np.concatenate((total[:step], total[:-step])) for total in totals]
        after = combine(before, totals)
        _assign(after, slice(step), _picked(totals, slice(step)))
        totals, step = after, 2 * step
    if group < size:
        before = [np.repeat(np.concatenate((total[:1], total[:-1])), group, axis=0) for total in totals]
        _assign(arrays, slice(group, None), _picked(combine(before, arrays), slice(group, None)))
        _assign(arrays, slice(group - 1, None, group), totals)
    return arrays


def _assign(arrays, rows, values):
    for array, value in zip(arrays, values):
        array[rows] = value


def _rows(data, axis):
    return data.reshape(-1, 1) if axis is None else np.moveaxis(data, axis, 0).reshape(data.shape[axis], -1)


def _reduce(self, input):
    kinds, axis, shape = [each.dtype for each in input], constant(self.axis), input[0].handle.data.shape
    rows = [_rows(each.handle.data, axis) for each in input]
    if axis is not None:
        axis %= len(shape)
    kept = (1,) * len(shape) if axis is None else (*shape[:axis], 1, *shape[axis + 1:])
    left = () if axis is None else (*shape[:axis], *shape[axis + 1:])
    outs = [out.reshape(kept if self.keep_dims else left) for out in _reduced(rows, _Function(self, kinds))]
    return [self.to_tensor(out if out.shape else out[()], kind) for out, kind in zip(outs, kinds)]


def _scan(self, input):
    kinds, shape = [each.dtype for each in input], input[0].handle.data.shape
    axis = constant(self.axis) % len(shape)
    others = (*shape[:axis], *shape[axis + 1:])
    outs = _scanned([_rows(each.handle.data, axis) for each in input], _Function(self, kinds))
    return [self.to_tensor(np.moveaxis(out.reshape(shape[axis], *others), 0, axis), kind)
            for out, kind in zip(outs, kinds)]


def install():
    shipped.ReduceOps.generic_reduce, shipped.ScanOps.generic_scan = _reduce, _scan
