"""Stands in for the worker's channel in a test: the log is printed, metrics are dropped."""

from __future__ import annotations

import sys
from typing import Any, Callable, List

from banana_worker.report.app_log import AppLog
from banana_worker.report.app_metrics import OwnMetrics
from banana_worker.run.call_context import InitContext, WorkerInfo


class StderrChannel:
    def send(self, fields: List[Any], body: bytes = b"") -> None:
        _, level, message, more, request_id = fields
        print(level, request_id, message, *([more] if more else []), file=sys.stderr, flush=True)

    def send_on_turn(self, messages: Callable[[], List[List[Any]]]) -> None:
        messages()


def context_of_test() -> InitContext:
    channel: Any = StderrChannel()
    metrics = OwnMetrics(channel, lambda: metrics.send())
    return InitContext(WorkerInfo(0, None, 1), AppLog(channel), metrics)
