"""Webhooks without a server: the test's own process posts them, once."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import BaseRequestHandler, TCPServer

import pytest

import potassium


@pytest.fixture
def receiver():
    """A real receiver: its URL, and the list of received requests."""
    came = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            came.append((self.headers["Content-Type"], json.loads(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook", came
    server.shutdown()
    server.server_close()


def add_last_route(app):
    """For `wait_for_webhooks`, which calls it."""

    @app.background("/last")
    def last(context, request):
        pass


def wait_for_webhooks(client):
    """Returns once the webhooks of earlier calls have left: all runs on one thread, and a webhook leaves after its
    answer."""
    assert client.post("/last", json={}).status_code == 200


def test_a_handler_posts_and_so_does_its_result(receiver):
    url, came = receiver
    app = potassium.Potassium("my_app")

    @app.result_webhook(url=url)
    @app.handler
    def handler(cache, json_in):
        assert potassium.send_webhook(url=url, json={"step": 1}) is None
        return {"outputs": json_in}

    add_last_route(app)
    with app.test_client() as client:
        assert client.post("/", json="in").json == {"outputs": "in"}
        wait_for_webhooks(client)
    assert came == [("application/json", {"step": 1}), ("application/json", {"outputs": "in"})]


def test_an_unreachable_receiver_is_printed_and_raises_nothing(capfd):
    from potassium.hooks import send_webhook

    with socket.socket() as held:  # a port that is taken, but not listened on
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/"
        send_webhook(url, {})
    assert f"Webhook to {url} failed with connection error" in capfd.readouterr().out


@pytest.fixture
def rubbish():
    """The URL of a receiver whose answers are not HTTP."""

    class Handler(BaseRequestHandler):
        def handle(self):
            self.request.recv(65536)
            self.request.sendall(b"rubbish\r\n")

    with TCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def test_a_receiver_that_answers_with_rubbish_does_not_hold_up_the_calls_behind_it(rubbish, capfd):
    app = potassium.Potassium("my_app")

    @app.result_webhook(url=rubbish)
    @app.handler
    def handler(cache, json_in):
        return json_in

    add_last_route(app)
    with app.test_client() as client:
        assert client.post("/", json=1).json == 1
        assert client.post("/", json=2).json == 2
        wait_for_webhooks(client)
    assert f"Webhook to {rubbish} failed" in capfd.readouterr().out


@pytest.mark.parametrize("url, error", [("nowhere", ValueError), (5, TypeError), ("ftp://x/", ValueError)])
def test_an_invalid_url_is_refused(url, error):
    with pytest.raises(error):
        potassium.send_webhook(url, {})
