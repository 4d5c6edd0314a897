"""Warm-up does not touch the app."""

import pytest

import potassium


def test_warm_up_is_answered_counted_and_never_reaches_a_handler():
    app = potassium.Potassium("my_app")

    @app.init
    def init():
        return {}

    @app.handler()
    def handler(context: dict, request: potassium.Request) -> potassium.Response:
        raise Exception("it was called")

    client = app.test_client()
    for request in ({"json": {}}, {}, {"data": b"anything"}):
        answer = client.post("/_k/warmup", **request)
        assert (answer.status_code, answer.json) == (200, {"warm": True})
    assert client.get("/_k/warmup").json == {"warm": True}
    status = client.get("/_k/status").json
    assert (status["sequence_number"], status["gpu_available"]) == (3, True)


@pytest.mark.parametrize("path", ["/healthcheck", "/readyz", "/livez"])
def test_health_is_answered_as_by_the_server(path):
    answer = potassium.Potassium("my_app").test_client().get(path)
    assert (answer.status_code, answer.json["state"]) == (200, "healthy")
