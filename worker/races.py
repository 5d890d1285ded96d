# SPDX-License-Identifier: Apache-2.0
# Finds programs of one launch that meet in memory: here they run one after another, on a GPU at the same time.
#
# For every element that a launch plainly stores to, a shadow says who did so last; a plain load of it by another
# program, or a store of another value, is a race, and so is a plain access to what another program updates atomically.
# Time is cut into segments: a program begins one, and so does each of its atomics that orders memory. What program q
# wrote in a segment is handed over to program p when q later did such an atomic on an address that p, too, has done one
# on (locks, counters of who arrives last). A load that comes before the store is found when the launch runs backwards.
import bisect

import numpy as np


class Race(Exception):
    """Two programs of a launch touch the same element, and the outcome depends on who comes first."""


class Span:
    """The part of an access that lies in one buffer: addresses in [start, start + size)."""

    def __init__(self, start, end, addresses, which, contiguous):
        self.start, self.size, self.addresses = start, end - start, addresses
        self.which = which            # Which of the access's addresses these are; None = all.
        self.contiguous = contiguous  # One after another, in order.

    def of(self, values):
        return values if self.which is None else values[self.which]


class Races:
    def __init__(self):
        self.begin_launch()

    def begin_launch(self):
        self._plain, self._atomic = {}, {}  # Start of a buffer -> [bytes of an element, segments].
        self._programs = []                 # First segment of each program so far.
        self._segment = self._first = 0
        self._releases, self._acquired = {}, set()  # Address -> {program: segment of its last atomic there}.

    def begin_program(self):
        self._segment += 1
        self._first = self._segment
        self._programs.append(self._first)
        self._acquired.clear()

    # --- Accesses: a Span each, and how wide an element is.

    def load(self, span, width, volatile):
        if span.start in self._plain:
            self._meet(self._plain, span, width, "loads what another one stores")
        if span.start in self._atomic and not volatile:
            self._meet(self._atomic, span, width, "loads what another one updates atomically")

    def store(self, span, width, differs):
        """`differs(selection)`: does the selected part hold another value than what is stored there now?"""
        if span.start in self._atomic:
            self._meet(self._atomic, span, width, "stores to what another one updates atomically")
        index = self._meet(self._plain, span, width, "stores another value than another one", differs)
        self._plain[span.start][1][index] = self._segment

    def update(self, span, width, orders):
        if span.start in self._plain:
            self._meet(self._plain, span, width, "updates atomically what another one stores")
        index = self._index(self._atomic, span, width)
        shadow = self._atomic[span.start][1]
        before = shadow[index]  # Another program's mark stays: several have been here.
        shadow[index] = np.where((before > 0) & (before < self._first), before, self._segment)
        if orders and span.addresses.size <= 64:
            self._segment += 1
            for address in span.addresses.tolist():
                self._releases.setdefault(address, {})[len(self._programs)] = self._segment
                self._acquired.add(address)

    # --- Shadows.

    @staticmethod
    def _index(shadows, span, width):
        """Where the bytes of an access are in the shadow of its buffer, which is made or refined where needed."""
        shadow = shadows.get(span.start)
        if shadow is None:
            shadow = shadows[span.start] = [width, np.zeros(span.size // width + 1, np.int32)]
        elif width < shadow[0]:
            shadow[1] = np.repeat(shadow[1], shadow[0] // width)
            shadow[0] = width
        if span.contiguous:
            first = (int(span.addresses[0]) - span.start) // shadow[0]
            return slice(first, first + span.addresses.size * width // shadow[0])
        index = ((span.addresses - np.uint64(span.start)) // np.uint64(shadow[0])).astype(np.int64)
        if width > shadow[0]:
            index = (index[:, None] + np.arange(width // shadow[0])).ravel()
        return index

    def _meet(self, shadows, span, width, what, differs=None):
        index = self._index(shadows, span, width)
        segments = shadows[span.start][1][index]
        others = (segments > 0) & (segments < self._first)
        if not others.any():
            return index
        pieces = segments.size // span.addresses.size
        for segment in np.unique(segments[others]).tolist():
            if self._handed_over(segment):
                continue
            if differs is None or differs((segments == segment).reshape(-1, pieces).any(axis=1)):
                raise Race(f"programs race: one {what}")
        return index

    def _handed_over(self, segment):
        writer = bisect.bisect_right(self._programs, segment)
        return any(self._releases[address].get(writer, 0) > segment for address in self._acquired)
