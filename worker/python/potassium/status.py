"""Potassium's status: counters that events of the server change. The test client counts with them."""

from __future__ import annotations

import time
from enum import Enum
from typing import Any, NamedTuple, Tuple

from banana_worker.stand_in import names_of_module

__all__ = ["InvalidStatusEvent", "PotassiumStatus", "StatusEvent"]


class InvalidStatusEvent(Exception):
    """An unknown event."""


class StatusEvent(Enum):
    """Events of a server that change its status."""

    INFERENCE_REQUEST_RECEIVED = "INFERENCE_REQUEST_RECEIVED"
    INFERENCE_START = "INFERENCE_START"
    INFERENCE_END = "INFERENCE_END"
    WORKER_STARTED = "WORKER_STARTED"
    BAD_REQUEST_RECEIVED = "BAD_REQUEST_RECEIVED"


class PotassiumStatus(NamedTuple):
    """The counters at one moment. `update` returns those after an event, and changes nothing. Times in seconds."""

    num_started_inference_requests: int
    num_completed_inference_requests: int
    num_bad_requests: int
    num_workers: int
    num_workers_started: int
    idle_start_timestamp: float
    in_flight_request_start_times: Any
    """Pairs of a request's id and its begin."""

    @staticmethod
    def initial(num_workers: int) -> PotassiumStatus:
        return PotassiumStatus(0, 0, 0, num_workers, 0, time.time(), ())

    @property
    def requests_in_progress(self) -> int:
        return self.num_started_inference_requests - self.num_completed_inference_requests

    @property
    def gpu_available(self) -> bool:
        return self.num_workers_started >= self.num_workers and self.requests_in_progress < self.num_workers

    @property
    def sequence_number(self) -> int:
        return self.num_started_inference_requests + self.num_bad_requests

    @property
    def idle_time(self) -> float:
        """The time since a request was last in progress; 0 while one is."""
        if not self.gpu_available or self.requests_in_progress > 0:
            return 0
        return time.time() - self.idle_start_timestamp

    @property
    def longest_inference_time(self) -> float:
        """The age of the oldest request that has begun; 0 if none has."""
        began = [start for _, start in self.in_flight_request_start_times]
        return time.time() - min(began) if began else 0

    def update(self, event: Tuple[Any, ...]) -> PotassiumStatus:
        """Returns the status after `(StatusEvent, request id if it has one)`. Raises InvalidStatusEvent on any
        other."""
        kind, *data = event
        if kind is StatusEvent.INFERENCE_REQUEST_RECEIVED:
            return self._replace(num_started_inference_requests=self.num_started_inference_requests + 1)
        if kind is StatusEvent.WORKER_STARTED:
            return self._replace(num_workers_started=self.num_workers_started + 1)
        if kind is StatusEvent.BAD_REQUEST_RECEIVED:
            return self._replace(num_bad_requests=self.num_bad_requests + 1)
        if kind is StatusEvent.INFERENCE_START:
            in_flight = (*self.in_flight_request_start_times, (data[0], time.time()))
            return self._replace(in_flight_request_start_times=in_flight)
        if kind is StatusEvent.INFERENCE_END:
            return self._without(data[0])
        raise InvalidStatusEvent(f"Invalid status event: {kind}")

    def _without(self, request_id: object) -> PotassiumStatus:
        ended = self._replace(
            num_completed_inference_requests=self.num_completed_inference_requests + 1,
            in_flight_request_start_times=tuple(
                pair for pair in self.in_flight_request_start_times if pair[0] != request_id
            ),
        )
        return ended._replace(idle_start_timestamp=time.time()) if ended.gpu_available else ended


__getattr__ = names_of_module(__name__, __all__)
