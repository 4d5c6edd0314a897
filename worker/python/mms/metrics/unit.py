"""Units of metrics: the short names that handlers use, and the names in the log."""

from __future__ import annotations

from banana_worker.stand_in import names_of_module

__all__ = ["Units"]


class Units:
    """`units` maps each short name to the one in the log."""

    def __init__(self) -> None:
        self.units = {
            "ms": "Milliseconds",
            "s": "Seconds",
            "percent": "Percent",
            "count": "Count",
            "MB": "Megabytes",
            "GB": "Gigabytes",
            "kB": "Kilobytes",
            "B": "Bytes",
            None: "unit",
            "": "unit",
        }


__getattr__ = names_of_module(__name__, __all__)
