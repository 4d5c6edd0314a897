"""Waits for messages, and for other threads."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
import unittest
from typing import Any, Callable, List, Optional

from banana_worker.process.listener import Listener
from banana_worker.process.waits import Waits

# Only a defect takes so long.
_GUARD_S = 60.0


class Front:
    """A pipe in the place of fd 4, and the waits for it: this test is the main thread."""

    def __init__(self, test: Optional[unittest.TestCase] = None) -> None:
        """The pipe is closed with the test. Without a test it stays open for the second thread, which never ends."""
        self.fd, self._inlet = os.pipe()
        if test is not None:
            test.addCleanup(os.close, self.fd)
            test.addCleanup(os.close, self._inlet)
        self.read: List[bytes] = []
        self.ticks = 0
        self.during_read: Callable[[], None] = lambda: None
        self.listener = Listener(self.fd, self._read, self._on_tick)
        self.waits = Waits(self.listener)

    def write(self, word: bytes) -> None:
        os.write(self._inlet, word)

    def _on_tick(self) -> None:
        self.ticks += 1

    def _read(self) -> None:
        self.during_read()
        self.read.append(os.read(self.fd, 100))
        self.waits.ring()


class MainThread(unittest.TestCase):
    def test_it_is_woken_by_another_thread(self) -> None:
        front = Front(self)
        for _ in range(3):
            done: List[int] = []

            def act() -> None:
                front.waits.ring()
                done.append(1)
                front.waits.ring()

            guard = threading.Timer(_GUARD_S, lambda: (done.append(1), front.write(b"guard")))
            guard.start()
            threading.Timer(0.02, act).start()
            front.waits.wait(lambda: bool(done))
            guard.cancel()
            guard.join()
        self.assertEqual(front.read, [])

    def test_it_reads_messages_until_the_one_that_it_waits_for(self) -> None:
        front = Front(self)

        def say_both() -> None:
            front.write(b"a")
            until = time.monotonic() + _GUARD_S
            while not front.read and time.monotonic() < until:
                time.sleep(0.001)
            front.write(b"b")

        threading.Timer(0.02, say_both).start()
        front.waits.wait(lambda: b"b" in b"".join(front.read))
        self.assertEqual(front.read, [b"a", b"b"])

    def test_a_signal_handler_that_interrupts_a_read_cannot_wait(self) -> None:
        front = Front(self)
        for read in (lambda: front.listener.wait_until(lambda: len(front.read) > 0), front.listener.read_if_any):
            front.read.clear()
            raised: List[str] = []

            def wait_in_read() -> None:
                try:
                    front.waits.wait(lambda: False)
                except RuntimeError as error:
                    raised.append(str(error))

            front.during_read = wait_in_read
            front.write(b"a")
            read()
            self.assertEqual((front.read, len(raised)), ([b"a"], 1))
            self.assertIn("a signal handler cannot wait", raised[0])


class EventLoop(unittest.TestCase):
    def test_no_wait_is_lost_whenever_another_thread_rings(self) -> None:
        front = Front(self)
        for step in range(1, 100):
            with self.subTest(step):
                asyncio.run(self.wait_interrupted(front.waits, step))

    def test_no_wait_is_lost_whenever_its_condition_becomes_true(self) -> None:
        front = Front(self)
        for step in range(1, 100):
            asyncio.run(self.wait_until_step(front.waits, step))

    async def wait_until_step(self, waits: Waits, step: int) -> None:
        """The condition becomes true, with one ring, before this step of the interpreter, or after the last."""
        done: List[int] = []

        def act() -> None:
            done.append(1)
            waits.ring()

        waiting = asyncio.ensure_future(waits.wait_async(lambda: bool(done)))
        before = sys.gettrace()
        sys.settrace(at_step(step, Waits.wait_async.__code__, act))
        try:
            await asyncio.sleep(0)
        finally:
            sys.settrace(before)
        if not done:
            act()
        await asyncio.wait_for(waiting, _GUARD_S)

    async def wait_interrupted(self, waits: Waits, step: int) -> None:
        """Another ring comes before this step of the interpreter, and the condition becomes true after the last."""
        done: List[int] = []
        another = asyncio.ensure_future(waits.wait_async(lambda: bool(done)))
        await asyncio.sleep(0)  # its future is on the list by now
        waiting = asyncio.ensure_future(waits.wait_async(lambda: bool(done)))
        before = sys.gettrace()
        sys.settrace(at_step(step, Waits.wait_async.__code__, waits.ring))
        try:
            await asyncio.sleep(0)
        finally:
            sys.settrace(before)
        done.append(1)
        waits.ring()
        await asyncio.wait_for(asyncio.gather(another, waiting), _GUARD_S)


def at_step(step: int, code: Any, act: Callable[[], None]) -> Any:
    """A function for `sys.settrace`, which calls `act` before this step of the code."""
    steps = [0]

    def trace(frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code is not code:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            steps[0] += 1
            if steps[0] == step:
                act()
        return trace

    return trace


class ClosedLoop(unittest.TestCase):
    def test_a_wait_in_a_closed_loop_does_not_keep_others_from_being_woken(self) -> None:
        """The thread that reads messages rings too, and must survive it."""
        front = Front(self)
        done: List[int] = []
        loop = asyncio.new_event_loop()
        left = loop.create_task(front.waits.wait_async(lambda: bool(done)))
        loop.run_until_complete(asyncio.sleep(0))
        asyncio.run(self.wait_after(front, loop, done))
        self.assertFalse(left.done())
        left._log_destroy_pending = False  # type: ignore[attr-defined]

    async def wait_after(self, front: Front, loop: asyncio.AbstractEventLoop, done: List[int]) -> None:
        waiting = asyncio.ensure_future(front.waits.wait_async(lambda: bool(done)))
        await asyncio.sleep(0)
        loop.close()
        done.append(1)
        front.waits.ring()
        await asyncio.wait_for(waiting, _GUARD_S)


class OtherThread(unittest.TestCase):
    """The thread that reads while the main thread runs the app."""

    def test_it_ticks_while_the_app_runs_and_afterwards_when_it_is_woken(self) -> None:
        front = Front()
        front.listener.start()
        front.listener.wake()
        self.ticks_go_on(front, 5)  # more than it needs before it waits in the main thread's place
        front.write(b"a")
        front.waits.wait(lambda: front.read != [])
        front.listener.begin_reading_between_tasks()
        front.listener.wake()
        self.ticks_go_on(front, 1)

    def ticks_go_on(self, front: Front, count: int) -> None:
        """While this thread does not wait for messages."""
        seen = front.ticks
        until = time.monotonic() + _GUARD_S
        while front.ticks < seen + count:
            self.assertLess(time.monotonic(), until, "no tick")
            time.sleep(0.001)
