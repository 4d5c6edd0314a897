"""Options by which an app says that its inputs may safely run more than once."""

from __future__ import annotations

from typing import NamedTuple, Optional

_USUAL_ATTEMPTS = 3
_MOST_ATTEMPTS = 100


class RepeatOptions(NamedTuple):
    # Whether inputs may run again; None: the app's `config` decides.
    repeatable: Optional[bool] = None
    # Most times that a job begins; None: as usual.
    attempts: Optional[int] = None


def repeat_options(repeatable: object, attempts: object, where: str) -> RepeatOptions:
    """@raises TypeError if one of them has a wrong value; `where` names the place of the option"""
    if repeatable is not None and not isinstance(repeatable, bool):
        raise TypeError("%s: repeatable must be True or False" % where)
    if attempts is not None and (
        isinstance(attempts, bool) or not isinstance(attempts, int) or not 1 <= attempts <= _MOST_ATTEMPTS
    ):
        raise TypeError("%s: attempts must be a whole number from 1 to %d" % (where, _MOST_ATTEMPTS))
    return RepeatOptions(repeatable, attempts)


def attempts_of(route: RepeatOptions, config: RepeatOptions = RepeatOptions()) -> int:
    """Most times that a job of a route with these options begins. `config`: those of the whole app."""
    is_repeatable = config.repeatable if route.repeatable is None else route.repeatable
    return (route.attempts or config.attempts or _USUAL_ATTEMPTS) if is_repeatable else 1
