"""`ctx.metrics`: what an app counts and measures. It is checked here, where the author sees the error; the front adds up
what all workers tell. What is measured leaves in one message before the call's answer, or within some 0.1 s."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, List, Mapping, Optional, Union

from banana_worker.channel import Channel
from banana_worker.messages import Metric
from banana_worker.metric_rules import metric_error
from banana_worker.tell_metrics import tell_metrics

Labels = Mapping[str, Union[str, int, float, bool]]

# A message leaves at once when so many wait: an app may measure in a long loop.
_MOST_WAITING = 1000


class OwnMetrics:
    """May be used from any thread. Names and labels are those of Prometheus: letters, digits and underscores; one that is
    not allowed raises a TypeError or a ValueError."""

    def __init__(self, channel: Channel, on_waiting: Callable[[], None]) -> None:
        """`on_waiting` sees to it that `tell` is called soon."""
        self._channel = channel
        self._on_waiting = on_waiting
        self._lock = threading.Lock()
        self._kinds: Dict[str, str] = {}
        self._waiting: List[Metric] = []
        # Where in the list a counter or a gauge stands that may be measured again before it leaves.
        self._again: Dict[str, int] = {}

    def counter(self, name: str, value: float = 1, labels: Optional[Labels] = None) -> None:
        """Adds to a number that only rises, over all workers."""
        self._measure("counter", name, value, labels)

    def gauge(self, name: str, value: float, labels: Optional[Labels] = None) -> None:
        """Sets a number that may rise and fall. Each worker has its own."""
        self._measure("gauge", name, value, labels)

    def histogram(self, name: str, value: float, labels: Optional[Labels] = None) -> None:
        """Adds a value to a distribution, over all workers. Times are in seconds."""
        self._measure("histogram", name, value, labels)

    def tell(self) -> None:
        """Sends what waits; in the kernel when this returns."""
        if not self._waiting:
            return
        with self._lock:
            metrics, self._waiting = self._waiting, []
            self._again.clear()
        tell_metrics(self._channel, metrics)

    def _measure(self, kind: str, name: str, value: Any, given: Optional[Labels]) -> None:
        labels = {} if given is None else given
        error = metric_error(kind, name, value, labels, self._kinds)
        if error is not None:
            raise error
        dimensions = "\n".join("%s\n%s" % (label, _label_text(labels[label])) for label in sorted(labels))
        with self._lock:
            self._kinds[name] = kind
            is_first = not self._waiting
            self._add(kind, name, value, dimensions)
        if is_first:
            self._on_waiting()
        elif len(self._waiting) >= _MOST_WAITING:
            self.tell()

    def _add(self, kind: str, name: str, value: float, dimensions: str) -> None:
        key = "%s\n%s" % (name, dimensions)
        at = self._again.get(key)
        if at is None:
            if kind != "histogram":
                self._again[key] = len(self._waiting)
            self._waiting.append(Metric(kind, name, value, "", dimensions, []))
        else:
            before = self._waiting[at]
            total = before.value + value if kind == "counter" else value  # type: ignore[operator]
            self._waiting[at] = before._replace(value=total)


def _label_text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
