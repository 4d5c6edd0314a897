"""Documents in the order of their relevance, in the form of Cohere's API, which Jina's and others' have too."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from banana_worker.failures.sentences import kind_of
from banana_worker.formats import AnyExchange
from banana_worker.formats.reply import Reply
from banana_worker.formats.task_bodies import Fields, bad_field, fields_of, numbers_of, result_of, whole_number
from banana_worker.protocol.errors import output_invalid
from banana_worker.values.tensor import shown

# The words for the client of a custom service.
ITEM_REFUSAL = (
    "A custom service of Multi Model Server takes no documents to rank; call it at /predictions/{model_name}."
)


class Exchange(AnyExchange):
    _documents: List[str] = []
    _most: Optional[int] = None
    _returns_documents = False

    def read(self, body: bytes) -> Dict[str, Any]:
        fields = fields_of(body)
        query, given = fields.get("query"), fields.get("return_documents")
        returned = False if given is None else given
        if not isinstance(query, str):
            raise bad_field("query", f'"query" must be a text, not {kind_of(query)}.')
        if not isinstance(returned, bool):
            message = f'"return_documents" must be true or false, not {kind_of(returned)}.'
            raise bad_field("return_documents", message)
        self._documents = _documents_of(fields)
        self._most = whole_number(fields, "top_n")
        self._returns_documents = returned
        return {"query": query, "documents": self._documents}

    def write(self, answer: Reply) -> Reply:
        return result_of(answer, self.call, "scores", self._encoded)

    def _encoded(self, value: Any, model: str, tokens: Optional[int]) -> Dict[str, Any]:
        scores, shape = numbers_of(value, "scores")
        count = len(self._documents)
        if list(shape) != [count]:
            given = f"scores of the shape {shown(list(shape))} for {count} documents"
            raise output_invalid(f"The app returned {given}; it must return one number for each.")
        best = sorted(range(count), key=lambda index: -scores[index])[: self._most]
        results = [self._result(index, scores[index]) for index in best]
        usage = {} if tokens is None else {"usage": {"total_tokens": tokens}}
        return {"id": self.call.request_id, "model": model, "results": results, **usage}

    def _result(self, index: int, score: float) -> Dict[str, Any]:
        result: Dict[str, Any] = {"index": index, "relevance_score": score}
        return dict(result, document={"text": self._documents[index]}) if self._returns_documents else result


def _documents_of(fields: Fields) -> List[str]:
    """A document may be an object with a `text`, as Cohere's first clients send them. @raises ServeError SERVE_BAD_BODY"""
    documents = fields.get("documents")
    if not isinstance(documents, list) or not documents:
        raise bad_field("documents", '"documents" must be a list of texts that is not empty.')
    given: List[Any] = documents
    texts: List[Any] = [one.get("text") if isinstance(one, dict) else one for one in given]
    for at, text in enumerate(texts):
        if not isinstance(text, str):
            raise bad_field("documents", f'"documents" must be texts, and number {at} is {kind_of(given[at])}.')
    return texts
