"""Where a webhook may be posted. The front checks again; here a mistake has a line of the app's."""

from __future__ import annotations

import re

_FORM = re.compile(r"https?://[^\s/?#]\S*\Z", re.IGNORECASE)


def checked_url(url: object) -> str:
    """Returns the URL. Raises TypeError or ValueError unless it is an absolute http: or https: URL; does not repeat it,
    for it may hold a password."""
    if not isinstance(url, str):
        raise TypeError(f"the URL of a webhook must be text, not {type(url).__name__}")
    if _FORM.match(url) is None:
        raise ValueError("the URL of a webhook must be absolute, such as https://example.com/hook")
    return url
