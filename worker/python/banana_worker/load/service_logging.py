"""The log that a custom service finds, set up as Multi Model Server and TorchServe do it for their handlers."""

from __future__ import annotations

import sys

from banana_worker.standard_modules import import_standard


def log_from_info() -> None:
    """From here on, messages of level INFO and above are lines on stdout. Does nothing if the app has set its log up."""
    logging = import_standard("logging")
    # It may be a file of the app that is named so.
    if hasattr(logging, "basicConfig"):
        logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)
