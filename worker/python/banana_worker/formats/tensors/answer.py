"""Writes answers of the Open Inference Protocol: JSON, with the tensors in it or, as raw bytes, behind it."""

from __future__ import annotations

import json
import re
from typing import List, Mapping, Optional, Tuple, Union

from banana_worker.formats.tensors.elements import elements_text
from banana_worker.formats.tensors.raw_data import bytes_of_tensor
from banana_worker.formats.tensors.request import WantedOutputs
from banana_worker.protocol.errors import ServeError
from banana_worker.values.json_encoding import json_text
from banana_worker.values.tensor import Tensor, shown


def write_answer(
    fields: Mapping[str, str], outputs: Mapping[str, Tensor], wanted: WantedOutputs, ascii_json: bool
) -> Tuple[str, Optional[int], bytes]:
    """The content type, the length of the JSON if raw bytes follow it, and the body. `fields`: those beside the outputs.
    `ascii_json`: text beyond ASCII is escaped, because the client breaks it. @raises ServeError SERVE_HTTP_ERROR with the
    status 400 if the client asked for what the app did not return, or JSON cannot carry"""
    raw: List[Union[bytes, memoryview]] = []
    texts: List[str] = []
    for name, tensor, is_binary in _wanted_outputs(outputs, wanted):
        if is_binary:
            data = bytes_of_tensor(tensor, lambda text, name=name: _invalid(name, text))
            raw.append(data)
            texts.append(_output_text(name, tensor, '"parameters":{"binary_data_size":%d}' % len(data)))
        else:
            elements = elements_text(tensor, lambda text, name=name: _refusal(f"Output {shown(name)}: {text}."))
            texts.append(_output_text(name, tensor, '"data":' + elements))
    text = f'{json_text(fields)[:-1]},"outputs":[{",".join(texts)}]}}'
    body = _escaped(text).encode() if ascii_json else text.encode("utf-8", "backslashreplace")
    if not raw:
        return "application/json", None, body
    return "application/octet-stream", len(body), b"".join([body, *raw])


def _wanted_outputs(outputs: Mapping[str, Tensor], wanted: WantedOutputs) -> List[Tuple[str, Tensor, bool]]:
    """The outputs to send in the order of the request, or all in the app's, each with its encoding."""
    if wanted.named is None:
        return [(name, tensor, wanted.binary) for name, tensor in outputs.items()]
    chosen: List[Tuple[str, Tensor, bool]] = []
    for name, is_binary in wanted.named.items():
        tensor = outputs.get(name)
        if tensor is None:
            names = ", ".join(shown(other) for other in outputs) or "none"
            raise _refusal(f"The model returned no output {shown(name)}; it returned {names}.")
        chosen.append((name, tensor, is_binary))
    return chosen


def _output_text(name: str, tensor: Tensor, data: str) -> str:
    shape = ",".join(str(size) for size in tensor.shape)
    return f'{{"name":{json_text(name)},"datatype":"{tensor.datatype}","shape":[{shape}],{data}}}'


def _escaped(text: str) -> str:
    """JSON in ASCII; characters beyond it occur only in its texts."""
    return _BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)


_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")


def _refusal(message: str) -> ServeError:
    return ServeError("SERVE_HTTP_ERROR", message, status=400)


def _invalid(name: str, text: str) -> ServeError:
    return ServeError("SERVE_OUTPUT_INVALID", f"Output {shown(name)}: {text}.")
