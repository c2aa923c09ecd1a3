"""Compiles the list of allowed system calls into a program that the kernel runs before each call of a process.

The program is for the classic Berkeley packet filter, whose conditional jumps reach 255 instructions. It finds the
number of the call by binary search, and makes long jumps with an instruction whose distance has 32 bits.
"""

import struct
from itertools import pairwise

from grading.sandbox.inside.syscalls import ALLOWED, CHECKED, ENOSYS, MACHINES, Check

ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
LOAD, EQUAL, AT_LEAST, AND, SKIP, RETURN = 0x20, 0x15, 0x35, 0x54, 0x05, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
NUMBER_OFFSET, MACHINE_OFFSET, ARGUMENTS_OFFSET = 0, 4, 16  # their offsets in the data that the program is given

Line = tuple[int, int, int, int]  # instruction, lines to skip if true, lines to skip if false, operand
REFUSED: list[Line] = [(RETURN, 0, 0, REFUSE | ENOSYS)]


def program(machine: str) -> bytes:
    """Return the filter for a kind of machine, in the kernel's format."""
    lines = [(LOAD, 0, 0, MACHINE_OFFSET), (EQUAL, 1, 0, ARCHITECTURE[machine]), *REFUSED, (LOAD, 0, 0, NUMBER_OFFSET)]
    return b"".join(struct.pack("HBBI", *line) for line in [*lines, *_search(_ranges(machine))])


def _ranges(machine: str) -> list[tuple[int, list[Line]]]:
    """Return what to do with calls from each number on. The last range has no end."""
    at = MACHINES.index(machine)
    what: dict[int, list[Line]] = {}
    for numbers in ALLOWED.values():
        what |= {} if (number := numbers[at]) is None else {number: [(RETURN, 0, 0, ALLOW)]}
    for check in CHECKED.values():
        what |= {} if (number := check.numbers[at]) is None else {number: _checked(check)}
    each = [(number, what.get(number, REFUSED)) for number in range(max(what) + 2)]
    return each[:1] + [after for before, after in pairwise(each) if after[1] != before[1]]


def _checked(check: Check) -> list[Line]:
    """Return lines that allow a call where an argument has one of its values, or another is a null pointer."""
    lines: list[Line] = []
    if check.or_null is not None:
        low = ARGUMENTS_OFFSET + 8 * check.or_null
        lines += [(LOAD, 0, 0, low), (EQUAL, 0, 3, 0), (LOAD, 0, 0, low + 4), (EQUAL, 0, 1, 0), (RETURN, 0, 0, ALLOW)]
    lines += [(LOAD, 0, 0, ARGUMENTS_OFFSET + 8 * check.argument), (AND, 0, 0, check.mask)]
    for value in check.values:
        lines += [(EQUAL, 0, 1, value), (RETURN, 0, 0, ALLOW)]
    return [*lines, (RETURN, 0, 0, REFUSE | check.error)]


def _search(ranges: list[tuple[int, list[Line]]]) -> list[Line]:
    """Return lines that find the range of a number, and act accordingly."""
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    below, above = _search(ranges[:middle]), _search(ranges[middle:])
    return [(AT_LEAST, 0, 1, ranges[middle][0]), (SKIP, 0, 0, len(below)), *below, *above]
