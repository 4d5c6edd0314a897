"""Sends one stream, within the credit that the front has granted: a slow client slows down the model."""

from __future__ import annotations

from typing import Any, AsyncIterator, Callable, Iterator, Union

from banana_worker.process.channel import BytesLike, Channel, frame
from banana_worker.process.cleaning import clean_up
from banana_worker.process.waits import Waits
from banana_worker.protocol.codec import encode_head
from banana_worker.protocol.messages import MAX_FRAGMENT_BYTES
from banana_worker.formats.reply import ReplyHead
from banana_worker.run.credit import Credit

Head = Union[ReplyHead, Callable[[], ReplyHead]]


class StreamSender:
    def __init__(self, channel: Channel, waits: Waits, call_id: int, window_bytes: int) -> None:
        self._channel = channel
        self._waits = waits
        self._id = call_id
        self.credit = Credit(window_bytes)
        # The frame of the head, which leaves together with the first chunk.
        self._head = b""
        # The client has the status, so no other answer can take its place.
        self.begun = False

    def steps(self, chunks: Iterator[BytesLike], head: Head) -> Iterator[None]:
        """Sends every chunk. Yields after each, so that other streams may take their turns, and wherever credit is
        missing: continue once `credit.may_go_on()`. Closes `chunks` when the client has left."""
        try:
            for chunk in chunks:
                self._begin(head)
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
            self._begin(head)
        finally:
            _close(chunks)

    def send_all(self, chunks: Iterator[BytesLike], head: Head) -> None:
        """`steps`, with all its waits."""
        for _ in self.steps(chunks, head):
            self._waits.wait(self.credit.may_go_on)

    async def send_all_async(self, chunks: AsyncIterator[BytesLike], head: Head) -> None:
        """Sends the chunks of an async iterator, which is closed when the client has left."""
        has_left = False
        try:
            async for chunk in chunks:
                self._begin(head)
                view = _bytes_of(chunk)
                while len(view) > 0 and not self.credit.cancelled:
                    if self.credit.may_go_on():
                        view = self._send_fragment(view)
                    else:
                        await self._waits.wait_async(self.credit.may_go_on)
                has_left = self.credit.cancelled
                if has_left:
                    return
            self._begin(head)
        finally:
            close: Any = getattr(chunks, "aclose", None)
            if close is not None:
                await (clean_up(close()) if has_left else close())

    def end(self, run_ms: float) -> None:
        """Sends the stream's end, and its head if no chunk did."""
        ending = frame(encode_head(["end", self._id, run_ms]))
        self._channel.write([self._head + ending])

    def _begin(self, head: Head) -> None:
        if self.begun:
            return
        status, content_type, headers, phrase = head() if callable(head) else head
        fields = ["head", self._id, status, content_type, headers]
        self._head = frame(encode_head([*fields, phrase] if phrase else fields))
        self.begun = True

    def _send_fragment(self, view: memoryview) -> memoryview:
        fragment = view[:MAX_FRAGMENT_BYTES]
        self.credit.spend(len(fragment))
        chunk = frame(encode_head(["chunk", self._id]), bytes(fragment))
        self._channel.write([self._head + chunk])
        self._head = b""
        return view[len(fragment) :]


def _bytes_of(chunk: BytesLike) -> memoryview:
    view = memoryview(chunk)
    return view if view.contiguous and view.format == "B" and view.ndim == 1 else memoryview(view.tobytes())


def _close(chunks: Any) -> None:
    """Closes it, so that its `finally` blocks run."""
    close = getattr(chunks, "close", None)
    if close is not None:
        close()
