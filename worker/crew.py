# SPDX-License-Identifier: Apache-2.0
# Programs of one launch in flight together, as on a GPU, with one of them running at a time.
#
# A launch runs one program after another until one of them meets the others, by an atomic or a volatile load. From then
# on programs may change over at any access of memory: each has a thread of its own, and the baton is handed from one to
# the next by a seeded choice. Kernels without such accesses never see a second thread.
#
# Eager, programs change over all the time, and what nobody ordered happens in any order (races.py says when that is a
# race). Else they do so only when one waits: what polls memory that does not change lets the others on. When everybody
# who has begun is waiting, one more is begun, and the last few of those that fit are from either end of the grid: a chain
# in which programs wait for their neighbours ends in every order, though far fewer are in flight (a job may have 16
# threads) than on a GPU. What needs more at once is Stuck, and worth another try with a wide crew: as many as fit, begun
# in order, so that barriers of neighbours end.
#
# Thread rule: whoever holds the baton is the only one who runs.
import contextvars
import random
import threading

USUAL, MOST = 6, 12    # Programs in flight: of eager ones while they need not wait, and at all.
SPARE = 2              # Of a crew that is wide or not eager, kept for the ends of the grid.
STACK_BYTES = 4 << 20  # Of a thread; the main one's 8 MiB would count twelve times.
POLLS = 3              # Accesses in a row that told a program nothing new: it waits.
PATIENCE = 5000        # Changes of turns without anything new before it is given up.


class Stuck(Exception):
    """More programs wait for one another than can be in flight here."""


class _Over(BaseException):
    """Another program has failed: this one ends where it stands."""


class _Member:
    """A thread and the program that it runs."""

    def __init__(self):
        self.turn = threading.Semaphore(0)
        self.program = None
        self.polled, self.version, self.repeats = set(), -1, 0

    @property
    def waits(self):
        return self.repeats >= POLLS


class Crew:
    """`grid_order`: the programs, (x, y, z) each. `begin(place)`: a program is about to run, whose state is returned;
    `resume(state)`: it goes on. `body()` runs one."""

    def __init__(self, grid_order, begin, resume, body, eager, seed, wide=False):
        self._begin, self._resume, self._body, self._eager = begin, resume, body, eager
        self._mixed = eager and not wide  # Begun from several orders.
        self._usual = USUAL if self._mixed else MOST - SPARE
        self._pending = dict.fromkeys(grid_order)
        self._beginnings = [iter(list(self._pending))]
        self._sorted, self._ends, self._end, self._tried = None, [0, 0], 0, None
        self._random = random.Random(seed)
        self._main = self._at = _Member()
        self._others = []        # In flight, without the baton.
        self._version = self._still = 0
        self._failure = None
        self.met = False         # Programs have met: every access is an occasion to change over.

    def run(self):
        """Until every program has ended. Raises what one of them raised."""
        self._work(self._main)
        if self._failure is not None:
            raise self._failure

    # --- Accesses of the program that has the baton.

    def meet(self):
        """It is about to meet others, by an atomic or a volatile load."""
        if not self.met:
            self.met = True
            if self._mixed:  # Programs that share something lie side by side along the first axis or along the last.
                self._beginnings = [iter(list(self._pending)), iter(sorted(self._pending)),
                                    iter(sorted(self._pending, key=lambda place: place[::-1]))]

    def changed(self):
        """Memory holds something new."""
        self._version += 1
        self._still = 0

    def shuffled(self, count):
        """0 to count - 1 in some order."""
        return self._random.sample(range(count), count)

    def access(self, key, share):
        """An occasion to change over, taken `share` of the time. `key`: what is accessed."""
        me = self._at
        if me.version != self._version:
            me.version, me.repeats = self._version, 0
            me.polled.clear()
        if key in me.polled:
            me.repeats += 1
        else:
            me.polled.add(key)
            me.repeats = 0
        if me.waits:
            self._let_on()
        elif self._eager and self._random.random() < share:
            self._change_over()

    # --- Whose turn it is.

    def _let_on(self):
        self._still += 1
        ready = [other for other in self._others if not other.waits or other.version != self._version]
        if ready:
            self._hand_to(self._random.choice(ready))
        elif self._pending and len(self._others) + 1 < MOST:
            self._begin_one()
        elif self._pending and self._still > PATIENCE:
            raise Stuck(f"more than {MOST} programs of a launch wait for one another")
        elif self._others:
            self._hand_to(self._random.choice(self._others))

    def _change_over(self):
        room = self._pending and len(self._others) + 1 < self._usual
        if room and self._random.randrange(len(self._others) + 1) == 0:
            self._begin_one()
        elif self._others:
            self._hand_to(self._random.choice(self._others))

    def _begin_one(self):
        member = _Member()
        context = contextvars.copy_context()  # numpy's settings.
        before = threading.stack_size(STACK_BYTES)
        try:
            threading.Thread(target=context.run, args=(self._thread, member), daemon=True).start()
        except RuntimeError:  # No more threads than those.
            if not self._others:
                raise Stuck("no thread for a second program of a launch") from None
            member = self._random.choice(self._others)
        finally:
            threading.stack_size(before)
        self._hand_to(member)

    def _hand_to(self, other):
        me = self._at
        self._others.append(me)
        self._pass_baton(other)
        me.turn.acquire()
        if self._failure is not None:
            raise _Over
        if me.program is not None:
            self._resume(me.program)

    def _pass_baton(self, other):
        if other in self._others:
            self._others.remove(other)
        self._at = other
        other.turn.release()

    # --- The life of a member.

    def _thread(self, member):
        member.turn.acquire()
        self._work(member)

    def _work(self, me):
        try:
            while self._pending and self._failure is None:
                if again := self._to_look_again():
                    self._hand_to(self._random.choice(again))
                    continue
                place = self._next()
                me.repeats = 0
                me.program = self._begin(place)
                self._body()
                me.program = None
                self._tried = None if self._tried == place else self._tried
                self.changed()
        except _Over:
            pass
        except BaseException as error:
            self._failure = self._failure or error
        if self._others:
            self._pass_baton(self._random.choice(self._others))
        elif me is not self._main:
            self._main.turn.release()
        if me is self._main and self._at is not me:
            me.turn.acquire()  # Until the last one has ended.

    def _busy(self):
        return [other for other in self._others if other.program is not None]

    def _to_look_again(self):
        """Those who waited for what may have come about, when there is nobody else; they go before new ones."""
        busy = self._busy()
        return all(other.waits for other in busy) and [other for other in busy if other.version != self._version]

    def _next(self):
        """The next program to begin: in order, or, beyond those that fit, from an end of the grid."""
        place = self._from_an_end() if len(self._busy()) >= self._usual else None
        source = self._random.randrange(len(self._beginnings))
        while place is None:
            candidate = next(self._beginnings[source], None)
            if candidate is None:
                self._beginnings[source] = iter(list(self._pending))
            elif candidate in self._pending:
                place = candidate
        del self._pending[place]
        return place

    def _from_an_end(self):
        """Of the same end as last time if that program has ended, else of the other one."""
        if self._sorted is None:
            self._sorted = sorted(self._pending)
            self._ends = [0, len(self._sorted) - 1]
        if self._tried is not None:
            self._end = 1 - self._end
        while self._sorted[self._ends[self._end]] not in self._pending:
            self._ends[self._end] += 1 - 2 * self._end
        self._tried = self._sorted[self._ends[self._end]]
        return self._tried
