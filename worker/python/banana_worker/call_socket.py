"""The app's end of a call that is a WebSocket.

In: parts become messages, messages wait for the app to `receive` them, and each one taken gives its credit back to the
client. Out: messages leave in the order of `send`, in parts, within the credit that the front has granted.
"""

from __future__ import annotations

from typing import Optional, Union

Message = Union[str, bytes]


class ClosedSocket(ConnectionError):
    """`send` was called when the client had left, or after `close`."""


class CallSocket:
    """The client of a WebSocket route. Messages are text or bytes, of any length up to `--max-body`."""

    @property
    def cancelled(self) -> bool:
        """True once the client has left."""
        raise NotImplementedError

    def receive(self) -> Optional[Message]:
        """Waits for the client's next message, in order; returns None once it has left, or `close` was called."""
        raise NotImplementedError

    async def receive_async(self) -> Optional[Message]:
        """`receive` that lets the event loop go on."""
        raise NotImplementedError

    def send(self, message: Message) -> None:
        """Returns when the message is on its way to the client. @raises ClosedSocket, TypeError"""
        raise NotImplementedError

    async def send_async(self, message: Message) -> None:
        """`send` that lets the event loop go on while there is no room."""
        raise NotImplementedError

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Closes the connection after what was sent. `code`: 1000, or 3000 to 4999; `reason`: up to 123 bytes.
        @raises ValueError"""
        raise NotImplementedError
