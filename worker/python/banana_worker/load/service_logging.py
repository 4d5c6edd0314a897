"""Sets up the log of a custom service as Multi Model Server and TorchServe do."""

from __future__ import annotations

import sys

from banana_worker.standard_modules import import_standard


def log_from_info() -> None:
    """From here on, messages of level INFO and above are lines on stdout. Does nothing if the app has set up its own
    log."""
    logging = import_standard("logging")
    # False if `logging` is a file of the app.
    if hasattr(logging, "basicConfig"):
        logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)
