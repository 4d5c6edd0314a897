"""Reports of a job's progress: few of them, the newest, the last one too, and none behind the ending of the call."""

from __future__ import annotations

import threading
import unittest
from typing import Any, Callable, List
from unittest import mock

from banana_worker.report.progress import Progress, report_of
from banana_worker.run.call_context import CallContext, InitContext, WorkerInfo
from calls import call_with


class _Channel:
    def __init__(self) -> None:
        self.sent: List[Any] = []
        self.has_sent = threading.Semaphore(0)

    def send_on_turn(self, messages: Callable[[], List[List[Any]]]) -> None:
        for fields in messages():
            self.sent.append(fields[2:])
            self.has_sent.release()


class ProgressTest(unittest.TestCase):
    def setUp(self) -> None:
        self.channel = _Channel()

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
        self.channel.has_sent.acquire()
        self.assertTrue(self.channel.has_sent.acquire(timeout=30))
        self.assertEqual(self.channel.sent[1:], [[0.3, "at 0.3"]])

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
