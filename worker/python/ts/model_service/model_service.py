"""The same as `mms.model_service.model_service`."""

from mms.model_service.model_service import ModelService as ModelService
from mms.model_service.model_service import SingleNodeService as SingleNodeService
