"""The base class of handlers on torch."""

from banana_worker.stand_in import names_of_package

names_of_package("ts.torch_handler", (), ("base_handler",))
