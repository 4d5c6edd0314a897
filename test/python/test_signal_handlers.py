"""What code that comes in between may do while its own thread sends or measures: signal handlers, `__del__`."""

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
from typing import Any, Callable, List, Tuple

from banana_worker import app_metrics, in_turn
from banana_worker.app_metrics import OwnMetrics
from banana_worker.channel import Channel
from banana_worker.codec import decode_head

# A thread that waits for itself would never end.
LIMIT_S = 60
LONG = bytes(range(256)) * 4000


class SignalHandlerTest(unittest.TestCase):
    def setUp(self) -> None:
        faulthandler.dump_traceback_later(LIMIT_S, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)
        self.out, self.inlet = os.pipe()
        self.channel = Channel(self.inlet, lambda: self.fail("the front is gone"))

    def all_frames(self) -> List[Tuple[List[Any], bytes]]:
        """Waits for the end of what is sent."""
        frames = []
        with os.fdopen(self.out, "rb") as file:
            for prefix in iter(lambda: file.read(8), b""):
                head, body = struct.unpack("<II", prefix)
                frames.append((decode_head(file.read(head)), file.read(body)))
        return frames

    def test_a_handler_sends_while_its_thread_waits_for_the_front(self) -> None:
        usual = signal.signal(signal.SIGUSR1, lambda *_: self.send_between())
        self.addCleanup(signal.signal, signal.SIGUSR1, usual)
        self.has_come = threading.Event()
        frames: List[Tuple[List[Any], bytes]] = []
        front = threading.Thread(target=lambda: frames.extend(self.read_late()), daemon=True)
        front.start()
        self.channel.send_body(b"\x91\xa1a", 1, LONG)
        os.close(self.inlet)
        front.join()
        sent = {id: b"".join(body for head, body in frames if head[-1] == id) for id in ("a", 1, "b", 2, "log")}
        self.assertEqual(sent["a"] + sent[1], LONG)
        self.assertEqual(sent["b"] + sent[2], LONG)
        self.assertEqual(sent["log"], b"between")

    def read_late(self) -> List[Tuple[List[Any], bytes]]:
        while select.select([], [self.inlet], [], 0)[1]:
            pass  # until the pipe is full
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        self.has_come.wait(LIMIT_S / 4)
        return self.all_frames()

    def send_between(self) -> None:
        self.channel.send(["log"], b"between")
        self.channel.send_body(b"\x91\xa1b", 2, LONG)
        self.has_come.set()

    def test_wherever_it_comes_in_frames_stay_whole_and_none_is_lost(self) -> None:
        times = at_each_line(in_turn, lambda: self.channel.send(["b"]), lambda: self.channel.send(["a"]))
        os.close(self.inlet)
        heads = [head for head, _ in self.all_frames()]
        self.assertGreater(times, 8)
        self.assertEqual(sorted(heads), (times + 1) * [["a"]] + times * [["b"]])

    def test_wherever_it_comes_in_nothing_measured_is_lost(self) -> None:
        metrics = OwnMetrics(self.channel, lambda: None)

        def measure() -> None:
            metrics.counter("n")

        def measure_and_tell() -> None:
            metrics.counter("n")
            metrics.tell()

        times = at_each_line(app_metrics, measure, measure_and_tell)
        metrics.tell()
        os.close(self.inlet)
        values = [metric[2] for head, _ in self.all_frames() for metric in head[1]]
        self.assertGreater(times, 8)
        self.assertEqual(sum(values), 2 * times + 1)


def at_each_line(module: Any, between: Callable[[], None], run: Callable[[], None]) -> int:
    """Runs `run` with a call of `between` before the first line of the module that it comes to, then with one before its
    second line, and so on, and once with none. Returns how often `between` was called."""
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
