"""The same as `mms.model_service.mxnet_model_service`."""

from mms.model_service.mxnet_model_service import ModelService as ModelService
from mms.model_service.mxnet_model_service import MXNetBaseService as MXNetBaseService
from mms.model_service.mxnet_model_service import SingleNodeService as SingleNodeService
