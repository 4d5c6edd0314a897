"""Stands in for the worker's log and metrics in a test: the log is printed, metrics are dropped."""

from __future__ import annotations

import sys
from typing import Any


class StderrLog:
    """`request.log`: lines on stderr."""

    def __init__(self, request_id: str) -> None:
        self._request_id = request_id

    def of_call(self, request_id: str, _traceparent: str) -> StderrLog:
        return StderrLog(request_id)

    def __getattr__(self, level: str) -> Any:
        if level.startswith("_"):
            raise AttributeError(level)
        return lambda *parts, **fields: print(
            level, self._request_id, *parts, *([fields] if fields else []), file=sys.stderr, flush=True
        )


class UncountedMetrics:
    """`request.metrics`: takes every kind of metric, and forgets it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *_, **__: None
