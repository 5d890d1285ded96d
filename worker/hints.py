# SPDX-License-Identifier: Apache-2.0
# tl.multiple_of, tl.max_contiguous and tl.max_constancy: what they say of a value must be true, for the compiler builds on
# it and nobody looks on a GPU.
#
# As Triton's analysis of axes understands them: what goes on by one from an element before it is part of a run, and only
# the first of a run must be a multiple. That elements are contiguous is what wide accesses are made from. It is false,
# and harmless, of a tile that wraps (rows % m, as in many a product) and is multiplied by a stride. So those that are not
# contiguous are kept for the launch, and it is at an access that would be made wide by them that they are false.
import numpy as np
import triton.language as tl

import compiled_python

WIDEST = 16  # Bytes that a thread loads or stores at once.


class FalseHint(Exception):
    """A kernel tells the compiler what is not so."""


broken = []  # Of the launch: [(differences of neighbours in a tile of one axis, how many it calls contiguous)].


def look_at(pointers, selected, width):
    """An access: would it be wide where its elements are none of each other's neighbours?"""
    for steps, said in broken:
        for axis, size in enumerate(pointers.shape):
            if size != steps.size + 1:
                continue
            tile = np.moveaxis(pointers, axis, -1).astype(np.int64)
            apart = np.diff(tile)
            if (apart == steps * width).all():
                lanes = True if selected is None else np.moveaxis(selected, axis, -1)[..., 1:]
                _refuse_wide(tile[..., 0], lanes & (apart != width), width, said)


def _refuse_wide(starts, apart, width, said):
    elements = 2
    while elements <= said and elements * width <= WIDEST and not (starts % (elements * width)).any():
        inside = np.arange(1, apart.shape[-1] + 1) % elements != 0
        if apart[..., inside].any():
            raise FalseHint(f"tl.max_contiguous calls {said} elements contiguous, and they are not")
        elements *= 2


def _multiples(value, values):
    data = value.handle.data
    pointer = value.dtype.is_ptr()
    starts = np.ones(data.shape, bool)
    if value.type.is_block():
        step = max(1, value.dtype.element_ty.primitive_bitwidth // 8) if pointer else 1
        for axis in range(data.ndim):
            wide = np.moveaxis(data, axis, 0).astype(np.int64)
            np.moveaxis(starts, axis, 0)[1:] &= wide[1:] - wide[:-1] != step
    first = data[starts]
    for number in values:
        if number > 1 and (first % first.dtype.type(number)).any():
            raise FalseHint(f"tl.multiple_of calls {'addresses' if pointer else 'numbers'} multiples of {number}, "
                            f"and they are not")


def _groups(data, axis, number):
    """[..., number] in place of an axis; None where there is nothing to be said."""
    number = min(number, data.shape[axis])
    number = 1 << number.bit_length() - 1
    moved = np.moveaxis(data, axis, -1)
    return moved.reshape(*moved.shape[:-1], -1, number) if number > 1 else None


def _contiguous(value, values):
    data, step = value.handle.data, 1
    if value.dtype.is_ptr():
        step = max(1, value.dtype.element_ty.primitive_bitwidth // 8)
    for axis, number in enumerate(values if value.type.is_block() else ()):
        groups = _groups(data.astype(np.int64), axis, number)
        if groups is None or (np.diff(groups) == step).all():
            continue
        if data.ndim > 1 or value.dtype.is_ptr():
            raise FalseHint(f"tl.max_contiguous calls {number} elements contiguous, and they are not")
        broken.append((np.diff(data.astype(np.int64)), number))


def _constant(value, values):
    for axis, number in enumerate(values if value.type.is_block() else ()):
        groups = _groups(value.handle.data, axis, number)
        if groups is not None and not (groups == groups[..., :1]).all():
            raise FalseHint(f"tl.max_constancy calls {number} elements the same, and they are not")


def _hint(name, check):
    def hint(input, values, **_):
        if not isinstance(input, tl.tensor):
            return input
        values = values if isinstance(values, (list, tuple, tl.tuple)) else [values]
        values = [compiled_python.constant(value) for value in values]
        if len(values) != max(1, len(input.shape)):
            raise ValueError(f"len(values) != len(input.shape) for {name}")
        if input.dtype.is_int() or input.dtype.is_ptr():
            check(input, values)
        return input
    return hint


def install():
    for name, check in (("multiple_of", _multiples), ("max_contiguous", _contiguous), ("max_constancy", _constant)):
        for language in (tl, tl.core):
            setattr(language, name, _hint(name, check))
