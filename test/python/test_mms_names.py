"""The names that handlers of the originals import."""

import importlib
import pickle
import subprocess
import sys
import unittest
from pathlib import Path

import mms
import ts
from mms.service import PredictionException

ROOT = Path(mms.__file__).parent.parent


class NamesTest(unittest.TestCase):
    def test_each_listed_module_can_be_imported_and_there_is_no_other(self) -> None:
        for package in (mms, ts):
            for name in package.MODULES:
                importlib.import_module(f"{package.__name__}.{name}")
            folder = ROOT / package.__name__
            public = {".".join(path.relative_to(folder).with_suffix("").parts) for path in folder.rglob("*.py")}
            own = {"item", "model_config", "request_processor", "metrics.caching_metric"}
            modules = {name for name in public if not name.endswith("__init__")}
            if package is ts:
                modules |= set(ts.SAME)
            self.assertEqual(modules - own, set(package.MODULES))

    def test_names_of_both_servers_are_the_same_objects(self) -> None:
        for name, what in (
            ("service", "PredictionException Service emit_metrics"),
            ("context", "Context RequestProcessor"),
            ("metrics.dimension", "Dimension"),
            ("metrics.unit", "Units"),
            ("metrics.metric", "Metric"),
            ("metrics.metrics_store", "MetricsStore"),
            ("model_service.model_service", "ModelService SingleNodeService"),
            ("model_service.mxnet_model_service", "ModelService SingleNodeService MXNetBaseService"),
        ):
            ours, theirs = importlib.import_module(f"mms.{name}"), importlib.import_module(f"ts.{name}")
            self.assertEqual(sorted(theirs.__all__), sorted(what.split()))
            for each in what.split():
                self.assertIs(getattr(ours, each), getattr(theirs, each))
        self.assertIs(importlib.import_module("ts.utils.util").PredictionException, PredictionException)

    def test_values_pickled_under_the_name_of_one_server_are_those_of_the_other(self) -> None:
        under_ts = b"cts.service\nPredictionException\n(S'text'\nI400\ntR."
        error = pickle.loads(under_ts)
        self.assertIsInstance(error, PredictionException)
        self.assertEqual(pickle.loads(pickle.dumps(error)).error_code, 400)

    def test_importing_an_absent_module_lists_the_existing_ones(self) -> None:
        for name, there in (
            ("mms.log", "mms.service, .*mms.metrics.metrics_store"),
            ("mms.utils.mxnet.image", "mms.service"),
            ("mms.metrics.system_metrics", "mms.metrics.metrics_store"),
            ("ts.torch_handler.image_classifier", "ts.torch_handler.base_handler"),
            ("ts.metrics.metric_cache_yaml_impl", "ts.metrics.metrics_store"),
        ):
            with self.subTest(name), self.assertRaisesRegex(ImportError, f"banana-serve's .* has no .*{there}"):
                importlib.import_module(name)

    def test_importing_an_absent_name_lists_the_existing_ones(self) -> None:
        for package in (mms, ts):
            for module in package.MODULES:
                name = f"{package.__name__}.{module}"
                there = ", ".join(importlib.import_module(name).__all__)
                with self.subTest(name):
                    said = f"^banana-serve's {name} has no Absent\\. It has: {there}$"
                    with self.assertRaisesRegex(ImportError, said):
                        exec(f"from {name} import Absent")
                    exec(f"from {name} import {there}")
                    self.assertFalse(hasattr(sys.modules[name], "Absent"))

    def test_torch_is_imported_by_the_handler_that_needs_it(self) -> None:
        program = "import sys, ts.torch_handler.base_handler as b; b.BaseHandler(); sys.exit('torch' in sys.modules)"
        subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": str(ROOT)}, check=True)


if __name__ == "__main__":
    unittest.main()
