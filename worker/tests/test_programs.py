# SPDX-License-Identifier: Apache-2.0
# Programs in flight together (crew.py), what they know of one another (races.py), and roundings (rounding.py), alone.
import random
import unittest
from fractions import Fraction

import harness  # noqa: F401  (Finds the worker.)
import numpy as np
import rounding
from crew import MOST, Crew, Stuck
from races import Race, Races, Span


class Toy:
    """Programs that are Python functions: every look at a place of `memory` is an access."""

    def __init__(self, order, body, eager=True, seed=0):
        self.memory, self.ended, self.at = {}, [], None
        self.crew = Crew(order, self.begin, self.resume, lambda: self.run(body), eager, seed)
        self.crew.run()

    def begin(self, place):
        self.at = place
        return place

    resume = begin

    def run(self, body):
        place = self.at
        body(self, place)
        assert self.at == place, "the baton came back to another program"
        self.ended.append(place)

    def look(self, key):
        self.crew.meet()
        self.crew.access(key, 0.5)
        return self.memory.get(key, 0)

    def put(self, key, value):
        self.look(key)
        self.memory[key] = value
        self.crew.changed()


LINE = [(0, i, 0) for i in range(40)]


def orders():
    yield LINE
    yield LINE[::-1]
    for seed in range(3):
        yield random.Random(seed).sample(LINE, len(LINE))


class InFlight(unittest.TestCase):
    def test_programs_that_never_meet_run_one_after_another(self):
        for order in orders():
            self.assertEqual(Toy(order, lambda toy, place: None).ended, order)

    def test_chains_end_in_every_order(self):
        def waits_for(step):
            def body(toy, place):
                while (0, place[1] + step, 0) in LINE and not toy.look(place[1] + step):
                    pass
                toy.put(place[1], 1)
            return body
        for order in orders():
            for eager in (False, True):
                for step in (-1, 1):
                    with self.subTest(first=order[0], eager=eager, step=step):
                        toy = Toy(order, waits_for(step), eager)
                        self.assertEqual(toy.ended, sorted(LINE, reverse=step > 0))

    def test_eager_programs_lose_updates_that_nobody_orders(self):
        def add(toy, place):
            toy.put("sum", toy.look("sum") + 1)
        self.assertLess(Toy(LINE, add).memory["sum"], len(LINE))
        self.assertEqual(Toy(LINE, add, eager=False).memory["sum"], len(LINE))
        self.assertEqual(Toy(LINE, add, seed=3).memory, Toy(LINE, add, seed=3).memory)

    def test_barriers_end_where_they_fit(self):
        def arrive(toy, place):
            toy.put(place, 1)
            while sum(toy.look(other) for other in group) < len(group):
                pass
        for count in (MOST - 2, MOST + 1):
            group = LINE[:count]
            with self.subTest(count):
                if count < MOST:
                    self.assertEqual(sorted(Toy(group, arrive, eager=False).ended), group)
                else:
                    self.assertRaises(Stuck, Toy, group, arrive)

    def test_the_first_failure_ends_all(self):
        def fail(toy, place):
            toy.look("a")
            if place[1] == 7:
                raise ValueError("seven")
        self.assertRaisesRegex(ValueError, "seven", Toy, LINE, fail)


class Known(unittest.TestCase):
    """Who knows of whose stores."""
    DATA, FLAG, OTHER_FLAG = 0x1000, 0x2000, 0x3000

    def setUp(self):
        self.races = Races()
        self.one, self.two, self.three = (self.races.begin_program() for _ in range(3))

    def span(self, start):
        return Span(start, start + 0x100, np.array([start], np.uint64), None, True)

    def do(self, program, what, address=DATA, acquires=True, releases=True):
        self.races.resume(program)
        if what == "update":
            self.races.update(self.span(address), 4, acquires, releases)
        elif what == "store":
            self.races.store(self.span(address), 4, lambda met: True)
        else:
            self.races.load(self.span(address), 4, volatile=what == "poll")

    def hand_over(self, giver, taker, flag=FLAG):
        self.do(giver, "update", flag, acquires=False)
        self.do(taker, "update", flag, releases=False)

    def test_released_before_acquired(self):
        self.do(self.one, "store")
        self.hand_over(self.one, self.two)
        self.do(self.two, "load")

    def test_released_too_late(self):
        self.do(self.one, "store")
        self.do(self.two, "update", self.FLAG)
        self.do(self.one, "update", self.FLAG)
        self.assertRaises(Race, self.do, self.two, "load")

    def test_stored_after_the_release(self):
        self.do(self.one, "update", self.FLAG)
        self.do(self.one, "store")
        self.do(self.two, "update", self.FLAG)
        self.assertRaises(Race, self.do, self.two, "load")

    def test_passed_on(self):
        self.do(self.one, "store")
        self.hand_over(self.one, self.two)
        self.hand_over(self.two, self.three, self.OTHER_FLAG)
        self.do(self.three, "load")

    def test_passed_on_too_early(self):
        self.do(self.one, "store")
        self.hand_over(self.two, self.three, self.OTHER_FLAG)
        self.hand_over(self.one, self.two)
        self.assertRaises(Race, self.do, self.three, "load")

    def test_neither_kind_of_atomic_does_for_both(self):
        for acquires, releases in ((True, False), (False, True), (False, False)):
            self.setUp()
            self.do(self.one, "store")
            self.do(self.one, "update", self.FLAG, acquires, releases)
            self.do(self.two, "update", self.FLAG, acquires, releases)
            self.assertRaises(Race, self.do, self.two, "load")

    def test_volatile_loads_acquire_what_was_released(self):
        self.do(self.one, "store")
        self.do(self.one, "update", self.FLAG)
        self.do(self.two, "poll", self.FLAG)
        self.do(self.two, "load")

    def test_an_own_update_does_not_hide_the_others(self):
        self.do(self.one, "update", acquires=False, releases=False)
        self.do(self.two, "update", acquires=False, releases=False)
        for program in (self.one, self.two):
            self.assertRaises(Race, self.do, program, "load")


class Roundings(unittest.TestCase):
    def test_fused_rounds_once(self):
        numbers = np.random.default_rng(1)
        for kind in (np.float16, np.float32, np.float64):
            a, b = (numbers.standard_normal(200).astype(kind) for _ in range(2))
            for c in (-(a * b), numbers.standard_normal(200).astype(kind)):
                exact = [float(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))) for x, y, z in zip(a, b, c)]
                np.testing.assert_array_equal(rounding.fused(a, b, c), np.array(exact).astype(kind))

    def test_moved_by_at_most_one_unit_and_alike(self):
        out = np.random.default_rng(2).standard_normal(1000).astype(np.float32)
        moved = rounding.moved(out, np.zeros(1000, bool))
        np.testing.assert_array_max_ulp(moved, out, 1)
        self.assertGreater((moved != out).sum(), 100)
        np.testing.assert_array_equal(moved, rounding.moved(out, np.zeros(1000, bool)))
        np.testing.assert_array_equal(rounding.moved(out, np.ones(1000, bool)), out)
        rare = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-45, np.finfo(np.float32).tiny], np.float32)
        np.testing.assert_array_equal(rounding.moved(rare, np.zeros(7, bool)).view(np.int32), rare.view(np.int32))


if __name__ == "__main__":
    unittest.main()
