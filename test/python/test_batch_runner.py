"""The calls of a batch: the other thread may take in a cancel at any time."""

from __future__ import annotations

import unittest
from types import SimpleNamespace
from typing import Any, Callable, List

from banana_worker.batch_runner import BatchRunner, _Item


class Running:
    """A call whose endings are counted; `on_fail` is called when it fails."""

    def __init__(self, cancelled: bool = False) -> None:
        self.call = SimpleNamespace(route="/")
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


if __name__ == "__main__":
    unittest.main()
