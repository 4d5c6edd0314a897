"""Reads the weights out of an ONNX file: as much of its protobuf as that takes, and no package for it."""

import struct

import numpy as np


def read_weights(path):
    """The initializers of the graph, by name, as arrays of float32 and int64."""
    with open(path, "rb") as file:
        model = file.read()
    graph = next(value for field, value in fields_of(model) if field == 7)
    tensors = (dict_of(value) for field, value in fields_of(graph) if field == 5)
    return {bytes(tensor[8][0]).decode(): array_of(tensor) for tensor in tensors}


def array_of(tensor):
    shape = [number for value in tensor.get(1, []) for number in numbers_of(value)]
    kind = {1: "<f4", 7: "<i8"}[tensor[2][0]]
    return np.frombuffer(tensor[9][0], dtype=kind).reshape(shape)


def dict_of(message):
    """The values of each field."""
    found = {}
    for field, value in fields_of(message):
        found.setdefault(field, []).append(value)
    return found


def fields_of(message):
    """Number and value of each field: an int, or the bytes of a text, a message or packed numbers."""
    data, at = memoryview(message), 0
    while at < len(data):
        key, at = varint_at(data, at)
        if key & 7 == 0:
            value, at = varint_at(data, at)
        elif key & 7 == 2:
            size, at = varint_at(data, at)
            value, at = data[at : at + size], at + size
        else:
            size = 8 if key & 7 == 1 else 4
            value, at = struct.unpack_from("<q" if size == 8 else "<f", data, at)[0], at + size
        yield key >> 3, value


def numbers_of(value):
    """The numbers of a repeated field: one of them, or several that are packed."""
    if isinstance(value, int):
        return [value]
    numbers, at = [], 0
    while at < len(value):
        number, at = varint_at(value, at)
        numbers.append(number)
    return numbers


def varint_at(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        number, at, shift = number | (byte & 0x7F) << shift, at + 1, shift + 7
        if byte < 0x80:
            return number, at
