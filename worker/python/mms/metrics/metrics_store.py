"""`context.metrics`: the measurements of a custom service, for its load or for one batch."""

from __future__ import annotations

import json
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from banana_worker.process.hint_once import hint_once
from banana_worker.report.metric_rules import is_finite, number_of
from banana_worker.stand_in import names_of_module

from .caching_metric import CachingMetric, MetricTypes
from .dimension import Dimension
from .metric import Metric, Value

__all__ = ["MetricsStore"]

TIME_UNITS = ("ms", "s")
SIZE_UNITS = ("MB", "kB", "GB", "B")

# The most characters that name, unit and dimensions of one metric may have together.
MAX_CHARS = 4096

RequestIds = Union[Mapping[int, str], str, None]

# Metrics made for later use, by type and name.
MadeMetrics = Dict[Tuple[MetricTypes, str], CachingMetric]


class StoredMetric(Metric):
    """A metric as it was added: `idx` is the item that it belongs to, None for all of them."""

    def __init__(
        self,
        kind: str,
        name: str,
        value: Value,
        unit: str,
        dimensions: List[Dimension],
        idx: Optional[int] = None,
    ) -> None:
        super().__init__(name, value, unit, dimensions, None, "counter" if kind == "counter" else None)
        self.kind = kind
        self.idx = idx


class MetricsStore:
    """Metrics of one batch.

    In every method `idx` is the number of the item that the metric belongs to; without it, or with a value that is
    not the number of an item, the metric belongs to all items. A counter adds its values up; any other metric keeps
    the last one, unless `metric_type` makes it a counter. The model's name is appended to the dimensions. `own`: the
    metrics of every kind of app. `made`, `current`: metrics that outlive the batch, and a function that returns the
    store of the running batch.
    """

    def __init__(
        self,
        request_ids: RequestIds,
        model_name: str,
        own: object = None,
        made: Optional[MadeMetrics] = None,
        current: Optional[Callable[[], MetricsStore]] = None,
    ) -> None:
        self.request_ids = request_ids
        self.model_name = model_name
        self.cache: Dict[Tuple[object, ...], StoredMetric] = {}
        self._own = own
        self._made: MadeMetrics = {} if made is None else made
        self._current = current or (lambda: self)

    @property
    def store(self) -> List[StoredMetric]:
        """The metrics that were added and are not sent yet."""
        return list(self.cache.values())

    def add_counter(
        self,
        name: str,
        value: Value,
        idx: Optional[int] = None,
        dimensions: Optional[List[Dimension]] = None,
    ) -> None:
        self._add("counter", name, value, "count", idx, dimensions)

    def add_time(
        self,
        name: str,
        value: Value,
        idx: Optional[int] = None,
        unit: str = "ms",
        dimensions: Optional[List[Dimension]] = None,
        metric_type: Optional[MetricTypes] = None,
    ) -> None:
        """Raises ValueError unless the unit is `ms` or `s`."""
        if unit not in TIME_UNITS:
            raise ValueError("the unit for a timed metric should be one of ['ms', 's']")
        self._add(_kind("time", metric_type), name, value, unit, idx, dimensions)

    def add_size(
        self,
        name: str,
        value: Value,
        idx: Optional[int] = None,
        unit: str = "MB",
        dimensions: Optional[List[Dimension]] = None,
        metric_type: Optional[MetricTypes] = None,
    ) -> None:
        """Raises ValueError unless the unit is `MB`, `kB`, `GB` or `B`."""
        if unit not in SIZE_UNITS:
            raise ValueError("The unit for size based metric is one of ['MB','kB', 'GB', 'B']")
        self._add(_kind("size", metric_type), name, value, unit, idx, dimensions)

    def add_percent(
        self,
        name: str,
        value: Value,
        idx: Optional[int] = None,
        dimensions: Optional[List[Dimension]] = None,
        metric_type: Optional[MetricTypes] = None,
    ) -> None:
        self._add(_kind("percent", metric_type), name, value, "percent", idx, dimensions)

    def add_error(self, name: str, value: Value, dimensions: Optional[List[Dimension]] = None) -> None:
        """Counts an error; the value may be text. It belongs to no item."""
        shown = value if isinstance(value, str) else finite_number(name, value)
        if shown is not None:
            level = Dimension("Level", "Error")
            self._put(StoredMetric("error", name, shown, "", _list_of(dimensions) + [level]))

    def add_metric(
        self,
        name: str,
        value: Value,
        idx: Optional[int] = None,
        unit: Optional[str] = None,
        dimensions: Optional[List[Dimension]] = None,
        metric_type: Optional[MetricTypes] = None,
    ) -> None:
        """As in TorchServe, a text as third argument is the unit, and the item is the fourth then."""
        if isinstance(idx, str) and not isinstance(unit, str):
            idx, unit = unit, idx
        self._add(_kind("gauge", metric_type), name, value, unit or "", idx, dimensions)

    def add_metric_to_cache(
        self,
        metric_name: str,
        unit: str,
        dimension_names: Sequence[str] = (),
        metric_type: MetricTypes = MetricTypes.COUNTER,
    ) -> CachingMetric:
        """Makes a metric, replacing one of the same name and type. It is sent once it has a value."""
        made = CachingMetric(metric_name, unit, dimension_names, metric_type, self._measure_now)
        self._made[metric_type, metric_name] = made
        return made

    def get_metric(self, metric_name: str, metric_type: MetricTypes = MetricTypes.COUNTER) -> CachingMetric:
        """The metric that `add_metric_to_cache` has made. Raises KeyError if there is none."""
        made = self._made.get((metric_type, metric_name))
        if made is None:
            problem = "make it with add_metric_to_cache: banana-serve reads no metrics configuration"
            raise KeyError("there is no metric {} of type {}: {}".format(_shown(metric_name), metric_type, problem))
        return made

    def counter(self, *args: object, **kwargs: object) -> None:
        """The same as `ctx.metrics` of other apps. It is not written to the log."""
        self._own.counter(*args, **kwargs)  # type: ignore[union-attr]

    def gauge(self, *args: object, **kwargs: object) -> None:
        """The same for a number that may rise and fall."""
        self._own.gauge(*args, **kwargs)  # type: ignore[union-attr]

    def histogram(self, *args: object, **kwargs: object) -> None:
        """The same for a distribution."""
        self._own.histogram(*args, **kwargs)  # type: ignore[union-attr]

    def _take(self) -> List[StoredMetric]:
        """Takes the metrics that were added since the last call."""
        taken = self.store
        self.cache.clear()
        return taken

    def _measure_now(
        self, metric: CachingMetric, value: Value, dimensions: List[Dimension], request_id: Optional[str]
    ) -> None:
        """Measures in the running batch, even if the metric was made in another one."""
        store = self._current()
        number = finite_number(metric.metric_name, value)
        if number is not None:
            kind, idx = _kind("gauge", metric.metric_type), store._idx_of(request_id)
            store._put(StoredMetric(kind, metric.metric_name, number, metric.unit, dimensions, idx))

    def _add(
        self,
        kind: str,
        name: str,
        value: Value,
        unit: str,
        idx: Optional[int],
        dimensions: Optional[List[Dimension]],
    ) -> None:
        number = finite_number(name, value)
        if number is not None:
            whose = [Dimension("ModelName", self.model_name), Dimension("Level", "Model")]
            self._put(StoredMetric(kind, name, number, unit, _list_of(dimensions) + whose, self._item(idx)))

    def _put(self, metric: StoredMetric) -> None:
        name, value = metric.name, metric.value
        key = (metric.kind, metric.idx, *texts_of(name, metric._short_unit, metric.dimensions))
        before = self.cache.get(key)
        if before is None:
            metric.request_id = None if metric.kind == "error" else self._request_id(metric.idx)
            self.cache[key] = metric
        elif before.metric_method != "counter" or is_finite(before.value + value):  # type: ignore[operator]
            before.update(value)
        else:
            line = f"metric {_shown(name)}: a value with which its sum is not a finite number is dropped."
            hint_once(f"sum of metric {name}", line)

    def _item(self, idx: object) -> Optional[int]:
        """Handlers of the originals also pass ids of their own, which belong to no request."""
        count = len(self.request_ids) if isinstance(self.request_ids, Mapping) else 0
        return idx if isinstance(idx, int) and 0 <= idx < count else None

    def _idx_of(self, request_id: Optional[str]) -> Optional[int]:
        ids = self.request_ids if isinstance(self.request_ids, Mapping) else {}
        return next((idx for idx, one in ids.items() if one == request_id), None)

    def _request_id(self, idx: Optional[int]) -> Optional[str]:
        ids = self.request_ids
        if not isinstance(ids, Mapping):
            return ids
        return ",".join(ids.values()) if idx is None else ids.get(idx)


def _kind(kind: str, metric_type: Optional[MetricTypes]) -> str:
    return "counter" if metric_type is MetricTypes.COUNTER else kind


def finite_number(name: str, value: object) -> Union[int, float, None]:
    """A number of another type, such as numpy's, as a Python number. None if it is not a finite number: the original
    accepts any value, so a wrong one must not fail the call; the log names the metric."""
    number = number_of(int(value) if isinstance(value, int) else value)
    if is_finite(number):
        return number
    hint_once(f"metric {name}", f"metric {_shown(name)}: a value that is not a finite number is dropped.")
    return None


def _list_of(dimensions: Optional[List[Dimension]]) -> List[Dimension]:
    given = [] if dimensions is None else dimensions
    if isinstance(given, (list, tuple)) and all(isinstance(one, Dimension) for one in given):
        return list(given)
    raise ValueError("the dimensions of a metric must be a list of Dimension")


def texts_of(name: str, unit: str, dimensions: List[Dimension]) -> List[str]:
    """The key of a metric. Raises TypeError if a text cannot stand in a line, ValueError if they are too long."""
    texts = [name, unit]
    for dimension in dimensions:
        texts += [dimension.name, dimension.value]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("metric {}: its name, unit and dimensions must be text".format(_shown(name)))
    if name == "" or any("\r" in text or "\n" in text for text in texts):
        problem = "its name must not be empty, and its texts must not contain line breaks"
        raise TypeError("metric {}: {}".format(_shown(name), problem))
    chars = sum(len(text) for text in texts)
    if chars > MAX_CHARS:
        problem = "its texts are {} characters; {} are allowed".format(chars, MAX_CHARS)
        raise ValueError("metric {}: {}".format(_shown(name), problem))
    return texts


def _shown(name: object) -> str:
    return json.dumps(str(name)[:100])


__getattr__ = names_of_module(__name__, __all__)
