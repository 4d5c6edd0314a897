"""Exceptions as libraries for GPUs raise them, without the libraries."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Callable, Dict
from unittest import mock


def raise_natively(text: str, kind: type = RuntimeError) -> None:
    """Raises as a compiled module does, without a `raise` in Python."""
    native_raiser(text, kind)()


def native_raiser(text: str, kind: type = RuntimeError) -> Callable[[], object]:
    """A function that raises it without a frame of its own in the traceback."""
    raising: Any = ctypes.pythonapi.PyErr_SetString
    raising.restype = None
    return functools.partial(raising, ctypes.py_object(kind), text.encode())


def raised_by(function: Callable[[], object]) -> BaseException:
    """The exception with its traceback, which `assertRaises` would remove."""
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def driver_saying(is_lost: bool) -> Any:
    """Fakes the driver of a process that computes on a GPU."""
    return mock.patch("banana_worker.failures.library_errors.has_lost_context", return_value=is_lost)


def native(text: str, kind: type = RuntimeError) -> BaseException:
    return raised_by(lambda: raise_natively(text, kind))


def class_of(module: str, name: str, base: type = Exception) -> type:
    return type(name, (base,), {"__module__": module})


def raised_in(module: str, kind: type, text: str) -> BaseException:
    """The exception after a `raise` in a module of that name."""
    names: Dict[str, Any] = {"__name__": module}
    exec("def fail(kind, text): raise kind(text)", names)
    return raised_by(lambda: names["fail"](kind, text))


ILLEGAL = "an illegal memory access was encountered"

# Errors that belong to a library by their class: module, name, text for a lost GPU, and text for missing memory.
LIBRARIES = (
    (
        "torch",
        "AcceleratorError",
        f"CUDA error: {ILLEGAL}\nSearch for `cudaErrorIllegalAddress' in https://docs.nvidia.com",
        "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported",
    ),
    ("torch.cuda", "CudaError", "CUDA error: device-side assert triggered", "CUDA error: out of memory (2)"),
    (
        "cupy_backends.cuda.api.runtime",
        "CUDARuntimeError",
        f"cudaErrorIllegalAddress: {ILLEGAL}",
        "cudaErrorMemoryAllocation: out of memory",
    ),
    (
        "cupy_backends.cuda.api.driver",
        "CUDADriverError",
        f"CUDA_ERROR_ILLEGAL_ADDRESS: {ILLEGAL}",
        "CUDA_ERROR_OUT_OF_MEMORY: out of memory",
    ),
    (
        "jaxlib.xla_extension",
        "XlaRuntimeError",
        "INTERNAL: Failed to execute XLA Runtime executable: run time error: custom call 'xla.gpu.func.launch' failed: "
        f"Failed to launch CUDA kernel: add with block dimensions: 128x1x1: CUDA_ERROR_ILLEGAL_ADDRESS: {ILLEGAL}",
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 123 bytes.",
    ),
    (
        "tensorflow.python.framework.errors_impl",
        "InternalError",
        "2 root error(s) found.\n  (0) Internal: Failed to complete all kernels launched on stream 0x1f50d730: could not "
        f"synchronize on CUDA stream: CUDA_ERROR_ILLEGAL_ADDRESS: {ILLEGAL}",
        None,
    ),
    (
        "tensorflow.python.framework.errors_impl",
        "ResourceExhaustedError",
        None,
        "OOM when allocating tensor with shape[2,3]",
    ),
    (
        "onnxruntime.capi.onnxruntime_pybind11_state",
        "Fail",
        "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running Gemm node. Name:'Gemm_568' Status "
        "Message: CUBLAS failure 13: CUBLAS_STATUS_EXECUTION_FAILED ; GPU=0 ; hostname=h",
        "[ONNXRuntimeError] : 1 : FAIL : D:\\a\\_work\\1\\s\\cuda_call.cc:121 onnxruntime::CudaCall CUBLAS failure 3: "
        "CUBLAS_STATUS_ALLOC_FAILED ; GPU=0",
    ),
    (
        "onnxruntime.capi.onnxruntime_pybind11_state",
        "RuntimeException",
        "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : CUDNN failure 4: CUDNN_STATUS_INTERNAL_ERROR ; GPU=0 ; hostname=h",
        None,
    ),
    (
        "onnxruntime.capi.onnxruntime_pybind11_state",
        "Fail",
        f"[ONNXRuntimeError] : 1 : FAIL : CUDA failure 700: {ILLEGAL} ; GPU=0 ; hostname=h ; expr=cudaStreamSynchronize(s);",
        "[ONNXRuntimeError] : 1 : FAIL : D:\\a\\_work\\1\\s\\cuda_call.cc:121 onnxruntime::CudaCall CUDA failure 2: out of "
        "memory ; GPU=0",
    ),
    (
        "onnxruntime.capi.onnxruntime_pybind11_state",
        "RuntimeException",
        "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running Add node. Name:'/a/Add' "
        "Status Message: /onnxruntime_src/onnxruntime/core/providers/cuda/cuda_call.cc:97 bool onnxruntime::CudaCall() [with "
        f"ERRTYPE = cudaError] CUDA failure 700: {ILLEGAL} ; GPU=0",
        "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running Conv node. Name:'a' Status "
        "Message: \n/onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:376 void* onnxruntime::BFCArena::AllocateRaw"
        "Internal(size_t, bool) Failed to allocate memory for requested buffer of size 8388608000",
    ),
    (
        "numba.cuda.cudadrv.driver",
        "CudaAPIError",
        "[700] Call to cuMemcpyDtoH results in UNKNOWN_CUDA_ERROR",
        "[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY",
    ),
    ("pycuda._driver", "LogicError", f"cuCtxSynchronize failed: {ILLEGAL}", None),
    ("pycuda._driver", "LaunchError", "cuMemcpyDtoH failed: unspecified launch failure", None),
    ("pycuda._driver", "MemoryError", None, "cuMemAlloc failed: out of memory"),
)
