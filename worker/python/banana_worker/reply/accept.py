"""Reads a client's Accept header, as far as this server offers a choice."""

from __future__ import annotations


def asks_for(accept: str, content_type: str) -> bool:
    """Whether the type is acceptable by name: listed, with a quality above 0 and not below `application/json`'s."""
    if content_type not in accept.lower():
        return False
    wanted = _quality_of(accept, content_type)
    return wanted > 0 and wanted >= _quality_of(accept, "application/json")


def _quality_of(accept: str, content_type: str) -> float:
    for media_range in accept.split(","):
        name, *parameters = (part.strip().lower() for part in media_range.split(";"))
        if name != content_type:
            continue
        quality = next((parameter[2:] for parameter in parameters if parameter.startswith("q=")), "1")
        try:
            return float(quality) if float(quality) < float("inf") else 0.0
        except ValueError:
            return 0.0
    return 0.0
