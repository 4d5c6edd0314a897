"""Helpers of handlers: classes, labels and errors."""

from banana_worker.stand_in import names_of_package

names_of_package("ts.utils", (), ("util",))
