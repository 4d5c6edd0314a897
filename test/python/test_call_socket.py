"""The app's end of a WebSocket, used by several threads."""

from __future__ import annotations

import sys
import unittest
from typing import Any, Callable, List, Optional
from unittest import mock

from banana_worker.protocol.tables import MAX_FRAGMENT_BYTES
from banana_worker.run import call_socket
from banana_worker.run.call_socket import CallSocket, ClosedSocket, Message


class Sent:
    """Stands in for a channel. `on_turn` is called when the turn of a frame has come, with its fields."""

    def __init__(self) -> None:
        self.messages: List[List[Any]] = []
        self.on_turn: Callable[[List[Any]], None] = lambda fields: None

    def send_if(self, is_wanted: Callable[[], bool], fields: List[Any], body: bytes = b"") -> bool:
        self.on_turn(fields)
        if not is_wanted():
            return False
        self.messages.append(fields)
        return True

    def kinds(self) -> List[str]:
        return [fields[0] for fields in self.messages]


class NoWaits:
    """Stands in for waits; `on_wait` makes the condition true."""

    def __init__(self) -> None:
        self.on_wait: Callable[[], None] = lambda: None

    def wait(self, is_there: Callable[[], bool]) -> None:
        if not is_there():
            self.on_wait()

    def ring(self) -> None:
        pass


def socket_of(channel: Any, waits: Any) -> CallSocket:
    socket = CallSocket(channel, waits, 1, 1000)
    socket.open()
    return socket


class Ends(unittest.TestCase):
    """Another thread ends the connection while a frame waits for its turn."""

    def test_no_frame_of_a_call_leaves_after_its_end(self) -> None:
        channel = Sent()
        socket = socket_of(channel, NoWaits())
        channel.on_turn = lambda fields: socket.end()
        with self.assertRaises(ClosedSocket):
            socket.send("late")
        with self.assertRaises(ClosedSocket):
            socket.send("later still")
        socket.on_data(b"from the client", True, False)
        self.assertEqual(channel.kinds(), ["credit"])

    def test_no_data_leaves_after_a_close(self) -> None:
        channel = Sent()
        socket = socket_of(channel, NoWaits())
        channel.on_turn = lambda fields: socket.close() if fields[0] == "data" else None
        with self.assertRaises(ClosedSocket):
            socket.send("late")
        self.assertEqual(channel.kinds(), ["credit", "close"])

    def test_a_close_cuts_a_message_of_several_parts(self) -> None:
        channel, waits = Sent(), NoWaits()
        socket = socket_of(channel, waits)
        waits.on_wait = socket.close  # the credit is used up
        with self.assertRaises(ClosedSocket):
            socket.send(bytes(MAX_FRAGMENT_BYTES + 1))
        self.assertEqual(channel.kinds(), ["credit", "data", "close"])


class Senders(unittest.TestCase):
    def test_no_other_message_is_sent_between_the_parts_of_one(self) -> None:
        """Another thread may have seen credit for a message just before the first one took it."""
        channel, waits = Sent(), NoWaits()
        socket = socket_of(channel, waits)

        def send_another() -> None:
            socket.credit.grant(2 * MAX_FRAGMENT_BYTES)
            with self.assertRaises(ClosedSocket):
                socket.send("another")

        # Steps during the waits of both senders: the second wait is for credit, the fourth for the other sender's turn.
        steps: List[Callable[[], None]] = [lambda: None, send_another, lambda: None, socket.cancel]
        with mock.patch.object(waits, "wait", lambda is_there: steps.pop(0)()):
            with self.assertRaises(ClosedSocket):
                socket.send(bytes(MAX_FRAGMENT_BYTES + 1))
        self.assertEqual([fields for fields in channel.messages if fields[0] == "data"], [["data", 1, False, False]])


class Interrupted:
    """Runs a function of a socket, and `act` once between two of its lines: before a given line, or as soon as the
    lock of the inbox is free. The thread that reads messages may run at these points too."""

    def __init__(self, socket: CallSocket, line: int, act: Callable[[], None]) -> None:
        self._socket = socket
        self._lines_left = line
        self._act: Optional[Callable[[], None]] = act

    def run(self, function: Callable[[], Optional[Message]]) -> Optional[Message]:
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            return function()
        finally:
            sys.settrace(before)

    def interrupt(self) -> None:
        act, self._act = self._act, None
        if act is not None:
            act()

    def _trace(self, frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename != call_socket.__file__:
            return None
        if event == "line":
            self._lines_left -= 1
            if self._lines_left <= 0 and not self._socket._inbox_lock.locked():
                self.interrupt()
        return self._trace


class Receiving(unittest.TestCase):
    def test_receive_never_waits_while_a_message_is_there(self) -> None:
        def arrive(socket: CallSocket) -> None:
            socket.on_data(b"a", True, True)

        for line in range(1, 60):
            channel, received = self.receive(line, arrive)
            self.assertEqual(received, "a", line)
            waits = [fields for fields in channel.messages if fields[0] == "waiting"]
            self.assertTrue(all(fields == ["waiting", 1, 0] for fields in waits), (line, waits))

    def test_messages_sent_before_the_client_left_are_received(self) -> None:
        def say_and_leave(socket: CallSocket) -> None:
            socket.on_data(b"a", True, True)
            socket.cancel()

        for line in range(1, 60):
            self.assertEqual(self.receive(line, say_and_leave)[1], "a", line)

    def receive(self, line: int, act: Callable[[CallSocket], None]) -> Any:
        channel, waits = Sent(), NoWaits()
        socket = socket_of(channel, waits)
        interrupted = Interrupted(socket, line, lambda: act(socket))
        waits.on_wait = interrupted.interrupt
        return channel, interrupted.run(socket.receive)
