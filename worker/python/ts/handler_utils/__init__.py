"""Helpers of handlers."""

from banana_worker.stand_in import names_of_package

names_of_package("ts.handler_utils", (), ("timer",))
