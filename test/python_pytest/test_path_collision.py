"""Two functions cannot have the same path."""

import pytest

import potassium


@pytest.mark.parametrize("first, second", [("/", ""), ("/foo", "foo"), ("foo", "/foo")])
@pytest.mark.parametrize("kind", ["handler", "background", "websocket"])
def test_a_path_is_taken_however_it_is_written(first, second, kind):
    app = potassium.Potassium("my_app")
    app.handler(first)(lambda context, request: potassium.Response(json={}))
    with pytest.raises(potassium.RouteAlreadyInUseException, match="Route already in use"):
        getattr(app, kind)(second)


@pytest.mark.parametrize("path", ["/_k/warmup", "_k/status", "/__status__", "/healthcheck", "/status"])
def test_the_servers_own_paths_are_refused(path):
    with pytest.raises(potassium.RouteAlreadyInUseException, match="is the server's own"):
        potassium.Potassium("my_app").handler(path)


def test_a_slash_at_the_end_makes_another_path():
    app = potassium.Potassium("my_app")
    app.handler("/foo")(lambda context, request: potassium.Response(json="foo"))
    app.handler("/foo/")(lambda context, request: potassium.Response(json="foo/"))
    client = app.test_client()
    assert [client.post(path, json={}).json for path in ("/foo", "/foo/")] == ["foo", "foo/"]


def test_exceptions_can_be_imported_as_potassium_had_them():
    from potassium.exceptions import InvalidEndpointTypeException, RouteAlreadyInUseException

    assert str(InvalidEndpointTypeException()) == "Invalid endpoint type. Must be 'handler' or 'background'"
    assert str(RouteAlreadyInUseException()) == "Route already in use"
