"""Calls and modules for the tests of custom services."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Dict, List, Optional

from banana_worker.adapters.mms_service import from_service
from banana_worker.protocol.messages import Call, Metric, ServiceSource, StartSpec
from banana_worker.run.call_context import InitContext, WorkerInfo
from banana_worker.run.loaded_app import LoadedApp

WORKER = WorkerInfo(0, None, 1)


def call_of(content_type: str = "application/json", **fields: Any) -> Call:
    given: Dict[str, Any] = dict(
        id=7,
        body_bytes=0,
        inline_bytes=0,
        request_id="r7",
        route="/",
        path="/",
        query="",
        format="auto",
        content_type=content_type,
        accept="",
        deadline_ms=None,
        headers="",
    )
    return Call(**{**given, **fields})


def spec_of(**fields: Any) -> StartSpec:
    given: Dict[str, Any] = dict(
        app="/models/m/service.py",
        app_place="",
        model="m",
        version="1",
        worker=0,
        gpu=None,
        threads=1,
        max_output_bytes=1000,
        stream_window_bytes=1000,
        print_mark="",
        batch_size=0,
        server_version="0.1.0",
        raw_items=None,
        service=None,
    )
    return StartSpec(**{**given, **fields})


def module_of(source: str, name: str = "service") -> ModuleType:
    module = ModuleType(name)
    exec(source, module.__dict__)
    return module


class FakeCtx:
    """The parts of a call's context that a service uses."""

    def __init__(self, call_id: int) -> None:
        self.call_id = call_id
        self.request_id = f"r{call_id}"
        self.headers: Dict[str, str] = {}
        self.cancelled = False
        self.forgotten = False

    def forget_body(self) -> None:
        self.forgotten = True


class Loaded:
    """A service of this source, loaded as a worker does it."""

    def __init__(self, source: str, model_dir: str, handler: Optional[str] = None, **spec: Any) -> None:
        place = None if handler is None else ServiceSource(handler, model_dir)
        app = from_service(module_of(source), place, model_dir)
        assert app is not None, "no handler was found"
        self.app: LoadedApp = app
        self.metrics: List[Metric] = []
        app.surround(spec_of(**spec), self.metrics.extend)

    def init(self) -> Any:
        return self.app.init(InitContext(WORKER, None, None))  # type: ignore[arg-type]
