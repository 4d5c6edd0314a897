"""Batches of calls; the other thread may read a cancel at any time."""

from __future__ import annotations

import unittest
import weakref
from types import SimpleNamespace
from typing import Any, Callable, List
from unittest import mock

from banana_worker.run.batch_runner import BatchRunner, _Item


class Running:
    """A call whose endings are counted; `on_fail` is called when it fails."""

    def __init__(self, cancelled: bool = False) -> None:
        self.call = SimpleNamespace(route="/", id=1, request_id="")
        self.ctx = None
        self.cancelled = cancelled
        self.endings: List[str] = []
        self.on_fail: Callable[[], None] = lambda: None

    def fail(self, thrown: BaseException) -> None:
        self.endings.append("error")
        self.on_fail()

    def answer(self, output: object) -> None:
        self.endings.append("result")


class Endings(unittest.TestCase):
    def test_a_call_that_is_cancelled_while_the_batch_is_sorted_ends_once(self) -> None:
        first, second, third = running = [Running(cancelled=True), Running(), Running()]
        first.on_fail = lambda: setattr(second, "cancelled", True)
        app = SimpleNamespace(handle=lambda *_: 1, handle_batch=lambda _route, inputs, _ctxs: list(inputs))
        options: Any = SimpleNamespace(app=app, tasks=SimpleNamespace(settled=lambda output, _: output))
        items: Any = [_Item(one, None) for one in running]  # type: ignore[arg-type]
        BatchRunner(options)._run_items(items)
        self.assertEqual([first.endings, len(second.endings), third.endings], [["error"], 1, ["result"]])


class Advice(unittest.TestCase):
    def test_the_hint_at_repeatable_is_logged_once_per_worker(self) -> None:
        log, said = mock.Mock(), 'set `config = {"repeatable": True}`'
        app = SimpleNamespace(handle_batch=lambda *_: 1 / 0, repeatable=False)
        host = SimpleNamespace(surroundings=SimpleNamespace(log=log))
        options: Any = SimpleNamespace(app=app, host=host)
        runner = BatchRunner(options)
        for _ in range(2):
            items: Any = [_Item(one, None) for one in (Running(), Running())]  # type: ignore[arg-type]
            runner._run_items(items)
            self.assertEqual([item.running.endings for item in items], [["error"], ["error"]])
        log.warn.assert_called_once()
        self.assertIn(said, log.warn.call_args[0][0])


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

        runner: Any = BatchRunner(mock.Mock(app=SimpleNamespace(handle_batch=raising, repeatable=False)))
        runner._calls = {1: Running(), 2: Running()}
        runner._read_inputs = lambda calls: [_Item(one, None) for one in calls]
        self.assertIsInstance(runner.run(), Large)
        self.assertIsNone(raised[0]())


if __name__ == "__main__":
    unittest.main()
