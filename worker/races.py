# SPDX-License-Identifier: Apache-2.0
# Finds programs of one launch that meet in memory: on a GPU they run at the same time, whatever the order here (crew.py).
#
# For every element that a launch plainly stores to, a shadow says who did so last; a plain load of it by another
# program, or a store of another value, is a race, and so is a plain access to what another program updates atomically.
# Time is cut into segments: a program begins one, and so does each of its atomics that releases. What program q wrote in
# a segment is known to program p when q later released at an address where p, later still, acquired (locks, counters of
# who arrives last), or when it is known to a program from which p so knows. A volatile load of what was released acquires,
# too: it is how kernels wait, and works. A load that comes before the store is found when the launch runs the other way.
#
# Within a program an element belongs to the thread that holds its place in a tile. A tile that loads what one of another
# shape, or another place, stored is a race unless something all threads take part in lies between: a barrier, an atomic,
# or what may move values between threads (reductions, products, ...), which is given the benefit of the doubt. A program
# of one warp is, too, and so is what a scalar stores and a scalar loads.
import bisect

import numpy as np


MOST_ORDERED = 64  # Elements of an access that orders memory: locks, flags and counters are few.


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


class Program:
    """One program of the launch, as far as it has come."""

    def __init__(self, number, segment):
        self.number = number
        self.first = self.segment = segment
        self.own = {}        # Start of a buffer -> what it stored there since a barrier.
        self.acquired = {}   # Address -> when it acquired there: the last segment that had begun by then.
        self.known = None    # Program -> up to where what that one did is known; None = to be found out.


class Races:
    def __init__(self):
        self.begin_launch()

    def begin_launch(self):
        self._plain = {}         # Start of a buffer -> [bytes of an element, segments of the last stores].
        self._atomic = {}        # The same of the last updates, and of the last by another program than that.
        self._begun, self._acquired = 0, {}  # Programs; number -> `acquired` of those that did.
        self._writers = np.zeros(1024, np.int32)  # Segment -> number of its program.
        self._segment = 0
        self.several_warps = True
        self.in_turn = True      # Every program so far has run to its end before the next one began.
        self._releases = {}      # Address -> {number of a program: its segments that begin with a release there}.
        self.begin_program()

    def begin_program(self):
        self._begun += 1
        self._at = Program(self._begun, self._begin_segment(self._begun))
        return self._at

    def resume(self, program):
        self._at, self.in_turn = program, False

    def _begin_segment(self, number):
        self._segment += 1
        if self._segment == self._writers.size:
            self._writers = np.concatenate((self._writers, np.zeros_like(self._writers)))
        self._writers[self._segment] = number
        return self._segment

    def barrier(self):
        """All threads of the program have come this far."""
        self._at.own.clear()

    def stored(self):
        """Starts of the buffers that the launch has stored to so far."""
        return self._plain.keys() | self._atomic.keys()

    # --- Accesses: a Span each, and how wide an element is.

    def load(self, span, width, volatile):
        if volatile and span.addresses.size <= MOST_ORDERED:
            self._acquire([address for address in span.addresses.tolist() if address in self._releases])
        if span.start in self._plain:
            self._meet(self._plain, span, width, "loads what another one stores")
        if span.start in self._atomic and not volatile:
            self._meet(self._atomic, span, width, "loads what another one updates atomically")

    def store(self, span, width, differs):
        """`differs(selection)`: does the selected part hold another value than what is stored there now?"""
        if span.start in self._atomic:
            self._meet(self._atomic, span, width, "stores to what another one updates atomically")
        index = self._meet(self._plain, span, width, "stores another value than another one", differs)
        self._plain[span.start][1][index] = self._at.segment

    def update(self, span, width, acquires, releases):
        if span.start in self._plain:
            self._meet(self._plain, span, width, "updates atomically what another one stores")
        index = self._index(self._atomic, span, width, 2)
        _, last, before = self._atomic[span.start]
        others = self._others(last[index])
        before[index] = np.where(others, last[index], before[index])
        last[index] = self._at.segment
        if span.addresses.size <= MOST_ORDERED:
            addresses = span.addresses.tolist()
            if acquires:
                self._acquire(addresses)
            if releases:
                self._at.segment = self._begin_segment(self._at.number)
                for address in addresses:
                    self._releases.setdefault(address, {}).setdefault(self._at.number, []).append(self._at.segment)

    def _acquire(self, addresses):
        me = self._at
        for address in addresses:
            times = me.acquired.setdefault(address, [])
            if not times or times[-1] < self._segment:
                times.append(self._segment)
                me.known = None
        self._acquired[me.number] = me.acquired

    # --- Within a program.

    def store_own(self, span, tile):
        if self.several_warps:
            low, high = span.addresses.min(), span.addresses.max()
            self._at.own.setdefault(span.start, []).append((low, high, span, tile))

    def load_own(self, span, tile):
        """Does it load what another thread of the program stored, with no barrier between the two?"""
        stores = self._at.own.get(span.start)
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
    def _index(shadows, span, width, marks=1):
        """Where the bytes of an access are in the shadow of its buffer, which is made or refined where needed."""
        shadow = shadows.get(span.start)
        if shadow is None:
            size = span.size // width + 1
            shadow = shadows[span.start] = [width, *[np.zeros(size, np.int32) for _ in range(marks)]]
        elif width < shadow[0]:
            shadow[1:] = [np.repeat(each, shadow[0] // width) for each in shadow[1:]]
            shadow[0] = width
        if span.contiguous:
            first = (int(span.addresses[0]) - span.start) // shadow[0]
            return slice(first, first + span.addresses.size * width // shadow[0])
        index = ((span.addresses - np.uint64(span.start)) // np.uint64(shadow[0])).astype(np.int64)
        if width > shadow[0]:
            index = (index[:, None] + np.arange(width // shadow[0])).ravel()
        return index

    def _others(self, segments):
        """Those of other programs."""
        if self.in_turn:
            return (segments > 0) & (segments < self._at.first)
        return (segments > 0) & (self._writers[segments] != self._at.number)

    def _meet(self, shadows, span, width, what, differs=None):
        index = self._index(shadows, span, width, 2 if shadows is self._atomic else 1)
        for marks in shadows[span.start][1:]:
            segments = marks[index]
            others = self._others(segments)
            if not others.any():
                continue
            pieces = segments.size // span.addresses.size
            for segment in np.unique(segments[others]).tolist():
                if self._is_known(segment):
                    continue
                if differs is None or differs((segments == segment).reshape(-1, pieces).any(axis=1)):
                    raise Race(f"programs race: one {what}")
        return index

    # --- What is known to the program.

    def _is_known(self, segment):
        writer, me = int(self._writers[segment]), self._at
        if me.known is not None:
            return me.known.get(writer, 0) > segment
        for address, times in me.acquired.items():
            released = self._releases.get(address, {}).get(writer, ())
            at = bisect.bisect_right(released, segment)
            if at < len(released) and released[at] <= times[-1]:
                return True
        if not me.acquired:
            return False
        me.known = self._find_out(me)
        return me.known.get(writer, 0) > segment

    def _find_out(self, me):
        """Program -> up to when what it did is known, whoever passed it on. Few ask: most know from the writer itself."""
        known, looked_at, queue = {me.number: self._segment + 1}, {}, [me.number]
        while queue:
            number = queue.pop()
            for address, times in self._acquired.get(number, {}).items():
                at = bisect.bisect_left(times, known[number])
                if at == 0 or looked_at.get(address, 0) >= times[at - 1]:
                    continue
                looked_at[address] = times[at - 1]
                for writer, released in self._releases.get(address, {}).items():
                    at_most = bisect.bisect_right(released, times[at - 1])
                    if at_most and released[at_most - 1] > known.get(writer, 0):
                        known[writer] = released[at_most - 1]
                        queue.append(writer)
        return known
