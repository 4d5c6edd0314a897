"""Metrics of custom services."""

from banana_worker.stand_in import names_of_package

names_of_package("mms.metrics", (), ("dimension", "unit", "metric", "metrics_store"))
