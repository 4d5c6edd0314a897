"""Errors for names that a package of ours does not have."""

import pickle
import sys
import tempfile
import unittest
from pathlib import Path
from types import ModuleType

from banana_worker.stand_in import names_of_module


class StandInTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        package = Path(folder.name, "standing_in")
        package.mkdir()
        (package / "__init__.py").write_text(
            "from banana_worker.stand_in import names_of_package\n"
            "Known = 1\n"
            "names_of_package(__name__, ['Known'], ['part'])\n"
        )
        (package / "part.py").write_text("")
        sys.path.insert(0, folder.name)
        self.addCleanup(sys.path.remove, folder.name)

    def test_an_absent_name_is_an_import_error_that_lists_the_existing_ones(self) -> None:
        from standing_in import Known, part  # type: ignore[import-not-found]  # noqa: F401

        said = "banana-serve's standing_in has no other. It has: Known, standing_in.part"
        with self.assertRaises(ImportError) as from_package:
            from standing_in import other  # type: ignore[import-not-found]  # noqa: F401
        self.assertEqual(str(from_package.exception), said)
        with self.assertRaises(ImportError) as submodule:
            import standing_in.other  # type: ignore[import-not-found]  # noqa: F401
        self.assertEqual(str(submodule.exception), said)
        self.assertNotIsInstance(submodule.exception, ModuleNotFoundError, "pip has no cure for it")

    def test_an_absent_name_is_an_import_error_for_imports_and_an_attribute_error_for_lookups(self) -> None:
        module = ModuleType("some_module")
        module.__getattr__ = names_of_module("some.module", ["Known"])  # type: ignore[method-assign]
        sys.modules["some_module"] = module
        self.addCleanup(sys.modules.pop, "some_module")
        with self.assertRaisesRegex(ImportError, "banana-serve's some.module has no other. It has: Known"):
            from some_module import other  # type: ignore[import-not-found]  # noqa: F401
        self.assertFalse(hasattr(module, "other") or hasattr(module, "__wrapped__"))

    def test_pickle_may_look_into_every_module(self) -> None:
        module = ModuleType("standing")
        module.__getattr__ = names_of_module("standing", [])  # type: ignore[method-assign]
        sys.modules["standing"] = module
        self.addCleanup(sys.modules.pop, "standing")

        def of_no_module() -> None:
            """Like functions of libraries in C, which have no module."""

        of_no_module.__module__ = None  # type: ignore[assignment]
        of_no_module.__qualname__ = of_no_module.__name__ = "in_no_module"
        with self.assertRaises(pickle.PicklingError):
            pickle.dumps(of_no_module)


if __name__ == "__main__":
    unittest.main()
