"""The error with which a custom service chooses its client's status, and `emit_metrics`."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from banana_worker.stand_in import names_of_module

from .context import Context, RequestProcessor
from .metrics.metric import Metric

__all__ = ["PredictionException", "Service", "emit_metrics"]

# Sends metrics at once; None outside a worker.
_send: Optional[Callable[[List[Metric]], None]] = None


class PredictionException(Exception):
    """If a service raises it, every item of the batch fails; if it is returned in place of a result, only that item.

    On Multi Model Server's paths the client gets `error_code` as the status, and the message. `error_code` is a
    status from 400 to 599; any other number counts as 500.
    """

    def __init__(self, message: str, error_code: int = 500) -> None:
        super().__init__(message)
        self.message = message
        self.error_code = error_code

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.message, self.error_code)

    def __str__(self) -> str:
        return "{} : {}".format(self.message, self.error_code)


def emit_metrics(metrics: Union[Mapping[Any, Metric], Iterable[Metric], None]) -> None:
    """Sends metrics now, and not at the end of the batch. Outside a worker they are lines of the log."""
    listed = list(metrics.values() if isinstance(metrics, Mapping) else metrics or ())
    if _send is not None:
        _send(listed)
        return
    import logging

    for metric in listed:
        logging.getLogger(__name__).info("[METRICS]%s", metric)


class Service:
    """A handler with its context, for tests that call a handler as the server does."""

    def __init__(
        self,
        model_name: str,
        model_dir: str,
        manifest: Optional[Dict[str, Any]],
        entry_point: Callable[[Any, Context], Any],
        gpu: Optional[int],
        batch_size: int,
    ) -> None:
        from . import __version__

        self._context = Context(model_name, model_dir, manifest, batch_size, gpu, __version__)
        self._entry_point = entry_point

    @property
    def context(self) -> Context:
        return self._context

    def predict(self, batch: Iterable[Mapping[str, Any]]) -> Any:
        """Returns the handler's output for requests in the form of Multi Model Server's messages.

        Each has `requestId`, `parameters` (dicts of `name`, `value`, `contentType`) and, if there are any, `headers`
        (dicts of `name` and `value`).
        """
        processors, items, request_ids = self.retrieve_data_for_inference(batch)
        self._context.request_ids = request_ids
        self._context.request_processor = processors
        self._context.metrics = None
        return self._entry_point(items, self._context)

    @staticmethod
    def retrieve_data_for_inference(
        batch: Optional[Iterable[Mapping[str, Any]]],
    ) -> Tuple[List[RequestProcessor], List[Dict[str, Any]], Dict[int, str]]:
        """Processors, items and ids of requests in the form that `predict` takes."""
        if batch is None:
            raise ValueError("Received invalid inputs")
        processors: List[RequestProcessor] = []
        items: List[Dict[str, Any]] = []
        ids: Dict[int, str] = {}
        for idx, request in enumerate(batch):
            parameters = request["parameters"]
            types = {_text(one["name"]): _text(one.get("contentType") or "") for one in parameters}
            headers = {_text(one["name"]).lower(): _text(one["value"]) for one in request.get("headers") or ()}
            processors.append(RequestProcessor(headers, lambda types=types: types))
            items.append({_text(one["name"]): one["value"] for one in parameters})
            ids[idx] = _text(request["requestId"])
        return processors, items, ids


def _text(value: Union[str, bytes]) -> str:
    return value if isinstance(value, str) else bytes(value).decode()


__getattr__ = names_of_module(__name__, __all__)
