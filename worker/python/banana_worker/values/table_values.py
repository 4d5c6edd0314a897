"""Turns tables of pandas into lists of dicts."""

from __future__ import annotations

from typing import Any


def records(frame: Any) -> object:
    """A list with one dict per row, by the names of the columns."""
    return frame.to_dict(orient="records")


def row_or_column(series: Any) -> object:
    """A dict if every value has its own name, as in a row of a table; else a list."""
    names = list(series.index)
    if names and all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
        return dict(zip(names, series.tolist()))
    return series.tolist()
