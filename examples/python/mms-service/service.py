"""The digits as a custom service in the form of Multi Model Server's handlers: a batch of items in, a result for each out."""

import json
import os
import sys

import numpy as np
from mms.service import PredictionException

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../digits"))
from network import Digits  # of the example beside this one


class DigitsService:
    def __init__(self):
        self.digits = None
        self.initialized = False

    def initialize(self, context):
        self.digits = Digits()
        self.initialized = True

    def handle(self, data, context):
        pictures = [picture_of(item) for item in data]
        good = [picture for picture in pictures if isinstance(picture, np.ndarray)]
        context.metrics.add_counter("Pictures", len(good))
        answers = iter(self.digits.probabilities(np.stack(good)) if good else ())
        return [answer(next(answers)) if isinstance(one, np.ndarray) else one for one in pictures]


_service = DigitsService()


def handle(data, context):
    if not _service.initialized:
        _service.initialize(context)
    return None if data is None else _service.handle(data, context)


def picture_of(item):
    """The field `data` of a form, else the body: a list of 64 amounts of ink from 0 to 16."""
    sent = item.get("data") or item.get("body")
    try:
        pixels = json.loads(sent) if isinstance(sent, (bytes, bytearray, str)) else sent
        return np.array(pixels, dtype=np.float32).reshape(8, 8) / 16
    except (TypeError, ValueError):
        return PredictionException("send 64 numbers from 0 to 16, such as [0, 0, 5, 13, ...]", 400)


def answer(probabilities):
    return {"label": int(probabilities.argmax()), "probabilities": probabilities.tolist()}
