"""Header values with parameters, such as `form-data; name="a"; filename*=UTF-8''b.txt`."""

from __future__ import annotations

import re
from typing import Dict, NamedTuple

from banana_worker.text.charsets import decode_text


class HeaderValue(NamedTuple):
    # The text before the first parameter, in lower case.
    value: str
    # By name in lower case. If a name comes twice, the extended form (RFC 5987) counts, else the last one.
    params: Dict[str, str]


def media_type(content_type: str) -> str:
    """The type that a Content-Type header names, in lower case and without its parameters."""
    return content_type.partition(";")[0].strip().lower()


_PARAM = re.compile(r';\s*([^=;\s"*]+)(\*?)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s"]*))', re.DOTALL)


def params_of(header: str) -> HeaderValue:
    """Reads the parameters and skips everything else, in time in proportion to the length of `header`.

    @raises ValueError on an extended form in an unknown charset
    """
    params: Dict[str, str] = {}
    extended = set()
    for name, star, quoted, token in _PARAM.findall(header):
        key = name.lower()
        if star:
            extended.add(key)
        elif key in extended:
            continue
        plain = re.sub(r'\\(["\\])', r"\1", quoted) if quoted else token
        params[key] = _decode_extended(plain) if star else plain
    return HeaderValue(media_type(header), params)


def _decode_extended(text: str) -> str:
    """Decodes `charset'language'percent-encoded`; anything else stays as it is."""
    match = re.match(r"([^']*)'[^']*'(.*)$", text, re.DOTALL)
    if match is None:
        return text
    charset, encoded = match.groups()
    units = re.sub(r"%([0-9a-fA-F]{2})", lambda found: chr(int(found.group(1), 16)), encoded)
    return decode_text(units.encode("latin-1", "replace"), charset)
