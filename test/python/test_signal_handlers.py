"""Signal handlers and `__del__` methods that interrupt their own thread while it sends or measures."""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import struct
import sys
import threading
import unittest
from types import FrameType
from typing import Any, Callable, Dict, List, Tuple

from banana_worker.process import outgoing
from banana_worker.process.channel import Channel
from banana_worker.protocol.codec import decode_head
from banana_worker.protocol.tables import MAX_FRAGMENT_BYTES
from banana_worker.report import app_metrics
from banana_worker.report.app_metrics import OwnMetrics

# A thread that waits for itself would never end.
LIMIT_S = 240
LONG = bytes(range(256)) * 4000


class SignalHandlerTest(unittest.TestCase):
    def setUp(self) -> None:
        faulthandler.dump_traceback_later(LIMIT_S, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)
        self.out, self.inlet = os.pipe()
        self.channel = Channel(self.inlet, lambda _fd, _error: self.fail("the front is gone"))

    def all_frames(self) -> List[Tuple[List[Any], bytes]]:
        """Waits for the end of the pipe."""
        frames = []
        with os.fdopen(self.out, "rb") as file:
            for prefix in iter(lambda: file.read(8), b""):
                head, body = struct.unpack("<II", prefix)
                frames.append((decode_head(file.read(head)), file.read(body)))
        return frames

    def on_signal(self, act: Callable[[], None]) -> None:
        """`act` runs in the handler when `front_reads_late` interrupts this thread."""

        def handle(*_: Any) -> None:
            try:
                act()
            finally:
                self.has_come.set()

        usual = signal.signal(signal.SIGUSR1, handle)
        self.addCleanup(signal.signal, signal.SIGUSR1, usual)
        self.has_come = threading.Event()

    def front_reads_late(self, when: Callable[[], bool]) -> Callable[[], List[Tuple[List[Any], bytes]]]:
        """Sends the signal once the pipe is full and `when` is true, and reads once the handler has run. Returns a
        function that closes the pipe and returns all frames."""
        frames: List[Tuple[List[Any], bytes]] = []

        def read() -> None:
            while select.select([], [self.inlet], [], 0)[1] or not when():
                pass
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
            self.has_come.wait(LIMIT_S / 8)
            frames.extend(self.all_frames())

        def ended() -> List[Tuple[List[Any], bytes]]:
            os.close(self.inlet)
            front.join()
            return frames

        front = threading.Thread(target=read, daemon=True)
        front.start()
        return ended

    def test_a_handler_sends_while_its_thread_waits_for_the_front(self) -> None:
        self.on_signal(self.send_between)
        ended = self.front_reads_late(lambda: True)
        self.channel.send_body(b"\x91\xa1a", 1, LONG)
        sent = bodies_of(ended(), ("a", 1, "b", 2, "log"))
        self.assertEqual(sent["a"] + sent[1], LONG)
        self.assertEqual(sent["b"] + sent[2], LONG)
        self.assertEqual(sent["log"], b"between")

    def test_a_handler_sends_while_another_thread_sends_a_long_body(self) -> None:
        """The other thread waits for a frame of this one, which the handler has interrupted."""
        self.on_signal(self.send_between)
        other = threading.Thread(target=lambda: self.channel.send_body(b"\x91\xa1c", 3, LONG), daemon=True)
        ended = self.front_reads_late(lambda: is_taken(self.channel._long_bodies._lock))
        half = LONG[: MAX_FRAGMENT_BYTES // 2]
        threading.Timer(0.01, other.start).start()
        self.channel.send_body(b"\x91\xa1a", 1, half)
        other.join()
        sent = bodies_of(ended(), ("a", "b", 2, "c", 3, "log"))
        self.assertEqual(sent["a"], half)
        self.assertEqual(sent["b"] + sent[2], LONG)
        self.assertEqual(sent["c"] + sent[3], LONG)

    def test_an_exception_of_a_handler_tears_no_frame(self) -> None:
        for error in (TimeoutError("too slow"), OSError("of the app's own"), SystemExit(1)):
            for size in (MAX_FRAGMENT_BYTES, len(LONG)):
                with self.subTest(error=error, size=size):
                    self.setUp()
                    self.on_signal(lambda: raise_(error))
                    ended = self.front_reads_late(lambda: True)
                    with self.assertRaises(type(error)):
                        self.channel.send_body(b"\x91\xa1a", 1, LONG[:size])
                    self.channel.send(["log"], b"afterwards")
                    sent = bodies_of(ended(), ("a", 1, "log"))
                    self.assertEqual(sent["a"] + sent[1], LONG[:size])
                    self.assertEqual(sent["log"], b"afterwards")

    def test_ctrl_c_tears_no_frame_either(self) -> None:
        """Python's own handler raises without a frame of its own."""
        usual = signal.signal(signal.SIGUSR1, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGUSR1, usual)
        self.has_come = threading.Event()
        self.has_come.set()  # Python's own handler cannot set it
        ended = self.front_reads_late(lambda: True)
        with self.assertRaises(KeyboardInterrupt):
            self.channel.send_body(b"\x91\xa1a", 1, LONG)
        sent = bodies_of(ended(), ("a", 1))
        self.assertEqual(sent["a"] + sent[1], LONG)

    def send_between(self) -> None:
        self.channel.send(["log"], b"between")
        self.channel.send_body(b"\x91\xa1b", 2, LONG)

    def test_a_handler_that_raises_at_any_line_tears_and_loses_no_frame(self) -> None:
        for module in (outgoing,):
            with self.subTest(module.__name__):
                self.setUp()
                self.sent = 0
                times = at_each_line(module, lambda: raise_(Interrupted()), self.send_or_be_interrupted)
                os.close(self.inlet)
                numbers = [head[1] for head, _ in self.all_frames()]
                self.assertGreater(times, 6)
                # The first sends were interrupted before they had begun.
                self.assertEqual(numbers, list(range(numbers[0], times + 1)))
                self.assertLess(numbers[0], 6)

    def test_a_failed_write_raises_and_blocks_nothing(self) -> None:
        with self.assertRaises((BufferError, ValueError, TypeError)):
            self.channel.write(outgoing.Outgoing([memoryview(LONG)[::2]]))
        self.channel.send(["a"])
        os.close(self.inlet)
        self.assertEqual(self.all_frames(), [(["a"], b"")])

    def test_a_send_without_stack_space_raises_and_blocks_nothing(self) -> None:
        self.send_from_every_depth()
        self.channel.send(["last"])
        os.close(self.inlet)
        heads = [head for head, _ in self.all_frames()]
        self.assertGreater(len(heads), 100)
        self.assertEqual(heads, (len(heads) - 1) * [["a"]] + [["last"]])

    def send_from_every_depth(self) -> None:
        """Sends with less and less stack, each call from one level deeper; the last have too little."""
        try:
            self.send_from_every_depth()
        except RecursionError:
            pass
        try:
            self.channel.send(["a"])
        except RecursionError:
            pass

    def send_or_be_interrupted(self) -> None:
        number, self.sent = self.sent, self.sent + 1
        try:
            self.channel.send(["a", number])
        except Interrupted:
            pass

    def test_a_del_method_between_any_two_lines_tears_and_loses_no_frame(self) -> None:
        times = at_each_line(outgoing, lambda: self.channel.send(["b"]), lambda: self.channel.send(["a"]))
        os.close(self.inlet)
        heads = [head for head, _ in self.all_frames()]
        self.assertGreater(times, 8)
        self.assertEqual(sorted(heads), (times + 1) * [["a"]] + times * [["b"]])

    def test_a_handler_between_any_two_lines_loses_no_measurement(self) -> None:
        metrics = OwnMetrics(self.channel, lambda: None)

        def measure() -> None:
            metrics.counter("n")

        def measure_and_tell() -> None:
            metrics.counter("n")
            metrics.send()

        times = at_each_line(app_metrics, measure, measure_and_tell)
        metrics.send()
        os.close(self.inlet)
        values = [metric[2] for head, _ in self.all_frames() for metric in head[1]]
        self.assertGreater(times, 8)
        self.assertEqual(sum(values), 2 * times + 1)


class Interrupted(Exception):
    """Raised by a signal handler."""


def raise_(error: BaseException) -> None:
    raise error


def bodies_of(frames: List[Tuple[List[Any], bytes]], ids: Tuple[Any, ...]) -> Dict[Any, bytes]:
    """The bodies by their ids, joined from first frames and `body` frames."""
    return {id: b"".join(body for head, body in frames if head[-1] == id) for id in ids}


def is_taken(lock: Any) -> bool:
    if not lock.acquire(False):
        return True
    lock.release()
    return False


def at_each_line(module: Any, between: Callable[[], None], run: Callable[[], None]) -> int:
    """Runs `run` again and again, with a call of `between` before the first line of the module that it runs, then
    before the second, and so on, until there is no such line. Returns the number of calls."""
    times = 0
    while run_with(module, between, times, run):
        times += 1
    return times


def run_with(module: Any, between: Callable[[], None], lines_before: int, run: Callable[[], None]) -> bool:
    """Whether `run` has come to that line."""
    lines = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        if frame.f_code.co_filename != module.__file__:
            return None
        if event == "line":
            lines += 1
            if lines == lines_before + 1:
                between()
        return trace

    usual = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(usual)
    return lines > lines_before


if __name__ == "__main__":
    unittest.main()
