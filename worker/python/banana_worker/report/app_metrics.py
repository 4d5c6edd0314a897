"""`ctx.metrics`: the app's own metrics. They are checked here, where the author sees the error; the front adds up
those of all workers. Measurements leave in one message before the call's answer, or within some 0.1 s."""

from __future__ import annotations

import collections
import math
from typing import Any, Callable, Deque, Dict, Iterator, List, Mapping, Optional, Tuple, Union

from banana_worker.process import descriptors
from banana_worker.process.channel import Channel
from banana_worker.protocol.messages import Metric
from banana_worker.report.metric_rules import check_metric, number_of


Labels = Mapping[str, Union[str, int, float, bool]]

# A message leaves at once when so many measurements wait: an app may measure in a long loop.
_MOST_WAITING = 1000


class OwnMetrics:
    """May be used from any thread and from signal handlers; in a forked child nothing is counted. Names and labels
    follow Prometheus: letters, digits and underscores. Others raise a TypeError or a ValueError."""

    def __init__(self, channel: Channel, on_waiting: Callable[[], None]) -> None:
        """`on_waiting` ensures that `send` is called soon."""
        self._channel = channel
        self._on_waiting = on_waiting
        self._kinds: Dict[str, str] = {}
        # Used without a lock: a signal handler that measures would wait for the thread that it interrupted.
        self._waiting: Deque[Metric] = collections.deque()
        # Some were taken to be sent, perhaps by another thread, and may not have left yet.
        self._are_leaving = False

    def counter(self, name: str, value: float = 1, labels: Optional[Labels] = None) -> None:
        """Adds to a number that only rises, over all workers."""
        self._measure("counter", name, value, labels)

    def gauge(self, name: str, value: float, labels: Optional[Labels] = None) -> None:
        """Sets a number that may rise and fall. Each worker has its own."""
        self._measure("gauge", name, value, labels)

    def histogram(self, name: str, value: float, labels: Optional[Labels] = None) -> None:
        """Adds a value to a distribution, over all workers. Times are in seconds."""
        self._measure("histogram", name, value, labels)

    def send(self) -> None:
        """Sends the waiting measurements. They are in the kernel when this returns."""
        if self._waiting or self._are_leaving:
            self._channel.send_on_turn(self._messages)

    def _messages(self) -> List[List[Any]]:
        """Takes the waiting measurements. A second thread takes none before the first has sent its own."""
        self._are_leaving = True
        metrics = _together(self._taken())
        self._are_leaving = len(metrics) > 0
        return list(metric_messages(metrics))

    def _measure(self, kind: str, name: str, given_value: Any, given: Optional[Labels]) -> None:
        value = number_of(given_value)
        labels = {} if given is None else given
        check_metric(kind, name, value, labels, self._kinds)
        dimensions = "\n".join("%s\n%s" % (label, _label_text(labels[label])) for label in sorted(labels))
        if descriptors.in_fork():
            return
        self._kinds[name] = kind
        self._waiting.append(Metric(kind, name, value, "", dimensions, []))
        if len(self._waiting) >= _MOST_WAITING:
            self.send()
        else:
            self._on_waiting()

    def _taken(self) -> Iterator[Metric]:
        for _ in range(len(self._waiting)):
            yield self._waiting.popleft()


def _together(metrics: Iterator[Metric]) -> List[Metric]:
    """Adds up the counters, and keeps the last value of each gauge."""
    kept: List[Metric] = []
    places: Dict[Tuple[str, str], int] = {}
    for metric in metrics:
        place = None if metric.kind == "histogram" else places.get((metric.name, metric.dimensions))
        if place is None:
            places[metric.name, metric.dimensions] = len(kept)
            kept.append(metric)
        elif metric.kind == "counter":
            total = kept[place].value + metric.value  # type: ignore[operator]
            kept[place] = metric._replace(value=total)
        else:
            kept[place] = metric
    return kept


def _label_text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


# Far below the limit of a head; an estimate is good enough.
_MAX_MESSAGE_BYTES = 128 * 1024

_MAX_SAFE_INTEGER = 2**53 - 1


def send_metrics(channel: Channel, metrics: List[Metric]) -> None:
    """Sends them. They are in the kernel when this returns, before any later message."""
    for message in metric_messages(metrics):
        channel.send(message)


def metric_messages(metrics: List[Metric]) -> Iterator[List[Any]]:
    group: List[Metric] = []
    group_bytes = 0
    for metric in map(_sendable, metrics):
        size = _at_most_bytes(metric)
        if group and group_bytes + size > _MAX_MESSAGE_BYTES:
            yield ["metrics", group]
            group, group_bytes = [], 0
        group.append(metric)
        group_bytes += size
    if group:
        yield ["metrics", group]


def _sendable(metric: Metric) -> Metric:
    """A sum may exceed every float: it is sent as text then. A whole number may exceed what the front can read; for
    a measurement, a float is as good."""
    value = metric.value
    if isinstance(value, str):
        return metric
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        return metric._replace(value=str(number))
    return metric if abs(value) <= _MAX_SAFE_INTEGER else metric._replace(value=number)


def _at_most_bytes(metric: Metric) -> int:
    """A character is at most 4 bytes in UTF-8, a number 9 in MessagePack."""
    chars = len(metric.name) + len(str(metric.value)) + len(metric.unit) + len(metric.dimensions)
    return 4 * chars + 9 * len(metric.call_ids) + 32
