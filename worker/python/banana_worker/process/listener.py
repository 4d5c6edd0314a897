"""Reads fd 4: on the main thread while it waits, on a second thread while the main thread runs the app.

Handing a frame from one thread to another takes longer than a short call. So the main thread reads by itself whenever
it has nothing else to do. A second thread checks every few milliseconds whether the main thread is busy, and then reads
in its place, so that cancels, credit, stop and the end of the front arrive while the app runs. It sleeps while there is
nothing to run. If the main thread waits for a thread of the app, it also polls a pipe (`WakePipe`). While the main
thread reads between the tasks of an event loop, one of which may block it, the second thread still notices the end of
the front, but messages do not wake it.

The thread that reads holds `_turn_lock` and handles the messages under it, so one thread at a time does.
"""

from __future__ import annotations

import os
import select
import threading
import time
from typing import Any, Callable, Optional

from banana_worker.process.signal_guard import Guard
from banana_worker.process.stay_awake import asleep

_TICK_S = 0.005
# While the app runs, metrics are checked this often; messages wake the reading thread at once.
_LOOK_MS = 100


class Listener:
    def __init__(self, fd: int, read: Callable[[], None], on_tick: Callable[[], None]) -> None:
        """`read` waits for bytes and handles the messages. `on_tick` is called soon after `wake`, and ten times a
        second while the app runs."""
        self._fd = fd
        self._read = read
        self._on_tick = on_tick
        self._turn_lock = threading.Lock()
        # `_poll` belongs to the thread that holds the lock; the other thread waits with `_others_poll`.
        self._poll = _poll_of(fd)
        self._others_poll = _poll_of(fd)
        # The main thread waits for messages and reads them itself. Only the main thread sets it.
        self._main_reads = False
        # Number of reads by the main thread.
        self._reads = 0
        self._awake = threading.Event()
        # Wakes the main thread. Made with its first wait that a thread of the app may end.
        self._wakes: Optional[WakePipe] = None
        self._may_be_woken = False
        self._guard = Guard(self._wake_itself)
        self._main = threading.get_ident()
        # Wakes the second thread from its nap, while the main thread reads between tasks of the app.
        self._end: Optional[WakePipe] = None
        self._is_between_tasks = False
        self._naps = False
        # The main thread is handling messages, between those tasks or at any other time.
        self._is_taking = False

    def start(self) -> None:
        threading.Thread(target=self._listen, name="banana-serve listener", daemon=True).start()

    @property
    def is_main_thread(self) -> bool:
        return threading.get_ident() == self._main

    def wait_until(self, is_there: Callable[[], bool], is_awake: Callable[[], bool] = asleep) -> None:
        """Reads until a message has made `is_there` true, without sleeping while `is_awake`. For the main thread."""
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

    def wait_until_woken(self, is_there: Callable[[], bool]) -> None:
        """`wait_until` that also checks again after `wake_main`: another thread may have made `is_there` true.

        @raises RuntimeError in a signal handler that interrupted a read on this thread: it would wait for itself
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
        """Waits for a message, or until `is_there`. Returns whether there is a message to read."""
        self._may_be_woken = True  # set before the check; `wake_main` reads it after a change
        try:
            return not is_there() and wakes.wait()
        finally:
            self._may_be_woken = False

    def wake_main(self) -> None:
        """For any thread: the condition of `wait_until_woken` may be true now."""
        if self._may_be_woken and self._wakes is not None:
            self._wakes.wake()

    def _wake_itself(self) -> None:
        """A signal handler has raised during the wait."""
        if self._wakes is not None:
            self._wakes.wake()

    def read_if_any(self) -> None:
        """Reads the messages that have arrived, without waiting. For the main thread."""
        self._is_taking = True
        try:
            with self._turn_lock:
                if self._poll.poll(0):
                    self._read()
        finally:
            self._is_taking = False
        self._reads += 1

    def read_in(self, loop: Any) -> None:
        """An event loop calls `read_if_any` when messages have arrived."""
        loop.add_reader(self._fd, self.read_if_any)

    def begin_reading_between_tasks(self) -> None:
        """For the main thread: from now on an event loop calls `read_if_any` when messages arrive, and runs tasks of
        the app."""
        if self._end is None:
            self._end = WakePipe(self._fd, until_end=True)
        self._is_between_tasks = True
        self._main_reads = True

    def end_reading_between_tasks(self) -> None:
        self._is_between_tasks = False
        self._resume()

    def _resume(self) -> None:
        """The main thread goes back to the app's code. Its flag falls first, because the second thread checks it
        last."""
        self._reads += 1
        self._main_reads = False
        self.wake()

    def wake(self) -> None:
        """Wakes the second thread, which then calls `on_tick` and watches the main thread."""
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
        self._on_tick()  # for a `wake` that came before the `clear`
        if not self._main_reads:
            return  # the main thread went on before it could see that the second one sleeps
        if self._is_between_tasks and self._end is not None:
            self._nap(self._end)
        else:
            self._awake.wait()

    def _nap(self, end: WakePipe) -> None:
        """Sleeps, but notices the end of the front, which a main thread that is kept by a task cannot."""
        self._naps = True  # set before the check: `wake` reads the flag after its change
        try:
            has_ended = not self._awake.is_set() and end.wait()
        finally:
            self._naps = False
        while has_ended:
            time.sleep(_TICK_S)  # a main thread that is free reads the rest
            with self._turn_lock:
                if self._poll.poll(0):
                    self._read()

    def _read_in_its_place(self) -> None:
        """Reads messages until the main thread waits for them again."""
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


class WakePipe:
    """A pipe with which another thread wakes the thread that waits for frames. Programs that the app starts do not inherit its
    descriptors."""

    def __init__(self, fd: int, until_end: bool = False) -> None:
        """`until_end`: only the end of the stream on `fd` counts as something to read."""
        self._fd = fd
        self._out, self._inlet = os.pipe()
        os.set_blocking(self._inlet, False)
        self._poll = select.poll()
        self._poll.register(fd, 0 if until_end else select.POLLIN)
        self._poll.register(self._out, select.POLLIN)

    def wait(self) -> bool:
        """Waits until there is something to read from the descriptor, and returns True, or until `wake`, and returns
        False. For one thread at a time."""
        ready = [fd for fd, _ in self._poll.poll()]
        if self._out in ready:
            os.read(self._out, 4096)
        return self._fd in ready

    def wake(self) -> None:
        """Ends the current `wait`, or else the next one. For any thread."""
        try:
            os.write(self._inlet, b"\0")
        except BlockingIOError:
            pass  # it is full, which wakes the thread as well


def _poll_of(fd: int) -> Any:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return poll
