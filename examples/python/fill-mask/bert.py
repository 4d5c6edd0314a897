"""BERT in numpy, on the weights of examples/fill-mask: it scores the word pieces for each place of a text."""

import json
import math
import os
import sys

import numpy as np

from word_pieces import MASK, WordPieces

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../digits"))
from onnx_weights import read_weights  # of the example beside this one

MODEL = os.path.join(HERE, "../../fill-mask/models/bert-tiny")
LAYERS, HEADS, REACH = 2, 2, 64

# The weights of each layer and of the output have no names of their own in the file; this is their order there.
PRODUCTS = [*(f"ls.{layer}.{name}" for layer in range(LAYERS) for name in ("q", "k", "v", "o", "f1", "f2")), "d", "out"]


class FillMask:
    """Fills the gap in a text with the likeliest words, as the pipeline `fill-mask` of transformers does."""

    def __init__(self, folder=MODEL):
        with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as file:
            self.pieces = WordPieces(json.load(file)["model"]["vocab"])
        self.weights = read_weights(os.path.join(folder, "onnx/model.onnx"))
        unnamed = [value for name, value in self.weights.items() if name.startswith("onnx::MatMul")]
        self.products = dict(zip(PRODUCTS, unnamed))

    def tokens(self, text):
        """The numbers of its word pieces, as far as the model reads."""
        return self.pieces.tokens(text)[:REACH]

    def __call__(self, text, most=5):
        tokens = self.tokens(text)
        gap = tokens.index(MASK)
        scores = softmax(self.logits(tokens)[gap])
        best = np.argsort(-scores, kind="stable")[:most]
        return [self.candidate(tokens, gap, int(token), float(scores[token])) for token in best]

    def candidate(self, tokens, gap, token, score):
        filled = [*tokens[:gap], token, *tokens[gap + 1 :]]
        return {
            "score": score,
            "token": token,
            "token_str": self.pieces.text([token]),
            "sequence": self.pieces.text(filled),
        }

    def logits(self, tokens):
        """One row for each place, one column for each word piece."""
        x = (
            self.weights["e.w.weight"][tokens]
            + self.weights["e.p.weight"][: len(tokens)]
            + self.weights["e.t.weight"][0]
        )
        x = self.normalized(x, "e.n")
        for layer in (f"ls.{number}" for number in range(LAYERS)):
            x = self.normalized(x + self.attention(x, layer), layer + ".n1")
            wide = gelu(self.layer(x, layer + ".f1"))
            x = self.normalized(x + self.layer(wide, layer + ".f2"), layer + ".n2")
        x = self.normalized(gelu(self.layer(x, "d")), "n")
        return x @ self.products["out"] + self.weights["b"]

    def attention(self, x, layer):
        size = x.shape[1] // HEADS
        q, k, v = (self.layer(x, f"{layer}.{name}").reshape(-1, HEADS, size).swapaxes(0, 1) for name in "qkv")
        shares = softmax(q @ k.swapaxes(1, 2) / math.sqrt(size))
        return self.layer((shares @ v).swapaxes(0, 1).reshape(x.shape), layer + ".o")

    def layer(self, x, name):
        return x @ self.products[name] + self.weights[name + ".bias"]

    def normalized(self, x, name):
        x = x - x.mean(axis=1, keepdims=True)
        x = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPSILON)
        return x * self.weights[name + ".weight"] + self.weights[name + ".bias"]


EPSILON = 1e-12
_erf = np.vectorize(math.erf, otypes=[np.float32])


def gelu(x):
    return x * 0.5 * (1 + _erf(x / math.sqrt(2)))


def softmax(x):
    x = np.exp(x - x.max(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True)
