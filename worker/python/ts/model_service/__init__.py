"""The same as `mms.model_service`."""

from banana_worker.stand_in import names_of_package

names_of_package("ts.model_service", (), ("model_service", "mxnet_model_service"))
