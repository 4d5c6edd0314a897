"""Calls whose frames are still arriving.

A batch, of one call or more, is handed over in one piece, once its last frame is here and all its bodies are whole.
Before: `main.py` has the frames. After: `run_loop.py` begins the calls.

For the thread that reads messages, one at a time.
"""

from __future__ import annotations

import io
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Union

from banana_worker.protocol.codec import uint
from banana_worker.protocol.errors import ProtocolError
from banana_worker.protocol.messages import Call


class WaitingCall(NamedTuple):
    """A call whose body is whole."""

    call: Call
    body: bytes


class _GrowingBody:
    """A body of several frames: its memory is taken once, and becomes bytes without another copy."""

    def __init__(self, size: int) -> None:
        file = io.BytesIO()
        file.seek(size - 1)
        file.write(b"\0")
        self._view: Optional[memoryview] = file.getbuffer()
        self._file = file
        self.missing = size

    def room(self, size: int) -> memoryview:
        """The memory of the next bytes."""
        assert self._view is not None
        at = len(self._view) - self.missing
        return self._view[at : at + size]

    def whole(self) -> bytes:
        """The body. No view of its memory may be left."""
        self.forget()
        return self._file.getvalue()

    def __del__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Releases the view, without which the memory cannot be freed."""
        if self._view is not None:
            self._view.release()
            self._view = None


class _ArrivingCall:
    def __init__(self, call: Call, batch: int) -> None:
        self.call = call
        self.batch = batch
        self.body: Union[bytes, _GrowingBody] = b""


class _ArrivingBatch:
    def __init__(self) -> None:
        self.calls: List[_ArrivingCall] = []
        # The last frame is here.
        self.is_closed = False


class ArrivingCalls:
    def __init__(self, on_whole: Callable[[List[WaitingCall]], None]) -> None:
        """`on_whole` gets the calls of one batch, at least one, in the order in which they were sent."""
        self._on_whole = on_whole
        self._batches: Dict[int, _ArrivingBatch] = {}
        # Calls whose bodies are still arriving, by their ids.
        self._open: Dict[int, _ArrivingCall] = {}

    def take_frame(self, calls: List[Call], number: Any, is_last: Any, body: bytes) -> None:
        """Takes the calls of a frame with the number of their batch. @raises ProtocolError"""
        if is_last is True and len(calls) == 1 and number not in self._batches and calls[0].body_bytes == len(body):
            self._on_whole([WaitingCall(calls[0], body)])  # nearly every frame
            return
        self._take_part(uint(number), calls, is_last, body)

    def room(self, call_id: Any, size: int) -> memoryview:
        """The memory for a fragment that arrives. @raises ProtocolError"""
        body = self._growing(call_id)
        if not 0 < size <= body.missing:
            raise ProtocolError("a fragment of %d bytes where %d are missing" % (size, body.missing))
        return body.room(size)

    def take_body(self, call_id: Any, fragment: Union[bytes, memoryview]) -> None:
        """`fragment` is bytes, or the memory that `room` gave. @raises ProtocolError"""
        body = self._growing(call_id)
        size = len(fragment)
        if isinstance(fragment, memoryview):
            fragment.release()
        else:
            self.room(call_id, size)[:] = fragment
        body.missing -= size
        if body.missing > 0:
            return
        arriving = self._open.pop(call_id)
        arriving.body = body.whole()
        self._hand_over_if_whole(arriving.batch)

    def drop(self, call_id: int) -> bool:
        """Forgets a call. Returns False if it is not here, because it was handed over or never came."""
        for number, batch in self._batches.items():
            others = [arriving for arriving in batch.calls if arriving.call.id != call_id]
            if len(others) < len(batch.calls):
                batch.calls = others
                self._forget_body(call_id)
                self._hand_over_if_whole(number)
                return True
        return False

    def _take_part(self, number: int, calls: List[Call], is_last: bool, body: bytes) -> None:
        batch = self._batches.setdefault(number, _ArrivingBatch())
        if batch.is_closed:
            raise ProtocolError("a second end of batch %d" % number)
        batch.is_closed = is_last
        at = 0
        for call in calls:
            self._begin_body(call, number, body[at : at + call.inline_bytes])
            at += call.inline_bytes
        if at != len(body):
            raise ProtocolError("a frame with %d body bytes where its calls announce %d" % (len(body), at))
        self._hand_over_if_whole(number)

    def _begin_body(self, call: Call, number: int, inline: bytes) -> None:
        arriving = _ArrivingCall(call, number)
        missing = call.body_bytes - len(inline)
        if missing < 0:
            raise ProtocolError("body of call %d is longer than announced" % call.id)
        if call.id in self._open:
            raise ProtocolError("a second body for call %d" % call.id)
        if missing == 0:
            arriving.body = inline
        else:
            growing = _GrowingBody(call.body_bytes)
            growing.room(len(inline))[:] = inline
            growing.missing = missing
            arriving.body = growing
            self._open[call.id] = arriving
        self._batches[number].calls.append(arriving)

    def _forget_body(self, call_id: int) -> None:
        arriving = self._open.pop(call_id, None)
        if arriving is not None and isinstance(arriving.body, _GrowingBody):
            arriving.body.forget()

    def _growing(self, call_id: Any) -> _GrowingBody:
        arriving = self._open.get(call_id)
        if arriving is None or not isinstance(arriving.body, _GrowingBody):
            raise ProtocolError("a body fragment for unknown call %r" % (call_id,))
        return arriving.body

    def _hand_over_if_whole(self, number: int) -> None:
        batch = self._batches[number]
        if not batch.is_closed or any(isinstance(arriving.body, _GrowingBody) for arriving in batch.calls):
            return
        del self._batches[number]
        calls = [WaitingCall(arriving.call, bytes(arriving.body)) for arriving in batch.calls]  # type: ignore[arg-type]
        if calls:
            self._on_whole(calls)
