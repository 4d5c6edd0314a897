"""The base classes of services in the first form, under the name that most of them import."""

from __future__ import annotations

from typing import Any

from banana_worker.stand_in import names_of_module

from .model_service import ModelService as ModelService
from .model_service import SingleNodeService as SingleNodeService

__all__ = ["MXNetBaseService", "ModelService", "SingleNodeService"]


class MXNetBaseService(SingleNodeService):
    """Stands in for the loader of MXNet models. Files may name it and derive from it."""

    def __init__(self, model_name: str, model_dir: str, manifest: Any, gpu: Any = None) -> None:
        super().__init__(model_name, model_dir, manifest, gpu)
        raise ImportError(
            "MXNetBaseService loads its model with mxnet, which banana-serve does not. "
            "Derive {} from SingleNodeService and load the model in its __init__.".format(type(self).__name__)
        )


__getattr__ = names_of_module(__name__, __all__)
