"""The main thread between calls: polling or asleep."""

from __future__ import annotations

import asyncio
import os
import threading
import unittest
from typing import Callable, List

from banana_worker.process.event_loop import EventLoop
from banana_worker.process.listener import Listener
from banana_worker.process.stay_awake import StayAwake

_ENOUGH_CALLS = 40


class Bench:
    """A worker with a clock and calls of the test. Times are in milliseconds."""

    def __init__(self, cores: int = 2) -> None:
        self.now_ms = 0.0
        self.awake = StayAwake(cores, self.now)

    def now(self) -> float:
        return self.now_ms / 1000

    def call(self, gap_ms: float, run_ms: float, at_once: int = 1, batch: int = 1) -> None:
        """Calls, or batches, that begin so long after the last answer, and run so long together."""
        self.now_ms += gap_ms
        for _ in range(at_once):
            self.awake.on_begin(self.now(), batch)
            self.now_ms += run_ms / at_once
        self.awake.on_idle()

    def calls(self, gap_ms: float, run_ms: float, at_once: int = 1, batch: int = 1) -> None:
        for _ in range(_ENOUGH_CALLS):
            self.call(gap_ms, run_ms, at_once, batch)


class Calls(unittest.TestCase):
    def test_a_worker_stays_awake_between_the_short_calls_of_a_single_caller_and_for_a_moment_after_the_last(
        self,
    ) -> None:
        bench = Bench()
        bench.calls(0.3, 0.2)
        self.assertTrue(bench.awake.is_awake())
        bench.now_ms += 0.5
        self.assertTrue(bench.awake.is_awake())
        bench.now_ms += 1
        self.assertFalse(bench.awake.is_awake())

    def test_it_sleeps_at_once_beside_other_calls_and_again_after_the_first_of_them(self) -> None:
        for name, gap_ms, run_ms, at_once, batch in (
            ("calls far between", 2, 0.2, 1, 1),
            ("long calls", 0.3, 2, 1, 1),
            ("the calls of several callers", 0.3, 0.2, 2, 1),
            ("the calls of several callers in one batch", 0.3, 0.2, 1, 2),
        ):
            with self.subTest(name):
                bench = Bench()
                bench.calls(gap_ms, run_ms, at_once, batch)
                self.assertFalse(bench.awake.is_awake())
                bench.calls(0.3, 0.2)
                self.assertTrue(bench.awake.is_awake())
                bench.call(gap_ms, run_ms, at_once, batch)
                self.assertFalse(bench.awake.is_awake())

    def test_a_few_short_calls_do_not_keep_it_awake(self) -> None:
        bench = Bench()
        for _ in range(10):
            bench.call(0.3, 0.2)
        self.assertFalse(bench.awake.is_awake())

    def test_a_worker_that_has_no_core_to_spare_sleeps_at_once(self) -> None:
        bench = Bench(cores=1)
        bench.calls(0.3, 0.2)
        self.assertFalse(bench.awake.is_awake())


class Front:
    """A pipe in the place of fd 4, with this test as the main thread, which is awake for a number of polls."""

    def __init__(self, test: unittest.TestCase) -> None:
        self.fd, self._inlet = os.pipe()
        test.addCleanup(os.close, self.fd)
        test.addCleanup(os.close, self._inlet)
        self.read: List[bytes] = []
        self.on_read: Callable[[], None] = lambda: None
        self.listener = Listener(self.fd, self._read, lambda: None)
        self.looks = 0
        self._awake_for = 0
        self._writes_at = 0

    def be_awake(self, looks: int, writes_at: int) -> None:
        """Awake for so many polls; at one of them a message arrives. With 0, it arrives once this is awake no more."""
        self.read.clear()
        self.looks, self._awake_for, self._writes_at = 0, looks, writes_at

    def is_awake(self) -> bool:
        self.looks += 1
        if self.looks == self._writes_at:
            self.write()
        is_awake = self.looks <= self._awake_for
        if not is_awake and self._writes_at == 0:
            threading.Timer(0.05, self.write).start()
        return is_awake

    def write(self) -> None:
        os.write(self._inlet, b"a")

    def has_read(self) -> bool:
        return bool(self.read)

    def _read(self) -> None:
        self.read.append(os.read(self.fd, 100))
        self.on_read()


class Waits(unittest.TestCase):
    def test_a_wait_polls_while_it_is_awake_and_reads_new_messages(self) -> None:
        front = Front(self)
        front.be_awake(looks=10, writes_at=3)
        front.listener.wait_until(front.has_read, front.is_awake)
        self.assertEqual((front.looks, front.read), (3, [b"a"]))

    def test_a_wait_sleeps_when_it_is_not_awake_any_more(self) -> None:
        front = Front(self)
        front.be_awake(looks=3, writes_at=0)
        front.listener.wait_until(front.has_read, front.is_awake)
        self.assertEqual((front.looks, front.read), (4, [b"a"]))

    def test_an_event_loop_turns_while_it_is_awake_and_then_sleeps(self) -> None:
        front = Front(self)
        loop = self.event_loop(front)
        front.be_awake(looks=10, writes_at=3)
        loop.wait_until(front.has_read, front.is_awake)
        self.assertIn(front.looks, (3, 4), "the loop ends the turn in which it has read")
        front.be_awake(looks=3, writes_at=0)
        loop.wait_until(front.has_read, front.is_awake)
        self.assertEqual(front.looks, 4)

    def test_an_event_loop_does_not_turn_faster_with_each_wait(self) -> None:
        front = Front(self)
        loop = self.event_loop(front)
        turns: List[int] = []

        async def count_turns() -> None:
            while True:
                turns.append(1)
                await asyncio.sleep(0)

        counting = asyncio.get_event_loop_policy().get_event_loop().create_task(count_turns())
        for _ in range(20):
            turns.clear()
            front.be_awake(looks=100, writes_at=10)
            loop.wait_until(front.has_read, front.is_awake)
            self.assertGreaterEqual(len(turns), 9)
        counting.cancel()
        loop.run(asyncio.sleep(0), lambda: False)

    def event_loop(self, front: Front) -> EventLoop:
        own = asyncio.new_event_loop()
        self.addCleanup(asyncio.set_event_loop, None)
        self.addCleanup(own.close)
        asyncio.set_event_loop(own)
        loop = EventLoop(front.listener)
        front.on_read = loop.wake
        loop.run(asyncio.sleep(0), lambda: False)  # it starts with its first coroutine
        return loop
