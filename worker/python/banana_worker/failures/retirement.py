"""Decides when a worker should end because its process is in doubt, and a new one would do better."""

from __future__ import annotations

from typing import Optional

from banana_worker.failures.outlook import is_out_of_memory, loss_of_gpu
from banana_worker.failures.thrown import class_name, is_a, text_of
from banana_worker.protocol.errors import ServeError

# One input may be too large; a process that finds no memory for three in a row has lost it to something else.
_MOST_OUT_OF_MEMORY = 3


class Retirement:
    def __init__(self) -> None:
        # Number of calls in a row that found no memory.
        self._out_of_memory = 0

    def after_call(self, raised: Optional[BaseException]) -> Optional[ServeError]:
        """`raised`: the app's exception in the call that has ended. Returns the reason for which the worker should
        end, or None."""
        if raised is None:
            self._out_of_memory = 0
            return None
        if is_a(raised, ServeError):
            return None  # a body that could not be read, an output that could not be encoded
        loss = loss_of_gpu(raised)
        if loss is not None:
            return ServeError("SERVE_WORKER_LOST", "this process can no longer use its GPU: %.300s" % _first_line(loss))
        if not is_out_of_memory(raised):
            self._out_of_memory = 0
            return None
        self._out_of_memory += 1
        if self._out_of_memory < _MOST_OUT_OF_MEMORY:
            return None
        message = "the app ran out of memory in %d calls in a row" % _MOST_OUT_OF_MEMORY
        return ServeError("SERVE_WORKER_LOST", message)


def _first_line(error: BaseException) -> str:
    return (text_of(error) or class_name(error)).split("\n", 1)[0]
