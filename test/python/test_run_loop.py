"""The order of calls, how many of them run at the same time, and the messages that are read between two of them."""

from __future__ import annotations

import types
import unittest
from types import SimpleNamespace
from typing import Any, Callable, Coroutine, Dict, Generator, List
from unittest import mock

from banana_worker.protocol.errors import ProtocolError
from banana_worker.protocol.messages import Route
from banana_worker.run import run_loop
from banana_worker.run.arriving_calls import WaitingCall
from banana_worker.run.loaded_app import Description
from calls import call_with


class Run:
    """Calls that take as long as a test wants. Beside others they end when the test lets them."""

    def __init__(self, bench: Bench, calls: List[WaitingCall]) -> None:
        self.bench = bench
        self.calls = calls
        self.raised: Any = None
        self.task: Any = None

    def begin(self) -> Any:
        self.bench.events.append([waiting.call.id for waiting in self.calls])
        self.bench.now += self.bench.run_s
        return None if self.bench.host.concurrency == 1 else self.rest()

    async def rest(self) -> None:
        await suspended()
        self.raised = self.bench.raised

    def cancel(self, call_id: int, reason: str) -> None:
        self.bench.events.append("cancel %d" % call_id)

    def all_left(self) -> bool:
        return False


@types.coroutine
def suspended() -> Generator[None, None, None]:
    yield


class Bench:
    """A loop whose events are noted. Times are in seconds."""

    def __init__(self, *routes: Route, concurrency: int = 1) -> None:
        self.now = 0.0
        # Begun calls, reads of messages between them, cancels, and what was sent, in their order.
        self.events: List[Any] = []
        self.run_s = 0.0
        self.raised: Any = None
        self.tasks: Dict[int, Coroutine[Any, Any, None]] = {}
        self.on_idle: Callable[[], None] = lambda: self.loop.stop("the server is stopping")
        tasks = SimpleNamespace(
            wait_until=lambda *_: self.on_idle(),
            serve=lambda step: step(),
            begin=self.begin,
            wake=lambda: self.loop._begin_all(),
        )
        self.host: Any = SimpleNamespace(
            app=SimpleNamespace(description=Description(list(routes) or [Route("/")], {})),
            channel=SimpleNamespace(send=self.events.append),
            tasks=tasks,
            prints=SimpleNamespace(begin=lambda _: None, enter=lambda _: None, end=lambda: None),
            concurrency=concurrency,
        )
        note = SimpleNamespace(begin=lambda _: None, end=lambda _: None)
        listener = SimpleNamespace(read_if_any=lambda: self.events.append("look"))
        idleness = SimpleNamespace(on_begin=lambda *_: None, on_idle=lambda: None, is_awake=lambda: False)
        parts: Any = (self.host, note, listener, idleness)
        self.loop = run_loop.RunLoop(*parts)

    def begin(self, coroutine: Coroutine[Any, Any, None]) -> None:
        coroutine.send(None)
        self.tasks[self.events[-1][0]] = coroutine

    def accept(self, *ids: int, route: str = "/") -> None:
        self.loop._accept([WaitingCall(call_with(id=id, route=route), b"") for id in ids])

    def run_loop(self) -> None:
        with self.patched():
            self.loop.run()

    def end(self, id: int) -> None:
        """Ends a call that runs beside others."""
        with self.patched(), unittest.TestCase().assertRaises(StopIteration):
            self.tasks.pop(id).send(None)

    def close(self) -> None:
        for coroutine in self.tasks.values():
            coroutine.close()

    def patched(self) -> Any:
        return mock.patch.multiple(
            run_loop,
            CallRun=lambda _, calls: Run(self, calls),
            RunningCall=lambda _, waiting: waiting,
            time=SimpleNamespace(perf_counter=lambda: self.now),
        )


class OnePlace(unittest.TestCase):
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


class SeveralPlaces(unittest.TestCase):
    def bench(self, *ids: int) -> Bench:
        bench = Bench(Route("/", max_batch=4), concurrency=3)
        self.addCleanup(bench.close)
        for id in ids:
            bench.accept(id)
        bench.run_loop()
        return bench

    def test_a_call_that_comes_before_the_last_ending_was_noted_begins_after_it(self) -> None:
        """The second thread may read it while the main thread has just sent the ending that made room for it."""
        bench = self.bench(1, 2, 3, 4)
        self.assertEqual(bench.events, [[1], [2], [3]])
        bench.end(2)
        self.assertEqual(bench.events, [[1], [2], [3], [4]])

    def test_a_call_that_is_cancelled_before_it_began_never_does(self) -> None:
        bench = self.bench(1, 2, 3, 4)
        bench.loop.cancel(4, "the client left")
        bench.end(1)
        self.assertEqual([one[:3] for one in bench.events[3:]], [["error", 4, "SERVE_CANCELLED"]])

    def test_a_cancel_reaches_its_call_alone(self) -> None:
        bench = self.bench(1, 2)
        bench.loop.cancel(2, "the client left")
        self.assertEqual(bench.events, [[1], [2], "cancel 2"])

    def test_a_batch_is_refused(self) -> None:
        bench = self.bench()
        with self.assertRaises(ProtocolError):
            bench.accept(1, 2)

    def test_an_app_in_doubt_begins_no_more_and_says_so_while_others_run(self) -> None:
        """The front takes back what has not begun: it would not know the ids of further endings."""
        bench = self.bench(1)
        bench.raised = MemoryError("no memory")
        for id in (2, 3, 4):
            bench.accept(id)
            bench.run_loop()
            bench.end(id)
        bench.accept(5)
        bench.run_loop()
        bench.loop.cancel(5, "the client left")
        bench.loop.cancel(6, "the client left")
        self.assertEqual([one[0] for one in bench.events], [1, 2, 3, 4, "retiring"])


if __name__ == "__main__":
    unittest.main()
