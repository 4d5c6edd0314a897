"""Who reads fd 4: the main thread while it waits, another thread while the main thread runs the app.

A frame that is read by the thread that waits for it costs no change of threads, which takes longer than a short call. So
the main thread reads itself whenever it has nothing else to do. A second thread looks every few milliseconds whether the
main thread is busy, and then reads in its place: cancels, credit, stop and the end of the front are heard while the app
runs. It sleeps while there is nothing to run. What the main thread waits for may also come from a thread of the app's:
only such waits look at a pipe besides (`wake_pipe.py`). While the main thread reads between the tasks of an event loop,
of which one may block it, the second thread sleeps lightly: it sees the end of the front, and no message wakes it.

Whoever reads holds `_turn_lock`, and takes the messages in under it: one thread at a time does.
"""

from __future__ import annotations

import select
import threading
import time
from typing import Any, Callable, Optional

from banana_worker.process.signal_guard import Guard
from banana_worker.process.stay_awake import asleep
from banana_worker.process.wake_pipe import WakePipe

_TICK_S = 0.005
# While the app runs, messages wake whoever reads in its place; what the app measures is seen this often.
_LOOK_MS = 100


class Listener:
    def __init__(self, fd: int, read: Callable[[], None], on_tick: Callable[[], None]) -> None:
        """`read` waits for bytes and takes in what came. `on_tick` is called soon after `wake`, and ten times a
        second while the app runs."""
        self._fd = fd
        self._read = read
        self._on_tick = on_tick
        self._turn_lock = threading.Lock()
        # One belongs to whoever holds the lock; the other thread waits with one of its own.
        self._poll = _poll_of(fd)
        self._others_poll = _poll_of(fd)
        # The main thread waits for messages, and reads them itself. Written by the main thread alone.
        self._main_reads = False
        # Counts up with each of its reads.
        self._reads = 0
        self._awake = threading.Event()
        # What wakes the main thread, made with its first wait that a thread of the app's may end.
        self._wakes: Optional[WakePipe] = None
        self._may_be_woken = False
        self._guard = Guard(self._wake_itself)
        self._main = threading.get_ident()
        # The main thread reads between tasks of the app, and wakes the other thread by this pipe while that naps.
        self._end: Optional[WakePipe] = None
        self._is_between_tasks = False
        self._naps = False
        # The main thread takes in what has come, between those tasks or at any other time.
        self._is_taking = False

    def start(self) -> None:
        threading.Thread(target=self._listen, name="banana-serve listener", daemon=True).start()

    @property
    def is_main_thread(self) -> bool:
        return threading.get_ident() == self._main

    def wait_until(self, is_there: Callable[[], bool], is_awake: Callable[[], bool] = asleep) -> None:
        """Reads until a message has made `is_there` true, and sleeps for none as long as `is_awake`. For the main thread."""
        while not is_there():
            self._main_reads = True
            try:
                with self._turn_lock:
                    if not is_there():
                        while is_awake() and not self._poll.poll(0):
                            pass
                        self._read()
            finally:
                self._resume()

    def wait_for_anybody(self, is_there: Callable[[], bool]) -> None:
        """`wait_until` that looks again after `wake_main`, too: another thread may have made `is_there` true.

        @raises RuntimeError for a signal handler that came in while this thread reads: it would wait for itself
        """
        if self._is_taking or (self._main_reads and not self._is_between_tasks):
            raise RuntimeError(
                "a signal handler cannot wait for the caller, or for a webhook: the worker may be reading"
            )
        wakes = self._wakes = self._wakes or WakePipe(self._fd)
        while not is_there():
            self._guard.run(lambda: self._read_or_be_woken(wakes, is_there))

    def _read_or_be_woken(self, wakes: WakePipe, is_there: Callable[[], bool]) -> None:
        self._main_reads = True
        try:
            with self._turn_lock:
                if self._has_come(wakes, is_there):
                    self._read()
        finally:
            self._resume()

    def _has_come(self, wakes: WakePipe, is_there: Callable[[], bool]) -> bool:
        """Waits for a message, or until `is_there`; returns whether there is a message to read."""
        self._may_be_woken = True  # before the look: whoever changes something looks at it after the change
        try:
            return not is_there() and wakes.wait()
        finally:
            self._may_be_woken = False

    def wake_main(self) -> None:
        """For any thread: what `wait_for_anybody` waits for may be there."""
        if self._may_be_woken and self._wakes is not None:
            self._wakes.wake()

    def _wake_itself(self) -> None:
        """A signal handler has raised while it waited."""
        if self._wakes is not None:
            self._wakes.wake()

    def read_if_any(self) -> None:
        """Takes in what has come, and waits for nothing. For the main thread."""
        self._is_taking = True
        try:
            with self._turn_lock:
                if self._poll.poll(0):
                    self._read()
        finally:
            self._is_taking = False
        self._reads += 1

    def begin_reading_between_tasks(self) -> None:
        """For the main thread: an event loop calls `read_if_any` when there is something, and runs tasks of the app's."""
        if self._end is None:
            self._end = WakePipe(self._fd, until_end=True)
        self._is_between_tasks = True
        self._main_reads = True

    def end_reading_between_tasks(self) -> None:
        self._is_between_tasks = False
        self._resume()

    def _resume(self) -> None:
        """The main thread goes back to the app's code. Its flag falls first: the other thread looks at it last."""
        self._reads += 1
        self._main_reads = False
        self.wake()

    def wake(self) -> None:
        """Makes the other thread look after the main thread, and call `on_tick`."""
        if not self._awake.is_set():
            self._awake.set()
            if self._naps and self._end is not None:
                self._end.wake()

    def _listen(self) -> None:
        seen = -1
        while True:
            if self._main_reads and self._reads == seen:
                self._sleep()
            time.sleep(_TICK_S)
            self._on_tick()
            if not self._main_reads and self._reads == seen:
                self._read_in_its_place()
            seen = self._reads

    def _sleep(self) -> None:
        self._awake.clear()
        self._on_tick()  # whoever called `wake` before that asked for no less
        if not self._main_reads:
            return  # it has gone on before it could see that nobody was awake
        if self._is_between_tasks and self._end is not None:
            self._nap(self._end)
        else:
            self._awake.wait()

    def _nap(self, end: WakePipe) -> None:
        """Sleeps, and sees the end of the front for a main thread that is kept by a task."""
        self._naps = True  # before the look: whoever wakes us looks at it after that
        try:
            has_ended = not self._awake.is_set() and end.wait()
        finally:
            self._naps = False
        while has_ended:
            time.sleep(_TICK_S)  # a main thread that is free reads what is left
            with self._turn_lock:
                if self._poll.poll(0):
                    self._read()

    def _read_in_its_place(self) -> None:
        """Reads what comes until the main thread waits for messages again."""
        reads = self._reads
        while not self._main_reads and self._reads == reads:
            has_come = self._others_poll.poll(_LOOK_MS)
            if not has_come:
                self._on_tick()
                continue
            if not self._turn_lock.acquire(False):
                return  # the main thread reads
            try:
                if self._poll.poll(0):
                    self._read()
            finally:
                self._turn_lock.release()


def _poll_of(fd: int) -> Any:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return poll
