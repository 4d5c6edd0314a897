"""Calls of the Open Inference Protocol V2: the app gets its inputs as tensors by name, and its outputs leave as such.
What the client asked for, with its id, is kept from the request for the answer."""

from __future__ import annotations

import json
import re
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union
from urllib.parse import parse_qs

from banana_worker.formats import AnyExchange
from banana_worker.formats.reply import BytesBody, Reply, ReplyHead, StreamBody, error_text
from banana_worker.formats.tensors.arrays import for_app
from banana_worker.formats.tensors.elements import bytes_of_tensor, elements_text
from banana_worker.formats.tensors.outputs import outputs_of
from banana_worker.formats.tensors.request import InferRequest, check_inputs, read_request
from banana_worker.protocol.errors import bad_body, output_invalid, refusal
from banana_worker.protocol.messages import Call, header_lines
from banana_worker.values.json_encoding import json_bytes, json_text
from banana_worker.values.tensor import Signature, Tensor, shown

# The words for the client of a custom service.
ITEM_REFUSAL = (
    "This model is a custom service of Multi Model Server, which takes no tensors; "
    "call it at /predictions/{model_name}."
)

# Length of the JSON at the beginning of a body with raw tensors.
_JSON_BYTES_HEADER = "Inference-Header-Content-Length"

_LENGTH = re.compile(r"[0-9]{1,15}\Z")


class Exchange(AnyExchange):
    def __init__(self, call: Call, signature: Optional[Signature] = None) -> None:
        super().__init__(call, signature)
        # Everything is wanted, as JSON, until a request says otherwise.
        self._request = InferRequest()

    def read(self, body: bytes) -> Dict[str, Any]:
        request = read_request(body, _json_bytes_of(self.call.headers), self.signature)
        if self.signature is not None:
            check_inputs(request.inputs, self.signature)
        self._request = request._replace(inputs={})
        self.params = request.params
        return {name: for_app(tensor) for name, tensor in request.inputs.items()}

    def write(self, answer: Reply) -> Reply:
        head, body = answer.head, answer.body
        if isinstance(body, StreamBody):
            raise refusal("This app streams its answer; a call of its own route gets it.")
        if head.status >= 400:
            error = json_bytes({"error": error_text(head.content_type, body)}, self.call.ascii_json)
            return Reply(head._replace(content_type="application/json"), BytesBody(error))
        if isinstance(body, BytesBody):
            raise refusal("This app answers with a body of its own, not with tensors; a call of its own route gets it.")
        return self._written(head.status, head.headers, body.value)

    def _written(self, status: int, lines: str, value: Any) -> Reply:
        params = parse_qs(self.call.dialect_params)
        model, version = (params.get(name, [""])[0] for name in ("model", "version"))
        fields = {"model_name": model, "model_version": version}
        if self._request.id:
            fields["id"] = self._request.id
        outputs = outputs_of(value, self.signature)
        content_type, json_bytes, body = write_answer(fields, outputs, self._request, self.call.ascii_json)
        own = [] if json_bytes is None else [_JSON_BYTES_HEADER, str(json_bytes)]
        headers = "\n".join(line for line in (lines, *own) if line)
        return Reply(ReplyHead(status, content_type, headers), BytesBody(body))


def _json_bytes_of(headers: str) -> Optional[int]:
    """None without the header. @raises ServeError SERVE_BAD_BODY if it is no length"""
    values = [value for name, value in header_lines(headers) if name.lower() == _JSON_BYTES_HEADER.lower()]
    if not values:
        return None
    text = ", ".join(values)
    if _LENGTH.match(text):
        return int(text)
    raise bad_body(f"{_JSON_BYTES_HEADER} must be a whole number of bytes, not {json.dumps(text[:60])}.")


def write_answer(
    fields: Mapping[str, str], outputs: Mapping[str, Tensor], request: InferRequest, ascii_json: bool
) -> Tuple[str, Optional[int], bytes]:
    """The content type, the length of the JSON if raw bytes follow it, and the body. `fields`: those beside the outputs.
    `ascii_json`: text beyond ASCII is escaped, because the client breaks it. @raises ServeError SERVE_HTTP_ERROR with the
    status 400 if the client asked for what the app did not return, or JSON cannot carry"""
    raw: List[Union[bytes, memoryview]] = []
    texts: List[str] = []
    for name, tensor, is_binary in _wanted_outputs(outputs, request):
        if is_binary:
            data = bytes_of_tensor(tensor, lambda text, name=name: output_invalid(f"Output {shown(name)}: {text}."))
            raw.append(data)
            texts.append(_output_text(name, tensor, '"parameters":{"binary_data_size":%d}' % len(data)))
        else:
            elements = elements_text(tensor, lambda text, name=name: refusal(f"Output {shown(name)}: {text}."))
            texts.append(_output_text(name, tensor, '"data":' + elements))
    text = f'{json_text(fields)[:-1]},"outputs":[{",".join(texts)}]}}'
    body = _escaped(text).encode() if ascii_json else text.encode("utf-8", "backslashreplace")
    if not raw:
        return "application/json", None, body
    return "application/octet-stream", len(body), b"".join([body, *raw])


def _wanted_outputs(outputs: Mapping[str, Tensor], request: InferRequest) -> List[Tuple[str, Tensor, bool]]:
    """The outputs to send in the order of the request, or all in the app's, each with its encoding."""
    if request.wanted is None:
        return [(name, tensor, request.binary) for name, tensor in outputs.items()]
    chosen: List[Tuple[str, Tensor, bool]] = []
    for name, is_binary in request.wanted.items():
        tensor = outputs.get(name)
        if tensor is None:
            names = ", ".join(shown(other) for other in outputs) or "none"
            raise refusal(f"The model returned no output {shown(name)}; it returned {names}.")
        chosen.append((name, tensor, is_binary))
    return chosen


def _output_text(name: str, tensor: Tensor, data: str) -> str:
    shape = ",".join(str(size) for size in tensor.shape)
    return f'{{"name":{json_text(name)},"datatype":"{tensor.datatype}","shape":[{shape}],{data}}}'


def _escaped(text: str) -> str:
    """JSON in ASCII; characters beyond it occur only in its texts."""
    return _BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)


_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
