"""The messages of the wire that this worker knows by name. docs/wire.md explains each field."""

from __future__ import annotations

from typing import List, Mapping, NamedTuple, Optional, Tuple, Union

from banana_worker.protocol.tables import MAX_CONCURRENCY


class Call(NamedTuple):
    """A call as the wire carries it; its body travels beside it."""

    id: int
    body_bytes: int
    # Bytes of the body that came in the frame of the call.
    inline_bytes: int
    request_id: str
    route: str
    path: str
    # Without `?`.
    query: str
    # auto, websocket, or the name of a file in `formats/`
    format: str
    content_type: str
    accept: str
    # Milliseconds since 1970; None: no deadline.
    deadline_ms: Optional[float]
    # Lines: `name\nvalue\nname\nvalue`.
    headers: str
    method: str = "POST"
    # Parameters that the front took from the path or from fields of the body, written like `query`.
    params: str = ""
    # An answer in JSON must be pure ASCII.
    ascii_json: bool = False
    # Name of the format that writes the answer; auto: by the value and `accept`.
    answer: str = "auto"
    # Parameters of the dialect for its own formats, written like `query`; the app does not get them.
    dialect_params: str = ""
    # Id of the job of which the call is an attempt, and the number of the attempt; empty if its client waits.
    job_id: str = ""
    job_attempt: int = 0


def header_lines(headers: str) -> List[Tuple[str, str]]:
    """Names and values of headers as the wire has them."""
    parts = headers.split("\n") if headers else []
    return list(zip(parts[::2], parts[1::2]))


class ServiceSource(NamedTuple):
    """The place of a custom service."""

    # Name of a function or a class in the app's file; empty: found by rule.
    handler: str
    # Absolute path of the folder that the model's files are in.
    model_dir: str


class StartSpec(NamedTuple):
    # Absolute path.
    app: str
    # The app's place in that file; empty: its only one.
    app_place: str
    model: str
    version: str
    # Number of the slot, from 0.
    worker: int
    # As in CUDA_VISIBLE_DEVICES; None: no GPU.
    gpu: Optional[str]
    # Cores that this worker may use.
    threads: int
    max_output_bytes: int
    stream_window_bytes: int
    # Empty, or the mark of docs/wire.md, "Print marks".
    print_mark: str
    # The operator's limit on calls that begin together; 0: the app decides.
    batch_size: int
    server_version: str
    # Whether a custom service gets items of bytes; None: the app decides.
    raw_items: Optional[bool]
    service: Optional[ServiceSource]
    # From now on until `ready`; None: no limit.
    ready_within_ms: Optional[float] = None
    # Environment variables to set before the app is loaded: the process was started before its slot was known.
    env: Mapping[str, str] = {}
    # The operator's limit on calls that run at the same time.
    concurrency: int = MAX_CONCURRENCY


class Route(NamedTuple):
    path: str
    # handler, background or websocket
    kind: str = "handler"
    # any or json
    input: str = "any"
    # URL to which the front posts the JSON answers of the route; empty: none.
    webhook: str = ""
    # Limit on calls that may begin together.
    max_batch: int = 1
    # Limit on the times that a job of the route begins; 1 unless the app says that its inputs may run again.
    attempts: int = 1


class Metric(NamedTuple):
    # counter, gauge, time, size, percent, error or histogram
    kind: str
    name: str
    # Text only for an `error`.
    value: Union[int, float, str]
    unit: str = ""
    # Lines: `name\nvalue`.
    dimensions: str = ""
    call_ids: List[int] = []
