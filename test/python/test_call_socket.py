"""The app's end of a WebSocket, where several threads meet."""

from __future__ import annotations

import threading
import unittest
from typing import Any, Callable, List

from banana_worker.call_socket import CallSocket, ClosedSocket

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
    return CallSocket(channel, waits, 1, 1000)


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
