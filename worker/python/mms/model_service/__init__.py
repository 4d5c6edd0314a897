"""Base classes of services in the first form, as in archives of version 0.x."""

from banana_worker.stand_in import names_of_package

names_of_package("mms.model_service", (), ("model_service", "mxnet_model_service"))
