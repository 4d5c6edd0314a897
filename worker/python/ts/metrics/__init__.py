"""The same as `mms.metrics`, and the types of metrics."""

from banana_worker.stand_in import names_of_package

names_of_package("ts.metrics", (), ("dimension", "unit", "metric", "metrics_store", "metric_type_enum"))
