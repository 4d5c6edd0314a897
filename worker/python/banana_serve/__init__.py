"""Names for an app of any kind: `from banana_serve import Response, HttpError`.

`Response` is the class of `potassium`: an answer with a status, headers, and JSON or a body. `HttpError` refuses a call.
Both may be raised or returned. `Tensor` is a tensor for calls in the Open Inference Protocol where numpy has none.
`InitContext` and `Context` are the types of `ctx` in `init` and in `inference`.
"""

from __future__ import annotations

from banana_worker.failures.failure import HttpError
from banana_worker.reply.response import Response
from banana_worker.run.call_context import CallContext as Context
from banana_worker.run.call_context import InitContext
from banana_worker.stand_in import names_of_package
from banana_worker.values.tensor import Tensor

__all__ = ["Context", "HttpError", "InitContext", "Response", "Tensor"]

names_of_package(__name__, __all__, ["testing"])
