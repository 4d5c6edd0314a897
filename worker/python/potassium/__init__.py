"""Potassium apps on banana-serve: `from potassium import Potassium, Request, Response`.

The names are those of the original package. Nothing here starts a server: `banana-serve app.py` does.
"""

from __future__ import annotations

from banana_worker.stand_in import names_of_package

from .exceptions import InvalidEndpointTypeException, RouteAlreadyInUseException
from .hooks import send_webhook
from .potassium import Potassium
from .status import InvalidStatusEvent
from .store import RedisConfig, S3Config, Store
from .types import Request, Response

__all__ = [
    "InvalidEndpointTypeException",
    "InvalidStatusEvent",
    "Potassium",
    "RedisConfig",
    "Request",
    "Response",
    "RouteAlreadyInUseException",
    "S3Config",
    "Store",
    "send_webhook",
]

names_of_package(__name__, __all__, ["store", "hooks", "types", "exceptions", "status", "potassium"])
