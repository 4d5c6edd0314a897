"""Logs exceptions that end threads of the app."""

from __future__ import annotations

import threading
from typing import Any

from banana_worker.failures.stack_frame import first_frame_outside, traceback_without_own_frames
from banana_worker.process import descriptors
from banana_worker.report.app_log import AppLog


def log_thread_failures(log: AppLog) -> None:
    """From now on. In a forked child, whose log the front does not receive, Python prints them as usual."""
    usual_hook = threading.excepthook

    def on_raised(args: Any) -> None:
        if issubclass(args.exc_type, SystemExit):
            return
        if descriptors.in_fork():
            usual_hook(args)
            return
        name = args.thread.name if args.thread is not None else "?"
        place = first_frame_outside(args.exc_value) or "a place outside the app"
        text = "the thread %s raised %s at %s" % (name, args.exc_type.__name__, place)
        log.error(text, {"traceback": traceback_without_own_frames(args.exc_value)})

    threading.excepthook = on_raised
