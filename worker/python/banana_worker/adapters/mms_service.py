"""A custom service as in Multi Model Server: a function `handle(data, context)`, or a class with that method. `data`
is a list of items, or None for the call with which a function is loaded."""

from __future__ import annotations

import inspect
import json
import os
from functools import cached_property
from operator import itemgetter
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import mms.service
from mms.context import Context, ReadItem
from mms.metrics.metric import Metric as MmsMetric
from mms.metrics.metrics_store import StoredMetric, finite_number, texts_of

from banana_worker.adapters.functions import then
from banana_worker.adapters.exports import ModuleApp, concurrency_of, function_or_none
from banana_worker.adapters.service_answers import answers_of
from banana_worker.adapters.service_handler import Handler, assert_callable, find_handler
from banana_worker.formats.read_input import ITEMS, InputWishes, RAW_ITEMS
from banana_worker.protocol.messages import Metric, Route, ServiceSource, StartSpec
from banana_worker.report.metric_rules import number_of
from banana_worker.run.call_context import CallContext, InitContext
from banana_worker.run.loaded_app import ANY_BATCH, Description, LoadedApp, attempts_of
from banana_worker.text.json_limits import check_depth

Handle = Callable[[Any, Context], Any]

# Handlers of the originals turn the reading of items off with these, for their own process.
_READS_ITEMS = ("MMS_DECODE_INPUT_REQUEST", "TS_DECODE_INPUT_REQUEST")

_INIT_STEPS = {
    "function": "handle(None, context), the call that loads the model,",
    "class": "initialize",
    "old": "the service's constructor, or its initialize,",
}


def from_service(module: ModuleType, source: Optional[ServiceSource], model_dir: str) -> Optional[LoadedApp]:
    """`source`: the known facts about the service; None: the module shows whether it is one. `model_dir`: the folder
    with its files.

    Returns None if there is no handler. Raises TypeError that names an export of a wrong type.
    """
    manifest, is_old = _read_manifest(model_dir)
    handler = find_handler(module, "" if source is None else source.handler, is_old)
    return None if handler is None else _Service(module, handler, model_dir, manifest)


class _Service(ModuleApp):
    _context: Context
    _handle: Handle
    _spec: StartSpec
    _to_front: Callable[[List[Metric]], None]

    def __init__(
        self, module: ModuleType, handler: Handler, model_dir: str, manifest: Optional[Dict[str, Any]]
    ) -> None:
        assert_callable(handler)
        function_or_none(module, "shutdown")
        super().__init__(module)
        if concurrency_of(self.config) > 1:
            raise TypeError(
                "`config`: a custom service runs its calls in batches, never at the same time; remove concurrency and "
                "set batchSize"
            )
        route = Route("/", max_batch=ANY_BATCH, attempts=attempts_of(self.repeat))
        self.description = Description([route], self.model_options, api="mms")
        self.init_step = _INIT_STEPS[handler.style]
        self.init_function = handler.entry
        self._handler = handler
        self._model_dir = model_dir
        self._manifest = manifest
        # The items of the batch that runs.
        self._items: Sequence[ReadItem] = ()
        self._ctxs: Sequence[CallContext] = ()

    def function(self, route: str) -> Any:
        return self._handle if hasattr(self, "_handle") else self._handler.entry

    def wishes(self, route: str) -> InputWishes:
        return self._wishes

    @cached_property
    def _wishes(self) -> InputWishes:
        """Computed at the first call, because code that loads the model may set the environment."""
        raw_items = self._spec.raw_items
        if raw_items is None and "rawItems" in self.config:
            raw_items = self.config["rawItems"] is True
        if raw_items is None:
            raw_items = any(os.environ.get(name, "true") != "true" for name in _READS_ITEMS)
        return RAW_ITEMS if raw_items else ITEMS

    def surround(self, spec: StartSpec, send_metrics: Callable[[List[Metric]], None]) -> None:
        self._spec, self._to_front = spec, send_metrics

    def init(self, ctx: InitContext) -> Any:
        os.chdir(self._model_dir)
        spec = self._spec
        gpu = None if spec.gpu is None else 0
        batch_size = self._batch_size(spec)
        context = Context(spec.model, self._model_dir, self._manifest, batch_size, gpu, spec.server_version)
        context.worker, context.log, context._own_metrics = ctx.worker, ctx.log, ctx.metrics
        self._context = context
        mms.service._send = self._send_now
        try:
            begun = self._begin()
        finally:
            self._send_metrics(())
        return self._begun(begun) if inspect.isawaitable(begun) else None

    async def _begun(self, begun: Any) -> None:
        try:
            await begun
        finally:
            self._send_metrics(())

    def _batch_size(self, spec: StartSpec) -> int:
        own = self.config.get("batchSize")
        return spec.batch_size or (own if isinstance(own, int) else 1)

    def _begin(self) -> Any:
        """Loads the model. Returns the handler's output, which may be awaitable."""
        style, entry = self._handler
        if style == "function":
            self._handle = entry
            return entry(None, self._context)
        if style == "class":
            service = entry()
        else:
            gpu = self._context.system_properties["gpu_id"]
            service = entry(self._context.model_name, self._model_dir, self._manifest, gpu)
        self._handle = service.handle
        initialize = getattr(service, "initialize", None)
        return None if initialize is None else initialize(self._context)

    def handle(self, route: str, input: Any, ctx: CallContext) -> Any:
        return then(self._run([input], [ctx]), itemgetter(0))

    def handle_batch(self, route: str, inputs: List[Any], ctxs: List[CallContext]) -> Any:
        return self._run(inputs, ctxs)

    def _run(self, items: List[ReadItem], ctxs: List[CallContext]) -> Any:
        """Returns an answer for each item, or an awaitable of them; raises the handler's exception."""
        self._send_metrics(())  # metrics that the last batch added after its end belong to no call any more
        self._items, self._ctxs = items, ctxs
        self._context._begin_batch(items, ctxs)
        try:
            returned = self._handle([item.item for item in items], self._context)
            if not _has_awaitable(returned):
                return self._answers(returned, items, ctxs)
        except BaseException:
            self._failed(items, ctxs)
            raise
        return self._awaited(returned, items, ctxs)

    async def _awaited(self, returned: Any, items: List[ReadItem], ctxs: List[CallContext]) -> List[Any]:
        try:
            if inspect.isawaitable(returned):
                returned = await returned
            if isinstance(returned, list) and len(returned) == len(items):
                returned = await _results(returned)
            return self._answers(returned, items, ctxs)
        except BaseException:
            self._failed(items, ctxs)
            raise

    def _answers(self, returned: Any, items: List[ReadItem], ctxs: List[CallContext]) -> List[Any]:
        self._send_metrics(ctxs)
        return answers_of(
            returned,
            self._context,
            len(items),
            on_stream_end=lambda: self._send_metrics(ctxs),
            on_all_ended=lambda: self._end_batch(items, ctxs),
        )

    def _failed(self, items: List[ReadItem], ctxs: List[CallContext]) -> None:
        self._send_metrics(ctxs)
        may_run_again = self.repeatable and len(items) > 1
        if not may_run_again:
            self._end_batch(items, ctxs)

    def _end_batch(self, items: List[ReadItem], ctxs: List[CallContext]) -> None:
        """Frees the bodies, so that an idle worker keeps none.

        A stream whose client has left may still run when the next batch has begun.
        """
        for ctx in ctxs:
            ctx.forget_body()
        if self._items is items:
            self._items, self._ctxs = (), ()
            self._context._end_batch()

    def _send_metrics(self, ctxs: Sequence[CallContext]) -> None:
        self._send(self._context._take_metrics(), ctxs)

    def _send_now(self, metrics: List[MmsMetric]) -> None:
        """Sends metrics at once; those of this batch are not sent again at its end. Drops values that are neither text
        nor finite numbers. Raises TypeError or ValueError as adding them does."""
        metrics = [
            one for one in metrics if isinstance(one.value, str) or finite_number(one.name, one.value) is not None
        ]
        for metric in metrics:
            texts_of(metric.name, metric._short_unit, metric.dimensions)
        ids = {id(metric) for metric in metrics}
        cache = self._context.metrics.cache
        for key in [key for key, metric in cache.items() if id(metric) in ids]:
            del cache[key]
        self._send(metrics, self._ctxs)

    def _send(self, metrics: Sequence[MmsMetric], ctxs: Sequence[CallContext]) -> None:
        if metrics:
            self._to_front([_message(metric, ctxs) for metric in metrics])


def _has_awaitable(returned: Any) -> bool:
    return inspect.isawaitable(returned) or (
        isinstance(returned, list) and any(inspect.isawaitable(one) for one in returned)
    )


async def _results(promised: List[Any]) -> List[Any]:
    """Awaits the results, each at its place. An exception for one item fails that item alone."""
    import asyncio

    waited = [asyncio.ensure_future(one) for one in promised if inspect.isawaitable(one)]
    results = iter(await asyncio.gather(*waited, return_exceptions=True))
    return [next(results) if inspect.isawaitable(one) else one for one in promised]


def _message(metric: MmsMetric, ctxs: Sequence[CallContext]) -> Metric:
    kind = _kind_of(metric)
    lines: List[str] = []
    for dimension in metric.dimensions:
        lines += [dimension.name, dimension.value]
    if not any(one.name == "Level" and one.value in ("Model", "Error") for one in metric.dimensions):
        # Marks it as a metric of a service, which the front also writes to the log.
        lines += ["Level", "Error" if kind == "error" else "Model"]
    return Metric(
        kind=kind,
        name=metric.name,
        value=number_of(metric.value),
        unit=metric._short_unit,
        dimensions="\n".join(lines),
        call_ids=_call_ids(metric, ctxs),
    )


def _kind_of(metric: MmsMetric) -> str:
    if isinstance(metric, StoredMetric):
        return metric.kind
    if isinstance(metric.value, str):
        return "error"
    return "counter" if metric.metric_method == "counter" else "gauge"


def _call_ids(metric: MmsMetric, ctxs: Sequence[CallContext]) -> List[int]:
    if isinstance(metric, StoredMetric):
        if metric.kind == "error":
            return []
        return [ctx.call_id for ctx in (ctxs if metric.idx is None else ctxs[metric.idx : metric.idx + 1])]
    wanted = (metric.request_id or "").split(",")
    return [ctx.call_id for ctx in ctxs if ctx.request_id in wanted]


def _read_manifest(model_dir: str) -> Tuple[Optional[Dict[str, Any]], bool]:
    """The manifest, or None if the folder has none; and whether it is that of an archive of version 0.x, which lies beside
    the model's files. Raises an error with the file's path if it cannot be read, or is not a JSON object."""
    manifest = _read(os.path.join(model_dir, "MAR-INF", "MANIFEST.json"))
    if manifest is not None:
        return manifest, False
    old = _read(os.path.join(model_dir, "MANIFEST.json"))
    return old, old is not None


def _read(path: str) -> Optional[Dict[str, Any]]:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        text = data.decode("utf-8-sig")
        check_depth(text)
        value = json.loads(text)
    except ValueError as cause:
        raise ValueError(f"{path} is not JSON: {cause}") from cause
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply") from None
    if isinstance(value, dict):
        return value
    raise ValueError(f"{path} is not a JSON object")
