"""A model of a chosen size, to be killed; as heavy.mjs."""

import os
import socket
import time

buffers = []
facts = {}


def init():
    started_at = time.perf_counter()
    buffers.append(b"\1" * (int(os.environ["BENCH_FILL_MB"]) * 2**20))
    facts["tether"] = socket.create_connection(("127.0.0.1", int(os.environ["BENCH_TETHER_PORT"])))
    facts["tether"].sendall(b"%d\n" % os.getpid())
    facts["init_ms"] = (time.perf_counter() - started_at) * 1000


def inference(model_inputs):
    end_at = time.perf_counter() + model_inputs["busyMs"] / 1000
    while time.perf_counter() < end_at:
        pass
    return {"initMs": facts["init_ms"], "pid": os.getpid()}
