"""Who raised an exception, told by the instruction that did, and not by its text: that may be a client's."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Tuple

from banana_worker.failures.thrown import traceback_of
from banana_worker.standard_modules import import_standard

# Of Python's `raise`.
_STATEMENTS = ("RAISE_VARARGS", "RERAISE")

# How the names begin of what calls native code, or has it compute. At others (`YIELD_VALUE`, `SEND`) an exception comes in
# that somebody else has made: by `throw()` of a generator, or from what is awaited.
_COMPUTES = tuple(
    "CALL PRECALL BINARY INPLACE UNARY COMPARE CONTAINS LOAD_ATTR LOAD_METHOD STORE_ATTR STORE_SUBSCR STORE_SLICE "
    "DELETE_ATTR DELETE_SUBSCR FOR_ITER GET_ITER UNPACK LIST_EXTEND FORMAT CONVERT TO_BOOL POP_JUMP JUMP_IF".split()
)


class Origin(NamedTuple):
    # None: the innermost frame was made up by a compiled module, and runs nothing.
    instruction: Optional[str]
    # The outermost package of the code.
    package: str
    # Names of methods among others, that the code uses.
    names: Tuple[str, ...]

    @property
    def is_native(self) -> bool:
        """
        Whether code that is not Python's raised it, while a line of Python called it or had it compute something. Where
        that may have been the `result` of a future, which hands on what was only made, it counts as not so.
        """
        return self.instruction is not None and self.instruction.startswith(_COMPUTES) and "result" not in self.names

    @property
    def is_statement(self) -> bool:
        """Whether Python's `raise` did."""
        return self.instruction in _STATEMENTS


def origin_of(thrown: BaseException) -> Optional[Origin]:
    """None if nobody raised it: it was made, and handed over."""
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
