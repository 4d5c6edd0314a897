"""The order of calls, and the messages that are read between two of them."""

from __future__ import annotations

import unittest
from types import SimpleNamespace
from typing import Any, Callable, List
from unittest import mock

from banana_worker.protocol.errors import ProtocolError
from banana_worker.protocol.messages import Route
from banana_worker.run import run_loop
from banana_worker.run.arriving_calls import WaitingCall
from banana_worker.run.loaded_app import Description
from calls import call_with


class Bench:
    """A loop whose calls take as long as a test wants, and end themselves. Times are in seconds."""

    def __init__(self, *routes: Route) -> None:
        self.now = 0.0
        # Begun calls, and reads of messages between them, in their order.
        self.events: List[Any] = []
        self.run_s = 0.0
        self.on_idle: Callable[[], None] = lambda: self.loop.stop("the server is stopping")
        runner = SimpleNamespace(take=self.take, run=self.run, abort=lambda _: None, cancel=lambda *_: None)
        app = SimpleNamespace(description=Description(list(routes) or [Route("/")], {}))
        channel = SimpleNamespace(send=self.events.append)
        tasks = SimpleNamespace(wait_until=lambda *_: self.on_idle())
        idleness = SimpleNamespace(on_begin=lambda *_: None, on_idle=lambda: None, is_awake=lambda: False)
        listener = SimpleNamespace(read_if_any=lambda: self.events.append("look"))
        options: Any = SimpleNamespace(app=app, host=SimpleNamespace(channel=channel), tasks=tasks)
        parts: Any = (options, listener, idleness)
        with mock.patch.multiple(run_loop, CallRunner=lambda _: runner, BatchRunner=lambda _: runner):
            self.loop = run_loop.RunLoop(*parts)

    def take(self, batch: List[WaitingCall]) -> None:
        self.events.append([waiting.call.id for waiting in batch])

    def run(self) -> None:
        self.now += self.run_s

    def accept(self, *ids: int, route: str = "/") -> None:
        self.loop.accept([WaitingCall(call_with(id=id, route=route), b"") for id in ids])

    def run_loop(self) -> None:
        with mock.patch.object(run_loop.time, "perf_counter", lambda: self.now):
            self.loop.run()


class Runs(unittest.TestCase):
    def test_cancels_are_read_after_a_long_call_before_the_next_begins(self) -> None:
        """The second thread needs some milliseconds before it reads in the place of the main thread."""
        for run_s, events in ((0.0001, [[1], [2]]), (0.002, [[1], "look", [2], "look"])):
            with self.subTest(run_s):
                bench = Bench()
                bench.run_s = run_s
                bench.accept(1)
                bench.accept(2)
                bench.run_loop()
                self.assertEqual(bench.events, events)

    def test_no_call_begins_after_a_stop(self) -> None:
        bench = Bench()
        bench.accept(1)
        bench.loop.stop("the server is stopping")
        bench.accept(2)
        bench.run_loop()
        self.assertEqual(bench.events, [])

    def test_a_call_that_is_cancelled_while_it_waits_ends_without_a_begin_and_its_batch_goes_on(self) -> None:
        bench = Bench(Route("/", max_batch=4))
        bench.accept(1, 2, 3)
        bench.accept(4)
        for id in (2, 4):
            bench.loop.cancel(id, "the client left")
        bench.run_loop()
        ends = [event[:3] for event in bench.events[:2]]
        self.assertEqual(ends, [["error", 2, "SERVE_CANCELLED"], ["error", 4, "SERVE_CANCELLED"]])
        self.assertEqual(bench.events[2:], [[1, 3]])

    def test_a_batch_that_its_route_does_not_take_is_refused(self) -> None:
        bench = Bench(Route("/", max_batch=2), Route("/one"))
        bench.accept(1, 2)
        for ids, route in (((1, 2, 3), "/"), ((1, 2), "/one"), ((1, 2), "/nowhere")):
            with self.subTest((ids, route)), self.assertRaises(ProtocolError) as raised:
                bench.accept(*ids, route=route)
            self.assertIn("a batch of %d calls; the route %s takes" % (len(ids), route), raised.exception.detail)


if __name__ == "__main__":
    unittest.main()
