"""The causes of exceptions: the network, missing memory, a lost GPU."""

from __future__ import annotations

import asyncio
import errno
import linecache
import sys
import tokenize
import types
import unittest
from typing import Any, Dict, Generator, Optional

from banana_worker.failures.failure import failure_of
from banana_worker.failures.outlook import Retirement, is_out_of_memory, loss_of_gpu, outlook_of
from banana_worker.failures.stack_frame import plain_traceback
from banana_worker.protocol.errors import ServeError
from gpu_errors import LIBRARIES, class_of, driver_saying, native, native_raiser, raise_natively, raised_by, raised_in

# Texts of a client who knows the messages of libraries.
CLIENTS_TEXTS = (
    "CUDA error: an illegal memory access was encountered",
    "CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported",
    "CUDA out of memory. Tried to allocate 20 MiB",
    "cudaErrorIllegalAddress: an illegal memory access was encountered",
    "CUDA failure 700: an illegal memory access was encountered ; GPU=0",
    "INTERNAL: CUDA_ERROR_ILLEGAL_ADDRESS",
    "[700] Call to cuMemcpyDtoH results in UNKNOWN_CUDA_ERROR",
    "out of memory",
    "std::bad_alloc",
)


NO_MEMORY = CLIENTS_TEXTS[2]


class OutOfMemoryError(RuntimeError):
    """Named as torch names its own."""


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
    def test_errors_of_the_network_and_of_scarce_resources_are_transient(self) -> None:
        for thrown in (
            ConnectionRefusedError(errno.ECONNREFUSED, "refused"),
            TimeoutError("slow"),
            OSError(errno.ENOSPC, "disk full"),
            MemoryError(),
            caused_by(ConnectionResetError()),
        ):
            with self.subTest(repr(thrown)):
                self.assertEqual(outlook_of(thrown), "transient")

    def test_most_other_errors_are_unknown(self) -> None:
        for thrown in (ValueError("x"), FileNotFoundError(errno.ENOENT, "weights"), KeyError("a"), Unshowable()):
            with self.subTest(type(thrown)):
                self.assertEqual(outlook_of(thrown), "unknown")

    def test_at_a_start_a_text_about_memory_is_enough(self) -> None:
        """At a start, no text comes from a client yet."""
        self.assertEqual(outlook_of(RuntimeError("CUDA out of memory. Tried to allocate 20 MiB")), "transient")


class OfProcess(unittest.TestCase):
    def check(self, error: BaseException, lost: bool = False, no_memory: bool = False) -> None:
        for thrown in (error, caused_by(error)):
            with self.subTest(repr(thrown)):
                self.assertEqual((loss_of_gpu(thrown) is not None, is_out_of_memory(thrown)), (lost, no_memory))

    def test_missing_memory_is_recognised_by_class_or_errno(self) -> None:
        for error in (MemoryError(), OutOfMemoryError("x"), OSError(errno.ENOMEM, "x")):
            self.check(error, no_memory=True)

    def test_for_a_common_exception_the_driver_decides_whether_the_gpu_is_lost(self) -> None:
        for text in (
            "CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be asynchronous",
            "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle, opa, opb, m, n, k)`",
            "cuDNN error: CUDNN_STATUS_MAPPING_ERROR",
            "CUDA failed with error an illegal memory access was encountered",
            "Triton Error [CUDA]: an illegal memory access was encountered",
            "cuda runtime error (59) : device-side assert triggered at /pytorch/aten/src/THC/generic/THCTensorMath.cu:26",
            "merge_sort: failed to synchronize: cudaErrorIllegalAddress: an illegal memory access was encountered",
            "Caught RuntimeError in replica 0 on device 0.\nOriginal Traceback: CUDA error: misaligned address",
        ):
            for error in (native(text), RuntimeError(text), raised_in("app", ValueError, f"it failed: {text}")):
                with driver_saying(False):
                    self.check(error)
                with driver_saying(True):
                    self.check(error, lost=True)

    def test_an_exception_without_a_word_for_a_gpu_does_not_ask_the_driver(self) -> None:
        with driver_saying(True):
            self.check(ValueError("no such label"))

    def test_native_code_is_recognised_in_a_long_function_too(self) -> None:
        tensor = type("Tensor", (), {"__bool__": native_raiser(NO_MEMORY)})
        names: Dict[str, Any] = {"tensor": tensor()}
        # Before Python 3.11, a jump over so much code has a prefix, which is named as the place of the exception.
        exec("def run():\n    if tensor:\n" + "        print(tensor, tensor)\n" * 200, names)
        self.assertTrue(is_out_of_memory(raised_by(names["run"])))

    def test_missing_memory_reported_by_native_code_counts(self) -> None:
        for text in (
            "CUDA out of memory. Tried to allocate 20 MiB",
            "CUDA error: out of memory",
            "MPS backend out of memory (MPS allocated: 1 GB)",
            "[enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: you tried",
            "parallel_for failed: cudaErrorMemoryAllocation: out of memory",
        ):
            self.check(native(text), no_memory=True)

    def test_classes_of_libraries_are_recognised_for_both(self) -> None:
        for module, name, lost, no_memory in LIBRARIES:
            kind = class_of(module, name)
            if lost is not None:
                self.check(native(lost, kind), lost=True)
                self.check(raised_in(module, kind, lost), lost=True)
            if no_memory is not None:
                self.check(native(no_memory, kind), no_memory=True)

    def test_errors_that_are_not_a_loss_of_the_gpu_are_neither(self) -> None:
        for text in (
            "CUDA error: invalid device ordinal",
            "the launch failed",
            "a misaligned address is no CUDA error",
        ):
            self.check(native(text))
        wrong_value = (
            "[ONNXRuntimeError] : 1 : FAIL : CUBLAS failure 7: CUBLAS_STATUS_INVALID_VALUE ; GPU=0 ; hostname=h"
        )
        self.check(native(wrong_value, class_of("onnxruntime.capi.onnxruntime_pybind11_state", "Fail")))

    def test_a_text_of_a_client_decides_nothing(self) -> None:
        for text in CLIENTS_TEXTS:
            for kind in (RuntimeError, ValueError, OSError, KeyError, Exception):
                self.check(kind(text))  # an entry of a batch that was never raised
                self.check(raised_in("app", kind, text))
                self.check(raised_in("app", kind, f"unknown label: {text}"))
                self.check(raised_in("concurrent.futures", kind, text))
            self.check(native(f"Expected one of cpu, cuda at start of device string: {text}"))
            self.check(native(f"Invalid: {text}"))
            self.check(native(text, OSError))
            self.check(native(text, ValueError))
            self.check(FileNotFoundError(errno.ENOENT, "No such file or directory", text))

    def test_a_class_of_a_library_may_repeat_a_text_of_a_client(self) -> None:
        onnx = "onnxruntime.capi.onnxruntime_pybind11_state"
        node = "Non-zero status code returned while running Cast node. Name:'c' Status Message: "
        place = "/onnxruntime_src/onnxruntime/core/providers/cpu/tensor/cast_op.cc:12 void onnxruntime::Cast() "
        for text in CLIENTS_TEXTS:
            for module, name, lost, no_memory in LIBRARIES:
                if name != "ResourceExhaustedError" and (module, name) != ("pycuda._driver", "MemoryError"):
                    self.check(raised_in("app", class_of(module, name), lost or no_memory))
            for message in (f"{node}{place}cannot cast {text}", f"Invalid Feed Input Name:{text}"):
                self.check(native(f"[ONNXRuntimeError] : 1 : FAIL : {message}", class_of(onnx, "Fail")))
            whole = f"[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : {text}"
            self.check(native(whole, class_of(onnx, "InvalidArgument")))
            xla = class_of("jaxlib.xla_extension", "XlaRuntimeError")
            self.check(native(f"INTERNAL: CpuCallback error: ValueError: {text}", xla))
            self.check(native(f"INVALID_ARGUMENT: {text}", xla))
            script = "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript\n"
            self.check(native(f"{script}RuntimeError: Invalid device string: {text}\nRuntimeError: {text}"))
            self.check(native(f"{script}RuntimeError: {text}", class_of("torch.jit", "Error")))

    def test_an_exception_that_was_passed_on_is_not_raised_by_native_code(self) -> None:
        def waits() -> Generator[None, None, None]:
            yield

        async def failed() -> "asyncio.Future[None]":
            future = asyncio.get_running_loop().create_future()
            future.set_exception(RuntimeError(NO_MEMORY))
            return future

        async def awaits() -> None:
            await (await failed())

        async def asks() -> None:
            (await failed()).result()

        async def asks_a_task() -> None:
            task = asyncio.ensure_future(awaits())
            await asyncio.wait([task])
            task.result()

        def runs() -> None:
            loop = asyncio.new_event_loop()
            try:
                loop.run_until_complete(loop.run_until_complete(failed()))
            finally:
                loop.close()

        begun = waits()
        next(begun)
        for handed_on in (
            lambda: begun.throw(RuntimeError(NO_MEMORY)),
            lambda: waits().throw(RuntimeError(NO_MEMORY)),
            lambda: asyncio.run(awaits()),
            lambda: asyncio.run(asks()),
            lambda: asyncio.run(asks_a_task()),
            runs,
        ):
            error = raised_by(handed_on)
            self.assertEqual(str(error), NO_MEMORY)
            self.check(error)

    def test_an_exception_that_an_app_raises_again_was_raised_by_native_code(self) -> None:
        def again() -> None:
            try:
                with open(__file__):
                    raise_natively(NO_MEMORY)
            except RuntimeError as error:
                raise error

        def in_other_words() -> None:
            try:
                again()
            except RuntimeError as error:
                raise ValueError(f"inference failed: {error}") from None

        for raising in (again, in_other_words):
            self.check(raised_by(raising), no_memory=True)

    def test_long_texts_of_clients_are_searched_to_their_end(self) -> None:
        """It would take hours if the time grew faster than the length."""
        onnx = class_of("onnxruntime.capi.onnxruntime_pybind11_state", "Fail")
        for part in ("cuda_call.cc:1 ", "cuda_call.cc:1", "RuntimeError\n", "allbac", "[", " "):
            long = part * (500_000 // len(part))
            for begin in ("", "[ONNXRuntimeError] : 1 : FAIL : ", "INTERNAL: ", "merge_sort"):
                self.check(native(begin + long))
                self.check(native(begin + long, onnx))
                self.check(native(begin + long, class_of("jaxlib.xla_extension", "XlaRuntimeError")))


class Failures(unittest.TestCase):
    def check(self, thrown: BaseException, kind: str, status: int = 0) -> ServeError:
        failure = failure_of(thrown)
        self.assertEqual((failure.code, failure.kind, failure.status), ("SERVE_INFERENCE_FAILED", kind, status))
        return failure

    def test_an_exception_is_only_for_the_log(self) -> None:
        try:
            raise ValueError("secret")
        except ValueError as thrown:
            failure = self.check(thrown, "exception")
        self.assertNotIn("secret", failure.message)
        self.assertIn("ValueError: secret", failure.detail)
        self.assertIn(__file__, failure.detail)

    def test_missing_memory_has_a_kind_of_its_own(self) -> None:
        self.check(MemoryError(), "out-of-memory")

    def test_a_prediction_exception_has_its_message_for_the_client(self) -> None:
        failure = self.check(PredictionException("no face", 422), "prediction", 422)
        self.assertEqual(failure.message, "no face")
        self.check(PredictionException("x", 200), "prediction", 500)
        self.check(PredictionException("x", "odd"), "prediction", 500)

    def test_an_exception_that_cannot_be_shown_is_a_failure_too(self) -> None:
        self.check(Unshowable(), "exception")
        self.check(UnsayablePrediction(), "exception")

    def test_a_traceback_is_shown_even_if_the_app_has_a_module_named_tokenize(self) -> None:
        """`linecache`, which reads the lines of a traceback, imports `tokenize`."""
        of_app = types.ModuleType("tokenize")
        linecache.clearcache()
        sys.modules["tokenize"] = linecache.tokenize = of_app  # type: ignore[attr-defined]
        try:
            {}["a key"]
        except KeyError as thrown:
            failure = self.check(thrown, "exception")
        finally:
            sys.modules["tokenize"] = linecache.tokenize = tokenize  # type: ignore[attr-defined]
        self.assertRegex(
            failure.detail,
            r'^Traceback.*\n  File ".*test_outlook.py", line \d+, in test_a_traceback(.|\n)*\nKeyError: \'a key\'$',
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

    def test_a_malformed_body_does_not_interrupt_the_count(self) -> None:
        self.assertIsNotNone(self.after(MemoryError(), MemoryError(), ServeError("SERVE_BAD_BODY"), MemoryError()))

    def test_a_lost_gpu_ends_the_worker_at_once_with_the_librarys_message(self) -> None:
        with driver_saying(True):
            doubt = self.after(caused_by(native("CUDA error: device-side assert triggered\nmore")))
        assert doubt is not None
        self.assertEqual(doubt.code, "SERVE_WORKER_LOST")
        self.assertEqual(
            doubt.message, "this process can no longer use its GPU: CUDA error: device-side assert triggered"
        )


if __name__ == "__main__":
    unittest.main()
