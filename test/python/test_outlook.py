"""What an exception says of its cause."""

from __future__ import annotations

import errno
import linecache
import sys
import tokenize
import types
import unittest
from typing import Optional

from banana_worker.errors import ServeError, describe_thrown
from banana_worker.failure import failure_of
from banana_worker.outlook import is_out_of_memory, outlook_of, spoils_process
from banana_worker.retirement import Retirement
from banana_worker.stack_frame import plain_traceback


class OutOfMemoryError(RuntimeError):
    """As torch names its own."""


class PredictionException(Exception):
    def __init__(self, message: str, error_code: object = 500) -> None:
        super().__init__(message)
        self.message = message
        self.error_code = error_code


class Unshowable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class UnsayablePrediction(PredictionException, Unshowable):
    def __init__(self) -> None:
        super().__init__("")

    __str__ = Unshowable.__str__


def caused_by(cause: BaseException) -> BaseException:
    error = RuntimeError("the weights could not be had")
    error.__cause__ = cause
    return error


class Outlook(unittest.TestCase):
    def test_the_network_and_scarce_resources_come_back(self) -> None:
        for thrown in (
            ConnectionRefusedError(errno.ECONNREFUSED, "refused"),
            TimeoutError("slow"),
            OSError(errno.ENOSPC, "disk full"),
            MemoryError(),
            caused_by(ConnectionResetError()),
        ):
            with self.subTest(repr(thrown)):
                self.assertEqual(outlook_of(thrown), "transient")

    def test_most_other_things_may_be_either(self) -> None:
        for thrown in (ValueError("x"), FileNotFoundError(errno.ENOENT, "weights"), KeyError("a"), Unshowable()):
            with self.subTest(type(thrown)):
                self.assertEqual(outlook_of(thrown), "unknown")

    def test_memory_that_is_missing_is_known_by_class_or_text(self) -> None:
        for thrown in (
            MemoryError(),
            OutOfMemoryError("x"),
            RuntimeError("CUDA out of memory. Tried to allocate 20 MiB"),
            caused_by(MemoryError()),
        ):
            self.assertTrue(is_out_of_memory(thrown), repr(thrown))
        self.assertFalse(is_out_of_memory(ValueError("out of memory, says the user")))

    def test_a_cuda_context_that_is_lost_is_known_by_its_text(self) -> None:
        for text in (
            "CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be asynchronous",
            "CUDA error: device-side assert triggered",
            "CUDA error: unspecified launch failure",
            "CUDA error: misaligned address",
            "CUDA driver error: an illegal instruction was encountered, which is an error",
            "XLA failed: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered",
            "cudaErrorAssert",
            "of a worker of its own: " + "frame\n" * 100_000 + "CUDA error: device-side assert triggered\n",
        ):
            self.assertTrue(spoils_process(RuntimeError(text)), text)
        for text in (
            "CUDA out of memory",
            "CUDA error: invalid device ordinal",
            "the launch failed",
            "a misaligned address is no CUDA error",
        ):
            self.assertFalse(spoils_process(RuntimeError(text)), text)


class Failures(unittest.TestCase):
    def check(self, thrown: BaseException, kind: str, status: int = 0) -> ServeError:
        failure = failure_of(thrown)
        self.assertEqual((failure.code, failure.kind, failure.status), ("SERVE_INFERENCE_FAILED", kind, status))
        return failure

    def test_an_exception_is_for_the_log_alone(self) -> None:
        try:
            raise ValueError("secret")
        except ValueError as thrown:
            failure = self.check(thrown, "exception")
        self.assertNotIn("secret", failure.message)
        self.assertIn("ValueError: secret", failure.detail)
        self.assertIn(__file__, failure.detail)

    def test_memory_is_told(self) -> None:
        self.check(MemoryError(), "out-of-memory")

    def test_a_prediction_exception_speaks_to_its_client(self) -> None:
        failure = self.check(PredictionException("no face", 422), "prediction", 422)
        self.assertEqual(failure.message, "no face")
        self.check(PredictionException("x", 200), "prediction", 500)
        self.check(PredictionException("x", "odd"), "prediction", 500)

    def test_an_exception_that_cannot_be_shown_is_a_failure_too(self) -> None:
        self.check(Unshowable(), "exception")
        self.check(UnsayablePrediction(), "exception")

    def test_an_app_with_a_module_of_the_name_of_one_of_pythons_has_its_traceback(self) -> None:
        """`linecache`, which reads the lines of a traceback, imports `tokenize`."""
        of_app = types.ModuleType("tokenize")
        linecache.clearcache()
        sys.modules["tokenize"] = linecache.tokenize = of_app  # type: ignore[attr-defined]
        try:
            {}["a key"]
        except KeyError as thrown:
            failure = self.check(thrown, "exception")
            described = describe_thrown(thrown)[1]
        finally:
            sys.modules["tokenize"] = linecache.tokenize = tokenize  # type: ignore[attr-defined]
        for text in (failure.detail, described):
            self.assertRegex(
                text, r'^Traceback.*\n  File ".*test_outlook.py", line \d+, in test_an_app(.|\n)*\nKeyError: \'a key\'$'
            )

    def test_an_exception_without_a_text_is_shown_without_modules_of_python_too(self) -> None:
        self.assertIn("Unshowable: an exception that cannot be shown", plain_traceback(Unshowable()))


class Retiring(unittest.TestCase):
    def after(self, *raised: Optional[BaseException]) -> Optional[ServeError]:
        retirement = Retirement()
        doubt = None
        for one in raised:
            doubt = retirement.after_call(one)
        return doubt

    def test_three_calls_in_a_row_without_memory_end_the_worker(self) -> None:
        self.assertIsNone(self.after(MemoryError(), MemoryError()))
        self.assertIsNotNone(self.after(MemoryError(), MemoryError(), MemoryError()))
        self.assertIsNone(self.after(MemoryError(), MemoryError(), None, MemoryError()))
        self.assertIsNone(self.after(MemoryError(), MemoryError(), ValueError(), MemoryError()))

    def test_a_body_that_could_not_be_read_says_nothing_of_memory(self) -> None:
        self.assertIsNotNone(self.after(MemoryError(), MemoryError(), ServeError("SERVE_BAD_BODY"), MemoryError()))

    def test_a_lost_gpu_ends_the_worker_at_once(self) -> None:
        doubt = self.after(RuntimeError("CUDA error: device-side assert triggered\nmore"))
        assert doubt is not None
        self.assertEqual(doubt.code, "SERVE_WORKER_LOST")
        self.assertIn("device-side assert", doubt.message)


if __name__ == "__main__":
    unittest.main()
