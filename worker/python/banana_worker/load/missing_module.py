"""Explains a module that an app imports and Python does not find, and features that this Python is too old for."""

from __future__ import annotations

import os
import re
import sys
from typing import NamedTuple, Optional, Tuple

from banana_worker.failures.stack_frame import places_in
from banana_worker.failures.thrown import is_a, text_of

# The folder of the app as a package, so that `from . import sibling` works.
FOLDER_PACKAGE = "__app_folder__"

# Names of packages for pip, if they differ from the name of the import.
_DISTRIBUTIONS = {
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cairosvg": "CairoSVG",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "distutils": "setuptools",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "fitz": "PyMuPDF",
    "git": "GitPython",
    "google.protobuf": "protobuf",
    "jose": "python-jose",
    "jwt": "PyJWT",
    "magic": "python-magic",
    "multipart": "python-multipart",
    "OpenSSL": "pyOpenSSL",
    "PIL": "pillow",
    "pkg_resources": "setuptools",
    "psycopg2": "psycopg2-binary",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "soundfile": "soundfile",
    "tensorflow_hub": "tensorflow-hub",
    "umap": "umap-learn",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}

# Modules that Python had in earlier versions.
_REMOVED = (
    "aifc asynchat asyncore audioop binhex cgi cgitb chunk crypt formatter imghdr imp lib2to3 mailcap msilib nis"
    " nntplib ossaudiodev parser pipes smtpd sndhdr spwd sunau symbol telnetlib uu xdrlib"
).split()


def explain_missing_module(path: str, place: str, error: ModuleNotFoundError) -> str:
    """`path`: the app's file; `place`: `file:line` in the app's code."""
    name = error.name or ""
    missing = f'{place}: cannot import "{name}"{_importer(place, error)}: '
    version = sys.version.split()[0]
    interpreter = f"The interpreter is {sys.executable} (Python {version})."
    top, _, within = name.partition(".")
    if top == FOLDER_PACKAGE:
        return f'{place}: cannot import ".{within}": there is no such module in the folder of the app. Check its name.'
    if top != name and top in sys.modules:
        where = getattr(sys.modules[top], "__file__", None) or "a folder without __init__.py"
        return f'{missing}"{top}" was found ({where}), but it has no such module. Check the name. {interpreter}'
    if top in _REMOVED:
        cure = "Name an older interpreter with --python."
        return f"{missing}Python {version} has no such module any more. {cure} {interpreter}"
    if top in getattr(sys, "stdlib_module_names", ()):
        return f"{missing}it is part of Python, and this Python was installed without it. {interpreter}"
    hint = newer_python_hint(error)
    if hint:
        return missing + hint
    requirements = _requirements_with(path, _distribution(name))
    what = f"-r {requirements}" if requirements else _distribution(name)
    return f"{missing}the package is not installed. Run: {sys.executable} -m pip install {what}\n{interpreter}"


def _importer(place: str, error: ModuleNotFoundError) -> str:
    """The installed package that imports the module, if it is not the app's own code."""
    outside = [each for each in places_in(error) if not each.file.startswith("<frozen")]
    last = f"{outside[-1].file}:{outside[-1].line}" if outside else place
    return "" if last == place else f", which {last} imports"


def _distribution(name: str) -> str:
    return _DISTRIBUTIONS.get(name) or _DISTRIBUTIONS.get(name.partition(".")[0]) or name.partition(".")[0]


def _requirements_with(path: str, distribution: str) -> Optional[str]:
    """The requirements.txt beside the app, if it names the package."""
    file = os.path.join(os.path.dirname(path), "requirements.txt")
    try:
        with open(file, encoding="utf-8", errors="replace") as requirements:
            lines = requirements.read().splitlines()
    except OSError:
        return None
    return file if any(_is_named(distribution, line) for line in lines) else None


def _is_named(distribution: str, line: str) -> bool:
    """Whether a line of requirements names the package, or its other form without windows (opencv)."""
    named = re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)", line)
    return named is not None and _normal(named.group(1)) in (_normal(distribution), _normal(distribution + "-headless"))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


Version = Tuple[int, int]

# Modules that came with a version after the first that a worker runs on.
_MODULES = {"zoneinfo": (3, 9), "graphlib": (3, 9), "tomllib": (3, 11)}

# Characters of a message, or of a line, that are searched: some patterns take more than linear time.
_MOST_CHARS = 300


class _Feature(NamedTuple):
    name: str
    since: Version
    # Searched for in the message of a TypeError, or in the line of a SyntaxError.
    pattern: str


_TYPES = (
    _Feature("A `|` of dicts", (3, 9), r"for \|=?: 'dict' and 'dict'"),
    _Feature("A type such as `list[int]`", (3, 9), r"^'(type|ABCMeta)' object is not subscriptable"),
    _Feature("A type such as `int | None`", (3, 10), r"for \|: .*'(type|NoneType|\S*(Alias|Meta|Form))'"),
)
_SYNTAX = (
    _Feature("A `match`", (3, 10), r"^\s*(match|case)\b.*:\s*(#.*)?$"),
    _Feature("An `except*`", (3, 11), r"^\s*except\s*\*"),
    _Feature("A `type` statement", (3, 12), r"^\s*type\s+\w+.*="),
    _Feature("A definition with type parameters", (3, 12), r"^\s*((async\s+)?def|class)\s+\w+\["),
)


def newer_python_hint(thrown: BaseException) -> str:
    """A sentence with the Python version that is needed; empty if this one is not known to be too old."""
    if not is_a(thrown, ModuleNotFoundError, TypeError, SyntaxError):
        return ""
    if isinstance(thrown, ModuleNotFoundError):
        name = thrown.name or ""
        since = _MODULES.get(name)
        return _needs(f"The module {name}", since) if since and sys.version_info < since else ""
    features, text = _TYPES, text_of(thrown) or "" if type(thrown) is TypeError else ""
    if isinstance(thrown, SyntaxError):
        features, text = _SYNTAX, thrown.text or ""
    for feature in features:
        if sys.version_info < feature.since and re.search(feature.pattern, text[:_MOST_CHARS]):
            return _needs(feature.name, feature.since)
    return ""


def _needs(what: str, since: Version) -> str:
    this = "%d.%d.%d" % sys.version_info[:3]
    return f"{what} needs Python {since[0]}.{since[1]} or newer; this is {this} ({sys.executable}). Name another with --python."
