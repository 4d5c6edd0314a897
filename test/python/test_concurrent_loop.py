"""The order of calls that run at the same time, and how many of them do."""

from __future__ import annotations

import unittest
from types import SimpleNamespace
from typing import Any, Coroutine, Dict, List
from unittest import mock

from banana_worker.protocol.errors import ProtocolError
from banana_worker.run import concurrent_loop
from banana_worker.run.arriving_calls import WaitingCall
from calls import call_with


class Loop(concurrent_loop.ConcurrentLoop):
    """Its calls end when the test lets them."""

    async def _answer(self, running: Any) -> Any:
        return running.raised


class Bench:
    def __init__(self, concurrency: int) -> None:
        self.began: List[int] = []
        self.sent: List[List[Any]] = []
        self.running: Dict[int, Any] = {}
        self.coroutines: Dict[int, Coroutine[Any, Any, None]] = {}
        self.cancelled: List[Any] = []
        note = SimpleNamespace(begin=self.began.append, end=lambda _: None)
        tasks = SimpleNamespace(
            serve=lambda step: step(),
            begin=self.begin,
            cancel_task=self.cancelled.append,
            wake=lambda: self.loop._step(),
        )
        host = SimpleNamespace(channel=SimpleNamespace(send=self.sent.append))
        prints = SimpleNamespace(enter=lambda _: None)
        options: Any = SimpleNamespace(host=host, tasks=tasks, prints=prints)
        self.loop = Loop(options, note, concurrency)  # type: ignore[arg-type]

    def begin(self, coroutine: Coroutine[Any, Any, None]) -> int:
        id = self.began[-1]
        self.coroutines[id] = coroutine
        return id

    def running_call(self, _host: Any, waiting: WaitingCall) -> Any:
        call = SimpleNamespace(call=waiting.call, cancelled=False, raised=None, cancel=lambda _: None)
        self.running[waiting.call.id] = call
        return call

    def accept(self, *ids: int) -> None:
        for id in ids:
            self.loop.accept([WaitingCall(call_with(id=id), b"")])
        with mock.patch.object(concurrent_loop, "RunningCall", self.running_call):
            self.loop.run()

    def end(self, id: int) -> None:
        with mock.patch.object(concurrent_loop, "RunningCall", self.running_call):
            with unittest.TestCase().assertRaises(StopIteration):
                self.coroutines.pop(id).send(None)

    def close(self) -> None:
        for coroutine in self.coroutines.values():
            coroutine.close()


class Runs(unittest.TestCase):
    def bench(self) -> Bench:
        bench = Bench(3)
        self.addCleanup(bench.close)
        return bench

    def test_a_call_that_comes_before_the_last_ending_was_noted_begins_after_it(self) -> None:
        """The second thread may read it while the main thread has just sent the ending that made room for it."""
        bench = self.bench()
        bench.accept(1, 2, 3, 4)
        self.assertEqual(bench.began, [1, 2, 3])
        bench.end(2)
        self.assertEqual(bench.began, [1, 2, 3, 4])

    def test_a_call_that_is_cancelled_before_it_began_never_does(self) -> None:
        bench = self.bench()
        bench.accept(1, 2, 3, 4)
        bench.loop.cancel(4, "the client left")
        bench.end(1)
        self.assertEqual(bench.began, [1, 2, 3])
        self.assertEqual([one[:3] for one in bench.sent], [["error", 4, "SERVE_CANCELLED"]])

    def test_a_cancel_reaches_the_task_of_its_call_alone(self) -> None:
        bench = self.bench()
        bench.accept(1, 2)
        bench.loop.cancel(2, "the client left")
        self.assertEqual(bench.cancelled, [2])

    def test_a_batch_is_refused(self) -> None:
        bench = self.bench()
        with self.assertRaises(ProtocolError):
            bench.loop.accept([WaitingCall(call_with(id=id), b"") for id in (1, 2)])

    def test_an_app_in_doubt_begins_no_more_and_says_so_while_others_run(self) -> None:
        """The front takes back what has not begun: it would not know the ids of further endings."""
        bench = self.bench()
        bench.accept(1)
        for id in (2, 3, 4):
            bench.accept(id)
            bench.running[id].raised = MemoryError("no memory")
            bench.end(id)
        bench.accept(5)
        bench.loop.cancel(5, "the client left")
        bench.loop.send_cancelled(6)
        self.assertEqual(bench.began, [1, 2, 3, 4])
        self.assertEqual([one[0] for one in bench.sent], ["retiring"])


if __name__ == "__main__":
    unittest.main()
