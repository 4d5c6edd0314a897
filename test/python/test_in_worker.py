"""The connection of `app.serve()` with the worker that imports the file."""

import unittest

from banana_worker.in_worker import AppImport, serve_in_worker


class InWorkerTest(unittest.TestCase):
    def test_serve_ends_the_import_and_names_the_app(self) -> None:
        app = object()
        with AppImport() as importing:
            try:
                serve_in_worker(app)
            except Exception:  # apps have this around their last line
                self.fail("app.serve() went through a handler for errors")
            self.fail("what stands behind app.serve() was run")
        self.assertIs(importing.served, app)
        serve_in_worker(app)  # the import is over

    def test_the_first_app_that_is_served_counts(self) -> None:
        first, second = object(), object()
        with AppImport() as importing:
            try:
                serve_in_worker(first)
            finally:
                serve_in_worker(second)
        self.assertIs(importing.served, first)

    def test_an_error_of_the_import_comes_out_of_it(self) -> None:
        with self.assertRaises(ZeroDivisionError):
            with AppImport():
                1 / 0  # noqa: B018
        serve_in_worker(object())  # the import is over

    def test_serve_does_nothing_outside_of_an_import(self) -> None:
        serve_in_worker(object())


if __name__ == "__main__":
    unittest.main()
