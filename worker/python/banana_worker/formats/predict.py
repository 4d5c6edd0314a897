"""Calls of KServe's first protocol and of Vertex AI: `instances`, each an input of the app, become `predictions`."""

from __future__ import annotations

from typing import Any, List
from urllib.parse import parse_qs

from banana_worker.formats import AnyExchange, Inputs
from banana_worker.formats.reply import JsonBody, Reply, assert_no_error, value_of
from banana_worker.formats.task_bodies import fields_of
from banana_worker.formats.tensors.request import checked_parameters, parameters_of
from banana_worker.protocol.errors import bad_body

# The words for the client of a custom service.
ITEM_REFUSAL = "A custom service of Multi Model Server takes no instances; call it at /predictions/{model_name}."

_FIELD = "instances"


class Exchange(AnyExchange):
    def read(self, body: bytes) -> Inputs:
        fields = fields_of(body)
        instances: Any = fields.get(_FIELD)
        if not isinstance(instances, list) or not instances:
            raise bad_body(f'"{_FIELD}" must be a list of inputs that is not empty.')
        self.params = checked_parameters(parameters_of(fields, lambda text: bad_body(f"The request's {text}.")))
        values: List[Any] = instances
        return Inputs(_FIELD, values, int(parse_qs(self.call.dialect_params).get("batch", ["1"])[0]))

    def write(self, answer: Reply) -> Reply:
        """Gets the values of all answers as one, or the error that the app has answered to all of them."""
        assert_no_error(answer)
        predictions = value_of(answer.body, answer.head.content_type)
        return Reply(answer.head._replace(content_type="application/json"), JsonBody({"predictions": predictions}))
