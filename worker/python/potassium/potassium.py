"""The class of a Potassium app: it collects the app's definition, which the worker's adapter `potassium_app.py`
runs."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Callable, List, Optional, TypeVar, Union

from banana_worker.in_worker import is_started_by_app, serve_in_worker
from banana_worker.protocol.tables import RESERVED_PATHS, RESERVED_PREFIXES
from banana_worker.stand_in import names_of_module

from .definition import Definition, Endpoint, declared_endpoint
from .exceptions import InvalidEndpointTypeException, RouteAlreadyInUseException
from .hooks import checked_url

if TYPE_CHECKING:
    import queue

    from .test_client import TestClient

__all__ = ["Potassium"]

F = TypeVar("F", bound=Callable[..., Any])

_NOT_GIVEN: Any = object()


class Potassium:
    """A Potassium app. Its decorators return the functions they are given."""

    def __init__(
        self,
        name: str,
        experimental_num_workers: int = 1,
        *,
        gpu: Any = _NOT_GIVEN,
        mode: Any = _NOT_GIVEN,
        backend: Any = _NOT_GIVEN,
    ) -> None:
        self.name = name
        self.experimental_num_workers = experimental_num_workers
        self.backend = "Flask"
        """Requests are the same for every backend: their JSON is read already."""
        self.to_optimize: List[Any] = []
        """Models given to `optimize` in that mode."""
        self.definition = Definition()
        self._mode = mode
        given = {"gpu": gpu, "mode": mode, "backend": backend}
        idle = [each for each, value in given.items() if value is not _NOT_GIVEN]
        if experimental_num_workers != 1:
            idle.append("experimental_num_workers")
        _warn_of(f"Potassium({name!r})", idle)

    def init(self, func: F) -> F:
        """Runs once per worker, before its first call; gets the worker's number if it takes one.

        A parameter named `ctx`, or a second one, gets the context of `init`: `ctx.worker`, `ctx.log` and
        `ctx.metrics`. Must return the context, a dictionary, unless it called `set_cache`.
        """
        self.definition.init = _checked_function(func, "init")
        return func

    def handler(
        self,
        route: Union[str, Callable[..., Any]] = "/",
        gpu: Any = _NOT_GIVEN,
        *,
        path: Optional[str] = None,
        raw: bool = False,
        forms: bool = False,
        text: bool = False,
        batch: bool = False,
        repeatable: Optional[bool] = None,
        attempts: Optional[int] = None,
        input: Any = None,
        output: Any = None,
    ) -> Any:
        """A route whose caller waits for the `Response`.

        `raw`: takes any body by its content type. `forms`, `text`: takes JSON and these. `batch`: takes requests
        together, as many as `--batch-size` allows, in a list. `repeatable`: inputs may run again, so a job that was lost,
        raised or passed its run limit is tried again, `attempts` (3) times in all. `input`, `output`: types that
        pydantic 2 checks, models, dataclasses or TypedDicts; `request.json` is an instance of the first. Used without parentheses, as in Potassium up to 0.0.4,
        it defines the one handler, at `/`; a later one replaces it. Raises RouteAlreadyInUseException.
        """
        if callable(route):
            return self._legacy_handler(route)
        _warn_of(f"handler({route!r})", [] if gpu is _NOT_GIVEN else ["gpu"])
        options = dict(repeatable=repeatable, attempts=attempts, input=input, output=output)
        return self._register("handler", path or route, raw=raw, forms=forms, text=text, batch=batch, **options)

    def background(
        self,
        route: str = "/",
        gpu: Any = _NOT_GIVEN,
        *,
        path: Optional[str] = None,
        raw: bool = False,
        forms: bool = False,
        text: bool = False,
        result_webhook: Optional[str] = None,
        repeatable: Optional[bool] = None,
        attempts: Optional[int] = None,
        input: Any = None,
    ) -> Callable[[F], F]:
        """A route that answers at once, and runs after that. The options are as for `handler`. Raises
        RouteAlreadyInUseException."""
        _warn_of(f"background({route!r})", [] if gpu is _NOT_GIVEN else ["gpu"])
        options = dict(repeatable=repeatable, attempts=attempts, input=input, result_webhook=result_webhook)
        return self._register("background", path or route, raw=raw, forms=forms, text=text, **options)

    def async_handler(self, route: str = "/", result_webhook: Optional[str] = None) -> Callable[[F], F]:
        """`background`, as Potassium 0.0.5 to 0.0.8 called it."""
        return self._register("background", route, result_webhook=result_webhook)

    def websocket(self, route: str = "/", *, path: Optional[str] = None) -> Callable[[F], F]:
        """A WebSocket: the function exchanges messages with one client, `request.ws`, and has the worker to itself
        until it returns.

        Then the connection is closed. Raises RouteAlreadyInUseException.
        """
        return self._register("websocket", path or route, raw=True)

    def result_webhook(self, url: str) -> Callable[[F], F]:
        """Posts the JSON answer of every handler that succeeds to this address. The last call wins."""
        self.definition.result_webhook = checked_url(url)
        return lambda func: func

    def set_cache(self, cache: Any) -> None:
        """Replaces this worker's context."""
        self.definition.context = cache
        self.definition.has_context = True

    def get_cache(self) -> Any:
        """This worker's context itself, not a copy: changes stay for later calls of the same worker."""
        return self.definition.context

    def set_context(self, context: Any) -> None:
        """The same as `set_cache`."""
        self.set_cache(context)

    def get_context(self) -> Any:
        """The same as `get_cache`."""
        return self.get_cache()

    def optimize(self, model: Any) -> None:
        """Registers a model in mode `optimize`; nothing otherwise."""
        if self._mode == "optimize":
            self.to_optimize.append(model)

    def serve(self, *arguments: Any, **options: Any) -> None:
        """Hands the app to the worker that imports its file, and ends that import: the lines behind it do not run.

        Host and port are the server's. Returns in a process that the app has started with `multiprocessing`, which
        only needs the file's functions. Raises RuntimeError if no server imports the file.
        """
        if arguments or options:
            warnings.warn("app.serve() ignores its arguments: host and port are options of banana-serve", stacklevel=2)
        serve_in_worker(self)
        if is_started_by_app():
            return
        raise RuntimeError(
            "app.serve() starts no server by itself: run `banana-serve app.py`, or use app.test_client() in a test"
        )

    def test_client(self) -> TestClient:
        """Runs `init` and returns a client that calls the app in this process, on one thread of its own."""
        from .test_client import TestClient

        return TestClient(self)

    def _read_event_chan(self) -> bool:
        """Waits until a background function has ended in a test client since the last call. Used by Potassium's own
        tests."""
        return self._event_chan().get()

    def _write_event_chan(self, event: bool) -> None:
        """Notes that a background function has ended, once for all ends that have not been read."""
        import queue

        with suppress(queue.Full):
            self._event_chan().put(event, block=False)

    def _event_chan(self) -> queue.Queue[bool]:
        """Made on first use: a test may wait before there is a test client, and a server needs no queue."""
        import queue

        return self.__dict__.setdefault("_events", queue.Queue(maxsize=1))

    def _legacy_handler(self, func: Callable[..., Any]) -> Callable[..., Any]:
        taken = self.definition.endpoints.get("/")
        if taken is not None and not taken.legacy:
            raise RouteAlreadyInUseException("/")
        self.definition.endpoints["/"] = Endpoint("handler", "any", legacy=True, run=func)
        return func

    def _register(self, kind: str, route: object, **options: Any) -> Callable[[F], F]:
        path = self._free_path(route)
        endpoint = declared_endpoint(kind, path, **options)
        # As with Potassium's decorator, the route is taken from now on, even if no function follows.
        self.definition.endpoints[path] = endpoint

        def take(func: F) -> F:
            run = _checked_function(func, f"{kind}({path!r})")
            self.definition.endpoints[path] = endpoint._replace(run=run)
            return func

        return take

    def _free_path(self, route: object) -> str:
        if not isinstance(route, str):
            raise InvalidEndpointTypeException
        path = route if route.startswith("/") else f"/{route}"
        if "?" in path or "#" in path:
            raise ValueError(f"a route must be a path without ? and #, not {path!r}")
        if path in RESERVED_PATHS or path.startswith(RESERVED_PREFIXES):  # the front answers these by itself
            raise RouteAlreadyInUseException(path, " is the server's own")
        if path in self.definition.endpoints:
            raise RouteAlreadyInUseException(path)
        return path


def _warn_of(where: str, names: List[str]) -> None:
    if not names:
        return
    verb = "has" if len(names) == 1 else "have"
    warnings.warn(
        f"{where}: {', '.join(names)} {verb} no effect; see banana-serve --help for the server's options", stacklevel=3
    )


def _checked_function(func: Any, what: str) -> Any:
    if not callable(func):
        raise TypeError(f"{what} needs a function, not {type(func).__name__}")
    return func


__getattr__ = names_of_module(__name__, __all__)
