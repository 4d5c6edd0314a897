"""A call whose body has several inputs. Each is a call of the app, alone or in a batch with others, also of other calls. The
values of their answers are the call's answer; the first that fails fails the call, with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional

from banana_worker.failures.thrown import is_a
from banana_worker.formats import Inputs
from banana_worker.formats.reply import close_unsent, Reply, ReplyHead, StreamBody, ValueBody, assert_no_error, value_of
from banana_worker.protocol.errors import ServeError
from banana_worker.reply.answer import reply_of
from banana_worker.reply.response import Response

if TYPE_CHECKING:
    from banana_worker.run.running_call import RunningCall


def parts_of(whole: RunningCall, inputs: Inputs) -> List[Part]:
    """The inputs of a call, which run in any order; the last one that is answered answers the call."""
    values: Dict[int, Any] = {}
    return [Part(whole, inputs, at, values) for at in range(len(inputs.values))]


class Part:
    """An input that the app gets as a call, with the members of `RunningCall` that its run needs."""

    __slots__ = ("whole", "call", "ctx", "input", "_inputs", "_at", "_values")
    socket = None
    stream = None

    def __init__(self, whole: RunningCall, inputs: Inputs, at: int, values: Dict[int, Any]) -> None:
        """`values`: of the answers so far, by the places of their inputs."""
        self.whole, self.call, self.ctx = whole, whole.call, whole.ctx
        self.input = inputs.values[at]
        self._inputs = inputs
        self._at = at
        self._values = values

    @property
    def cancelled(self) -> bool:
        return self.whole.cancelled

    @property
    def has_ended(self) -> bool:
        return self.whole.has_ended

    def is_answered_by(self, raised: BaseException) -> bool:
        return is_a(raised, Response)

    def answer(self, output: Any) -> Optional[BaseException]:
        """As `RunningCall.answer`; a stream is closed, and refused."""
        if issubclass(type(output), BaseException) and not is_a(output, Response):
            self.fail(output)
            raised: BaseException = output
            return raised
        reply = reply_of(self.whole.accepted(output))
        if isinstance(reply.body, StreamBody):
            close_unsent(reply.body)
            message = "This app streams its answer; a call of its own route gets it."
            raise ServeError("SERVE_HTTP_ERROR", message, status=400)
        assert_no_error(reply)
        self._values[self._at] = value_of(reply.body, reply.head.content_type)
        if len(self._values) == len(self._inputs.values):
            self._answer_whole()
        return None

    def _answer_whole(self) -> None:
        """An answer that cannot be sent is no fault of this input."""
        try:
            values = [self._values[at] for at in range(len(self._values))]
            self.whole.answer(Reply(ReplyHead(), ValueBody(values)))
        except ServeError as wrong:
            self.whole.fail(wrong)

    def fail(self, thrown: BaseException) -> None:
        if not self.whole.has_ended:
            self.whole.fail(self._inputs.error_at(self._at, self.whole.failure(thrown, self.input)))
