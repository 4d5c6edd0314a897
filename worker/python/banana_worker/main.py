"""The main program of a worker process.

1. Claims fd 3 and fd 4 for frames, fd 5 for the note of begun calls, and sends `hello`, before any code of the app
runs.
2. On `start`: imports the app (`loaded`), runs init and the example (`ready`); see `load/start_app.py`.
3. Runs calls until `stop`, a fatal error, or the end of the stream, which means that the front is gone.

The main thread runs the app, and reads messages while it waits; see `process/listener.py`.
"""

from __future__ import annotations

import faulthandler
import os
import sys
from typing import Any, List, Optional

from banana_worker.failures.outlook import PERMANENT, TRANSIENT, UNKNOWN
from banana_worker.failures.stack_frame import callers_place, first_frame_outside, traceback_without_own_frames
from banana_worker.failures.thrown import attribute, shown
from banana_worker.load.load_app import concurrency_of
from banana_worker.load.explain_load_error import StartFailure
from banana_worker.load.start_app import import_app, init_app, loaded_info
from banana_worker.load.start_watch import StartWatch
from banana_worker.process import descriptors, ending
from banana_worker.process.begun_note import BegunNote
from banana_worker.process.channel import Channel
from banana_worker.process.event_loop import EventLoop
from banana_worker.process.hint_once import write_hints_to
from banana_worker.process.listener import Listener
from banana_worker.process.signal_guard import guard_signals
from banana_worker.process.stay_awake import StayAwake
from banana_worker.process.waits import Waits
from banana_worker.protocol.call_heads import CallHeads
from banana_worker.protocol.codec import read_start, uint
from banana_worker.protocol.errors import ProtocolError
from banana_worker.protocol.frame import Body, FrameReader
from banana_worker.protocol.messages import StartSpec
from banana_worker.protocol.tables import MAX_TEXT_CHARS, PROTOCOL_VERSION
from banana_worker.report.app_log import AppLog, log_thread_failures
from banana_worker.report.app_metrics import OwnMetrics
from banana_worker.report.print_attribution import PrintAttribution
from banana_worker.run.call_context import InitContext, WorkerInfo
from banana_worker.run.loaded_app import LoadedApp
from banana_worker.run.run_loop import RunLoop
from banana_worker.run.running_call import CallHost
from banana_worker.run.webhook_handover import WebhookHandover, offer_webhooks


def main() -> None:
    """Never returns."""
    descriptors.claim_descriptors()
    guard_signals()
    # With the stacks of all threads, the last lines of the app would stand too far above to be reported.
    faulthandler.enable(all_threads=False)
    worker = Worker()
    try:
        worker.run()
    except ending.AppExit as ended:
        worker.exit_of_app(ended.thrown)
    except SystemExit as ended:
        worker.exit_of_app(ended)
    except BaseException as fault:
        worker.die_of_fault(fault)


class Worker:
    def __init__(self) -> None:
        self._channel = Channel(descriptors.UP_FD, ending.die_of_broken_pipe)
        descriptors.on_fork(self._channel.silence)
        self._note = BegunNote()
        descriptors.on_fork(self._note.leave)
        self._reader = FrameReader(descriptors.DOWN_FD, self._on_frame, self._room, CallHeads().decode)
        self._listener = Listener(descriptors.DOWN_FD, self._read, lambda: self._metrics.send())
        self._waits = Waits(self._listener)
        self._tasks = EventLoop(self._listener)
        self._log = AppLog(self._channel)
        self._metrics = OwnMetrics(self._channel, self._listener.wake)
        self._webhooks = WebhookHandover(self._channel, self._waits, self._running_request_id)
        self._spec: Optional[StartSpec] = None
        self._app: Optional[LoadedApp] = None
        self._prints: Optional[PrintAttribution] = None
        self._loop: Optional[RunLoop] = None
        self._is_stopping = False

    def run(self) -> None:
        """@raises AppExit, SystemExit"""
        self._channel.send(["hello", PROTOCOL_VERSION, "python %d.%d.%d" % sys.version_info[:3]])
        self._listener.wait_until(lambda: self._spec is not None)
        assert self._spec is not None
        self._listener.start()
        self._listener.wake()
        offer_webhooks(self._webhooks)
        write_hints_to(lambda line: AppLog(self._channel, self._running_request_id()).warn(line))
        ending.watch_exit(lambda what: self._report_exit("%s at %s" % (what, callers_place())))
        log_thread_failures(self._log)
        try:
            self._loop = self._start(self._spec)
        except StartFailure as failure:
            self._exit_fatally(failure.code, failure.message, failure.detail, failure.outlook)
            return
        doubt = self._loop.run()
        if doubt is None:
            self._shut_down()
        else:
            self._exit_fatally(doubt.code, doubt.message, "", UNKNOWN)

    def exit_of_app(self, thrown: BaseException) -> None:
        """The app has called `sys.exit`."""
        code = attribute(thrown, "code")
        place = first_frame_outside(thrown) or "a place outside the app"
        self._report_exit("sys.exit(%s) was called at %s" % ("" if code is None else shown(code)[:200], place))
        ending.exit_cleanly(ending.exit_code_of(thrown))

    def die_of_fault(self, fault: BaseException) -> None:
        """Reports a failure outside of calls and of the start. Python's own exit would wait for the app's threads,
        with no calls taken meanwhile."""
        place = first_frame_outside(fault)
        if place is None or descriptors.in_fork():
            sys.excepthook(type(fault), fault, fault.__traceback__)
            ending.exit_now(1)
        text = "%s: a signal handler of the app raised %s between calls" % (place, type(fault).__name__)
        detail = "%s:\n%s" % (text, traceback_without_own_frames(fault))
        self._exit_fatally("SERVE_WORKER_LOST", text, detail, UNKNOWN)

    def _start(self, spec: StartSpec) -> RunLoop:
        """@raises StartFailure, AppExit, SystemExit"""
        os.environ.update(spec.env)
        prints = PrintAttribution(spec.print_mark)
        worker = WorkerInfo(spec.worker, spec.gpu, spec.threads)
        shared = InitContext(worker, self._log, self._metrics)
        watch = StartWatch(spec.ready_within_ms, lambda: self._tasks.coroutine, self._log.warn)
        app = import_app(spec)
        concurrency = concurrency_of(app, spec)
        self._note.make_entries(concurrency)
        self._channel.send(["loaded", loaded_info(app, concurrency)])
        host = CallHost(spec, self._channel, self._waits, self._tasks, prints, shared, app, concurrency)
        init_ms = init_app(host, spec)
        ending.die_if_lost(descriptors.DOWN_FD)
        watch.end()
        self._metrics.send()
        loop = RunLoop(host, self._note, self._listener, StayAwake(spec.threads))
        self._app, self._loop, self._prints = app, loop, prints
        self._channel.send(["ready", init_ms])
        return loop

    def _shut_down(self) -> None:
        code = 0
        try:
            if self._app is not None:
                self._tasks.settled(self._app.shutdown(), lambda: False)
            self._metrics.send()
        except SystemExit:
            raise
        except BaseException as thrown:
            sys.stderr.write("shutdown raised: %s\n" % traceback_without_own_frames(thrown))
            code = 1
        ending.exit_cleanly(code)

    def _exit_fatally(self, code: str, message: str, detail: str, outlook: str) -> None:
        self._metrics.send()
        self._send_fatal(code, message, detail, outlook)
        ending.exit_cleanly(1)

    def _report_exit(self, what: str) -> None:
        """Reports that the app ends its worker, unless the worker was asked to stop."""
        if self._is_stopping:
            return
        # An app that waits for its database may end like this too, so the same end twice does not prove that it always
        # will.
        code = "SERVE_INIT_FAILED" if self._loop is None else "SERVE_WORKER_LOST"
        self._send_fatal(code, what, "", TRANSIENT)

    def _send_fatal(self, code: str, message: str, detail: str, outlook: str) -> None:
        texts = [message[:MAX_TEXT_CHARS], detail[:MAX_TEXT_CHARS]]
        self._channel.send(["fatal", code, *texts, outlook == PERMANENT, outlook == TRANSIENT])

    def _running_request_id(self) -> str:
        return "" if self._prints is None else self._prints.request_id

    # The methods below run on the thread that reads messages.

    def _read(self) -> None:
        try:
            if not self._reader.read():
                ending.die_if_lost(descriptors.DOWN_FD)
                ending.die_with_front()
        except ProtocolError as error:
            ending.die_if_lost(descriptors.DOWN_FD)
            sys.stderr.write("The front broke the protocol: %s\n" % error.detail)
            ending.die_with_front()
        except OSError as error:
            if not ending.is_broken_pipe(error):
                self.die_of_fault(error)
            ending.die_of_broken_pipe(descriptors.DOWN_FD, error)
        except Exception as fault:
            self.die_of_fault(fault)
        self._waits.ring()
        self._tasks.wake()

    def _room(self, fields: List[Any], size: int) -> memoryview:
        if fields[0] == "body":
            return self._run_loop().arriving.room(fields[1], size)
        return memoryview(bytearray(size))

    def _on_frame(self, fields: List[Any], body: Body) -> None:
        try:
            self._take(fields, body)
        except (IndexError, TypeError) as error:
            raise ProtocolError("malformed message %.40r: %s" % (fields[0], error)) from None

    def _take(self, fields: List[Any], body: Body) -> None:
        kind = fields[0]
        if kind == "call":
            self._run_loop().arriving.take_frame(fields[1], fields[2], fields[3], bytes(body))
        elif kind == "body":
            self._run_loop().arriving.take_body(fields[1], body)
        elif kind == "credit":
            self._run_loop().grant_credit(uint(fields[1]), uint(fields[2]))
        elif kind == "cancel":
            self._run_loop().cancel(uint(fields[1]), fields[2])
        elif kind == "data":
            self._run_loop().take_data(uint(fields[1]), bytes(body), fields[2], fields[3])
        elif kind == "webhookDone":
            self._webhooks.on_done(fields[1], fields[2])
        elif kind == "ping":
            self._tasks.call_soon(lambda: self._channel.send(["pong", fields[1]]))
        elif kind == "stop":
            self._stop()
        elif kind == "start":
            self._spec = read_start(fields[1])
        else:
            raise ProtocolError("a worker cannot take %.40r" % (kind,))

    def _stop(self) -> None:
        self._is_stopping = True
        if self._loop is None:
            ending.exit_now(0)
        else:
            self._loop.stop("the server is stopping")

    def _run_loop(self) -> RunLoop:
        if self._loop is None:
            raise ProtocolError("a message before ready")
        return self._loop
