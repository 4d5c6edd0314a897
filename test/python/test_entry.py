"""The entry of a worker, and the path on which it finds its modules."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

import banana_worker

FOLDER = Path(banana_worker.__file__).resolve().parent
SHOW = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='entry'); print(sys.path[:2])"


class EntryTest(unittest.TestCase):
    def test_our_modules_come_first_and_the_users_path_stays(self) -> None:
        for safe in ("", "1"):
            environment = {**os.environ, "PYTHONPATH": "/users/own", "PYTHONSAFEPATH": safe}
            command = [sys.executable, "-c", SHOW, str(FOLDER / "__main__.py")]
            shown = subprocess.check_output(command, env=environment, text=True)
            self.assertEqual(shown.strip(), str([str(FOLDER.parent), "/users/own"]), f"PYTHONSAFEPATH={safe}")


if __name__ == "__main__":
    unittest.main()
