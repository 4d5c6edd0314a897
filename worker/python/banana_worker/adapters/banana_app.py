"""The Banana way of writing an app: `init()` and `inference(model_inputs)` in a module."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, List, Optional

from banana_worker.loaded_app import ANY_BATCH, LoadedApp
from banana_worker.messages import Route

if TYPE_CHECKING:
    from banana_worker.call_context import CallContext, InitContext


class BananaApp(LoadedApp):
    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._inference: Callable[..., Any] = getattr(module, "inference")
        self._batch: Optional[Callable[..., Any]] = getattr(module, "inference_batch", None)
        self._takes_ctx = _takes_ctx(self._inference)
        self.routes = [Route("/", max_batch=1 if self._batch is None else ANY_BATCH)]

    def init(self, ctx: InitContext) -> Any:
        init = getattr(self._module, "init", None)
        return None if init is None else init()

    def handle(self, route: str, input: Any, ctx: CallContext) -> Any:
        return self._inference(input, ctx) if self._takes_ctx else self._inference(input)

    def handle_batch(self, route: str, inputs: List[Any], ctxs: List[CallContext]) -> Any:
        assert self._batch is not None
        return self._batch(inputs, ctxs)


def from_banana_app(module: ModuleType) -> Optional[LoadedApp]:
    """Returns None if the module is no Banana app."""
    return BananaApp(module) if callable(getattr(module, "inference", None)) else None


def _takes_ctx(inference: Callable[..., Any]) -> bool:
    """A second parameter without a default, or named `ctx` or `context`, is the call's `ctx`."""
    parameters = list(inspect.signature(inference).parameters.values())
    if len(parameters) < 2:
        return False
    second = parameters[1]
    return second.default is second.empty or second.name in ("ctx", "context")
