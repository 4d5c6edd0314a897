"""`request.ws`: the client of a WebSocket route, for plain functions and for coroutines."""

from __future__ import annotations

import json as json_codec
from typing import TYPE_CHECKING, Any, AsyncIterator, Iterator, Optional, Union

if TYPE_CHECKING:
    from banana_worker.run.call_socket import CallSocket

Message = Union[str, bytes]


class _Client:
    def __init__(self, socket: CallSocket) -> None:
        self._socket = socket

    @property
    def cancelled(self) -> bool:
        """True once the client has left."""
        return self._socket.cancelled


class WebSocket(_Client):
    """Messages are text or bytes. `for message in request.ws` ends when the client leaves."""

    def receive(self) -> Optional[Message]:
        """Waits for the next message; None once the client has left."""
        return self._socket.receive()

    def receive_text(self) -> str:
        """The next message as text. Raises ConnectionError once the client has left."""
        return _text(self.receive())

    def receive_bytes(self) -> bytes:
        """The next message as bytes. Raises ConnectionError once the client has left."""
        return _bytes(self.receive())

    def receive_json(self) -> Any:
        """The next message, read as JSON. Raises ConnectionError once the client has left, ValueError if it is not
        JSON."""
        return json_codec.loads(_text(self.receive()))

    def __iter__(self) -> Iterator[Message]:
        return iter(self.receive, None)  # type: ignore[arg-type]

    def send(self, message: Message) -> None:
        """Returns when the message is on its way. Raises ConnectionError once the client has left."""
        self._socket.send(message)

    def send_text(self, text: str) -> None:
        self._socket.send(_checked(text, str))

    def send_bytes(self, data: bytes) -> None:
        self._socket.send(bytes(_checked(data, (bytes, bytearray, memoryview))))

    def send_json(self, value: Any) -> None:
        """Sends a value as JSON, in a text."""
        self._socket.send(_json(value))

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Closes the connection after the messages already sent; `code` is 1000, or from 3000 to 4999."""
        self._socket.close(code, reason)


class AsyncWebSocket(_Client):
    """`WebSocket` with methods to await: `async for message in request.ws`."""

    async def receive(self) -> Optional[Message]:
        """Waits for the next message; None once the client has left."""
        return await self._socket.receive_async()

    async def receive_text(self) -> str:
        """The next message as text. Raises ConnectionError once the client has left."""
        return _text(await self.receive())

    async def receive_bytes(self) -> bytes:
        """The next message as bytes. Raises ConnectionError once the client has left."""
        return _bytes(await self.receive())

    async def receive_json(self) -> Any:
        """The next message, read as JSON. Raises ConnectionError once the client has left, ValueError if it is not
        JSON."""
        return json_codec.loads(_text(await self.receive()))

    async def __aiter__(self) -> AsyncIterator[Message]:
        while True:
            message = await self.receive()
            if message is None:
                return
            yield message

    async def send(self, message: Message) -> None:
        """Returns when the message is on its way. Raises ConnectionError once the client has left."""
        await self._socket.send_async(message)

    async def send_text(self, text: str) -> None:
        await self._socket.send_async(_checked(text, str))

    async def send_bytes(self, data: bytes) -> None:
        await self._socket.send_async(bytes(_checked(data, (bytes, bytearray, memoryview))))

    async def send_json(self, value: Any) -> None:
        """Sends a value as JSON, in a text."""
        await self._socket.send_async(_json(value))

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Closes the connection after the messages already sent; `code` is 1000, or from 3000 to 4999."""
        self._socket.close(code, reason)


def _text(message: Optional[Message]) -> str:
    message = _present(message)
    return message if isinstance(message, str) else message.decode()


def _bytes(message: Optional[Message]) -> bytes:
    message = _present(message)
    return message.encode() if isinstance(message, str) else message


def _present(message: Optional[Message]) -> Message:
    if message is not None:
        return message
    from banana_worker.run.call_socket import ClosedSocket

    raise ClosedSocket


def _checked(message: Any, kinds: Any) -> Any:
    if isinstance(message, kinds):
        return message
    raise TypeError(
        f"a WebSocket cannot send {type(message).__name__} this way; use send_text, send_bytes or send_json"
    )


def _json(value: Any) -> str:
    from banana_worker.values.json_encoding import json_argument

    return json_argument(value, "send_json").decode()
