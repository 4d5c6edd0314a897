"""Answers made from a Response."""

import pytest

import potassium


def answer_to(output):
    app = potassium.Potassium("my_app")
    app.handler()(lambda context, request: output)
    return app.test_client().post("/", json={})


def test_json_response():
    response = potassium.Response(status=200, json={"key": "value"})
    assert (response.status, response.json) == (200, {"key": "value"})
    assert response.headers["Content-Type"] == "application/json"
    response.json = {"key": "other"}
    assert response.json == {"key": "other"}


def test_body_response():
    response = potassium.Response(status=200, body=b"Hello, world!")
    assert (response.status, response.body) == (200, b"Hello, world!")
    assert "Content-Type" not in response.headers
    response.json = {"key": "value"}
    assert (response.json, response.headers["Content-Type"]) == ({"key": "value"}, "application/json")


@pytest.mark.parametrize(
    "make, status, content_type, data",
    [
        (lambda: potassium.Response(json={"a": 1}), 200, "application/json", b'{"a":1}'),
        (lambda: potassium.Response(json=[float("nan")], status=201), 201, "application/json", b"[null]"),
        (lambda: potassium.Response(body=b"\x00\xff"), 200, "application/octet-stream", b"\x00\xff"),
        (lambda: potassium.Response(body="é"), 200, "text/plain; charset=utf-8", "é".encode()),
        (lambda: potassium.Response(body=iter([b"a", "b"])), 200, "application/octet-stream", b"ab"),
        (lambda: potassium.Response(body=b"<b>", headers={"content-type": "text/html"}), 200, "text/html", b"<b>"),
        (lambda: potassium.Response(status=404), 404, "", b""),
    ],
)
def test_an_answer_has_the_status_and_headers_of_the_response(make, status, content_type, data):
    answer = answer_to(make())
    assert (answer.status_code, answer.content_type, answer.data) == (status, content_type, data)


def test_headers_of_an_answer_are_found_in_any_case_and_may_repeat():
    answer = answer_to(potassium.Response(json={}, headers={"X-One": "1", "X-Many": ["a", "b"]}))
    assert (answer.headers["x-one"], answer.headers["X-MANY"]) == ("1", "a, b")
    assert answer.headers.getlist("x-many") == ["a", "b"]
    assert answer.headers.get("absent") is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: None,
        lambda: {"json": 1},
        lambda: potassium.Response(body=5),
        lambda: potassium.Response(json={"a": object()}),
        lambda: potassium.Response(body=(1 / 0 for _ in "x")),
    ],
)
def test_an_output_that_is_not_a_response_is_a_500(make):
    assert answer_to(make()).status_code == 500


def test_a_stream_that_breaks_breaks_the_connection():
    def body():
        yield b"first"
        raise ValueError("late")

    with pytest.raises(ConnectionError, match="broke after 1 chunks: late"):
        answer_to(potassium.Response(body=body()))
