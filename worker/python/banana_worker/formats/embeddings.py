"""Embeddings in the form of OpenAI's API: the app gets texts, and its vectors leave as lists, or in base64 if the client
asks for that, which the official clients do on their own."""

from __future__ import annotations

from array import array
from base64 import b64encode
from typing import Any, Dict, List, Optional, Sequence, Union

from banana_worker.failures.sentences import kind_of
from banana_worker.formats import AnyExchange
from banana_worker.formats.reply import Reply
from banana_worker.formats.task_bodies import Fields, bad_field, fields_of, numbers_of, result_of, whole_number
from banana_worker.protocol.errors import ServeError, output_invalid
from banana_worker.values.tensor import shown

# The words for the client of a custom service.
ITEM_REFUSAL = "A custom service of Multi Model Server takes no texts to embed; call it at /predictions/{model_name}."


class Exchange(AnyExchange):
    _texts = 0
    _dimensions: Optional[int] = None
    _is_base64 = False

    def read(self, body: bytes) -> Dict[str, Any]:
        fields = fields_of(body)
        given = _input_of(fields, self.takes_tokens)
        self._texts = len(given)
        self._dimensions = whole_number(fields, "dimensions")
        self._is_base64 = _is_base64(fields)
        return {"input": given} if self._dimensions is None else {"input": given, "dimensions": self._dimensions}

    def write(self, answer: Reply) -> Reply:
        return result_of(answer, self.call, "embeddings", self._encoded)

    def _encoded(self, value: Any, model: str, tokens: Optional[int]) -> Dict[str, Any]:
        numbers, shape = numbers_of(value, "embeddings")
        if len(shape) != 2 or shape[0] != self._texts or shape[1] == 0:
            given = f"embeddings of the shape {shown(list(shape))} for {self._texts} texts"
            raise output_invalid(f"The app returned {given}; it must return one vector for each.")
        size = shape[1]
        if self._dimensions not in (None, size):
            raise _wrong_dimensions(size, self._dimensions)
        data = [
            {"object": "embedding", "index": i, "embedding": self._vector(numbers[i * size : (i + 1) * size])}
            for i in range(self._texts)
        ]
        usage = {} if tokens is None else {"usage": {"prompt_tokens": tokens, "total_tokens": tokens}}
        return {"object": "list", "data": data, "model": model, **usage}

    def _vector(self, numbers: List[float]) -> Union[str, List[float]]:
        if not self._is_base64:
            return numbers
        # Little-endian on every machine that models run on.
        return b64encode(array("f", numbers).tobytes()).decode()


def _wrong_dimensions(size: int, wanted: Optional[int]) -> ServeError:
    message = f"The vectors of this model have {size} dimensions, not {wanted}."
    return ServeError("SERVE_HTTP_ERROR", message, status=400, issues=[(["dimensions"], message)])


def _input_of(fields: Fields, takes_tokens: bool) -> Sequence[Any]:
    """A text alone stands for a list of one, and so does a list of numbers. @raises ServeError SERVE_BAD_BODY"""
    given = fields.get("input")
    if isinstance(given, str):
        return [given]
    if not isinstance(given, list) or not given:
        found = "an empty list" if given == [] else kind_of(given)
        raise bad_field("input", f'"input" must be a text or a list of texts, not {found}.')
    texts: List[Any] = given
    if all(isinstance(one, str) for one in texts):
        return texts
    tokens = [texts] if _are_tokens(texts) else texts
    if not all(map(_are_tokens, tokens)):
        raise bad_field("input", '"input" must be a list of texts alone, or of tokens alone.')
    if takes_tokens:
        return tokens
    raise bad_field("input", 'This model takes texts, not numbers of tokens: send "input" as text.')


def _are_tokens(given: Any) -> bool:
    return isinstance(given, list) and bool(given) and all(type(one) is int and one >= 0 for one in given)


def _is_base64(fields: Fields) -> bool:
    given = fields.get("encoding_format")
    form = "float" if given is None else given
    if form in ("base64", "float"):
        return bool(form == "base64")
    raise bad_field("encoding_format", f'"encoding_format" must be float or base64, not {shown(form)}.')
