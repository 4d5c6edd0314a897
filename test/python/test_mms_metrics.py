"""What a custom service measures."""

import unittest
from typing import Any, List

from mms.metrics.dimension import Dimension
from mms.metrics.metric import Metric
from mms.metrics.metrics_store import MetricsStore
from mms.service import emit_metrics

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

    def test_every_kind_keeps_its_own_dimensions_with_the_models_behind_them(self) -> None:
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

    def test_a_metric_with_an_id_that_is_no_items_number_belongs_to_all(self) -> None:
        for idx in ("an id of its own", 3, -1):
            store, loading = MetricsStore(IDS, "m"), MetricsStore(None, "m")
            for each in (store, loading):
                each.add_metric("n", 1, idx, "Batches")  # type: ignore[arg-type]
                each.add_metric("n", 2, None, "Batches")
            told = [(one.value, one.unit, one.request_id, one.idx) for one in (*store.store, *loading.store)]
            self.assertEqual(told, [(2, "Batches", "a,b,c", None), (2, "Batches", None, None)])

    def test_what_no_metric_can_be_is_refused_and_nothing_of_it_is_kept(self) -> None:
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
            (lambda s: s.add_counter("t", float("nan")), TypeError, '^metric "t": its value is not a finite number$'),
            (lambda s: s.add_counter("t", "5"), TypeError, '^metric "t": its value is not a finite number$'),
            (lambda s: s.add_counter("", 1), TypeError, '^metric "": its name must not be empty'),
            (lambda s: s.add_counter("a\nb", 1), TypeError, r'^metric "a\\nb": its name must not be empty, and no'),
            (lambda s: s.add_counter("a" * 5000, 1), ValueError, "are 5025 characters; 4096 are allowed$"),
            (lambda s: s.add_counter("a", 1, None, "L"), ValueError, "^the dimensions of a metric are a list of Dim"),
        ):
            store = MetricsStore(IDS, "m")
            with self.subTest(message), self.assertRaisesRegex(kind, message):
                add(store)
            self.assertEqual(store.store, [])

    def test_numbers_of_other_kinds_become_those_of_python(self) -> None:
        class Scalar:
            def __float__(self) -> float:
                return 2.5

        store = MetricsStore(IDS, "m")
        store.add_time("t", Scalar())  # type: ignore[arg-type]
        store.add_counter("c", True)
        self.assertEqual([repr(metric.value) for metric in store.store], ["2.5", "1"])


class MetricTest(unittest.TestCase):
    def test_a_metric_is_the_line_of_multi_model_server(self) -> None:
        metric = Metric("Size", 5, "MB", [Dimension("Level", "Model"), Dimension("D", "x")], "r1")
        self.assertRegex(str(metric), r"^Size\.Megabytes:5\|#Level:Model,D:x\|#hostname:[^,]+,\d+,r1$")
        self.assertRegex(str(Metric("N", 1, None, [])), r"^N\.unit:1\|#\|#hostname:[^,]+,\d+$")
        self.assertEqual(metric.to_dict()["Dimensions"][1], {"Name": "D", "Value": "x"})

    def test_outside_a_worker_metrics_that_are_told_are_lines_of_the_log(self) -> None:
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
