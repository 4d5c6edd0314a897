"""Background functions, and the status while they run."""

import threading
import time

import pytest

import potassium


def until(client, is_so):
    """Polls the status until `is_so` returns True."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        status = client.get("/__status__", json={}).json
        if is_so(status):
            return status
        time.sleep(0.01)
    pytest.fail(f"never so: {status}")


@pytest.mark.parametrize("path", ["/__status__", "/_k/status"])
def test_the_status_follows_a_call_from_its_start_to_its_end(path):
    app = potassium.Potassium("my_app")
    condition = threading.Condition()

    @app.init
    def init():
        return {}

    @app.background("/background")
    def background(context: dict, request: potassium.Request):
        with condition:
            condition.wait()

    client = app.test_client()
    status = client.get(path, json={})
    assert status.status_code == 200
    assert list(status.json)[:4] == ["gpu_available", "idle_time", "inference_time", "sequence_number"]
    assert (status.json["gpu_available"], status.json["sequence_number"]) == (True, 0)
    assert (status.json["idle_time"] > 0, status.json["inference_time"]) == (True, 0)

    answer = client.post("/background", json={})
    assert (answer.status_code, answer.json, answer.data) == (200, {"started": True}, b'{"started":true}\n')

    busy = until(client, lambda status: status["inference_time"] > 0)
    assert (busy["gpu_available"], busy["sequence_number"], busy["idle_time"]) == (False, 1, 0)

    def is_let_go(status):
        with condition:  # repeatedly, because the function may not wait yet
            condition.notify()
        return status["gpu_available"]

    idle = until(client, is_let_go)
    assert (idle["sequence_number"], idle["idle_time"] > 0, idle["inference_time"]) == (1, True, 0)


def test_calls_run_one_after_the_other_in_the_order_they_came():
    app = potassium.Potassium("my_app")
    order = []
    may_end = threading.Event()

    @app.background("/slow")
    def slow(context, request):
        may_end.wait()
        order.append("slow")

    @app.handler("/fast")
    def fast(context, request):
        order.append("fast")
        return potassium.Response(json=order)

    client = app.test_client()
    client.post("/slow", json={})
    answers = []
    caller = threading.Thread(target=lambda: answers.append(client.post("/fast", json={}).json))
    caller.start()
    until(client, lambda status: status["sequence_number"] == 2)
    assert order == []
    may_end.set()
    caller.join()
    assert answers == [["slow", "fast"]]


def test_calls_go_on_after_a_background_function_has_raised(capfd):
    app = potassium.Potassium("my_app")
    app.background("/bad")(lambda context, request: 1 / 0)
    app.handler("/good")(lambda context, request: potassium.Response(json="good"))
    client = app.test_client()
    assert client.post("/bad", json={}).json == {"started": True}
    assert client.post("/good", json={}).json == "good"
    assert until(client, lambda status: status["gpu_available"])["sequence_number"] == 2
    assert "ZeroDivisionError" in capfd.readouterr().err


@pytest.mark.parametrize("function", [lambda context, request: None, lambda context, request: 1 / 0])
def test_the_end_of_a_background_function_can_be_waited_for(function):
    app = potassium.Potassium("my_app")
    may_end = threading.Event()
    ended = []

    @app.background("/slow")
    def slow(context, request):
        may_end.wait()
        ended.append("function")
        return function(context, request)

    @app.handler("/fast")
    def fast(context, request):
        return potassium.Response(json=ended)

    def wait():
        assert app._read_event_chan() is True
        ended.append("waiting")

    waiting = threading.Thread(target=wait)
    waiting.start()  # before there is a client
    client = app.test_client()
    client.post("/slow", json={})
    may_end.set()
    waiting.join()
    assert ended == ["function", "waiting"]
    client.post("/slow", json={})
    client.post("/slow", json={})
    assert client.post("/fast", json={}).json == ["function", "waiting", "function", "function"]
    assert app._read_event_chan() is True, "a late reader does not wait, and two unread ends count once"


def test_a_background_function_has_begun_when_its_caller_is_answered_unless_another_call_runs():
    app = potassium.Potassium("my_app")
    may_end = threading.Event()
    app.background("/slow")(lambda context, request: may_end.wait())
    client = app.test_client()
    assert client.post("/slow", json={}).json == {"started": True}
    assert client.get("/_k/status").json["in_flight"] == 1
    assert client.post("/slow", json={}).json == {"started": True}, "it does not wait for the one that runs"
    may_end.set()


def test_the_caller_of_a_background_function_is_answered_after_its_input_was_read(monkeypatch):
    """A `notify` right after the answer would be lost if the function's `wait` came much later."""
    app = potassium.Potassium("my_app")
    read = []

    def read_slowly(call, body, wishes):
        time.sleep(0.3)
        read.append(body)

    monkeypatch.setattr("banana_worker.run.running_call.read_input", read_slowly)
    app.background("/")(lambda context, request: None)
    assert app.test_client().post("/", json="mine").json == {"started": True}
    assert b'"mine"' in read, "a call of the test before may be read, too"


def test_a_background_call_with_a_malformed_body_is_answered_too(capfd):
    app = potassium.Potassium("my_app")
    app.background("/bytes", raw=True)(lambda context, request: pytest.fail("it was called"))
    client = app.test_client()
    answer = client.post("/bytes", data=b"\xc1", content_type="application/msgpack")
    assert answer.json == {"started": True}
    assert until(client, lambda status: status["gpu_available"])["sequence_number"] == 1
    assert "not valid MessagePack" in capfd.readouterr().err


@pytest.mark.parametrize("kind", ["handler", "background"])
def test_a_client_that_is_closed_takes_no_more_calls(kind):
    app = potassium.Potassium("my_app")
    getattr(app, kind)("/")(lambda context, request: pytest.fail("it was called"))
    client = app.test_client()
    client.close()
    answer = client.post("/", json={})
    assert (answer.status_code, answer.json["error"]["code"]) == (503, "SERVE_SHUTTING_DOWN")


def test_older_names_of_decorators_work():
    app = potassium.Potassium("my_app")
    done = threading.Event()

    @app.async_handler("/a", result_webhook=None)
    def a(context, request):
        done.set()

    @app.background(path="/b")
    def b(context, request):
        pass

    client = app.test_client()
    assert client.post("/a", json={}).json == client.post("/b", json={}).json == {"started": True}
    assert done.wait(60)
