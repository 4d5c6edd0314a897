"""The one shape of an app that the run loop knows. Each file in `adapters/` turns one way of writing an app into it."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, TYPE_CHECKING

from banana_worker.failures.thrown import is_whole
from banana_worker.formats.read_input import InputWishes, NO_WISHES
from banana_worker.protocol.messages import Metric, Route, StartSpec
from banana_worker.values.tensor import Signature

if TYPE_CHECKING:
    from banana_worker.run.call_context import CallContext, InitContext
    from banana_worker.run.schemas import Schemas


# Limit on calls at a time for a route with a batch function and no bound of its own: the operator sets one.
ANY_BATCH = 0xFFFF


class Example(NamedTuple):
    """A sample call that runs before the worker is ready."""

    route: str
    input: Any


class Description(NamedTuple):
    """The description that an app gives of itself, with the fields of the message `loaded` (docs/wire.md)."""

    routes: List[Route]
    # The app's own options, not validated: `{"runTimeout": "30s"}`.
    model_options: Dict[str, Any]
    example: Optional[Example] = None
    # The inputs and outputs of an app that describes them as tensors.
    signature: Optional[Signature] = None
    # Calls that the app takes at the same time; the operator may allow fewer.
    concurrency: int = 1
    # The way in which the app is written, for the front's description of itself.
    api: str = "banana"
    # The task of the model, by which clients call it.
    task: Optional[str] = None
    # Whether an embedding app takes texts as numbers of its tokens, too.
    token_input: bool = False


class LoadedApp:
    """An app that the worker can run. An adapter overrides the parts that its way of writing apps has."""

    description: Description
    # Whether the app allows that inputs run again when `handle_batch` raises.
    repeatable: bool = False
    # The name of `init` in the error message if it raises.
    init_step: str = "init"
    # The function of the app that `init` calls, to name it.
    init_function: Optional[Callable[..., Any]] = None

    def function(self, route: str) -> Optional[Callable[..., Any]]:
        """The app's function for calls of the route, to name it."""
        return None

    def wishes(self, route: str) -> InputWishes:
        return NO_WISHES

    def schemas(self, route: str) -> Optional[Schemas]:
        """None if nothing of the route is checked."""
        return None

    def surround(self, spec: StartSpec, send_metrics: Callable[[List[Metric]], None]) -> None:
        """Called once, before `init`. Metrics of calls must be sent before the answers of the calls."""

    def init(self, ctx: InitContext) -> Any:
        """Runs once, before the first call. An awaitable that it returns is awaited; the result is not used."""

    def handle(self, route: str, input: Any, ctx: CallContext) -> Any:
        """Answers one call.

        Returns a value, a `Reply`, an exception (it fails the call), a generator or an async generator, or an
        awaitable of one of these. For a WebSocket route, `input` is its `CallSocket`, and the return value is
        ignored.
        """
        raise NotImplementedError

    def handle_batch(self, route: str, inputs: List[Any], ctxs: List[CallContext]) -> Any:
        """Answers two or more calls of a route with `max_batch` above 1. Returns a list, or an awaitable of one,
        with an entry per input as `handle` would return it. If it raises, none of them is answered."""
        raise NotImplementedError

    @property
    def has_shutdown(self) -> bool:
        """Whether `shutdown` has something to run."""
        return False

    def shutdown(self) -> Any:
        """Runs when the worker is asked to stop. An awaitable that it returns is awaited."""


_USUAL_ATTEMPTS = 3
_MOST_ATTEMPTS = 100


class RepeatOptions(NamedTuple):
    # Whether inputs may run again; None: the app's `config` decides.
    repeatable: Optional[bool] = None
    # Most times that a job begins; None: as usual.
    attempts: Optional[int] = None


def repeat_options(repeatable: object, attempts: Any, where: str) -> RepeatOptions:
    """@raises TypeError if one of them has a wrong value; `where` names the place of the option"""
    if repeatable is not None and not isinstance(repeatable, bool):
        raise TypeError("%s: repeatable must be True or False" % where)
    if attempts is not None and not is_whole(attempts, 1, _MOST_ATTEMPTS):
        raise TypeError("%s: attempts must be a whole number from 1 to %d" % (where, _MOST_ATTEMPTS))
    return RepeatOptions(repeatable, attempts)


def attempts_of(route: RepeatOptions, config: RepeatOptions = RepeatOptions()) -> int:
    """Most times that a job of a route with these options begins. `config`: those of the whole app."""
    is_repeatable = config.repeatable if route.repeatable is None else route.repeatable
    return (route.attempts or config.attempts or _USUAL_ATTEMPTS) if is_repeatable else 1
