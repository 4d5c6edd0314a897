"""Turns images of PIL into PNG."""

from __future__ import annotations

import base64
import io
from typing import Any

PNG_TYPE = "image/png"


def is_image(value: object) -> bool:
    """Whether the value is an image of PIL, by the names of its classes."""
    return any(base.__name__ == "Image" and base.__module__.partition(".")[0] == "PIL" for base in type(value).__mro__)


# Pixel formats of PNG. Any other (CMYK, HSV) is converted to RGB or RGBA.
_PNG_MODES = ("1", "L", "LA", "I", "I;16", "P", "RGB", "RGBA")


def png_bytes(image: Any) -> bytes:
    """The image as a PNG file."""
    if image.mode not in _PNG_MODES:
        image = image.convert("L" if image.mode == "F" else "RGB")
    file = io.BytesIO()
    image.save(file, format="PNG")
    return file.getvalue()


def base64_png(image: Any) -> str:
    """The PNG file as base64 text, for an image among other values."""
    return base64.b64encode(png_bytes(image)).decode("ascii")
