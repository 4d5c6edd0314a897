"""`application/x-www-form-urlencoded` bodies, for apps that ask for them; others get such bodies read as JSON."""

from __future__ import annotations

from typing import Dict, List, Union

from banana_worker.formats.fields import collect_fields
from banana_worker.formats.form_pairs import form_pairs
from banana_worker.protocol.messages import Call

ITEM_TYPE = "application/x-www-form-urlencoded"


def read(body: bytes, call: Call) -> Dict[str, Union[str, List[str]]]:
    """Every value is text; a repeated name gets a list. Broken percent escapes stay as they are."""
    return collect_fields((name, value.decode("utf-8", "replace")) for name, value in form_pairs(body))
