"""The request and the response of a handler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, Mapping, Optional

from banana_worker.reply.response import Response, ResponseBody
from banana_worker.stand_in import names_of_module

if TYPE_CHECKING:
    from banana_worker.run.call_context import CallContext

__all__ = ["Request", "RequestHeaders", "RequestID", "Response", "ResponseBody"]

RequestID = str


class RequestHeaders(Mapping[str, str]):
    """Request headers, looked up as in Potassium: in any case, with `-` or `_`."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers
        self._by_key: Dict[str, str] = {}
        for name, value in headers.items():
            key = _header_key(name)
            # A proxy that sets `X-User` may let a client's `X_User` pass, which must not replace the proxy's.
            if key not in self._by_key or "_" not in name:
                self._by_key[key] = value

    def __getitem__(self, name: str) -> str:
        """Returns the value. Raises KeyError if the header was not sent, or `name` is not text."""
        if not isinstance(name, str):
            raise KeyError(name)
        try:
            return self._by_key[_header_key(name)]
        except KeyError:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._headers)

    def __len__(self) -> int:
        return len(self._headers)

    def __repr__(self) -> str:
        return f"RequestHeaders({', '.join(self._headers)})"  # without the values: there are keys among them


def _header_key(name: str) -> str:
    return name.lower().replace("_", "-")


class Request:
    """The request of a handler. A test may make one: `Request(json={...}, headers={...})`."""

    def __init__(
        self,
        id: RequestID = "",
        headers: Optional[Mapping[str, str]] = None,
        json: Any = None,
        *,
        ws: Any = None,
        ctx: Optional[CallContext] = None,
    ) -> None:
        self.json = json
        """The body as JSON, or read by its content type on a raw route."""
        self.ws = ws
        """The connection, on a WebSocket route."""
        self._id = id
        self._headers = None if headers is None and ctx is not None else RequestHeaders(headers or {})
        self._ctx = ctx

    @property
    def id(self) -> RequestID:
        """`X-Request-Id` or `X-Banana-Request-Id` as sent, else made by the server."""
        return self._id if self._ctx is None else self._ctx.request_id

    @property
    def headers(self) -> RequestHeaders:
        if self._headers is None:
            assert self._ctx is not None
            self._headers = RequestHeaders(self._ctx.headers)
        return self._headers

    @property
    def body(self) -> bytes:
        """The bytes of the body as they came."""
        return self._of_call().body

    @property
    def query(self) -> Any:
        return self._of_call().query

    @property
    def params(self) -> Mapping[str, Any]:
        """The `parameters` of a request of KServe's protocols or of Vertex AI; empty for any other request."""
        return self._of_call().params

    @property
    def job(self) -> Any:
        """The job that this call is an attempt at, with `id` and `attempt`; None if its client waits."""
        return self._of_call().job

    def progress(self, fraction: float, text: str = "") -> None:
        """Reports how far the job is: a fraction from 0 to 1, and up to 200 characters for people."""
        self._of_call().progress(fraction, text)

    @property
    def log(self) -> Any:
        return self._of_call().log

    @property
    def metrics(self) -> Any:
        return self._of_call().metrics

    @property
    def cancelled(self) -> bool:
        """True once the answer is not needed any more."""
        return self._of_call().cancelled

    def wait_cancelled(self, timeout: Optional[float] = None) -> bool:
        """Waits until the answer is not needed any more, or the timeout in seconds is over; returns `cancelled`."""
        return self._of_call().wait_cancelled(timeout)

    def __repr__(self) -> str:
        return f"Request(id={self.id!r}, json={self.json!r})"

    def _of_call(self) -> CallContext:
        if self._ctx is None:
            raise AttributeError("a request made by a test has only id, headers and json")
        return self._ctx


__getattr__ = names_of_module(__name__, __all__)
