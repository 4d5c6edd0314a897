"""Starts an app, until it can take calls: import, `init`, one call with the example.

An error is a `StartFailure`, which ends the worker.
"""

from __future__ import annotations

import contextvars
import json
import os
import time
from typing import Any, Dict, Iterable, List

from banana_worker.failures.app_function import failed_outside, place_of
from banana_worker.failures.outlook import outlook_of
from banana_worker.failures.stack_frame import first_frame_outside, traceback_without_own_frames
from banana_worker.failures.thrown import described
from banana_worker.load.explain_load_error import StartFailure
from banana_worker.load.load_app import load_app
from banana_worker.process.ending import check_is_worker
from banana_worker.protocol.messages import Call, Route, StartSpec
from banana_worker.protocol.tables import MAX_SCHEMAS_BYTES, MAX_TEXT_CHARS
from banana_worker.reply.answer import WholeAnswer, answer_of
from banana_worker.reply.response import Response
from banana_worker.report.app_metrics import send_metrics
from banana_worker.run.call_context import CallContext
from banana_worker.run.loaded_app import Example, LoadedApp
from banana_worker.run.running_call import CallHost
from banana_worker.values.tensor import TensorSpec


def import_app(spec: StartSpec) -> LoadedApp:
    """@raises StartFailure, SystemExit"""
    try:
        if spec.service is not None:
            _enter(spec.service.model_dir)
        return load_app(spec)
    except StartFailure:
        raise
    except Exception as thrown:
        message = "%s: import raised: %s" % (_place(thrown, spec), described(thrown))
        raise StartFailure(message, outlook_of(thrown), traceback_without_own_frames(thrown)) from thrown


def _enter(model_dir: str) -> None:
    """Makes the model's folder the current one, because a service finds its files by their paths there. @raises
    StartFailure"""
    try:
        os.chdir(model_dir)
    except OSError as error:
        text = "%s: the model's folder cannot be entered: %s"
        raise StartFailure(text % (model_dir, error.strerror), outlook_of(error)) from error


def loaded_info(app: LoadedApp, concurrency: int) -> Dict[str, Any]:
    """The facts about an app that the front needs before its `init` has run. `concurrency`: the calls that run at the
    same time."""
    routes, model_options, example, signature, _, api, task, _ = app.description
    options = json.loads(json.dumps(model_options, default=str))
    info: Dict[str, Any] = {"routes": _route_fields(routes, app), "modelOptions": options}
    if signature is not None:
        info["signature"] = {"inputs": _spec_fields(signature.inputs), "outputs": _spec_fields(signature.outputs)}
    if task is not None:
        info["task"] = task
    if concurrency > 1:
        info["concurrency"] = concurrency
    return dict(info, api=api, example=_example_text(example), shutdown=app.has_shutdown)


def _spec_fields(specs: Iterable[TensorSpec]) -> List[Dict[str, Any]]:
    return [{"name": name, "datatype": datatype, "shape": list(shape)} for name, datatype, shape in specs]


def _route_fields(routes: List[Route], app: LoadedApp) -> List[Dict[str, Any]]:
    """With the JSON Schemas, as long as all together fit into the message."""
    fields, room = [_route_field(route) for route in routes], MAX_SCHEMAS_BYTES
    for field in fields:
        schemas = app.schemas(field["path"])
        texts = {} if schemas is None else schemas.json_schemas()
        size = sum(map(len, texts.values()))
        if 0 < size <= room:
            room -= size
            field["schemas"] = texts
    return fields


def _route_field(route: Route) -> Dict[str, Any]:
    path, kind, input, webhook, max_batch, attempts = route
    fields: Dict[str, Any] = {"path": path, "kind": kind, "input": input, "webhook": webhook, "maxBatch": max_batch}
    return fields if attempts == 1 else dict(fields, attempts=attempts)


def init_app(host: CallHost, spec: StartSpec) -> float:
    """Runs `init` and the example, and returns how many ms they took. @raises StartFailure, SystemExit"""
    began_at = time.perf_counter()
    app = host.app
    step = app.init_step
    try:
        app.surround(spec, lambda measured: send_metrics(host.channel, measured))
        host.tasks.settled(app.init(host.shared), lambda: False)
        step = "the example call"
        if app.description.example is not None:
            contextvars.copy_context().run(_run_example, app.description.example, host)
        check_is_worker(None)
    except BaseException as thrown:
        check_is_worker(thrown)
        function = app.init_function if step == app.init_step else app.function(app.description.routes[0].path)
        place = place_of(function) if failed_outside(thrown) else None
        raised = "%s: %s raised:" % (place or _place(thrown, spec), step)
        message = "%s %s" % (raised, described(thrown))
        detail = "" if place else "%s %s" % (raised, traceback_without_own_frames(thrown))
        raise StartFailure(message, outlook_of(thrown), detail, "SERVE_INIT_FAILED") from thrown
    return (time.perf_counter() - began_at) * 1000


def _place(thrown: BaseException, spec: StartSpec) -> str:
    return first_frame_outside(thrown) or spec.app


def _run_example(example: Example, host: CallHost) -> None:
    """Encodes the answer too, so that a wrong one fails before the worker is ready."""
    route = example.route
    call = Call(0, 0, 0, "example", route, route, "", "json", "", "", None, "")
    host.prints.begin("example")
    try:
        schemas = host.app.schemas(route)
        ctx = CallContext(call, b"", host.shared)
        input = example.input if schemas is None else schemas.accept_input(example.input)
        try:
            output = host.tasks.settled(host.app.handle(route, input, ctx), lambda: False)
        except Response as raised:
            output = raised
        answer = answer_of(output if schemas is None else schemas.accept_output(output), call)
        if not isinstance(answer, WholeAnswer):
            _drain(answer, host)
    finally:
        host.prints.end()


def _drain(chunks: Any, host: CallHost) -> None:
    async def drain() -> None:
        async for _ in chunks:
            pass

    if hasattr(chunks, "__anext__"):
        host.tasks.run(drain(), lambda: False)
    else:
        for _ in chunks:
            pass


def _example_text(example: Any) -> str:
    """The example as JSON; empty if it is too long for a message, or if JSON would change it."""
    if example is None:
        return ""
    try:
        text = json.dumps(example.input, allow_nan=False, separators=(",", ":"))
        is_whole = json.loads(text) == example.input
    except (TypeError, ValueError):
        return ""  # not JSON: the example itself is run and reported later
    return text if is_whole and len(text) <= MAX_TEXT_CHARS else ""
