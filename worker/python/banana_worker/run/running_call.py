"""One call that has begun, up to its one ending.

1. The app's output or exception becomes messages: a whole answer, a stream, or the rest of a WebSocket's messages.
2. The ending is sent: `result`, `end` or `error`. It is in the kernel when `answer` or `fail` returns.
"""

from __future__ import annotations

import time
from typing import Any, List, Optional

from banana_worker.failures.app_function import place_of
from banana_worker.failures.failure import failure_of
from banana_worker.failures.thrown import class_name, is_a, text_of
from banana_worker.formats import AnyExchange, Inputs, exchange_of
from banana_worker.formats.read_input import InputWishes, read_input
from banana_worker.process.channel import BytesLike, Channel
from banana_worker.process.event_loop import EventLoop
from banana_worker.process.hint_once import hint_once
from banana_worker.process.waits import Waits
from banana_worker.protocol.codec import result_head
from banana_worker.protocol.errors import ServeError
from banana_worker.protocol.messages import StartSpec
from banana_worker.protocol.tables import MAX_TEXT_CHARS
from banana_worker.reply.answer import WholeAnswer, answer_of, written_answer
from banana_worker.formats.reply import ReplyHead
from banana_worker.reply.response import Response
from banana_worker.reply.stream import Chunks
from banana_worker.report.print_attribution import PrintAttribution
from banana_worker.run.arriving_calls import WaitingCall
from banana_worker.run.call_context import CallContext, InitContext
from banana_worker.run.call_socket import CallSocket
from banana_worker.run.loaded_app import LoadedApp
from banana_worker.run.stream_sender import StreamSender


class CallHost:
    """The parts that all calls of a worker share. No tuple: a call reads a dozen of these, which takes twice as long there."""

    def __init__(
        self,
        spec: StartSpec,
        channel: Channel,
        waits: Waits,
        tasks: EventLoop,
        prints: PrintAttribution,
        shared: InitContext,
        app: LoadedApp,
        concurrency: int,
    ) -> None:
        self.spec = spec
        self.channel = channel
        self.waits = waits
        self.tasks = tasks
        self.prints = prints
        self.shared = shared
        self.app = app
        # The most calls that run at the same time.
        self.concurrency = concurrency


class RunningCall:
    __slots__ = (
        "call",
        "ctx",
        "socket",
        "cancelled",
        "has_ended",
        "input",
        "_host",
        "_began_at",
        "_exchange",
        "stream",
    )

    def __init__(self, host: CallHost, waiting: WaitingCall) -> None:
        """Made before the call begins: from here on a cancel finds it."""
        self._host = host
        self._began_at = time.perf_counter()
        self.call = waiting.call
        self.ctx = CallContext(waiting.call, waiting.body, host.shared, host.channel)
        # The connection of a call that is a WebSocket.
        self.socket: Optional[CallSocket] = None
        # The sender of an answer that streams.
        self.stream: Optional[StreamSender] = None
        # The answer is not needed any more.
        self.cancelled = False
        # The app's input while its function runs, for the error that finds it wrong.
        self.input: Any = None
        # Writes the answer, if the dialect has a format of its own.
        self._exchange: Optional[AnyExchange] = None
        # The ending is being sent: a signal handler may raise meanwhile, and a call has only one ending.
        self.has_ended = False

    def read_input(self, wishes: InputWishes) -> None:
        """Makes the app's input: `socket` of a WebSocket, `input` of any other call. Called after the note of the call's
        begin. @raises ServeError SERVE_BAD_BODY, SERVE_INPUT_INVALID"""
        call, body = self.call, self.ctx.body
        if call.format == "websocket":
            self._open_socket()
        elif call.answer != "auto":
            self.input = self._read_in_exchange(wishes)
        else:
            self.input = read_input(call, body, wishes)
        schemas = self._host.app.schemas(call.route)
        if schemas is not None:
            given = self.input
            accept = schemas.accept_input
            self.input = given.accepted(accept) if isinstance(given, Inputs) else accept(given)

    def _read_in_exchange(self, wishes: InputWishes) -> object:
        call, body = self.call, self.ctx.body
        exchange = self._exchange = exchange_of(call, self._host.app.description)
        if exchange.is_of_program:
            self.ctx.report_to(self._host.channel)
        if call.format != call.answer:
            return read_input(call, body, wishes)
        given = read_input(call, body, wishes, exchange)
        self.ctx.params = exchange.params
        return given

    def _open_socket(self) -> None:
        """From now on a WebSocket's client may send."""
        host = self._host
        self.socket = CallSocket(host.channel, host.waits, self.call.id, host.spec.stream_window_bytes)
        self.socket.open()
        if self.cancelled:
            self.socket.cancel()

    def is_answered_by(self, raised: BaseException) -> bool:
        """Whether the exception is a Response that can still answer the call."""
        has_begun = self.socket is not None or (self.stream is not None and self.stream.begun)
        return is_a(raised, Response) and not has_begun

    @property
    def whole(self) -> RunningCall:
        """The call itself: a `Part` names the one that it belongs to."""
        return self

    @property
    def _is_of_program(self) -> bool:
        return self._exchange is not None and self._exchange.is_of_program

    @property
    def run_ms(self) -> float:
        return (time.perf_counter() - self._began_at) * 1000

    def cancel(self, reason: str) -> None:
        """For the thread that reads messages."""
        self.cancelled = True
        self.ctx.cancel(reason)
        if self.stream is not None:
            self.stream.credit.cancel()
        if self.socket is not None:
            self.socket.cancel()

    def grant_credit(self, size: int) -> None:
        """For the thread that reads messages."""
        sender = self.stream or self.socket
        if sender is not None:
            sender.credit.grant(size)

    def answer(self, output: Any) -> Optional[BaseException]:
        """Answers with the app's output. A stream has no ending yet: the caller sends it by `stream`, and ends it with
        `end_stream` or `fail`. Returns the exception that the app returned in place of an answer, if there is one. @raises
        ServeError SERVE_OUTPUT_INVALID, SERVE_OUTPUT_TOO_LARGE; any exception of an adapter's reply"""
        raised = output if issubclass(type(output), BaseException) and not is_a(output, Response) else None
        if self.socket is not None:
            self._end_socket(self.socket)
            return raised
        if raised is not None:
            self.fail(raised)
            return raised
        output, exchange = self.accepted(output), self._exchange
        answer = answer_of(output, self.call) if exchange is None else written_answer(output, self.call, exchange)
        if isinstance(answer, WholeAnswer):
            self._succeed(answer.head, answer.body)
        else:
            self._open_stream(answer)
        return None

    def accepted(self, output: Any) -> Any:
        """The app's output as its schema returns it. @raises ServeError SERVE_OUTPUT_INVALID"""
        schemas = self._host.app.schemas(self.call.route)
        if schemas is not None:
            output = schemas.accept_output(output)
        if (output is None or type(output) is tuple) and not self.cancelled and not self._is_of_program:
            _hint_at(output, self._host.app.function(self.call.route))
        return output

    def _open_stream(self, chunks: Chunks) -> None:
        host = self._host
        self.stream = StreamSender(host.channel, host.waits, self.call.id, host.spec.stream_window_bytes, chunks)
        if self.cancelled:
            self.stream.credit.cancel()

    def end_stream(self) -> None:
        assert self.stream is not None
        if self.stream.credit.cancelled:
            self.fail(ServeError("SERVE_CANCELLED"))
            return
        self._note_end()
        self.stream.end(self.run_ms)

    def _end_socket(self, socket: CallSocket) -> None:
        """The function of a WebSocket route has returned: closes the connection behind the messages already sent."""
        if socket.cancelled:
            self.fail(ServeError("SERVE_CANCELLED"))
            return
        socket.end()
        self._note_end()
        self._host.channel.send(["end", self.call.id, self.run_ms])

    def fail(self, thrown: BaseException) -> None:
        """Ends the call with an error, if it has no ending yet. Never raises."""
        if self.has_ended:
            return
        if self.socket is not None:
            self.socket.end()
        error = self.failure(thrown, self.input)
        self._note_end()
        shown = thrown if self._is_of_program and error is not thrown else None
        send_error(self._host.channel, self.call.id, error, self.run_ms, shown)

    def failure(self, thrown: BaseException, input: Any) -> ServeError:
        """`input`: what the app got. Never raises."""
        return failure_of(thrown, self._host.app.function(self.call.route), input)

    def _note_end(self) -> None:
        """Called before the ending is sent: metrics and progress leave before it."""
        self._host.shared.metrics.send()
        self.has_ended = True
        self.ctx.end()

    def _succeed(self, head: ReplyHead, body: BytesLike) -> None:
        """Sends a whole answer. A view of items that are not bytes is sent as the bytes in its memory."""
        if isinstance(body, memoryview):
            body = body.cast("B") if body.contiguous else body.tobytes()
        size = len(body)
        host = self._host
        most = host.spec.max_output_bytes
        if size > most:
            message = "The model's output is %d bytes; --max-output allows %d." % (size, most)
            raise ServeError("SERVE_OUTPUT_TOO_LARGE", message)
        status, content_type, headers, phrase = head
        packed = result_head(self.call.id, status, content_type, headers, size, self.run_ms, phrase)
        self._note_end()
        host.channel.send_body(packed, self.call.id, body)


def send_error(
    channel: Channel, call_id: int, error: ServeError, run_ms: float, thrown: Optional[BaseException] = None
) -> None:
    """Sends the ending of a call that failed. `thrown`: the app's own exception, for a caller that is a program."""
    message, detail = error.message[:MAX_TEXT_CHARS], error.detail[:MAX_TEXT_CHARS]
    fields: List[Any] = ["error", call_id, error.code, message, detail, run_ms]
    if error.status or error.kind or error.issues or thrown is not None:
        fields += [error.status, error.kind]
    if error.issues or thrown is not None:
        fields.append([[list(path), text] for path, text in error.issues])
    if thrown is not None:
        text = (text_of(thrown) or "")[:MAX_TEXT_CHARS]
        fields.append([class_name(thrown)[:MAX_TEXT_CHARS], text, detail])
    channel.send(fields)


def _hint_at(output: Any, function: Any) -> None:
    """Logs that an output of a plain app is probably not the one that was meant. `output`: None or a tuple, returned by
    `function`."""
    place = place_of(function) or "the app"
    if output is None:
        hint_once(
            "no return",
            f"{place}: the function returned None, so the client gets null: a `return` may be missing.",
        )
    elif _is_body_and_status(output):
        hint_once(
            "body and status",
            f"{place}: the function returned a tuple, so the client gets a list, with status 200. To answer with a "
            f"status, write `from banana_serve import Response` and `return Response(status={output[1]}, json=...)`.",
        )


def _is_body_and_status(output: Any) -> bool:
    """Whether it has the form in which apps of Flask answer with a status: `body, 422`, and perhaps headers."""
    if len(output) not in (2, 3) or not isinstance(output[0], (dict, list, str)):
        return False
    is_status = type(output[1]) is int and 200 <= output[1] <= 599
    return is_status and (len(output) == 2 or isinstance(output[2], dict))
