# SPDX-License-Identifier: Apache-2.0
# Finds programs of one launch that meet in memory: here they run one after another, on a GPU at the same time.
#
# For every element that a launch plainly stores to, a shadow says who did so last; a plain load of it by another
# program, or a store of another value, is a race, and so is a plain access to what another program updates atomically.
# Time is cut into segments: a program begins one, and so does each of its atomics that orders memory. What program q
# wrote in a segment is handed over to program p when q later did such an atomic on an address that p, too, has done one
# on (locks, counters of who arrives last). A load that comes before the store is found when the launch runs backwards.
#
# Within a program an element belongs to the thread that holds its place in a tile. A tile that loads what one of another
# shape, or another place, stored is a race unless something all threads take part in lies between: a barrier, an atomic,
# or what may move values between threads (reductions, products, ...), which is given the benefit of the doubt. A program
# of one warp is, too, and so is what a scalar stores and a scalar loads.
import bisect

import numpy as np


class Race(Exception):
    """Two programs of a launch touch the same element, and the outcome depends on who comes first."""


class Tile:
    """Which threads an access belongs to: its shape, and the places that its mask lets through (None = all)."""

    def __init__(self, shape, mask):
        self.shape, self._mask = shape, mask
        self.size = 1
        for n in shape:
            self.size *= n

    def places(self, span):
        every = np.arange(self.size) if self._mask is None else np.flatnonzero(self._mask)
        return span.of(every)


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
        self._own = {}                      # Start of a buffer -> what this program stored there since a barrier.
        self.several_warps = True
        self._releases, self._acquired = {}, set()  # Address -> {program: segment of its last atomic there}.

    def begin_program(self):
        self._segment += 1
        self._first = self._segment
        self._programs.append(self._first)
        self._acquired.clear()
        self._own.clear()

    def barrier(self):
        """All threads of the program have come this far."""
        self._own.clear()

    def stored(self):
        """Starts of the buffers that the launch has stored to so far."""
        return self._plain.keys() | self._atomic.keys()

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

    # --- Within a program.

    def store_own(self, span, tile):
        if self.several_warps:
            low, high = span.addresses.min(), span.addresses.max()
            self._own.setdefault(span.start, []).append((low, high, span, tile))

    def load_own(self, span, tile):
        """Does it load what another thread of the program stored, with no barrier between the two?"""
        stores = self._own.get(span.start)
        if not stores:
            return
        addresses, places = span.addresses, None
        first, last = addresses.min(), addresses.max()
        for low, high, stored, by in reversed(stores):
            if last < low or first > high:
                continue
            places = tile.places(span) if places is None else places
            order = np.argsort(stored.addresses, kind="stable")
            known = stored.addresses[order]
            at = np.minimum(np.searchsorted(known, addresses), known.size - 1)
            met = known[at] == addresses
            if not met.any():
                continue
            one_thread = tile.size == 1 and by.size == 1
            same = tile.shape == by.shape and bool((by.places(stored)[order[at[met]]] == places[met]).all())
            if not one_thread and not same:
                raise Race("threads of one program race: one loads what another one stores, without tl.debug_barrier()")
            addresses, places = addresses[~met], places[~met]
            if not addresses.size:
                return

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
