"""Errors in an app's definition, under the names that Potassium gave them."""

from __future__ import annotations

from banana_worker.stand_in import names_of_module

__all__ = ["InvalidEndpointTypeException", "RouteAlreadyInUseException"]


class RouteAlreadyInUseException(Exception):
    """A route that another function has, or that is the server's own."""

    def __init__(self, path: str = "", why: str = "") -> None:
        super().__init__(f"Route already in use: {path}{why}" if path else "Route already in use")


class InvalidEndpointTypeException(Exception):
    """A route that is not text."""

    def __init__(self) -> None:
        super().__init__("Invalid endpoint type. Must be 'handler' or 'background'")  # Potassium's message


__getattr__ = names_of_module(__name__, __all__)
