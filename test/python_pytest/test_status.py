"""The counters behind Potassium's status, event by event."""

import time

import pytest

from potassium.status import InvalidStatusEvent, PotassiumStatus, StatusEvent


def after(workers, *events):
    status = PotassiumStatus.initial(workers)
    for event in events:
        status = status.update(event)
    return status


RECEIVED = (StatusEvent.INFERENCE_REQUEST_RECEIVED,)
STARTED = (StatusEvent.WORKER_STARTED,)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_it_is_available_once_every_worker_has_started(workers):
    for started in range(workers):
        assert not after(workers, *[STARTED] * started).gpu_available
    status = after(workers, *[STARTED] * workers)
    assert (status.gpu_available, status.num_workers_started) == (True, workers)


def test_it_is_available_while_fewer_requests_are_in_progress_than_there_are_workers():
    status = after(2, STARTED, STARTED, RECEIVED)
    assert (status.gpu_available, status.requests_in_progress) == (True, 1)
    status = status.update(RECEIVED)
    assert (status.gpu_available, status.sequence_number) == (False, 2)
    status = status.update((StatusEvent.INFERENCE_START, "a")).update((StatusEvent.INFERENCE_END, "a"))
    assert (status.gpu_available, status.num_completed_inference_requests, status.sequence_number) == (True, 1, 2)


def test_requests_and_bad_requests_count_and_nothing_else():
    events = [RECEIVED, (StatusEvent.INFERENCE_START, 1), (StatusEvent.INFERENCE_END, 1)]
    status = after(1, STARTED, *events, (StatusEvent.BAD_REQUEST_RECEIVED,))
    assert (status.sequence_number, status.num_bad_requests) == (2, 1)


def test_idle_time_runs_while_nothing_is_in_progress():
    fields = dict(num_bad_requests=0, num_workers=1, idle_start_timestamp=0, in_flight_request_start_times=[])
    rows = [(0, 0, 0, 0), (0, 0, 1, time.time()), (1, 0, 1, 0), (2, 2, 1, time.time())]
    for started, completed, workers_started, expected in rows:
        status = PotassiumStatus(
            num_started_inference_requests=started,
            num_completed_inference_requests=completed,
            num_workers_started=workers_started,
            **fields,
        )
        assert status.idle_time == pytest.approx(expected, abs=60)


def test_inference_time_is_that_of_the_oldest_request():
    status = after(4, *[STARTED] * 4, RECEIVED)
    assert status.longest_inference_time == 0
    now = time.time()
    status = status._replace(in_flight_request_start_times=[("a", now - 200), ("b", now - 300), ("c", now)])
    assert status.longest_inference_time == pytest.approx(300, abs=60)


def test_an_update_changes_no_status_from_before():
    before = after(1, STARTED, RECEIVED)
    before.update((StatusEvent.INFERENCE_START, "a"))
    assert before.in_flight_request_start_times == ()


def test_other_events_are_refused():
    for event in (("BAD_EVENT",), ("INFERENCE_START", 1)):
        with pytest.raises(InvalidStatusEvent, match="Invalid status event"):
            after(1, event)
