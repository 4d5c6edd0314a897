"""The network of examples/digits in numpy: two convolutions, a pooling, two layers. It takes a batch of pictures."""

import os

import numpy as np

from onnx_weights import read_weights

WEIGHTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../digits/digits.onnx")


class Digits:
    def __init__(self, path=WEIGHTS):
        self.weights = read_weights(path)

    def probabilities(self, pixels):
        """`pixels`: float32 of shape (n, 8, 8), ink from 0 to 1. Returns (n, 10)."""
        x = pixels[:, None]
        x = relu(self.convolve(x, "m.c.0"))
        x = relu(self.convolve(x, "m.c.2"))
        n, channels, rows, columns = x.shape
        x = x.reshape(n, channels, rows // 2, 2, columns // 2, 2).max(axis=(3, 5))
        x = relu(self.layer(x.reshape(n, -1), "m.c.6"))
        x = np.exp(x_below_0(self.layer(x, "m.c.9")))
        return x / x.sum(axis=1, keepdims=True)

    def convolve(self, x, name):
        """3 x 3, with a border of zeros: the sum of nine products of shifted pictures."""
        weight, bias = self.weights[name + ".weight"], self.weights[name + ".bias"]
        rows, columns = x.shape[2:]
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        parts = (
            np.einsum("oc,ncyx->noyx", weight[:, :, dy, dx], padded[:, :, dy : dy + rows, dx : dx + columns])
            for dy in range(3)
            for dx in range(3)
        )
        return sum(parts) + bias[:, None, None]

    def layer(self, x, name):
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]


def relu(x):
    return np.maximum(x, 0)


def x_below_0(x):
    """The largest of each row is 0, so that no exponential overflows."""
    return x - x.max(axis=1, keepdims=True)
