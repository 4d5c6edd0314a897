"""The Banana way of writing an app: `init()` and `inference(model_inputs)` in a module."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

from banana_worker.adapters.exports import APP_OPTIONS, ModuleApp, assert_no_generator, function_or_none
from banana_worker.adapters.functions import parameters_of, then, with_context
from banana_worker.failures.app_function import WrongFunction
from banana_worker.formats.read_input import InputWishes, input_wishes
from banana_worker.protocol.messages import Route
from banana_worker.run.batch_entries import only_entry
from banana_worker.run.loaded_app import ANY_BATCH, Example, LoadedApp, attempts_of
from banana_worker.run.schemas import Schemas, declared_schemas

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
        routes = [Route(_ROUTE, max_batch=max_batch, attempts=attempts_of(self.repeat))]
        typed = "`inference` declares a type" if self._schemas is not None else ""
        self.description = self._described(routes, typed)._replace(
            example=Example(_ROUTE, module.example) if "example" in vars(module) else None
        )
        self._function = function or module.inference_batch

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


def annotated_schemas(function: Callable[..., Any], is_batch: bool) -> Optional[Schemas]:
    """The schemas in the annotations of a function: of its first parameter, and of its result. None if they name none.
    `is_batch`: it takes and returns lists of them."""
    parameters = parameters_of(function)
    first = parameters.positional[0] if parameters is not None and parameters.positional else ""
    return declared_schemas(*(_annotation(function, name, is_batch) for name in (first, "return")))


def _annotation(function: Any, name: str, is_batch: bool) -> Any:
    """The annotation, also one that is text, or has it: `List["In"]`. None if there is none, or if it names what is not
    there."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    try:
        # From Python 3.14 on, to read them may fail: a name may be there for type checkers alone.
        if not hasattr(function, "__annotations__"):
            function = getattr(function, "func", getattr(type(function), "__call__", None))
        function = getattr(function, "__func__", function)
        names = getattr(function, "__globals__", {})
        kind = _resolved(getattr(function, "__annotations__", {}).get(name), names)
        return _resolved(_item_of(kind), names) if is_batch else kind
    except Exception:
        return None


def _resolved(kind: Any, names: Dict[str, Any]) -> Any:
    text = getattr(kind, "__forward_arg__", kind)
    return eval(text, names) if isinstance(text, str) else kind  # noqa: S307 -- the app's own code


def _item_of(kind: Any) -> Any:
    """The type of the items of a list's type, such as `List[In]`."""
    items: Tuple[Any, ...] = getattr(kind, "__args__", ())
    return items[0] if len(items) == 1 else None
