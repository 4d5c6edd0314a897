"""Asks CUDA's driver about this process. A context in which a kernel has failed is lost: every later call on it
fails in the same way until the process has ended (CUDA Driver API, "CUresult"), whatever a library's message is."""

from __future__ import annotations

import os
from typing import Any

from banana_worker.standard_modules import import_standard

_SUCCESS = 0

# CUDA_ERROR_ILLEGAL_ADDRESS, _ASSERT, _LAUNCH_FAILED, _MISALIGNED_ADDRESS, _ILLEGAL_INSTRUCTION,
# _INVALID_ADDRESS_SPACE, _INVALID_PC, _HARDWARE_STACK_ERROR, _ECC_UNCORRECTABLE, _CONTEXT_IS_DESTROYED.
LOST = (700, 710, 719, 716, 715, 717, 718, 714, 214, 709)


def has_lost_context() -> bool:
    """Whether the context of a GPU that this process computes on is lost. Waits for no kernel, and makes no context."""
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
        return status in LOST
    try:
        return _context_is_lost(driver, context)
    finally:
        driver.cuDevicePrimaryCtxRelease(device)


def _context_is_lost(driver: Any, context: Any) -> bool:
    before = import_standard("ctypes").c_void_p()
    status = driver.cuCtxPushCurrent_v2(context)
    if status != _SUCCESS:
        return status in LOST
    try:
        return driver.cuStreamQuery(None) in LOST
    finally:
        driver.cuCtxPopCurrent_v2(import_standard("ctypes").byref(before))
