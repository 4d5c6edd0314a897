"""The parts of a call: its context, its credit, the entries of its batch, its metrics and webhooks."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
import unittest
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, Callable, Iterator, List
from unittest import mock

from banana_worker.formats import Inputs
from banana_worker.process import descriptors
from banana_worker.process.channel import Channel
from banana_worker.process.listener import Listener
from banana_worker.process.waits import Credit, Waits
from banana_worker.protocol.errors import ServeError
from banana_worker.protocol.messages import Metric
from banana_worker.report import app_metrics
from banana_worker.report.app_log import AppLog
from banana_worker.report.app_metrics import OwnMetrics, send_metrics
from banana_worker.run import call_context
from banana_worker.run import webhook_handover
from banana_worker.run.batch_entries import entries_of, halves_of, only_entry
from banana_worker.run.call_context import CallContext, InitContext, WorkerInfo
from banana_worker.run.inputs_of_call import parts_of
from banana_worker.run.webhook_handover import check_webhook
from calls import call_with
from potassium import send_webhook


class InputsOfCall(unittest.TestCase):
    def test_answers_stand_at_the_places_of_their_inputs(self) -> None:
        answers: List[Any] = []
        whole: Any = SimpleNamespace(accepted=lambda output: output, answer=answers.append, call=None, ctx=None)
        parts = parts_of(whole, Inputs("instances", ["a", "b", "c"], 3))
        for at in (2, 0, 1):
            self.assertIsNone(parts[at].answer(parts[at].input))
        self.assertEqual([answer.body.value for answer in answers], [["a", "b", "c"]])


class Sent:
    """Stands in for a channel."""

    def __init__(self) -> None:
        self.messages: List[Any] = []

    def send(self, fields: List[Any], body: bytes = b"") -> None:
        self.messages.append(fields)

    def send_on_turn(self, messages: Callable[[], List[List[Any]]]) -> None:
        self.messages += messages()


def context(**fields: Any) -> CallContext:
    nothing: Any = None
    return CallContext(call_with(**fields), b"body", InitContext(WorkerInfo(0, None, 1), nothing, nothing))


class Contexts(unittest.TestCase):
    def test_headers_are_a_mapping_in_lower_case(self) -> None:
        ctx = context(headers="Host\nlocalhost\nX-A\n1\nx-a\n2")
        self.assertEqual(ctx.headers, {"host": "localhost", "x-a": "1, 2"})
        self.assertEqual(context().headers, {})

    def test_the_context_and_log_lines_carry_only_a_valid_trace_context(self) -> None:
        valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        for sent, carried in (
            (valid, valid),
            ("01" + valid[2:] + "-more", "01" + valid[2:] + "-more"),
            ("", ""),
            ("anything", ""),
            (valid + "-more", ""),
            (valid + "\r", ""),
            ("ff" + valid[2:], ""),
            (valid.replace("4bf92f3577b34da6a3ce929d0e0e4736", "0" * 32), ""),
            (valid.replace("00f067aa0ba902b7", "0" * 16), ""),
        ):
            log = mock.Mock()
            shared = InitContext(WorkerInfo(0, None, 1), log, mock.Mock())
            ctx = CallContext(call_with(headers="traceparent\n" + sent), b"", shared)
            self.assertEqual(ctx.traceparent, carried or None, sent)
            _ = ctx.log
            self.assertEqual(log.of_call.call_args[0][1], carried, sent)
        self.assertIsNone(context().traceparent)

    def test_a_cancel_wakes_waiting_threads_and_the_first_reason_stays(self) -> None:
        ctx = context()
        self.assertFalse(ctx.cancelled)
        self.assertFalse(ctx.wait_cancelled(0))
        waited: List[bool] = []
        thread = threading.Thread(target=lambda: waited.append(ctx.wait_cancelled()))
        thread.start()
        ctx.cancel("the client left")
        ctx.cancel("the server is stopping")
        thread.join()
        self.assertEqual((waited, ctx.cancelled, ctx.cancel_reason), ([True], True, "the client left"))
        self.assertTrue(ctx.wait_cancelled())

    def test_a_cancel_wakes_threads_that_began_to_wait_at_the_same_time(self) -> None:
        ctx = context()
        made: List[threading.Event] = []
        second = threading.Event()

        def make() -> threading.Event:
            made.append(threading.Event())
            if len(made) == 1:
                second.wait(0.2)  # gives the other thread time to make a second event
            else:
                second.set()
            return made[-1]

        with mock.patch.object(call_context, "threading", SimpleNamespace(Event=make)):
            threads = [threading.Thread(target=ctx.wait_cancelled, daemon=True) for _ in range(2)]
            for thread in threads:
                thread.start()
            while not made:
                time.sleep(0.001)
            second.wait(0.2)
            ctx.cancel("the client left")
            for thread in threads:
                thread.join(60)
        self.assertEqual((len(made), [thread.is_alive() for thread in threads]), (1, [False, False]))

    def test_a_deadline_is_in_seconds(self) -> None:
        self.assertEqual(context(deadline_ms=1_500).deadline, 1.5)
        self.assertIsNone(context().deadline)

    def test_a_body_may_be_freed(self) -> None:
        ctx = context()
        self.assertEqual(ctx.body, b"body")
        ctx.forget_body()
        self.assertEqual(ctx.body, b"")


class Credits(unittest.TestCase):
    def test_sending_goes_on_while_credit_is_above_zero(self) -> None:
        credit = Credit(10)
        self.assertTrue(credit.may_go_on())
        credit.spend(25)
        self.assertFalse(credit.may_go_on())
        credit.grant(15)
        self.assertFalse(credit.may_go_on())
        credit.grant(1)
        self.assertTrue(credit.may_go_on())

    def test_a_sender_does_not_wait_for_credit_after_its_client_has_left(self) -> None:
        credit = Credit(0)
        credit.cancel()
        self.assertTrue(credit.may_go_on())


class Array:
    """Like an array or a tensor: with a length and an order, but not a list."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, at: int) -> Any:
        return self.values[at]


class NotInOrder:
    """Like a frame of pandas, whose items are its columns."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, at: int) -> Any:
        raise KeyError(at)


class Entries(unittest.TestCase):
    def test_lists_tuples_and_arrays_have_entries(self) -> None:
        for returned in ([1, 2], (1, 2), Array(1, 2)):
            self.assertEqual(entries_of(returned, 2), [1, 2])

    def test_a_wrong_number_of_entries_is_an_error_with_both_numbers(self) -> None:
        for returned, said in (
            ([1], "1 entry for 2 calls"),
            ("ab", "a str for"),
            (b"ab", "returned bytes for"),
            (5, "an int for"),
            (None, "None for"),
            ({}, "a dict for"),
            (Array(1, 2, 3), "3 entries for 2 calls"),
            (NotInOrder(), "a NotInOrder for"),
        ):
            with self.subTest(returned):
                with self.assertRaisesRegex(ServeError, said) as raised:
                    entries_of(returned, 2)
                self.assertEqual(raised.exception.code, "SERVE_OUTPUT_INVALID")

    def test_an_array_of_another_length_is_not_read(self) -> None:
        class Unread(Array):
            def __getitem__(self, at: int) -> Any:
                raise AssertionError("read")

        with self.assertRaisesRegex(ServeError, "3 entries for 2 calls"):
            entries_of(Unread(1, 2, 3), 2)

    def test_a_batch_of_one_has_one_entry(self) -> None:
        self.assertEqual(only_entry(["a"]), "a")
        with self.assertRaisesRegex(ServeError, "2 entries for 1 call"):
            only_entry([1, 2])

    def test_halves_are_as_equal_as_possible(self) -> None:
        self.assertEqual(halves_of([1, 2, 3]), ([1, 2], [3]))


class Logs(unittest.TestCase):
    def fields_of(self, fields: Any) -> Any:
        sent = Sent()
        channel: Any = sent
        AppLog(channel, "r-1").info("said", fields)
        return json.loads(sent.messages[0][3])

    def test_fields_are_written_as_an_answer_would_be(self) -> None:
        fields = {"loss": float("nan"), "left": Decimal("0.5"), "at": {1: "a"}}
        self.assertEqual(self.fields_of(fields), {"loss": None, "left": 0.5, "at": {"1": "a"}})

    def test_fields_that_cannot_be_encoded_are_named_and_fail_no_call(self) -> None:
        said = self.fields_of({"model": [Credit(1)]})["unloggable"]
        self.assertIn('output["model"][0] is a Credit', said)
        self.assertEqual(self.fields_of(5), {"unloggable": "fields are not a mapping"})
        long = self.fields_of({"text": "x" * 2_000_000})["unloggable"]
        self.assertEqual(long, "fields of 2000011 characters")


class Scalar:
    """Like a number of numpy."""

    def __float__(self) -> float:
        return 0.25


class Metrics(unittest.TestCase):
    def setUp(self) -> None:
        self.sent = Sent()
        self.woken: List[None] = []
        channel: Any = self.sent
        self.metrics = OwnMetrics(channel, lambda: self.woken.append(None))

    def told(self) -> List[Any]:
        self.metrics.send()
        return [tuple(metric) for message in self.sent.messages for metric in message[1]]

    def test_measurements_of_one_moment_leave_in_one_message(self) -> None:
        self.metrics.counter("calls")
        self.metrics.counter("calls", 2)
        self.metrics.counter("calls", 1, {"language": "en", "a": True})
        self.metrics.gauge("free", 5)
        self.metrics.gauge("free", 4)
        self.metrics.histogram("took", 0.5)
        self.metrics.histogram("took", 0.25)
        self.assertTrue(self.woken)
        self.assertEqual(
            self.told(),
            [
                ("counter", "calls", 3, "", "", []),
                ("counter", "calls", 1, "", "a\ntrue\nlanguage\nen", []),
                ("gauge", "free", 4, "", "", []),
                ("histogram", "took", 0.5, "", "", []),
                ("histogram", "took", 0.25, "", "", []),
            ],
        )
        self.assertEqual(len(self.sent.messages), 1)

    def test_a_number_of_another_type_is_accepted(self) -> None:
        scalar: Any = Scalar()
        self.metrics.gauge("free", scalar)
        self.assertEqual(self.told()[0][2], 0.25)

    def test_a_thousand_measurements_leave_at_once(self) -> None:
        for _ in range(1_000):
            self.metrics.histogram("took", 1)
        self.assertEqual(len(self.sent.messages), 1)

    def test_metrics_that_prometheus_does_not_allow_raise(self) -> None:
        self.metrics.gauge("free", 1)
        bad: List[Any] = [
            ("counter", "1st", 1, None),
            ("counter", "calls", 10**400, None),
            ("counter", "banana_calls", 1, None),
            ("counter", "took_sum", 1, None),
            ("counter", "free", 1, None),
            ("counter", "calls", -1, None),
            ("gauge", "free", float("nan"), None),
            ("gauge", "free", "1", None),
            ("gauge", "free", 1, {"model": "a"}),
            ("gauge", "free", 1, {"le": "1"}),
            ("gauge", "free", 1, {"a-b": "1"}),
            ("gauge", "free", 1, {"a": "x\ny"}),
            ("gauge", "free", 1, {"a": None}),
            ("gauge", "free", 1, ["a"]),
        ]
        for kind, name, value, labels in bad:
            with self.subTest((name, value, labels)):
                with self.assertRaises((TypeError, ValueError)):
                    getattr(self.metrics, kind)(name, value, labels)
        self.assertEqual([metric[1] for metric in self.told()], ["free"])

    def test_measurements_that_another_thread_is_sending_leave_before_the_next_message(self) -> None:
        out, inlet = os.pipe()
        channel = Channel(inlet, lambda _fd, _error: self.fail("the front is gone"))
        metrics = OwnMetrics(channel, lambda: None)
        has_taken, may_go_on = threading.Event(), threading.Event()

        def together(taken: Iterator[Metric]) -> List[Metric]:
            given = list(taken)
            has_taken.set()
            may_go_on.wait()
            return given

        def end_the_call() -> None:
            metrics.send()
            channel.send(["result"])

        metrics.counter("calls")
        with mock.patch.object(app_metrics, "_together", together):
            threads = [threading.Thread(target=metrics.send), threading.Thread(target=end_the_call)]
            threads[0].start()
            has_taken.wait()
            threads[1].start()
            threads[1].join(0.2)  # without the lock, it would have ended by then
            may_go_on.set()
            for thread in threads:
                thread.join()
        os.close(inlet)
        with os.fdopen(out, "rb") as file:
            sent = file.read()
        self.assertLess(sent.index(b"metrics"), sent.index(b"result"))

    def test_messages_are_bounded(self) -> None:
        channel: Any = self.sent
        send_metrics(channel, [Metric("time", "n" * 1_000, 1.0) for _ in range(1_000)])
        self.assertGreater(len(self.sent.messages), 10)
        self.assertEqual(sum(len(message[1]) for message in self.sent.messages), 1_000)

    def test_a_number_that_the_front_cannot_read_is_sent_as_a_float_or_text(self) -> None:
        channel: Any = self.sent
        values: List[Any] = [2**53 - 1, 2**70, -(2**70), 10**5000, float("inf"), float("nan"), "text"]
        send_metrics(channel, [Metric("gauge", "g", value) for value in values])
        told = [metric.value for metric in self.sent.messages[0][1]]
        self.assertEqual(told, [2**53 - 1, 2.0**70, -(2.0**70), "inf", "inf", "nan", "text"])
        self.assertEqual([type(value) for value in told[:3]], [int, float, float])


class Webhooks(unittest.TestCase):
    def test_an_invalid_webhook_is_refused_without_repeating_the_url(self) -> None:
        bad: List[Any] = [
            ("https://secret@a/" + "x" * 20_000, b"", 1, 0),
            ("https://a/", b"x" * (16 * 1024 * 1024 + 1), 1, 0),
            ("https://a/", b"", 0, 0),
            ("https://a/", b"", 60_001, 0),
            ("https://a/", b"", 1, 11),
            ("https://a/", b"", 1, True),
        ]
        for url, body, timeout_ms, retries in bad:
            with self.assertRaises(ValueError) as raised:
                check_webhook(url, body, timeout_ms, retries)
            self.assertNotIn("secret", str(raised.exception))
        check_webhook("https://user:pass@example.com:8443/hook?x=1", b"{}", 1_500, 3)

    def test_a_process_that_is_not_a_worker_offers_no_webhooks(self) -> None:
        self.assertIsNone(webhook_handover.offered_webhooks())
        with mock.patch.object(webhook_handover, "_offered", mock.Mock()) as offered:
            self.assertIs(webhook_handover.offered_webhooks(), offered)
            with mock.patch.object(descriptors, "_is_fork", True):
                self.assertIsNone(webhook_handover.offered_webhooks())

    def test_json_that_cannot_be_encoded_is_an_error_of_the_caller_not_of_the_answer(self) -> None:
        with self.assertRaises(TypeError) as raised:
            send_webhook("http://127.0.0.1:9/", {"rows": [object()]})
        said = 'send_webhook: the value is not JSON: output["rows"][0] is an object'
        self.assertIn(said, str(raised.exception))


class ForkTest(unittest.TestCase):
    def test_a_forked_child_does_not_wait_for_messages_that_cannot_reach_it(self) -> None:
        out, inlet = os.pipe()
        self.addCleanup(os.close, out)
        self.addCleanup(os.close, inlet)
        waits = Waits(Listener(out, lambda: self.fail("it reads"), lambda: None))
        with mock.patch.object(descriptors, "_is_fork", True):
            waits.wait(lambda: True)
            with self.assertRaisesRegex(RuntimeError, "cannot wait"):
                waits.wait(lambda: False)
            with self.assertRaisesRegex(RuntimeError, "cannot wait"):
                asyncio.run(waits.wait_async(lambda: False))


if __name__ == "__main__":
    unittest.main()
