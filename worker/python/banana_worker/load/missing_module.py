"""Explains a module that an app imports and Python does not find."""

from __future__ import annotations

import os
import re
import sys
from typing import Optional

from banana_worker.failures.stack_frame import places_in
from banana_worker.load.app_module import FOLDER_PACKAGE
from banana_worker.load.newer_python import newer_python_hint

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
