"""A small assembler for classic BPF, so that the filter is written with labels instead of offsets.

Manually written offsets cost a day once: one wrong, and every worker dies. Here a jump names a
label, and a jump that does not reach is an error when the filter is built.
"""

import struct
from dataclasses import dataclass, field
from typing import Final

LOAD: Final = 0x20  # a word of the system call's data, at offset k
AND: Final = 0x54
EQUAL: Final = 0x15
AT_LEAST: Final = 0x35
ANY_BIT: Final = 0x45
RETURN: Final = 0x06
JUMP: Final = 0x05
_FALL_THROUGH: Final = ""
_FAR: Final = 255


@dataclass(frozen=True, slots=True)
class _Instruction:
    code: int
    operand: int
    yes: str = _FALL_THROUGH
    no: str = _FALL_THROUGH


@dataclass(slots=True)
class Program:
    """Instructions and labels in order. `assemble` returns the bytes."""

    _instructions: list[_Instruction] = field(default_factory=list)
    _labels: dict[str, int] = field(default_factory=dict)

    def add(self, code: int, operand: int) -> None:
        """Add one instruction that does not jump."""
        self._instructions.append(_Instruction(code, operand))

    def test(self, code: int, operand: int, yes: str = _FALL_THROUGH, no: str = _FALL_THROUGH) -> None:
        """Add a comparison that continues at `yes` or at `no`. An empty label is the next instruction."""
        self._instructions.append(_Instruction(code, operand, yes, no))

    def label(self, name: str) -> None:
        """Name the next instruction."""
        if name in self._labels:
            raise ValueError(f"label {name} is used twice")
        self._labels[name] = len(self._instructions)

    def assemble(self) -> bytes:
        """Return the program as the kernel reads it."""
        return b"".join(self._encode(at, instruction) for at, instruction in enumerate(self._instructions))

    def _encode(self, at: int, instruction: _Instruction) -> bytes:
        yes, no = self._distance(at, instruction.yes), self._distance(at, instruction.no)
        return struct.pack("=HBBI", instruction.code, yes, no, instruction.operand)

    def _distance(self, at: int, label: str) -> int:
        if label == _FALL_THROUGH:
            return 0
        distance = self._labels[label] - at - 1
        if not 0 <= distance <= _FAR:
            raise ValueError(f"the jump from {at} to {label} does not reach: {distance}")
        return distance
