"""Recognises the digit in a picture: a small network in numpy, on the weights of examples/digits."""

import numpy as np
from potassium import Potassium, Request, Response

from network import Digits

app = Potassium("digits")


@app.init
def init():
    return {"digits": Digits()}


@app.handler("/", batch=True)
def handler(context: dict, requests: list) -> list:
    """Runs the network once for a batch of calls; an input that is not a picture is refused alone."""
    pictures = [picture_of(request) for request in requests]
    good = [picture for picture in pictures if picture is not None]
    answers = iter(context["digits"].probabilities(np.stack(good)) if good else ())
    return [refusal() if picture is None else answer(next(answers)) for picture in pictures]


def picture_of(request: Request):
    """64 amounts of ink from 0 to 16, or 8 rows of 8; None for anything else."""
    try:
        pixels = np.array(request.json["pixels"], dtype=np.float32).reshape(8, 8) / 16
    except (KeyError, TypeError, ValueError):
        return None
    return pixels if ((pixels >= 0) & (pixels <= 1)).all() else None


def answer(probabilities) -> Response:
    return Response(json={"label": int(probabilities.argmax()), "probabilities": probabilities}, status=200)


def refusal() -> Response:
    message = 'Send JSON such as {"pixels": [64 numbers from 0 to 16]}'
    return Response(json={"message": message}, status=422)


if __name__ == "__main__":
    app.serve()
