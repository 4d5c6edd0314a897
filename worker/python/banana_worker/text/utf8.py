"""Encodes any text as UTF-8."""

from __future__ import annotations


def utf8(text: str) -> bytes:
    """Half of a surrogate pair, which UTF-8 cannot hold, becomes U+FFFD. Never raises."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
