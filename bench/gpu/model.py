"""A network on torch whose size is set by the environment: on the GPU that the worker sees, or on the CPU."""

import os
import time

import torch

DEVICE = os.environ["BENCH_DEVICE"]
SIZE = int(os.environ["BENCH_SIZE"])
LAYERS = int(os.environ["BENCH_LAYERS"])
# Memory that a kill must give back.
BALLAST_MB = int(os.environ["BENCH_BALLAST_MB"])

state = {}


def init():
    torch.manual_seed(1)
    with torch.no_grad():
        state["weights"] = torch.randn(SIZE, SIZE, device=DEVICE) / SIZE**0.5
        state["ballast"] = torch.ones(BALLAST_MB * 2**20, dtype=torch.uint8, device=DEVICE)
    run(1)


def run(rows):
    with torch.no_grad():
        x = torch.ones(rows, SIZE, device=DEVICE)
        for _ in range(LAYERS):
            x = torch.tanh(x @ state["weights"])
        return x.mean(dim=1).tolist()  # waits for the GPU


def inference(model_inputs):
    return inference_batch([model_inputs], [])[0]


def inference_batch(inputs, ctxs):
    if any(one.get("failsKernel") for one in inputs):
        fail_kernel()
    if any(one.get("busyMs") for one in inputs):
        hold(max(one.get("busyMs", 0) for one in inputs))
    return [{"mean": mean, "pid": os.getpid(), "size": len(inputs)} for mean in run(len(inputs))]


def hold(ms):
    end_at = time.perf_counter() + ms / 1000
    while time.perf_counter() < end_at:
        run(1)


def fail_kernel():
    """On a GPU by an assertion in its code, which costs the process its GPU."""
    rows = torch.zeros(1, device=DEVICE)
    rows[torch.tensor([1 << 20], device=DEVICE)].tolist()
