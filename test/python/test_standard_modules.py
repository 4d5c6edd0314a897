"""Late imports of standard modules, while an app imports its own."""

from __future__ import annotations

import os
import sys
import tempfile
import unittest

from banana_worker import standard_modules
from banana_worker.standard_modules import import_standard, keep_apart

# Like a standard module whose import takes some time.
SLOW = """
import threading

import in_both


def import_sibling():
    import of_app_alone


thread = threading.Thread(target=import_sibling)
thread.start()
thread.join()
"""


class StandardModules(unittest.TestCase):
    def setUp(self) -> None:
        for kept in (sys.path, sys.meta_path):
            self.addCleanup(kept.__setitem__, slice(None), list(kept))
        self.addCleanup(standard_modules._others.clear)
        self.standard, self.app = self.folder(), self.folder()
        sys.path[:0] = [self.app, self.standard]
        keep_apart(self.app)

    def folder(self) -> str:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return folder.name

    def write(self, folder: str, name: str, source: str = "") -> None:
        with open(os.path.join(folder, name + ".py"), "w", encoding="utf-8") as file:
            file.write(source)
        self.addCleanup(sys.modules.pop, name, None)

    def test_a_file_of_the_app_does_not_replace_them_and_other_threads_find_it_meanwhile(self) -> None:
        self.write(self.standard, "slow_to_import", SLOW)
        self.write(self.standard, "in_both")
        self.write(self.app, "in_both", "raise RuntimeError('of the app')")
        self.write(self.app, "of_app_alone")
        import_standard("slow_to_import")
        self.assertEqual(os.path.dirname(sys.modules["in_both"].__file__ or ""), self.standard)
        self.assertIn("of_app_alone", sys.modules)

    def test_afterwards_the_app_has_its_own_files(self) -> None:
        self.write(self.standard, "one_more")
        import_standard("one_more")
        self.write(self.standard, "in_both_too")
        self.write(self.app, "in_both_too")
        module = __import__("in_both_too")
        self.assertEqual(os.path.dirname(module.__file__), self.app)


if __name__ == "__main__":
    unittest.main()
