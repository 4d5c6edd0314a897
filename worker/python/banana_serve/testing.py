"""A server for the tests of an app of any kind: `from banana_serve.testing import serve`.

`serve` starts the `banana-serve` that this file belongs to, on a free port of this machine. The server names the port in
its `--ready-file` once the model is loaded; nothing is read from its log. `context` makes a `ctx` for calls without a
server.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import IO, Any, Generator, List, Mapping, Optional
from urllib.parse import urlsplit

from banana_worker.protocol.messages import Call
from banana_worker.run.call_context import CallContext
from potassium.test_client.response import TestResponse
from potassium.test_client.app_thread import TestChannel, context_of_test

_CLI = Path(__file__).resolve().parents[3] / "dist" / "front" / "cli.js"
# A stop need not wait for a load balancer, and an app that fails to start fails the test at once.
_OPTIONS = ("--host", "127.0.0.1", "--port", "0", "--drain-lag", "0s", "--restart-limit", "0")
_POLL_S = 0.02


def context() -> CallContext:
    """A `ctx` for `init` and `inference`, to call them in this process: in a debugger, a notebook, a test. Its log is on
    stderr; metrics and progress are dropped."""
    return CallContext(
        Call(0, 0, 0, "local", "/", "/", "", "json", "", "", None, ""), b"", context_of_test(TestChannel())
    )


class TestServer:
    """A running server: its address, its log, and calls of its model."""

    # pytest would take the class for tests.
    __test__ = False

    def __init__(self, url: str, lines: List[str]) -> None:
        # Such as http://127.0.0.1:41231, for clients of your own.
        self.url = url
        self._lines = lines

    @property
    def log(self) -> str:
        """All that the server has logged so far, tracebacks of failed calls included."""
        return "".join(self._lines)

    def call(self, model_inputs: Any, path: str = "/", headers: Optional[Mapping[str, str]] = None) -> TestResponse:
        """POST of `model_inputs` as JSON. Returns the whole answer; `answer.json` is its JSON."""
        address = urlsplit(self.url)
        connection = HTTPConnection(address.hostname or "", address.port)
        try:
            sent = {"Content-Type": "application/json", **(headers or {})}
            connection.request("POST", path, json.dumps(model_inputs), sent)
            response = connection.getresponse()
            return TestResponse(response.status, response.getheaders(), response.read())
        finally:
            connection.close()


@contextmanager
def serve(app: str, *options: str, cwd: Optional[str] = None) -> Generator[TestServer, None, None]:
    """Starts a server of `app` and waits until its model is loaded; stops it at the end of the `with` block.

    The app runs in this interpreter's environment. `options` are those of the command, such as "--workers", "2"; `cwd` is
    the folder of relative paths. Raises a RuntimeError with the server's log if the server cannot start.
    """
    with tempfile.TemporaryDirectory(prefix="banana-serve-") as folder:
        ready_file = Path(folder) / "ready.json"
        command = ["node", str(_CLI), app, "--python", sys.executable, *_OPTIONS, "--ready-file", str(ready_file)]
        process = subprocess.Popen([*command, *options], cwd=cwd, stderr=subprocess.PIPE, text=True, errors="replace")
        lines: List[str] = []
        reader = Thread(target=_follow, args=(process.stderr, lines), daemon=True)
        reader.start()
        try:
            url = _url_once_ready(process, ready_file)
            if url is not None:
                yield TestServer(url, lines)
        finally:
            process.terminate()
            process.wait()
            reader.join()
        if url is None:
            raise RuntimeError(f"The server of {app} did not start:\n{''.join(lines)}")


def _url_once_ready(process: subprocess.Popen[str], ready_file: Path) -> Optional[str]:
    """Waits for the file, which appears whole; None if the server ends without it."""
    while not ready_file.exists():
        if process.poll() is not None:
            return None
        time.sleep(_POLL_S)
    return json.loads(ready_file.read_text())["url"]


def _follow(log: IO[str], lines: List[str]) -> None:
    """Keeps each line, and prints it as the test's own output: pytest then shows it with the tests that fail."""
    with log:
        for line in log:
            lines.append(line)
            sys.stderr.write(line)
