"""Metrics of a custom service."""

import unittest
from typing import Any, List

from banana_worker.process.hint_once import write_hints_to
from mms.context import Context
from mms.metrics.dimension import Dimension
from mms.metrics.metric import Metric
from mms.metrics.metrics_store import MetricsStore
from mms.service import emit_metrics
from ts.metrics.metric_type_enum import MetricTypes

IDS = {0: "a", 1: "b", 2: "c"}


def taken(store: MetricsStore) -> List[Any]:
    return [(one.kind, one.name, one.value, one._short_unit, one.idx) for one in store._take()]


class MetricsStoreTest(unittest.TestCase):
    def test_a_counter_adds_up_and_any_other_metric_keeps_its_last_value(self) -> None:
        store = MetricsStore(IDS, "m")
        for value in (1, 2):
            store.add_counter("c", value)
            store.add_counter("c", value, 1)
            store.add_time("t", value)
            store.add_time("t", value, None, "s")
            store.add_size("s", value, 0, "kB")
            store.add_percent("p", value)
            store.add_metric("g", value, None, "Tokens")
            store.add_error("e", f"failure {value}")
        self.assertEqual(
            taken(store),
            [
                ("counter", "c", 3, "count", None),
                ("counter", "c", 3, "count", 1),
                ("time", "t", 2, "ms", None),
                ("time", "t", 2, "s", None),
                ("size", "s", 2, "kB", 0),
                ("percent", "p", 2, "percent", None),
                ("gauge", "g", 2, "Tokens", None),
                ("error", "e", "failure 2", "", None),
            ],
        )
        self.assertEqual(taken(store), [], "what was taken is gone")

    def test_every_kind_keeps_its_dimensions_followed_by_the_models(self) -> None:
        store = MetricsStore(IDS, "m")
        own = [Dimension("Layer", 1)]
        store.add_counter("a", 1, None, own)
        store.add_time("a", 1, None, "ms", own)
        store.add_size("a", 1, None, "MB", own)
        store.add_percent("a", 1, None, own)
        store.add_metric("a", 1, None, "", own)
        store.add_error("a", 1, own)
        dimensions = [",".join(map(str, metric.dimensions)) for metric in store.store]
        self.assertEqual(dimensions[:5], ["Layer:1,ModelName:m,Level:Model"] * 5)
        self.assertEqual(dimensions[5], "Layer:1,Level:Error")
        self.assertEqual(len(own), 1, "the service's list stays as it was")

    def test_a_metric_belongs_to_one_request_or_to_all(self) -> None:
        store = MetricsStore(IDS, "m")
        store.add_counter("all", 1)
        store.add_counter("one", 1, 2)
        store.add_error("none", "text")
        self.assertEqual([metric.request_id for metric in store.store], ["a,b,c", "c", None])

    def test_a_metric_with_an_unknown_item_number_belongs_to_all(self) -> None:
        for idx in ("an id of its own", 3, -1):
            store, loading = MetricsStore(IDS, "m"), MetricsStore(None, "m")
            for each in (store, loading):
                each.add_metric("n", 1, idx, "Batches")  # type: ignore[arg-type]
                each.add_metric("n", 2, None, "Batches")
            told = [(one.value, one.unit, one.request_id, one.idx) for one in (*store.store, *loading.store)]
            self.assertEqual(told, [(2, "Batches", "a,b,c", None), (2, "Batches", None, None)])

    def test_an_invalid_metric_is_refused_and_nothing_of_it_is_kept(self) -> None:
        for add, kind, message in (
            (
                lambda s: s.add_time("t", 1, unit="min"),
                ValueError,
                r"^the unit for a timed metric should be one of \['ms', 's'\]$",
            ),
            (
                lambda s: s.add_size("t", 1, unit="mi"),
                ValueError,
                r"^The unit for size based metric is one of \['MB','kB', 'GB', 'B'\]$",
            ),
            (lambda s: s.add_counter("", 1), TypeError, '^metric "": its name must not be empty'),
            (
                lambda s: s.add_counter("a\nb", 1),
                TypeError,
                r'^metric "a\\nb": its name must not be empty, and its texts',
            ),
            (lambda s: s.add_counter("a" * 5000, 1), ValueError, "are 5025 characters; 4096 are allowed$"),
            (lambda s: s.add_counter("a", 1, None, "L"), ValueError, "^the dimensions of a metric must be a list"),
        ):
            store = MetricsStore(IDS, "m")
            with self.subTest(message), self.assertRaisesRegex(kind, message):
                add(store)
            self.assertEqual(store.store, [])

    def test_a_value_that_is_no_finite_number_is_dropped_with_one_line_for_each_metric(self) -> None:
        lines: List[str] = []
        self.addCleanup(write_hints_to, None)
        write_hints_to(lines.append)
        store = MetricsStore(IDS, "m")
        cached = store.add_metric_to_cache("cached", "ms")
        for value in (float("nan"), float("inf"), None, "5", 10**400):
            store.add_counter("t", value)  # type: ignore[arg-type]
            cached.add_or_update(value)  # type: ignore[arg-type]
        store.add_error("e", None)  # type: ignore[arg-type]
        store.add_counter("t", 1)
        self.assertEqual([(one.name, one.value) for one in store.store], [("t", 1)])
        dropped = 'metric "%s": a value that is not a finite number is dropped. (This is logged once per worker.)'
        self.assertEqual(lines, [dropped % name for name in ("t", "cached", "e")])

    def test_a_value_with_which_the_sum_of_a_counter_would_not_be_finite_is_dropped_with_a_line(self) -> None:
        lines: List[str] = []
        self.addCleanup(write_hints_to, None)
        write_hints_to(lines.append)
        store = MetricsStore(IDS, "m")
        for value in (1e308, 1e308, 10**308, 1):
            store.add_counter("huge", value)
        self.assertEqual([one.value for one in store.store], [1e308])
        dropped = 'metric "huge": a value with which its sum is not a finite number is dropped.'
        self.assertEqual(lines, [dropped + " (This is logged once per worker.)"])

    def test_numbers_of_other_kinds_become_those_of_python(self) -> None:
        class Scalar:
            def __float__(self) -> float:
                return 2.5

        store = MetricsStore(IDS, "m")
        store.add_time("t", Scalar())  # type: ignore[arg-type]
        store.add_counter("c", True)
        self.assertEqual([repr(metric.value) for metric in store.store], ["2.5", "1"])

    def test_metric_type_makes_any_metric_a_counter_and_no_other_is_sent_as_one(self) -> None:
        store = MetricsStore(IDS, "m")
        for value in (1, 2):
            for metric_type in MetricTypes:
                name = metric_type.value
                store.add_time(f"{name} t", value, metric_type=metric_type)
                store.add_size(f"{name} s", value, metric_type=metric_type)
                store.add_percent(f"{name} p", value, metric_type=metric_type)
                store.add_metric(f"{name} m", value, unit="km", metric_type=metric_type)
        told = {name: (kind, value) for kind, name, value, _, _ in taken(store)}
        self.assertEqual({told[f"counter {one}"] for one in "tspm"}, {("counter", 3)})
        for name in ("gauge", "histogram"):
            kinds = {"t": "time", "s": "size", "p": "percent", "m": "gauge"}
            self.assertEqual({one: told[f"{name} {one}"] for one in kinds}, {k: (v, 2) for k, v in kinds.items()})

    def test_a_metric_may_be_added_in_the_order_of_torchserve(self) -> None:
        store = MetricsStore(IDS, "m")
        store.add_metric("all", 1, "km")  # type: ignore[arg-type]
        store.add_metric("one", 1, "km", 1)  # type: ignore[arg-type]
        self.assertEqual(taken(store), [("gauge", "all", 1, "km", None), ("gauge", "one", 1, "km", 1)])

    def test_a_metric_made_for_later_is_sent_with_only_its_own_dimensions(self) -> None:
        store = MetricsStore(IDS, "m")
        distance = store.add_metric_to_cache("Distance", "km", ["From", "To"])
        plain = store.add_metric_to_cache("Plain", "count", metric_type=MetricTypes.GAUGE)
        self.assertEqual(taken(store), [], "it has no value yet")
        for value in (1, 2):
            distance.add_or_update(value, ["a", 5])
            plain.add_or_update(value, request_id="b")
        told = [(one.kind, one.value, str(one).split("|")[1], one.idx) for one in store._take()]
        self.assertEqual(told, [("counter", 3, "#From:a,To:5", None), ("gauge", 2, "#", 1)])
        distance.update(4, "c", [Dimension("Via", "x")])
        distance.add_or_update(1, ["y"])
        told = [(one.kind, one.value, str(one).split("|")[1], one.idx) for one in store._take()]
        self.assertEqual(told, [("counter", 4, "#Via:x", 2), ("counter", 1, "#Via:y", None)])

    def test_a_metric_made_for_later_is_found_by_name_and_type_and_measures_in_the_running_batch(self) -> None:
        context = Context("m", "/", None, 1, None, "1")
        made = context.metrics.add_metric_to_cache("Size", "B", [], MetricTypes.GAUGE)
        context._take_metrics()
        for value in (1, 2):
            context._begin_batch([], [])
            self.assertIs(context.metrics.get_metric("Size", MetricTypes.GAUGE), made)
            made.add_or_update(value)
            self.assertEqual([one.value for one in context._take_metrics()], [value])
        with self.assertRaisesRegex(KeyError, 'no metric "Size" of type .*COUNTER: make it with add_metric_to_cache'):
            context.metrics.get_metric("Size")

    def test_values_that_do_not_fit_a_metric_are_logged_and_fail_nothing(self) -> None:
        store = MetricsStore(IDS, "m")
        made = store.add_metric_to_cache("Calls", "count", ["Of"])
        with self.assertLogs("mms.metrics.caching_metric", "ERROR") as logged:
            made.add_or_update(1)
            made.add_or_update(-1, ["x"])
        self.assertEqual(taken(store), [])
        self.assertEqual(
            [line.split(":", 2)[2] for line in logged.output],
            [
                "metric Calls is not recorded: its dimensions are ['Of'], not []",
                "metric Calls is not recorded: a counter cannot fall by -1",
            ],
        )


class MetricTest(unittest.TestCase):
    def test_a_metric_is_the_line_of_multi_model_server(self) -> None:
        metric = Metric("Size", 5, "MB", [Dimension("Level", "Model"), Dimension("D", "x")], "r1")
        self.assertRegex(str(metric), r"^Size\.Megabytes:5\|#Level:Model,D:x\|#hostname:[^,]+,\d+,r1$")
        self.assertRegex(str(Metric("N", 1, None, [])), r"^N\.unit:1\|#\|#hostname:[^,]+,\d+$")
        self.assertEqual(metric.to_dict()["Dimensions"][1], {"Name": "D", "Value": "x"})

    def test_outside_a_worker_emitted_metrics_are_lines_of_the_log(self) -> None:
        metrics = {"a": Metric("A", 1, "count", []), "b": Metric("B", 2, "ms", [])}
        with self.assertLogs("mms.service", "INFO") as logged:
            emit_metrics(metrics)
            emit_metrics(None)
        self.assertEqual(
            [line.split("|")[0] for line in logged.output],
            [
                "INFO:mms.service:[METRICS]A.Count:1",
                "INFO:mms.service:[METRICS]B.Milliseconds:2",
            ],
        )


if __name__ == "__main__":
    unittest.main()
