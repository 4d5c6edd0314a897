"""The order of calls, how many of them run at the same time, and the messages that are read between two of them."""

from __future__ import annotations

import types
import unittest
from types import SimpleNamespace
from typing import Any, Coroutine, Dict, Generator, List
from unittest import mock

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
        self.raised = None
        self.task: Any = None

    def begin(self) -> Any:
        self.bench.events.append([waiting.call.id for waiting in self.calls])
        self.bench.now += self.bench.run_s
        return None if self.bench.host.concurrency == 1 else self.rest()

    async def rest(self) -> None:
        await suspended()

    def all_left(self) -> bool:
        return False


@types.coroutine
def suspended() -> Generator[None, None, None]:
    yield


class Bench:
    """A loop whose events are noted. Times are in seconds."""

    def __init__(self, concurrency: int = 1) -> None:
        self.now = 0.0
        # Begun calls, reads of messages between them, and what was sent, in their order.
        self.events: List[Any] = []
        self.run_s = 0.0
        self.tasks: Dict[int, Coroutine[Any, Any, None]] = {}
        tasks = SimpleNamespace(
            wait_until=lambda *_: self.loop.stop("the server is stopping"),
            serve=lambda step: step(),
            begin=self.begin,
            wake=lambda: self.loop._begin_all(),
        )
        self.host: Any = SimpleNamespace(
            app=SimpleNamespace(description=Description([Route("/")], {})),
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

    def accept(self, id: int) -> None:
        self.loop._accept([WaitingCall(call_with(id=id), b"")])

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


class SeveralPlaces(unittest.TestCase):
    def bench(self, *ids: int) -> Bench:
        bench = Bench(concurrency=3)
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


if __name__ == "__main__":
    unittest.main()
