"""The modules that the worker imports before `hello`: one that only some apps need must not be among them."""

from __future__ import annotations

import os
import subprocess
import sys
import unittest

_FOLDER = os.path.join(os.path.dirname(__file__), "..", "..", "worker", "python")

# Each takes several milliseconds, or tens of them.
SLOW = "asyncio inspect traceback tempfile pathlib email urllib.parse dataclasses sqlite3 subprocess ssl http.client".split()


class StartTime(unittest.TestCase):
    def test_the_worker_imports_no_slow_module_before_its_app_does(self) -> None:
        program = "import sys; sys.path.insert(0, %r); import banana_worker.main; print(*sys.modules)" % _FOLDER
        # Without start-up files of the site, which may import anything.
        output = subprocess.check_output([sys.executable, "-I", "-S", "-c", program])
        self.assertEqual(sorted(set(SLOW) & set(output.decode().split())), [])


if __name__ == "__main__":
    unittest.main()
