"""`context`: the facts about its model, its worker and its requests for a custom service; and the items that it gets."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from banana_worker.stand_in import names_of_module

from .metrics.metrics_store import MadeMetrics, MetricsStore, StoredMetric
from .request_processor import RequestProcessor as RequestProcessor, RequestProperties

# One request of a batch: a value for each field of a form and each parameter of the query, or `body` for the whole of
# any other body. A value of type `application/json` is decoded, one of `text/...` is a str, any other a bytearray.
Item = Dict[str, Any]


class ItemPart(NamedTuple):
    """One field as it was sent."""

    name: str
    # None if the part is not a file.
    filename: Optional[str]
    # Without its parameters, in lower case; empty if none was sent.
    content_type: str
    data: bytes


class ReadItem(NamedTuple):
    """An item as it was read from a request."""

    item: Item
    # Every field in the order in which it was sent, those of the query first.
    parts: Sequence[ItemPart]

    def field_types(self) -> Dict[str, str]:
        """The content type of each field, by its name."""
        return {part.name: part.content_type for part in self.parts}


__all__ = ["Context", "RequestProcessor"]

SERVER_NAME = "MMS"


class Context:
    """One object for the whole life of a worker.

    The parts that belong to requests are replaced before each batch; `idx` is the number of an item in `data`. While
    the model is loaded there are no items: methods that need one raise IndexError then.
    """

    # The same as `ctx.worker`, `ctx.log` and `ctx.metrics` of other apps; None outside a worker.
    worker: Any = None
    log: Any = None
    _own_metrics: Any = None

    def __init__(
        self,
        model_name: str,
        model_dir: str,
        manifest: Optional[Dict[str, Any]],
        batch_size: int,
        gpu: Optional[int],
        mms_version: str,
    ) -> None:
        self.model_name = model_name
        # `MAR-INF/MANIFEST.json` of the model's folder; None if there is none.
        self.manifest = manifest
        self._model_dir = model_dir
        self._system_properties = {
            "model_dir": model_dir,
            "gpu_id": gpu,
            "batch_size": batch_size,
            "server_name": SERVER_NAME,
            "server_version": mms_version,
        }
        self._model_config: Optional[Dict[str, Any]] = None
        self._items: Sequence[ReadItem] = ()
        # Contexts of the calls; None while the model is loaded.
        self._calls: Optional[Sequence[Any]] = None
        self._request_ids: Optional[Dict[int, str]] = None
        self._processors: Optional[List[Optional[RequestProcessor]]] = None
        self._metrics: Optional[MetricsStore] = None
        self._made_metrics: MadeMetrics = {}

    @property
    def system_properties(self) -> Dict[str, Any]:
        """`model_dir`, `gpu_id` (None on the CPU), `batch_size`, `server_name` and `server_version`.

        `gpu_id` counts only the GPUs that this worker sees: it is 0, because the worker sees one.
        """
        return self._system_properties

    @property
    def model_yaml_config(self) -> Dict[str, Any]:
        """The content of the file that the manifest names as `model.configFile`; empty if it names none. It is read
        once.

        Raises AttributeError if it is YAML and there is no PyYAML, OSError if it cannot be read.
        """
        if self._model_config is None:
            self._model_config = read_model_config(self._model_dir, self.manifest)
        return self._model_config

    @model_yaml_config.setter
    def model_yaml_config(self, config: Dict[str, Any]) -> None:
        self._model_config = config

    @property
    def request_ids(self) -> Optional[Dict[int, str]]:
        """Ids of the requests by the numbers of their items; None while the model is loaded."""
        if self._request_ids is None and self._calls is not None:
            self._request_ids = {idx: call.request_id for idx, call in enumerate(self._calls)}
        return self._request_ids

    @request_ids.setter
    def request_ids(self, request_ids: Optional[Dict[int, str]]) -> None:
        self._request_ids = request_ids

    @property
    def request_processor(self) -> Optional[List[RequestProcessor]]:
        """One for each item; None while the model is loaded."""
        if self._processors is None:
            return None
        return [self._processor(idx) for idx in range(len(self._processors))]

    @request_processor.setter
    def request_processor(self, processors: Optional[Sequence[RequestProcessor]]) -> None:
        self._processors = None if processors is None else list(processors)

    @property
    def metrics(self) -> MetricsStore:
        """Metrics of this batch, or of the load."""
        if self._metrics is None:
            self._metrics = MetricsStore(
                self.request_ids,
                self.model_name,
                self._own_metrics,
                self._made_metrics,
                lambda: self.metrics,
            )
        return self._metrics

    @metrics.setter
    def metrics(self, metrics: Optional[MetricsStore]) -> None:
        self._metrics = metrics

    def get_request_id(self, idx: int = 0) -> Optional[str]:
        """The id of a request, which is also in its reply and in the log; None if there is no such item."""
        return (self.request_ids or {}).get(idx)

    def get_request_header(self, idx: int, key: str) -> Optional[str]:
        """A header of the request, by its name in any case; None if it was not sent."""
        return self._processor(idx).get_request_property(key)

    def get_all_request_header(self, idx: int) -> RequestProperties:
        """All headers of the request by names in any case, and `{"content-type": ...}` for each field of the item."""
        return self._processor(idx).get_request_properties()

    def get_parts(self, idx: int) -> List[ItemPart]:
        """Every field of the request as it was sent, repeated ones included; none once the batch is answered."""
        self._processor(idx)
        return list(self._items[idx].parts) if idx < len(self._items) else []

    @property
    def jobs(self) -> Optional[List[Any]]:
        """One for each item: the job that it is an attempt at, with `id` and `attempt`, or None if its client waits.
        None while the model is loaded."""
        return None if self._calls is None else [call.job for call in self._calls]

    @property
    def job(self) -> Any:
        """The job of the first item."""
        return (self.jobs or [None])[0]

    def progress(self, fraction: float, text: str = "", idx: Optional[int] = None) -> None:
        """Reports how far the job of an item is, or those of all: a fraction from 0 to 1, and up to 200 characters."""
        if idx is not None:
            self._processor(idx)
        calls = self._calls or ()
        for call in calls if idx is None else calls[idx : idx + 1]:
            call.progress(fraction, text)

    def cancelled(self, idx: int = 0) -> bool:
        """True once the answer of this item is not needed any more: its client has left, or a limit has passed."""
        self._processor(idx)
        return self._calls is not None and bool(self._calls[idx].cancelled)

    def set_response_content_type(self, idx: int, value: str) -> None:
        """Sets the content type; without it, it follows from the result."""
        self.set_response_header(idx, "content-type", value)

    def get_response_content_type(self, idx: int) -> Optional[str]:
        return self._processor(idx).get_response_header("content-type")

    def set_response_header(self, idx: int, key: str, value: object) -> None:
        """Sets a header of the answer, replacing one of the same name. Raises ValueError if it contains a line
        break."""
        self._processor(idx).add_response_property(key, value)

    def get_response_headers(self, idx: int) -> Dict[str, str]:
        return self._processor(idx).get_response_headers()

    def set_response_status(self, code: int = 200, phrase: str = "", idx: int = 0) -> None:
        """Sets the status of one item, and the phrase beside it. Raises ValueError unless it is from 200 to 599."""
        self._processor(idx).report_status(code, phrase)

    # Names of both methods in some versions of Multi Model Server.
    set_http_response_status = set_response_status

    def get_http_response_status(self, idx: int) -> Tuple[int, str]:
        return self.get_response_status(idx)

    def set_all_response_status(self, code: int = 200, phrase: str = "") -> None:
        """Sets the status of every item of the batch."""
        for processor in self.request_processor or ():
            processor.report_status(code, phrase)

    def get_response_status(self, idx: int) -> Tuple[int, str]:
        """Status and phrase of an item."""
        processor = self._processor(idx)
        return processor.get_response_status_code(), processor.get_response_status_phrase()

    def _processor(self, idx: int) -> RequestProcessor:
        if self._processors is None:
            raise IndexError("there is no item {} while the model is loaded".format(idx))
        if not (isinstance(idx, int) and 0 <= idx < len(self._processors)):
            raise IndexError("there is no item {}; this batch has {} items".format(idx, len(self._processors)))
        processor = self._processors[idx]
        if processor is None:
            processor = RequestProcessor(self._calls[idx].headers, self._field_types(idx))  # type: ignore[index]
            self._processors[idx] = processor
        return processor

    def _field_types(self, idx: int) -> Any:
        return lambda: self._items[idx].field_types() if idx < len(self._items) else {}

    def _begin_batch(self, items: Sequence[ReadItem], calls: Sequence[Any]) -> None:
        """Gives the context the requests of the next batch, and a new store of metrics."""
        self._items = items
        self._calls = calls
        self._request_ids = None
        self._processors = [None for _ in calls]
        self._metrics = None

    def _end_batch(self) -> None:
        """The batch is answered: frees the bodies of its requests; their ids and headers stay until the next one."""
        self._items = ()
        self._processors = [None for _ in self._processors or ()]

    def _take_metrics(self) -> List[StoredMetric]:
        """Takes the metrics that were added since the last call."""
        return [] if self._metrics is None else self._metrics._take()

    def _processor_if_asked(self, idx: int) -> Optional[RequestProcessor]:
        """The processor of an item; None if the service has not used it."""
        return None if self._processors is None else self._processors[idx]


def read_model_config(model_dir: str, manifest: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    """The content of the file that the manifest names as `model.configFile`; empty if it names none.

    Raises AttributeError if it is YAML and there is no PyYAML, so that `hasattr` finds none; ValueError if it is not
    a mapping.
    """
    name = ((manifest or {}).get("model") or {}).get("configFile")
    if not name:
        return {}
    path = os.path.join(model_dir, name)
    with open(path, encoding="utf-8") as file:
        config = json.load(file) if name.endswith(".json") else _yaml_of(path).safe_load(file)
    if config is None:
        return {}
    if not isinstance(config, dict):
        raise ValueError("{}: a model's configuration is names and values, not {}".format(path, type(config).__name__))
    return config


def _yaml_of(path: str) -> Any:
    try:
        import yaml  # pyright: ignore[reportMissingModuleSource]
    except ImportError as error:
        raise AttributeError("{} is YAML, which is read by PyYAML: pip install pyyaml".format(path)) from error
    return yaml


__getattr__ = names_of_module(__name__, __all__)
