"""The smallest app: `init` loads something slow once, `inference` uses it for every call."""

import os
import time


def init():
    """Runs once in each worker. Calls that arrive in the meantime wait; they are not refused."""
    global a
    time.sleep(float(os.environ.get("GREETING_INIT_MS", 10_000)) / 1000)  # stands for loading a model
    a = "hello"
    print(a)


def inference(model_inputs):
    """Runs for every call, one at a time in a worker."""
    greeting = a + " world"
    print(greeting)
    return {"greeting": greeting}
