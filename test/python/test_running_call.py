"""A call that has begun: its one ending, and the socket of a call that is a WebSocket."""

from __future__ import annotations

import json
import unittest
from types import SimpleNamespace
from typing import Any, Callable, List

from banana_worker.formats.read_input import NO_WISHES
from banana_worker.process.hint_once import write_hints_to
from banana_worker.protocol.errors import ServeError
from banana_worker.run.arriving_calls import WaitingCall
from banana_worker.run.running_call import RunningCall
from banana_worker.values.tensor import Signature, TensorSpec
from calls import call_with


class Interrupted(Exception):
    """Raised by a signal handler."""


class Channel:
    """Notes the kinds of messages; `on_sent` is called when one has left."""

    def __init__(self) -> None:
        self.kinds: List[str] = []
        self.on_sent: Callable[[], None] = lambda: None

    def send(self, fields: List[Any], body: bytes = b"") -> None:
        self.kinds.append(fields[0])
        self.on_sent()

    def send_if(self, is_wanted: Callable[[], bool], fields: List[Any], body: bytes = b"") -> bool:
        self.send(fields)
        return True

    def send_body(self, head: bytes, id: int, body: Any) -> None:
        self.send(["result"])


def running_with(channel: Channel, body: bytes = b"", **fields: Any) -> RunningCall:
    app = SimpleNamespace(
        schemas=lambda _route: None,
        function=lambda route: None,
        description=SimpleNamespace(
            signature=Signature((TensorSpec("x", "INT32", (-1,)),), ()),
            token_input=False,
        ),
    )
    waits: Any = SimpleNamespace(ring=lambda: None)
    host: Any = SimpleNamespace(
        channel=channel,
        waits=waits,
        shared=SimpleNamespace(log=None, metrics=SimpleNamespace(send=lambda: None), worker=None),
        spec=SimpleNamespace(max_output_bytes=1000, stream_window_bytes=1000),
        app=app,
    )
    return RunningCall(host, WaitingCall(call_with(**fields), body))


class Exchanges(unittest.TestCase):
    def input_of(self, datatype: str) -> Any:
        x = {"name": "x", "datatype": datatype, "shape": [1], "data": [1]}
        body = json.dumps({"inputs": [x], "parameters": {"seed": 2**60}}).encode()
        running = running_with(Channel(), body, format="open-inference", answer="open-inference")
        running.read_input(NO_WISHES)
        return running.input, running.ctx.params

    def test_the_parameters_of_the_request_are_the_app_s(self) -> None:
        self.assertEqual(self.input_of("INT32")[1], {"seed": 2**60})

    def test_inputs_are_checked_against_the_signature(self) -> None:
        with self.assertRaises(ServeError) as caught:
            self.input_of("INT64")
        self.assertEqual(caught.exception.code, "SERVE_BAD_BODY")


class Hints(unittest.TestCase):
    def hints_of(self, *outputs: Any, cancelled: bool = False) -> List[str]:
        lines: List[str] = []
        self.addCleanup(write_hints_to, None)
        write_hints_to(lines.append)
        for output in outputs:
            running = running_with(Channel())
            running.cancelled = cancelled
            running.answer(output)
        return lines

    def test_a_forgotten_return_is_named_once(self) -> None:
        lines = self.hints_of(None, None)
        self.assertEqual(len(lines), 1)
        self.assertIn("returned None, so the client gets null: a `return` may be missing", lines[0])

    def test_the_form_of_flask_for_a_status_is_named_with_the_right_one(self) -> None:
        lines = self.hints_of(({"error": "age"}, 422), (["a"], 201))
        self.assertEqual(len(lines), 1)
        self.assertIn("`return Response(status=422, json=...)`", lines[0])

    def test_other_tuples_and_what_a_call_returns_whose_client_has_left_are_not(self) -> None:
        self.assertEqual(self.hints_of((1, 2), ("a", 99), ("a", True), ("a", 200, 300), ()), [])
        self.assertEqual(self.hints_of(None, cancelled=True), [])


class Endings(unittest.TestCase):
    def test_a_call_ends_once_also_when_a_signal_handler_raises_as_its_ending_leaves(self) -> None:
        def interrupt() -> None:
            raise Interrupted

        def websocket(running: RunningCall) -> None:
            running.read_input(NO_WISHES)
            running.answer(None)

        def error(running: RunningCall) -> None:
            running.fail(ServeError("SERVE_CANCELLED"))

        for end, last in ((lambda running: running.answer({}), "result"), (websocket, "end"), (error, "error")):
            with self.subTest(last):
                channel = Channel()
                running = running_with(channel, format="websocket" if end is websocket else "auto")
                channel.on_sent = lambda: interrupt() if channel.kinds[-1] == last else None
                with self.assertRaises(Interrupted):
                    end(running)
                running.fail(Interrupted())
                self.assertEqual([kind for kind in channel.kinds if kind != "credit"], [last])


class Sockets(unittest.TestCase):
    def test_the_first_message_of_a_client_finds_the_socket(self) -> None:
        """The second thread reads the client's message as soon as the credit has left."""
        channel = Channel()
        running = running_with(channel, format="websocket")

        def speak() -> None:
            channel.on_sent = lambda: None
            assert running.socket is not None
            running.socket.on_data(b"hello", True, True)

        channel.on_sent = speak
        running.read_input(NO_WISHES)
        assert running.socket is not None
        self.assertEqual(running.socket.receive(), "hello")
        self.assertEqual(channel.kinds, ["credit", "credit"])


if __name__ == "__main__":
    unittest.main()
