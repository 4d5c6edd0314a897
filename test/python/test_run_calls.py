"""Batches of calls; the other thread may read a cancel at any time."""

from __future__ import annotations

import unittest
import weakref
from types import SimpleNamespace
from typing import Any, Callable, List

from banana_worker.run.run_calls import CallRun


class Running:
    """A call whose endings are counted; `on_fail` is called when it fails."""

    def __init__(self, cancelled: bool = False) -> None:
        self.call = SimpleNamespace(route="/", id=1, request_id="")
        self.ctx = self.input = self.socket = self.stream = None
        self.cancelled = cancelled
        self.endings: List[str] = []
        self.on_fail: Callable[[], None] = lambda: None

    @property
    def whole(self) -> "Running":
        return self

    @property
    def has_ended(self) -> bool:
        return len(self.endings) > 0

    def read_input(self, wishes: object) -> None:
        pass

    def is_answered_by(self, thrown: BaseException) -> bool:
        return False

    def fail(self, thrown: BaseException) -> None:
        self.endings.append("error")
        self.on_fail()

    def answer(self, output: object) -> None:
        self.endings.append("result")


def run_of(calls: List[Running], handle_batch: Callable[..., Any]) -> CallRun:
    app = SimpleNamespace(wishes=lambda _: None, handle=lambda *_: 1, handle_batch=handle_batch, repeatable=False)
    host: Any = SimpleNamespace(app=app, concurrency=1)
    batch: Any = calls
    return CallRun(host, batch)


class Endings(unittest.TestCase):
    def test_a_call_that_is_cancelled_while_the_batch_is_sorted_ends_once(self) -> None:
        first, second, third = running = [Running(cancelled=True), Running(), Running()]
        first.on_fail = lambda: setattr(second, "cancelled", True)
        run_of(running, lambda _route, inputs, _ctxs: list(inputs)).begin()
        self.assertEqual([first.endings, len(second.endings), third.endings], [["error"], 1, ["result"]])


class Memory(unittest.TestCase):
    def test_the_apps_exception_is_freed_after_its_batch(self) -> None:
        class Large(Exception):
            pass

        raised: List[Any] = []

        def raising(*_: Any) -> None:
            try:
                raise Large()
            except Large as large:
                raised.append(weakref.ref(large))
                raise

        run = run_of([Running(), Running()], raising)
        run.begin()
        self.assertIsInstance(run.raised, Large)
        run.raised = None
        self.assertIsNone(raised[0]())


if __name__ == "__main__":
    unittest.main()
