"""Handlers through the test client, as tests of Potassium apps are written: the app is made inside the test."""

import asyncio
import os
import signal
import threading

import pytest

import potassium


def test_each_route_has_its_handler():
    app = potassium.Potassium("my_app")

    @app.init
    def init():
        return {"greeting": "hello"}

    @app.handler()
    def root(context: dict, request: potassium.Request) -> potassium.Response:
        return potassium.Response(json={context["greeting"]: "root"}, status=200)

    @app.handler("/some/child")
    def child(context: dict, request: potassium.Request) -> potassium.Response:
        return potassium.Response(json={"asked": request.json}, status=201)

    client = app.test_client()
    answer = client.post("/", json={})
    assert (answer.status_code, answer.json) == (200, {"hello": "root"})
    answer = client.post("/some/child", json={"a": "é"})
    assert (answer.status_code, answer.get_json()) == (201, {"asked": {"a": "é"}})
    assert client.post("some/child", data="[1]", content_type="application/json").json == {"asked": [1]}


def test_the_context_is_live_and_one_thread_runs_everything():
    app = potassium.Potassium("my_app")
    seen = set()

    @app.init
    def init(worker_num):
        seen.add(threading.current_thread())
        return {"calls": worker_num}

    @app.handler()
    def handler(context, request):
        seen.add(threading.current_thread())
        context["calls"] += 1
        return potassium.Response(json=context["calls"])

    with app.test_client() as client:
        assert [client.post("/", json=None).json for _ in range(3)] == [1, 2, 3]
    assert len(seen) == 1
    assert threading.current_thread() not in seen


def test_an_app_of_the_first_generation_has_one_handler_with_cache_and_json():
    app = potassium.Potassium("server")

    @app.init
    def init():
        app.optimize(object())
        return app.set_cache({"greeting": "hello"})

    @app.handler
    def handler(cache: dict, json_in: dict) -> dict:
        return {"text": f"{cache.get('greeting')} {json_in['name']}"}

    answer = app.test_client().post("/", data='{"name": "you"}')
    assert (answer.status_code, answer.json) == (200, {"text": "hello you"}), "any content type"


def test_async_handlers_share_one_event_loop():
    app = potassium.Potassium("my_app")
    loops = []

    @app.init
    async def init():
        loops.append(asyncio.get_running_loop())
        return {}

    @app.handler()
    async def handler(context, request):
        await asyncio.sleep(0)
        loops.append(asyncio.get_running_loop())

        async def body():
            for i in range(3):
                await asyncio.sleep(0)
                yield f"{i} "

        return potassium.Response(body=body())

    client = app.test_client()
    assert [client.post("/", json={}).text for _ in range(2)] == ["0 1 2 "] * 2
    assert len(set(map(id, loops))) == 1


def test_a_request_has_id_headers_query_and_body():
    app = potassium.Potassium("my_app")

    @app.handler("/", raw=True)
    def handler(context, request):
        told = [request.id, request.headers["X_NAME"], request.query, len(request.body), request.cancelled]
        return potassium.Response(json=told)

    headers = {"X-Banana-Request-Id": "mine", "x-name": "you"}
    client = app.test_client()
    sent = {"data": b"\x00\xff", "content_type": "application/octet-stream"}
    answer = client.post("/?a=1", headers=headers, query_string={"b": 2}, **sent)
    assert answer.json == ["mine", "you", {"a": ["1"], "b": ["2"]}, 2, False]
    assert answer.headers["x-request-id"] == "mine"


def test_forms_are_read_for_routes_that_accept_them():
    app = potassium.Potassium("my_app")

    @app.handler("/", forms=True)
    def handler(context, request):
        return potassium.Response(json=request.json)

    assert app.test_client().post("/", data={"name": "you", "tag": ["a", "b"]}).json == {
        "name": "you",
        "tag": ["a", "b"],
    }


@pytest.mark.parametrize(
    "request_of_it, code",
    [
        ({"data": "{", "content_type": "application/json"}, "SERVE_BAD_BODY"),
        ({"data": "", "content_type": "application/json"}, "SERVE_BAD_BODY"),
        ({"data": "{}"}, "SERVE_BAD_REQUEST"),
        ({"data": "{}", "content_type": "text/plain"}, "SERVE_BAD_REQUEST"),
    ],
)
@pytest.mark.parametrize("kind", ["handler", "background"])
def test_a_body_that_is_not_json_is_refused_and_counted_and_never_reaches_the_app(kind, request_of_it, code):
    app = potassium.Potassium("my_app")
    getattr(app, kind)("/")(lambda context, request: pytest.fail("it was called"))
    client = app.test_client()
    answer = client.post("/", **request_of_it)
    assert (answer.status_code, answer.json["error"]["code"]) == (400, code)
    assert client.get("/_k/status").json["sequence_number"] == 1


@pytest.mark.parametrize(
    "method, path, status, counted",
    [("POST", "/nope", 404, 1), ("GET", "/nope", 404, 0), ("GET", "/", 405, 0), ("POST", "/ws", 426, 1)],
)
def test_other_paths_and_methods_are_refused(method, path, status, counted):
    app = potassium.Potassium("my_app")
    app.handler("/")(lambda context, request: pytest.fail("it was called"))
    app.websocket("/ws")(lambda context, request: pytest.fail("it was called"))
    client = app.test_client()
    assert client.open(path, method=method, json={}).status_code == status
    assert client.get("/_k/status").json["sequence_number"] == counted


def test_test_client_raises_the_exception_of_init():
    app = potassium.Potassium("my_app")
    app.init(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        app.test_client()


@pytest.mark.parametrize("kind", [ValueError, SystemExit])
def test_a_handler_that_raises_is_a_500_and_the_traceback_is_printed(kind, capfd):
    app = potassium.Potassium("my_app")

    @app.handler()
    def handler(context, request):
        raise kind("secret detail")

    client = app.test_client()
    answer = client.post("/", json={})
    assert (answer.status_code, answer.json["error"]["code"]) == (500, "SERVE_INFERENCE_FAILED")
    assert "secret" not in answer.text
    assert f"{kind.__name__}: secret detail" in capfd.readouterr().err
    status = client.get("/_k/status").json
    assert (status["gpu_available"], status["inference_time"]) == (True, 0)


def test_a_forked_process_gets_an_error_about_its_parents_client():
    app = potassium.Potassium("my_app")

    @app.handler()
    def root(context: dict, request: potassium.Request) -> potassium.Response:
        return potassium.Response(json={})

    client = app.test_client()
    child = os.fork()
    if child == 0:
        signal.alarm(120)  # the child has no thread that could answer
        try:
            client.post("/", json={})
        except RuntimeError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert client.post("/", json={}).status_code == 200
