"""The same as `mms.context`."""

from __future__ import annotations

from banana_worker.stand_in import names_of_module
from mms.context import Context as Context
from mms.context import RequestProcessor as RequestProcessor

__all__ = ["Context", "RequestProcessor"]

__getattr__ = names_of_module(__name__, __all__)
