"""The app's end of a WebSocket, where several threads meet."""

from __future__ import annotations

import sys
import threading
import unittest
from typing import Any, Callable, List, Optional

from banana_worker import call_socket
from banana_worker.call_socket import CallSocket, ClosedSocket, Message

# Only a defect takes so long.
_GUARD_S = 0.5


class Sent:
    """In place of a channel."""

    def __init__(self) -> None:
        self.messages: List[List[Any]] = []

    def send(self, fields: List[Any], body: bytes = b"") -> None:
        self.messages.append(fields)


class NoWaits:
    """In place of waits; `on_wait` brings what is waited for."""

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


class SlowChannel(Sent):
    """A message of a client waits on its way out while the call ends, as long as that is possible."""

    def __init__(self) -> None:
        super().__init__()
        self.is_sending = threading.Event()
        self.has_ended = threading.Event()

    def send(self, fields: List[Any], body: bytes = b"") -> None:
        if fields[0] == "data":
            self.is_sending.set()
            self.has_ended.wait(_GUARD_S)
        super().send(fields, body)


class Ends(unittest.TestCase):
    def test_no_frame_of_a_call_leaves_after_its_end(self) -> None:
        channel = SlowChannel()
        socket = socket_of(channel, NoWaits())
        sender = threading.Thread(target=lambda: socket.send("late"))
        sender.start()
        channel.is_sending.wait()
        socket.end()
        channel.send(["end", 1])
        channel.has_ended.set()
        sender.join()
        self.assertEqual([fields[0] for fields in channel.messages], ["credit", "data", "end"])
        with self.assertRaises(ClosedSocket):
            socket.send("later still")
        socket.on_data(b"from the client", True, False)
        self.assertEqual(len(channel.messages), 3)


class Interrupted:
    """Runs a function of a socket, and `act` once between two of its lines: before the line of this number that is run, or
    as soon as the lock of the inbox is free. So does whoever reads messages on another thread."""

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
    def test_an_app_never_waits_for_a_message_that_has_come(self) -> None:
        def arrive(socket: CallSocket) -> None:
            socket.on_data(b"a", True, True)

        for line in range(1, 60):
            channel, received = self.receive(line, arrive)
            self.assertEqual(received, "a", line)
            waits = [fields for fields in channel.messages if fields[0] == "waiting"]
            self.assertTrue(all(fields == ["waiting", 1, 0] for fields in waits), (line, waits))

    def test_what_a_client_says_before_it_leaves_is_received(self) -> None:
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
