"""The same as `mms.model_service.mxnet_model_service`."""

from __future__ import annotations

from banana_worker.stand_in import names_of_module
from mms.model_service.mxnet_model_service import ModelService as ModelService
from mms.model_service.mxnet_model_service import MXNetBaseService as MXNetBaseService
from mms.model_service.mxnet_model_service import SingleNodeService as SingleNodeService

__all__ = ["MXNetBaseService", "ModelService", "SingleNodeService"]

__getattr__ = names_of_module(__name__, __all__)
