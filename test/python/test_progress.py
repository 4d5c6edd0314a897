"""Reports of a job's progress: few of them, the newest, the last one too, and none behind the ending of the call."""

from __future__ import annotations

import threading
import unittest
from types import SimpleNamespace
from typing import Any, Callable, List, Tuple
from unittest import mock

from banana_worker.report import progress
from banana_worker.report.progress import Progress, report_of
from banana_worker.run.call_context import CallContext, InitContext, WorkerInfo
from calls import call_with


class _Channel:
    def __init__(self) -> None:
        self.sent: List[Any] = []

    def send_on_turn(self, messages: Callable[[], List[List[Any]]]) -> None:
        for fields in messages():
            self.sent.append(fields[2:])


class ProgressTest(unittest.TestCase):
    def setUp(self) -> None:
        """Time passes only where a test lets it."""
        self.channel = _Channel()
        self.now = 0.0
        self.timers: List[Tuple[float, Callable[[], None]]] = []
        for name, stand_in in (
            ("time", SimpleNamespace(monotonic=lambda: self.now)),
            ("threading", SimpleNamespace(Lock=threading.Lock, Timer=self.timer)),
        ):
            patch = mock.patch.object(progress, name, stand_in)
            patch.start()
            self.addCleanup(patch.stop)

    def timer(self, wait_s: float, act: Callable[[], None]) -> Any:
        self.timers.append((wait_s, act))
        return mock.Mock()

    def pass_time(self) -> None:
        """Until the only timer, which acts in a thread of its own."""
        [(wait_s, act)] = self.timers
        self.now += wait_s
        thread = threading.Thread(target=act)
        thread.start()
        thread.join()

    def context(self, **fields: Any) -> CallContext:
        nothing: Any = mock.Mock()
        channel: Any = self.channel
        shared = InitContext(WorkerInfo(0, None, 1), nothing, nothing)
        return CallContext(call_with(**fields), b"", shared, channel)

    def test_the_first_report_leaves_at_once_and_the_newest_of_the_next_ones_a_little_later(self) -> None:
        ctx = self.context(job_id="j", job_attempt=2)
        self.assertEqual(ctx.job, ("j", 2))
        for fraction in (0.1, 0.2, 0.3):
            ctx.progress(fraction, "at %s" % fraction)
        self.assertEqual(self.channel.sent, [[0.1, "at 0.1"]])
        self.pass_time()
        self.assertEqual((self.now, self.channel.sent[1:]), (0.25, [[0.3, "at 0.3"]]))

    def test_the_last_report_is_sent_before_the_ending_and_nothing_behind_it(self) -> None:
        ctx = self.context(job_id="j", job_attempt=1)
        for fraction in (0.1, 0.2, 0.3):
            ctx.progress(fraction)
        ctx.end()
        self.assertEqual(self.channel.sent, [[0.1, ""], [0.3, ""]])
        ctx.progress(0.5)
        ctx.end()
        channel: Any = self.channel
        late = Progress(channel, 1)
        late.end()
        late.report((0.1, ""))
        late._send()
        self.assertEqual(len(self.channel.sent), 2)

    def test_a_call_whose_client_waits_is_no_job(self) -> None:
        ctx = self.context()
        ctx.progress(0.5)
        self.assertEqual((ctx.job, self.channel.sent), (None, []))

    def test_a_report_has_a_fraction_and_a_text(self) -> None:
        self.assertEqual(report_of(1, "x" * 300), (1.0, "x" * 200))
        for wrong in (-0.1, 1.1, float("nan")):
            self.assertRaises(ValueError, report_of, wrong, "")
        for fraction, text in (("half", ""), (True, ""), (0.5, 5)):
            self.assertRaises(TypeError, report_of, fraction, text)


if __name__ == "__main__":
    unittest.main()
