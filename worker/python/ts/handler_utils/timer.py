"""Measures the steps of a handler."""

from __future__ import annotations

import functools
import time
from typing import Any, Callable, TypeVar

from banana_worker.stand_in import names_of_module

__all__ = ["timed"]

Step = TypeVar("Step", bound=Callable[..., Any])


def timed(func: Step) -> Step:
    """Adds the time that a method takes to `self.context.metrics`, as `ts_handler_` and its name.

    It measures only if `self.context.model_yaml_config["handler"]["profile"]` is true.
    """

    @functools.wraps(func)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        config = getattr(getattr(self, "context", None), "model_yaml_config", None) or {}
        if not (config.get("handler") or {}).get("profile"):
            return func(self, *args, **kwargs)
        started_at = time.perf_counter()
        result = func(self, *args, **kwargs)
        took_ms = (time.perf_counter() - started_at) * 1000
        self.context.metrics.add_time("ts_handler_" + func.__name__, took_ms)
        return result

    return run  # type: ignore[return-value]


__getattr__ = names_of_module(__name__, __all__)
