"""Finds the code that raised an exception by its instruction, not by its text, which a client may have written."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Tuple

from banana_worker.failures.thrown import traceback_of
from banana_worker.standard_modules import import_standard

# The instructions of Python's `raise`.
_STATEMENTS = ("RAISE_VARARGS", "RERAISE")

# Beginnings of the names of instructions that call native code, or let it compute. At others (`YIELD_VALUE`, `SEND`) an
# exception of other code comes in: by `throw()` of a generator, or from an awaitable.
_COMPUTES = tuple(
    "CALL PRECALL BINARY INPLACE UNARY COMPARE CONTAINS LOAD_ATTR LOAD_METHOD STORE_ATTR STORE_SUBSCR STORE_SLICE "
    "DELETE_ATTR DELETE_SUBSCR FOR_ITER GET_ITER UNPACK LIST_EXTEND FORMAT CONVERT TO_BOOL POP_JUMP JUMP_IF".split()
)


class Origin(NamedTuple):
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


def origin_of(thrown: BaseException) -> Optional[Origin]:
    """None if the exception was never raised, but made and passed on."""
    tb = traceback_of(thrown)
    if tb is None:
        return None
    while tb.tb_next is not None:
        tb = tb.tb_next
    package = str(tb.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
    return Origin(_instruction_at(tb), package, tb.tb_frame.f_code.co_names)


def _instruction_at(tb: Any) -> Optional[str]:
    code, place = tb.tb_frame.f_code.co_code, tb.tb_lasti
    if not 0 <= place < len(code):
        return None
    opcode = import_standard("opcode")
    while code[place] == opcode.EXTENDED_ARG:
        place += 2  # Python before 3.11 names the prefix of an instruction, such as of a long jump
    return str(opcode.opname[code[place]])
