"""Cancels the task of a call whose client left, without disturbing the cleanup that the task may have begun by itself.

Everything here is for the thread of the event loop.
"""

from __future__ import annotations

from typing import Any, Awaitable, Set

_cleaning: Set[Any] = set()


async def clean_up(closing: Awaitable[None]) -> None:
    """Awaits the cleanup of a task that already knows that its client left. The first cancel meanwhile is ignored,
    because it brings the same news; the second one ends the cleanup."""
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
