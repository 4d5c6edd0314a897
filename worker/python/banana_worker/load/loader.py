"""The interface of a loader, which makes what an adapter takes from the file of an app. Each kind of file has a loader;
`load_app.py` has the list."""

from __future__ import annotations

import types
from typing import Callable, NamedTuple, Optional

from banana_worker.load.explain_load_error import AppLoadError
from banana_worker.protocol.messages import StartSpec


class Imported(NamedTuple):
    path: str
    # A file that is no module gives one with the same names: `init`, `inference`, ...
    module: types.ModuleType
    # The object whose `serve()` was called while the file was imported; None if there was no such call.
    served: Optional[object]
    # Returns the error of a file whose contents no adapter takes.
    explain_missing: Callable[[], AppLoadError]


# Gets all that the worker was started with: the file, the device and its threads. @raises AppLoadError
Loader = Callable[[StartSpec], Imported]
