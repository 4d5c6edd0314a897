"""The modules that custom services of Multi Model Server import."""

from __future__ import annotations

from banana_worker.stand_in import names_of_package

# The version that has this interface.
__version__ = "1.1.11"

MODULES = (
    "service",
    "context",
    "metrics.dimension",
    "metrics.unit",
    "metrics.metric",
    "metrics.metrics_store",
    "model_service.model_service",
    "model_service.mxnet_model_service",
)

names_of_package("mms", (), MODULES)
