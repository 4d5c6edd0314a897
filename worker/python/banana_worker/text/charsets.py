"""Decodes text in the charsets that browsers know, by the names that they know, and encodes it as UTF-8."""

from __future__ import annotations

import codecs
import json
import re
from encodings import normalize_encoding
from encodings.aliases import aliases
from typing import Tuple


# Python knows more codecs than these. Some of them take much more than linear time, and none is meant for bodies.
_KNOWN = re.compile(
    r"utf-8|utf-16(-[lb]e)?|ascii|iso8859-\d+|cp125\d|cp874|cp866|koi8-[ru]|mac-roman"
    r"|gbk|gb2312|gb18030|big5|euc_jp|iso2022_jp|shift_jis|euc_kr"
)

# The spellings in which Python is asked for a codec. Python keeps every name that it was ever asked for, unknown ones
# too, so clients could fill its memory with them. The last two are modules of Python without another name.
_NAMES = frozenset((*aliases, *aliases.values(), "cp874", "koi8_u"))

# Browsers read these names as Windows' Latin, which has letters in place of control characters.
_LATIN = ("ascii", "iso8859-1", "cp1252")


def decode_text(data: bytes, charset: str) -> str:
    """Decodes bytes in a charset, UTF-8 if its name is empty; malformed bytes become U+FFFD.

    @raises ValueError if the charset is not known
    """
    codec = _codec_of(charset or "utf-8")
    return codecs.decode(data, codec, "latin-controls" if codec == "cp1252" else "replace")


def decode_strictly(data: bytes, charset: str) -> str:
    """Decodes a whole text, without a byte order mark. @raises ValueError if the bytes are not text in this charset"""
    codec = _codec_of(charset)
    text = codecs.decode(data, codec, "latin-controls" if codec == "cp1252" else "strict")
    return text[1:] if text.startswith("\ufeff") else text


def _codec_of(charset: str) -> str:
    asked = normalize_encoding(charset.strip()).replace(".", "_").lower()
    try:
        name = codecs.lookup(asked).name if asked in _NAMES and "\0" not in charset else ""
    except LookupError:  # a codec of another system: `mbcs`
        name = ""
    if name in _LATIN:
        return "cp1252"
    if _KNOWN.fullmatch(name):
        return name
    raise ValueError(f"the charset {json.dumps(charset[:40])} is not supported")


def _latin_controls(error: UnicodeError) -> Tuple[str, int]:
    """Reads the five bytes that Windows' Latin leaves open as the control characters of the same numbers."""
    assert isinstance(error, UnicodeDecodeError)
    return "".join(map(chr, error.object[error.start : error.end])), error.end


codecs.register_error("latin-controls", _latin_controls)


def utf8(text: str) -> bytes:
    """Half of a surrogate pair, which UTF-8 cannot hold, becomes U+FFFD. Never raises."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
