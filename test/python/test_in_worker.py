"""The connection of `app.serve()` with the worker that imports the file."""

import unittest

from banana_worker.in_worker import serve_in_worker, served_by


class InWorkerTest(unittest.TestCase):
    def test_serve_ends_the_import_and_names_the_app(self) -> None:
        app = object()

        def execute() -> None:
            try:
                serve_in_worker(app)
            except Exception:  # apps have this around their last line
                self.fail("app.serve() went through a handler for errors")
            self.fail("what stands behind app.serve() was run")

        self.assertIs(served_by(execute), app)
        serve_in_worker(app)  # the import is over

    def test_the_first_app_that_is_served_counts(self) -> None:
        first, second = object(), object()

        def execute() -> None:
            try:
                serve_in_worker(first)
            finally:
                serve_in_worker(second)

        self.assertIs(served_by(execute), first)

    def test_an_error_of_the_import_comes_out_of_it(self) -> None:
        with self.assertRaises(ZeroDivisionError):
            served_by(lambda: 1 / 0)  # type: ignore[arg-type, return-value]
        serve_in_worker(object())  # the import is over

    def test_serve_does_nothing_outside_of_an_import(self) -> None:
        serve_in_worker(object())


if __name__ == "__main__":
    unittest.main()
