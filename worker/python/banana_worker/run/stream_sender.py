"""Sends one stream, within the credit that the front has granted: a slow client slows down the model."""

from __future__ import annotations

from typing import Any, Iterator

from banana_worker.formats.reply import close_async_items, close_items
from banana_worker.process.channel import BytesLike, Channel, frame
from banana_worker.process.event_loop import clean_up
from banana_worker.process.outgoing import Outgoing
from banana_worker.process.waits import Credit, Waits
from banana_worker.protocol.codec import encode_head
from banana_worker.protocol.tables import MAX_FRAGMENT_BYTES
from banana_worker.reply.stream import Chunks


class StreamSender:
    def __init__(self, channel: Channel, waits: Waits, call_id: int, window_bytes: int, chunks: Chunks) -> None:
        self._channel = channel
        self._waits = waits
        self._id = call_id
        self._chunks: Any = chunks
        self.credit = Credit(window_bytes)
        # The frame of the head, which leaves together with the first chunk.
        self._head = b""
        # The client has the status, so no other answer can take its place.
        self.begun = False

    @property
    def is_async(self) -> bool:
        """Whether the chunks come from an async iterator, which only `send_beside` can send."""
        return hasattr(self._chunks, "__anext__")

    def steps(self) -> Iterator[None]:
        """Sends every chunk. Yields after each, so that other streams may take their turns, and wherever credit is
        missing: continue once `credit.may_go_on()`. Closes the iterator when the client has left."""
        chunks = self._chunks
        try:
            for chunk in chunks:
                self._begin()
                view = _bytes_of(chunk)
                while len(view) > 0 and not self.credit.cancelled:
                    if not self.credit.may_go_on():
                        yield
                        continue
                    view = self._send_fragment(view)
                if self.credit.cancelled:
                    return
                if self.credit.may_go_on():  # otherwise the app makes the next chunk before the wait
                    yield
            self._begin()
        finally:
            close_items(chunks)

    async def send_beside(self) -> None:
        """Sends every chunk, of an iterator of either kind, while the event loop goes on."""
        if self.is_async:
            await self._send_async()
            return
        import asyncio

        for _ in self.steps():
            await asyncio.sleep(0)
            await self._waits.wait_async(self.credit.may_go_on)

    async def _send_async(self) -> None:
        """Closes the iterator when the client has left."""
        chunks = self._chunks
        has_left = False
        try:
            async for chunk in chunks:
                self._begin()
                view = _bytes_of(chunk)
                while len(view) > 0 and not self.credit.cancelled:
                    if self.credit.may_go_on():
                        view = self._send_fragment(view)
                    else:
                        await self._waits.wait_async(self.credit.may_go_on)
                has_left = self.credit.cancelled
                if has_left:
                    return
            self._begin()
        finally:
            closing = close_async_items(chunks)
            await (clean_up(closing) if has_left else closing)

    def end(self, run_ms: float) -> None:
        """Sends the stream's end, and its head if no chunk did."""
        ending = frame(encode_head(["end", self._id, run_ms]))
        self._channel.write(Outgoing([self._head + ending]))

    def _begin(self) -> None:
        if self.begun:
            return
        status, content_type, headers, phrase = self._chunks.head
        fields = ["head", self._id, status, content_type, headers]
        self._head = frame(encode_head([*fields, phrase] if phrase else fields))
        self.begun = True

    def _send_fragment(self, view: memoryview) -> memoryview:
        fragment = view[:MAX_FRAGMENT_BYTES]
        self.credit.spend(len(fragment))
        chunk = frame(encode_head(["chunk", self._id]), bytes(fragment))
        self._channel.write(Outgoing([self._head + chunk]))
        self._head = b""
        return view[len(fragment) :]


def _bytes_of(chunk: BytesLike) -> memoryview:
    view = memoryview(chunk)
    return view if view.contiguous and view.format == "B" and view.ndim == 1 else memoryview(view.tobytes())
