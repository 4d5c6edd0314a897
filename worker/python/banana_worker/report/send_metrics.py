"""Sends an app's measurements, in messages of a bounded size."""

from __future__ import annotations

import math
from typing import Any, Iterator, List

from banana_worker.process.channel import Channel
from banana_worker.protocol.messages import Metric

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
