"""Recognises the errors of libraries when the GPU is lost to the process, and when memory is missing. A client may
get its own text into an app's exception, and into much of a library's. So the class and the beginning of the text
must be a library's, and the library must have raised it; or CUDA's driver must confirm the text about the GPU."""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple, Optional, Tuple

from banana_worker.failures.thrown import class_name, class_package, text_of, traceback_of
from banana_worker.standard_modules import import_standard

# CUDA_ERROR_ILLEGAL_ADDRESS, _ASSERT, _LAUNCH_FAILED, _MISALIGNED_ADDRESS, _ILLEGAL_INSTRUCTION,
# _INVALID_ADDRESS_SPACE, _INVALID_PC, _HARDWARE_STACK_ERROR, _ECC_UNCORRECTABLE, _CONTEXT_IS_DESTROYED.
_LOST = (700, 710, 719, 716, 715, 717, 718, 714, 214, 709)

# CUDA's texts, names and numbers of errors after which every later call fails.
_LOST_TEXT = (
    "(?:an illegal memory access was encountered|device-side assert triggered|unspecified launch failure|"
    "misaligned address|an illegal instruction was encountered|operation not supported on global/shared address space|"
    "invalid program counter|hardware stack error|uncorrectable ECC error encountered|context is destroyed)"
)
_LOST_NAME = (
    "(?:cudaError(?:IllegalAddress|Assert|LaunchFailure|MisalignedAddress|IllegalInstruction|InvalidAddressSpace|InvalidPc|"
    "HardwareStackError|ECCUncorrectable|ContextIsDestroyed)|"
    "CUDA_ERROR_(?:ILLEGAL_ADDRESS|ASSERT|LAUNCH_FAILED|MISALIGNED_ADDRESS|ILLEGAL_INSTRUCTION|INVALID_ADDRESS_SPACE|"
    "INVALID_PC|HARDWARE_STACK_ERROR|ECC_UNCORRECTABLE|CONTEXT_IS_DESTROYED))"
)
_LOST_NUMBER = f"(?:{'|'.join(map(str, _LOST))})"
_NO_MEMORY_NAME = "(?:cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY)"

# Torch, and libraries beside it: CTranslate2, Triton, and Thrust, which begins with its current step.
_SCRIPT = r"(?:The following operation failed in the TorchScript interpreter\.\n(?:(?!RuntimeError: )[^\n]*\n)*RuntimeError: )?"
_CUDA = r"(?:CUDA (?:driver )?error: |CUDA failed with error |Triton Error \[CUDA\]: |cuda runtime error \(\d+\) : )"
_THRUST = r"(?:parallel_for|(?:merge|radix)_sort|copy_if|reduce|scan|transform|trivial_device_copy)\b[\w :>-]{0,60}: "
_TORCH_NO_MEMORY = (
    f"{_SCRIPT}(?:{_CUDA}out of memory|(?:CUDA|HIP|XPU|MPS backend) out of memory|{_THRUST}{_NO_MEMORY_NAME}|"
    r"(?:\[enforce fail at [^\]\n]*\] [^\n]{0,80}?)?DefaultCPUAllocator: (?:can't allocate|not enough) memory)"
)

# Behind it comes the message of a node of the model, which may repeat an input; but these files write about themselves
# only.
_ONNX = (
    r"\[ONNXRuntimeError\] : \d+ : \w+ : "
    r"(?:Non-zero status code returned while running \S+ node\. ?Name:'[^'\n]*' ?Status Message: \s*)?"
)
_CUDA_CALL = r"(?:\S*cuda_call\.cc:\d+ [^\n]*?)?"
_ONNX_CUDA = rf"{_CUDA_CALL}CUDA (?:failure \d+: |error cudaError\w+: ?)"
_ONNX_LIBRARY = rf"{_CUDA_CALL}(?:CUBLAS failure \d+: CUBLAS|CUDNN failure \d+: CUDNN)_STATUS_"
# Errors of CUDA's libraries about the process, and not about one call with a wrong value or an unsupported size.
_LOST_LIBRARY = r"(?:EXECUTION_FAILED|INTERNAL_ERROR|MAPPING_ERROR|NOT_INITIALIZED)\b"


class _Library(NamedTuple):
    packages: Tuple[str, ...]
    classes: Tuple[str, ...]
    # Beginnings of texts. They are not compiled at the start, because most workers never need them.
    lost: str
    no_memory: str


def _library(packages: str, classes: str, lost: str, no_memory: str) -> _Library:
    return _Library(tuple(packages.split()), tuple(classes.split()), lost, no_memory)


_NEVER = "(?!)"

_LIBRARIES = (
    # Any code may raise a RuntimeError, so the driver is asked about a lost GPU.
    _library("builtins", "RuntimeError", _NEVER, _TORCH_NO_MEMORY),
    _library("torch", "AcceleratorError CudaError", f"{_CUDA}{_LOST_TEXT}", _TORCH_NO_MEMORY),
    _library("cupy cupy_backends", "CUDARuntimeError CUDADriverError", f"{_LOST_NAME}: ", f"{_NO_MEMORY_NAME}: "),
    # An exception of a function of the app, called back by jax, is INTERNAL too.
    _library(
        "jax jaxlib",
        "XlaRuntimeError JaxRuntimeError",
        rf"(?:INTERNAL|UNKNOWN|ABORTED): (?:(?!allback)[^\n])*?{_LOST_NAME}",
        "RESOURCE_EXHAUSTED: ",
    ),
    _library("tensorflow", "InternalError", rf"[\s\S]*?(?:{_LOST_NAME}|GPU sync failed)", _NEVER),
    _library("tensorflow", "ResourceExhaustedError", _NEVER, ""),
    _library(
        "onnxruntime",
        "Fail RuntimeException EPFail",
        f"{_ONNX}(?:{_ONNX_CUDA}{_LOST_TEXT}|{_ONNX_LIBRARY}{_LOST_LIBRARY})",
        rf"{_ONNX}(?:{_ONNX_CUDA}out of memory|{_ONNX_LIBRARY}ALLOC_FAILED\b|"
        r"\S*bfc_arena\.cc:\d+ [^\n]*?Failed to allocate memory|std::bad_alloc|bad allocation)",
    ),
    _library(
        "numba",
        "CudaAPIError",
        rf"\[(?:{_LOST_NUMBER}|\D{{0,20}}{_LOST_NAME})\b",
        rf"\[(?:2|\D{{0,20}}{_NO_MEMORY_NAME})\b",
    ),
    _library("pycuda", "LogicError LaunchError RuntimeError", rf"cu\w+ failed: {_LOST_TEXT}", _NEVER),
    _library("pycuda", "MemoryError", _NEVER, ""),
)

_PACKAGES = {package for library in _LIBRARIES for package in library.packages}

# Any code may have written this word, so the driver has to confirm the loss.
_GPU_WORD = re.compile("cuda|cudnn|cublas|gpu", re.IGNORECASE)

_MOST_CHARS = 20_000


def reports_lost_gpu(error: BaseException) -> bool:
    """Whether a library reports, or CUDA's driver confirms, that every later call of this process on the GPU will
    fail."""
    if any(re.match(library.lost, _text(error)) is not None for library in _raising(error)):
        return True
    return _GPU_WORD.search(_text(error)) is not None and has_lost_context()


def reports_missing_memory(error: BaseException) -> bool:
    """Whether a library reports that it found no memory, on the GPU or beside it."""
    return any(re.match(library.no_memory, _text(error)) is not None for library in _raising(error))


def _raising(error: BaseException) -> "list[_Library]":
    """The rows of the library that raised it."""
    package = class_package(error)
    rows = [row for row in _LIBRARIES if package in row.packages and class_name(error) in row.classes]
    return rows if rows and _is_raised_by(package, error) else []


def _is_raised_by(package: str, error: BaseException) -> bool:
    origin = _origin_of(error)
    if origin is None:
        return False
    if package == "builtins":
        return origin.is_native  # any `raise` statement may raise one
    return not origin.is_statement or origin.package in _PACKAGES


def _text(error: BaseException) -> str:
    return (text_of(error) or "")[:_MOST_CHARS]


# The instructions of Python's `raise`.
_STATEMENTS = ("RAISE_VARARGS", "RERAISE")

# Beginnings of the names of instructions that call native code, or let it compute. At others (`YIELD_VALUE`, `SEND`) an
# exception of other code comes in: by `throw()` of a generator, or from an awaitable.
_COMPUTES = tuple(
    "CALL PRECALL BINARY INPLACE UNARY COMPARE CONTAINS LOAD_ATTR LOAD_METHOD STORE_ATTR STORE_SUBSCR STORE_SLICE "
    "DELETE_ATTR DELETE_SUBSCR FOR_ITER GET_ITER UNPACK LIST_EXTEND FORMAT CONVERT TO_BOOL POP_JUMP JUMP_IF".split()
)


class _Origin(NamedTuple):
    """The code that raised an exception, found by its instruction: its text may be a client's."""

    # None: the innermost frame was made up by a compiled module, and runs nothing.
    instruction: Optional[str]
    # The outermost package of the code.
    package: str
    # Names that the code uses, those of methods among them.
    names: Tuple[str, ...]

    @property
    def is_native(self) -> bool:
        """Whether native code raised it, while a line of Python called that code or let it compute. False if the
        line may have called `result` of a future, which raises exceptions that other code has only made."""
        return self.instruction is not None and self.instruction.startswith(_COMPUTES) and "result" not in self.names

    @property
    def is_statement(self) -> bool:
        """Whether Python's `raise` raised it."""
        return self.instruction in _STATEMENTS


def _origin_of(thrown: BaseException) -> Optional[_Origin]:
    """None if the exception was never raised, but made and passed on."""
    tb = traceback_of(thrown)
    if tb is None:
        return None
    while tb.tb_next is not None:
        tb = tb.tb_next
    package = str(tb.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
    return _Origin(_instruction_at(tb), package, tb.tb_frame.f_code.co_names)


def _instruction_at(tb: Any) -> Optional[str]:
    code, place = tb.tb_frame.f_code.co_code, tb.tb_lasti
    if not 0 <= place < len(code):
        return None
    opcode = import_standard("opcode")
    while code[place] == opcode.EXTENDED_ARG:
        place += 2  # Python before 3.11 names the prefix of an instruction, such as of a long jump
    return str(opcode.opname[code[place]])


_SUCCESS = 0


def has_lost_context() -> bool:
    """Whether the context of a GPU that this process computes on is lost: a kernel in it has failed, and every later call on it
    fails in the same way until the process has ended (CUDA Driver API, "CUresult"), whatever a library's message is. Waits for
    no kernel, and makes no context."""
    driver = _driver_in_use()
    return driver is not None and any(_is_lost(driver, device) for device in range(_device_count(driver)))


def _driver_in_use() -> Any:
    """None if no library has loaded the driver: then this process computes nothing on a GPU."""
    try:
        return import_standard("ctypes").CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except (AttributeError, ImportError, OSError):
        return None


def _device_count(driver: Any) -> int:
    ctypes = import_standard("ctypes")
    count = ctypes.c_int()
    return count.value if driver.cuDeviceGetCount(ctypes.byref(count)) == _SUCCESS else 0


def _is_lost(driver: Any, ordinal: int) -> bool:
    ctypes = import_standard("ctypes")
    device, flags, is_active, context = ctypes.c_int(), ctypes.c_uint(), ctypes.c_int(), ctypes.c_void_p()
    driver.cuDeviceGet(ctypes.byref(device), ordinal)
    driver.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(is_active))
    if not is_active.value:
        return False
    status = driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    if status != _SUCCESS:
        return status in _LOST
    try:
        return _context_is_lost(driver, context)
    finally:
        driver.cuDevicePrimaryCtxRelease(device)


def _context_is_lost(driver: Any, context: Any) -> bool:
    before = import_standard("ctypes").c_void_p()
    status = driver.cuCtxPushCurrent_v2(context)
    if status != _SUCCESS:
        return status in _LOST
    try:
        return driver.cuStreamQuery(None) in _LOST
    finally:
        driver.cuCtxPopCurrent_v2(import_standard("ctypes").byref(before))
