"""The Banana way of writing an app: `init()` and `inference(model_inputs)` in a module."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, List, Optional

from banana_worker.adapters.coroutine_functions import then
from banana_worker.adapters.exports import (
    APP_OPTIONS,
    ModuleApp,
    assert_no_generator,
    concurrency_of,
    function_or_none,
    signature_of,
    takes_tokens,
    task_of,
)
from banana_worker.adapters.parameters import with_context
from banana_worker.adapters.schemas import BESIDE_SIGNATURE, annotated_schemas
from banana_worker.failures.app_function import WrongFunction
from banana_worker.formats.read_input import InputWishes, input_wishes
from banana_worker.protocol.messages import Route
from banana_worker.run.batch_entries import only_entry
from banana_worker.run.loaded_app import ANY_BATCH, Description, Example, LoadedApp, Schemas, attempts_of

if TYPE_CHECKING:
    from banana_worker.run.call_context import CallContext, InitContext

_ROUTE = "/"

Function = Callable[..., Any]


class BananaApp(ModuleApp):
    own_options = APP_OPTIONS

    def __init__(self, module: ModuleType) -> None:
        self._batch = _function(module, "inference_batch", 1)
        self._inference = _function(module, "inference", 1) or self._infer_alone
        self._init = _function(module, "init", 0)
        self.init_function = getattr(module, "init", None)
        assert_no_generator(self.init_function)
        super().__init__(module)
        self._wishes = input_wishes(self.config, "`config`")
        function = getattr(module, "inference", None)
        self._schemas = annotated_schemas(function or module.inference_batch, function is None)
        max_batch = 1 if self._batch is None else ANY_BATCH
        self.description = Description(
            routes=[Route(_ROUTE, max_batch=max_batch, attempts=attempts_of(self.repeat))],
            model_options=self.model_options,
            example=Example(_ROUTE, module.example) if "example" in vars(module) else None,
            signature=signature_of(module),
            concurrency=concurrency_of(self.config),
            task=task_of(module),
            token_input=takes_tokens(module),
        )
        self._function = function or module.inference_batch
        if self._schemas is not None and self.description.signature is not None:
            raise TypeError(BESIDE_SIGNATURE % "`inference` declares a type")

    def function(self, route: str) -> Function:
        return self._function

    def wishes(self, route: str) -> InputWishes:
        return self._wishes

    def schemas(self, route: str) -> Optional[Schemas]:
        return self._schemas

    def init(self, ctx: InitContext) -> Any:
        return None if self._init is None else self._init(ctx)

    def handle(self, route: str, input: Any, ctx: CallContext) -> Any:
        return self._inference(input, ctx)

    def _infer_alone(self, input: Any, ctx: CallContext) -> Any:
        """A batch of one, for an app without `inference`."""
        return then(self.handle_batch(_ROUTE, [input], [ctx]), only_entry)

    def handle_batch(self, route: str, inputs: List[Any], ctxs: List[CallContext]) -> Any:
        assert self._batch is not None, "calls come one by one to an app without inference_batch"
        return self._batch(inputs, ctxs)


def from_banana_app(module: ModuleType) -> Optional[LoadedApp]:
    """Returns None if the module is not a Banana app. @raises TypeError that names an export of a wrong type"""
    is_app = callable(getattr(module, "inference", None)) or hasattr(module, "inference_batch")
    return BananaApp(module) if is_app else None


def _function(module: ModuleType, name: str, before: int) -> Optional[Function]:
    """The function of this name, to be called with `before` arguments and a context; None if the module has none."""
    value = function_or_none(module, name)
    if value is None:
        return None
    try:
        return with_context(value, before)
    except TypeError as wrong:
        raise WrongFunction(value, f"`{name}` {wrong}: write `def {name}({_INPUTS[name]})`") from None


_INPUTS = {"inference": "model_inputs", "inference_batch": "inputs, ctxs", "init": ""}
