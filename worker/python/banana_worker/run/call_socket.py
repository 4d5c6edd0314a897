"""The app's end of a call that is a WebSocket.

In: parts become messages, messages wait for the app to `receive` them, and each message taken gives its credit back
to the client. Out: messages leave in the order of `send`, in parts, within the credit that the front has granted.
"""

from __future__ import annotations

import collections
import threading
from typing import Any, Callable, Deque, Generator, List, Optional, Tuple, Union

from banana_worker.process.channel import Channel
from banana_worker.process.waits import Credit, Waits
from banana_worker.protocol.tables import DATA_OVERHEAD_BYTES, MAX_CLOSE_REASON_BYTES, MAX_FRAGMENT_BYTES
from banana_worker.text.charsets import utf8

Message = Union[str, bytes]


class ClosedSocket(ConnectionError):
    """`send` was called after the client had left, or after `close`."""

    def __init__(self) -> None:
        super().__init__("The WebSocket is closed.")


class CallSocket:
    """The connection to the client of a WebSocket route. Messages are text or bytes, of any length up to
    `--max-body`. May be used from any thread; messages of several senders leave one after the other."""

    def __init__(self, channel: Channel, waits: Waits, call_id: int, window_bytes: int) -> None:
        """`window_bytes`: the bytes that may be under way in each direction."""
        self._channel = channel
        self._waits = waits
        self._id = call_id
        self.credit = Credit(window_bytes)
        self._parts: List[bytes] = []
        # Messages, and the credit that taking each gives back: that of its last part.
        self._inbox: Deque[Tuple[Message, int]] = collections.deque()
        self._inbox_lock = threading.Lock()
        self._received_frames = 0
        # Number of received parts when the front was last informed that the app waits.
        self._reported_waiting = -1
        # Reentrant: a signal handler may send while its thread does.
        self._send_lock = threading.RLock()
        self._is_sending = False
        # Each frame checks these two when its turn to leave has come.
        self._is_closed = False
        # The call has ended, and the front has forgotten it.
        self._has_ended = False
        self._window_bytes = window_bytes

    def open(self) -> None:
        """Lets the client send. The thread that reads messages must find this socket by now."""
        self._post(["credit", self._id, self._window_bytes])

    @property
    def cancelled(self) -> bool:
        """True once the client has left."""
        return self.credit.cancelled

    def receive(self) -> Optional[Message]:
        """Waits for the client's next message, in order; returns None once the client has left, or `close` was
        called."""
        while True:
            is_settled, taken = self._receive_now()
            if is_settled:
                return taken
            self._waits.wait(self._has_news)

    async def receive_async(self) -> Optional[Message]:
        """`receive` that lets the event loop go on."""
        while True:
            is_settled, taken = self._receive_now()
            if is_settled:
                return taken
            await self._waits.wait_async(self._has_news)

    def _receive_now(self) -> Tuple[bool, Optional[Message]]:
        """Whether the app need not wait, and the next message if there is one."""
        is_over = self._is_over()  # checked first: the client may send a message and then leave
        taken, received = self._take()
        if taken is not None or is_over:
            return True, taken
        self._report_waiting(received)
        return False, None

    def send(self, message: Message) -> None:
        """Returns when the message is on its way to the client. @raises ClosedSocket, TypeError"""
        sending = self._sending(message)
        try:
            for condition in sending:
                self._waits.wait(condition)
        finally:
            sending.close()

    async def send_async(self, message: Message) -> None:
        """`send` that lets the event loop go on while there is no credit."""
        sending = self._sending(message)
        try:
            for condition in sending:
                await self._waits.wait_async(condition)
        finally:
            sending.close()

    def _sending(self, message: Message) -> Generator[Callable[[], bool], None, None]:
        """Sends the message. Yields each condition that has to be true before it goes on."""
        view, is_text = _encoded(message)
        yield self._may_send
        while not self._begin_sending():
            yield self._may_send
        try:
            while self._send_part(view, is_text):
                view = view[MAX_FRAGMENT_BYTES:]
                yield self.credit.may_go_on
        finally:
            self._end_sending()

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Closes the connection behind the messages already sent. `code`: 1000, or 3000 to 4999; `reason`: up to 123
        bytes. @raises ValueError"""
        if code != 1000 and not (isinstance(code, int) and 3000 <= code <= 4999):
            raise ValueError("close() takes the code 1000, or one from 3000 to 4999, not %r" % (code,))
        if len(reason.encode("utf-8", "replace")) > MAX_CLOSE_REASON_BYTES:
            raise ValueError("close() takes a reason of up to %d bytes" % MAX_CLOSE_REASON_BYTES)
        if self._is_closed or self.cancelled:
            return
        self._is_closed = True
        self._post(["close", self._id, code, reason])
        self._inbox.clear()
        self._waits.ring()

    def on_data(self, body: bytes, is_text: bool, is_last: bool) -> None:
        """On the thread that reads messages: takes a part of the client's next message."""
        self._parts.append(body)
        credit = len(body) + DATA_OVERHEAD_BYTES
        message: Optional[Message] = None
        if is_last:
            whole = b"".join(self._parts)
            self._parts = []
            message = whole.decode("utf-8", "replace") if is_text else whole
        if not self._count_in(message, credit):
            self._post(["credit", self._id, credit])

    def cancel(self) -> None:
        """Marks the client as gone. Messages that it sent before can still be received."""
        self.credit.cancel()
        self._waits.ring()

    def end(self) -> None:
        """Ends the connection for the app: its later messages do not leave the worker."""
        self._has_ended = True
        self.cancel()

    def _count_in(self, message: Optional[Message], credit: int) -> bool:
        """Counts a part, and puts the message that it completes into the inbox. Returns False if it completes none,
        or if the app takes no more messages."""
        with self._inbox_lock:
            self._received_frames += 1
            if message is None or self._is_closed:
                return False
            self._inbox.append((message, credit))
            return True

    def _take(self) -> Tuple[Optional[Message], int]:
        """The next message; if there is none, the number of parts that had come."""
        with self._inbox_lock:
            received = self._received_frames
            if not self._inbox:
                return None, received
            message, credit = self._inbox.popleft()
        self._post(["credit", self._id, credit])
        return message, received

    def _is_over(self) -> bool:
        return self.cancelled or self._is_closed

    def _has_news(self) -> bool:
        return bool(self._inbox) or self._is_over()

    def _report_waiting(self, received: int) -> None:
        """Informs the front that the app waits. `received`: number of parts that had come while the inbox was empty.
        If the front has sent no more, it stops the clock of the run timeout."""
        if received != self._reported_waiting:
            self._reported_waiting = received
            self._post(["waiting", self._id, received])

    def _may_send(self) -> bool:
        return (self.credit.may_go_on() and not self._is_sending) or self._is_over()

    def _begin_sending(self) -> bool:
        """Returns False if another sender was quicker. @raises ClosedSocket"""
        with self._send_lock:
            if self._is_over():
                raise ClosedSocket()
            if self._is_sending or not self.credit.may_go_on():
                return False
            self._is_sending = True
            return True

    def _end_sending(self) -> None:
        self._is_sending = False
        self._waits.ring()

    def _send_part(self, view: memoryview, is_text: bool) -> bool:
        """Sends the first part of the rest. Returns whether there is more. @raises ClosedSocket"""
        if self._is_over():
            raise ClosedSocket()
        part = bytes(view[:MAX_FRAGMENT_BYTES])
        has_more = len(view) > MAX_FRAGMENT_BYTES
        self.credit.spend(len(part) + DATA_OVERHEAD_BYTES)
        if not self._channel.send_if(self._is_open, ["data", self._id, is_text, not has_more], part):
            raise ClosedSocket()
        return has_more

    def _is_open(self) -> bool:
        return not self._is_closed and not self._has_ended

    def _post(self, fields: List[Any]) -> None:
        self._channel.send_if(self._is_known, fields)

    def _is_known(self) -> bool:
        return not self._has_ended


def _encoded(message: Any) -> Tuple[memoryview, bool]:
    if isinstance(message, str):
        return memoryview(utf8(message)), True
    if isinstance(message, (bytes, bytearray, memoryview)):
        return memoryview(bytes(message)), False
    raise TypeError("send() takes text or bytes, not %s" % type(message).__name__)
