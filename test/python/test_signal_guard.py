"""Signal handlers that raise while the worker waits, reads, or turns its event loop."""

from __future__ import annotations

import asyncio
import faulthandler
import functools
import os
import selectors
import signal
import subprocess
import sys
import unittest
from types import FrameType
from typing import Any, Callable, List, Optional

from banana_worker.process import listener
from banana_worker.process.event_loop import EventLoop
from banana_worker.process.listener import Listener
from banana_worker.process.signal_guard import Guard, GuardedHandler, guard_of, guard_signals
from banana_worker.process.waits import Waits
from banana_worker.run.arriving_calls import WaitingCall

# A loop that has lost a step would turn for ever.
LIMIT_S = 120


class Limit(BaseException):
    """Raised by a signal handler."""


def raise_limit(*_: Any) -> None:
    raise Limit


class Front:
    """A pipe in the place of fd 4. Each message is one byte."""

    def __init__(self, test: unittest.TestCase) -> None:
        faulthandler.dump_traceback_later(LIMIT_S, exit=True)
        test.addCleanup(faulthandler.cancel_dump_traceback_later)
        self.fd, self._inlet = os.pipe()
        test.addCleanup(os.close, self.fd)
        test.addCleanup(os.close, self._inlet)
        self.listener = Listener(self.fd, self._read, lambda: None)
        self.waits = Waits(self.listener)
        self.read: List[int] = []
        self._sent = 0

    def write_one(self) -> int:
        """Writes a message and returns it."""
        self._sent += 1
        os.write(self._inlet, bytes([self._sent % 256]))
        return self._sent % 256

    def _read(self) -> None:
        self.read.extend(os.read(self.fd, 100))
        self.waits.ring()


def close_event_loop() -> None:
    asyncio.get_event_loop_policy().get_event_loop().close()


class Strikes(unittest.TestCase):
    def test_a_handler_that_raises_in_a_wait_loses_no_message_and_reading_goes_on(self) -> None:
        front = Front(self)

        def wait() -> None:
            sent = front.write_one()
            front.waits.wait(lambda: sent in front.read)

        def check() -> None:
            front.waits.wait(lambda: len(front.read) > 0)
            self.assertEqual((len(front.read), front.listener._main_reads), (1, False))
            front.read.clear()

        self.assertGreater(at_each_line([listener.__file__], wait, check), 15)

    def test_a_handler_that_raises_between_steps_of_the_event_loop_loses_none(self) -> None:
        front = Front(self)
        loop = EventLoop(front.listener)
        self.addCleanup(close_event_loop)
        ended: List[int] = []

        async def receive(sent: int) -> None:
            try:
                await front.waits.wait_async(lambda: sent in front.read)
                await asyncio.sleep(0)
            finally:
                ended.append(sent)

        def run() -> None:
            sent = front.write_one()
            loop.run(receive(sent), lambda: False)

        def check() -> None:
            loop.run(front.waits.wait_async(lambda: len(front.read) > 0), lambda: False)
            # A coroutine that is cancelled before it has begun never begins.
            self.assertIn((len(front.read), ended), ((1, front.read), (1, [])))
            front.read.clear()
            ended.clear()

        machinery = (listener, asyncio.base_events, asyncio.events, asyncio.selector_events, selectors)
        self.assertGreater(at_each_line([module.__file__ for module in machinery], run, check), 50)

    def test_code_compiled_from_text_is_guarded_too(self) -> None:
        made: List[Any] = []
        make = functools.partial(WaitingCall, None)

        def check() -> None:
            self.assertEqual(made, [(None, b"")])
            made.clear()

        def run() -> None:
            Guard(lambda: None).run(functools.partial(made.extend, map(make, [b""])))

        self.assertGreater(at_each_line(["<string>"], run, check), 0)

    def test_a_handler_raises_at_once_in_what_the_app_awaits(self) -> None:
        front = Front(self)
        loop = EventLoop(front.listener)
        self.addCleanup(close_event_loop)

        async def limited() -> str:
            try:
                GuardedHandler(raise_limit)(signal.SIGALRM, sys._getframe())
            except Limit:
                return "the limit"
            return "no limit"

        self.assertEqual(loop.run(limited(), lambda: False), "the limit")


class Handlers(unittest.TestCase):
    def test_an_app_sees_only_its_own_handlers(self) -> None:
        program = "import %s as t; t.handlers()" % os.path.splitext(os.path.basename(__file__))[0]
        output = subprocess.check_output([sys.executable, "-c", program], cwd=os.path.dirname(__file__), text=True)
        self.assertEqual(output, "handled\ninterrupted\n")


def handlers() -> None:
    """Run by a process of its own, because the guards stay."""
    guard_signals()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def handle(number: int, frame: Optional[FrameType]) -> None:
        assert number == signal.SIGUSR1 and frame is not None and frame.f_code is handlers.__code__
        print("handled")

    assert signal.signal(signal.SIGUSR1, handle) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGUSR1) is handle
    os.kill(os.getpid(), signal.SIGUSR1)
    assert signal.signal(signal.SIGUSR1, signal.SIG_IGN) is handle
    os.kill(os.getpid(), signal.SIGUSR1)
    assert signal.signal(signal.SIGUSR1, signal.SIG_DFL) is signal.SIG_IGN
    if raised_by(lambda: os.kill(os.getpid(), signal.SIGINT)) is KeyboardInterrupt:
        print("interrupted")


def raised_by(do: Callable[[], Any]) -> Any:
    """The class of the exception, or None."""
    try:
        do()
    except BaseException as thrown:
        return type(thrown)
    return None


def at_each_line(files: List[str], run: Callable[[], None], check: Callable[[], None]) -> int:
    """Runs `run` again and again, with a handler that raises before the first guarded line of the files, then before
    the second, and so on, until there is no such line. Each time `run` must raise that exception, and `check`
    runs after it. Returns the number of exceptions."""
    times = 0
    while struck(files, times, run):
        check()
        times += 1
    check()
    return times


def struck(files: List[str], lines_before: int, run: Callable[[], None]) -> bool:
    """Whether `run` has come to that line."""
    lines = 0
    handler = GuardedHandler(raise_limit)

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        if frame.f_code.co_filename not in files:
            return None
        if event == "line" and guard_of(frame) is not None:
            lines += 1
            if lines == lines_before + 1:
                handler(signal.SIGALRM, frame)
        return trace

    usual = sys.gettrace()
    sys.settrace(trace)
    try:
        raised = raised_by(run)
    finally:
        sys.settrace(usual)
    has_come = lines > lines_before
    assert raised is (Limit if has_come else None), raised
    return has_come


if __name__ == "__main__":
    unittest.main()
