"""Several inputs in the body of one call, each of which is a call of the app: what a dialect's format may read."""

from __future__ import annotations

from typing import Any, Callable, List, Sequence, Tuple

from banana_worker.protocol.errors import ServeError


class Inputs:
    def __init__(self, field: str, values: List[Any], most: int) -> None:
        """`field`: the field of the body that has them; `most`: inputs that the app takes together."""
        self.field = field
        self.values = values
        self.most = most

    def accepted(self, accept: Callable[[Any], Any]) -> Inputs:
        """All of them as `accept` returns each, before the app gets one. @raises ServeError its error, with the place"""
        accepted: List[Any] = []
        for at, value in enumerate(self.values):
            try:
                accepted.append(accept(value))
            except ServeError as error:
                raise self.error_at(at, error) from None
        return Inputs(self.field, accepted, self.most)

    def error_at(self, index: int, error: ServeError) -> ServeError:
        """The error of one input, with its place in the body."""
        message = f"{self.field}[{index}]: {error.message}"
        issues: List[Tuple[Sequence[object], str]] = [([self.field, index, *path], text) for path, text in error.issues]
        return ServeError(error.code, message, error.detail, error.status, error.kind, issues)
