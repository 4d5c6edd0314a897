"""The cancel of a task that has seen for itself that its client left, and cleans up: it is told so once, and not twice.

All of it is for the thread of the event loop.
"""

from __future__ import annotations

from typing import Any, Awaitable, Set

_cleaning: Set[Any] = set()


async def clean_up(closing: Awaitable[None]) -> None:
    """Awaits it. The first cancel that comes meanwhile says what the task knows already; the next one ends the cleaning."""
    import asyncio

    task = asyncio.current_task()
    _cleaning.add(task)
    try:
        await closing
    finally:
        _cleaning.discard(task)


def cancel(task: Any) -> None:
    """Cancels a task in which a call runs."""
    if task in _cleaning:
        _cleaning.discard(task)
    else:
        task.cancel()
