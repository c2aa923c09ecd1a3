"""The filter of system calls lets through what its table says, and nothing else. It runs here as it does in Linux."""

import struct
from itertools import chain

import pytest

from grading.sandbox.inside import seccomp, syscalls
from grading.sandbox.inside.syscalls import ALLOWED, CHECKED
from grading.sandbox.selftest.attempts.calls import REFUSED_ARGUMENTS, REFUSED_CALLS

MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # place in the table, and the kernel's number of it
I386, ARM = 0x40000003, 0x40000028
LET_THROUGH, ENOSYS, ENETUNREACH = 0x7FFF0000, 0x00050000 | 38, 0x00050000 | 101
X32 = 0x40000000
NUMBERS = range(601)
UNTRIED = {"sync": (162, 81)}  # refused, and not tried by the selftest, which it could keep waiting for minutes
LAST = 469  # of the calls that the table knows of
# Numbers that Linux gives to no call: on x86_64 those between the old ones and those common to all machines, and those
# of calls that it has only by name, or has no more; on aarch64 those that are left to each kind of machine.
FREE = {
    "x86_64": {156, 174, 177, 178, 180, 181, 182, 183, 184, 185, 205, 211, 212, 214, 215, 236, 134, *range(335, 424)},
    "aarch64": {18, 42, *range(244, 260), *range(295, 424)},
}


def answer(program: bytes, number: int, arguments: tuple[int, ...] = (), machine: int = 0xC000003E) -> int:
    """Run a program of the Berkeley packet filter on a system call, by the kernel's documentation of it."""
    words = [word for argument in (*arguments, *(0,) * 6)[:6] for word in (argument & 0xFFFFFFFF, argument >> 32)]
    data = struct.pack("<IIQ12I", number, machine, 0, *words)
    lines = list(struct.iter_unpack("HBBI", program))
    at, held = 0, 0
    while True:
        operation, true, false, operand = lines[at]
        at += 1
        match operation:
            case 0x20:
                (held,) = struct.unpack_from("<I", data, operand)
            case 0x54:
                held &= operand
            case 0x05:
                at += operand
            case 0x15:
                at += true if held == operand else false
            case 0x35:
                at += true if held >= operand else false
            case 0x06:
                return operand
            case _:
                raise AssertionError(f"the kernel takes no instruction {operation:#x}")


@pytest.fixture(params=MACHINES)
def machine(request):
    return request.param


@pytest.fixture
def ask(machine):
    program = seccomp.program(machine)
    return lambda number, *arguments: answer(program, number, arguments, MACHINES[machine][1])


def numbers(table, machine) -> set[int]:
    return {n for both in table.values() if (n := both[MACHINES[machine][0]]) is not None}


def test_what_is_on_the_list_is_let_through_with_any_arguments_and_nothing_else_is(machine, ask):
    allowed, checked = numbers(ALLOWED, machine), numbers({n: c.numbers for n, c in CHECKED.items()}, machine)
    assert not allowed & checked
    for number in set(NUMBERS) - checked:
        for arguments in ((), (2**64 - 1,) * 6):
            assert ask(number, *arguments) == (LET_THROUGH if number in allowed else ENOSYS), number


def test_every_call_of_this_machine_is_either_allowed_or_looked_at_or_tried_by_the_selftest(machine):
    tables = (ALLOWED, REFUSED_CALLS, UNTRIED, {name: check.numbers for name, check in CHECKED.items()})
    each = [numbers(table, machine) for table in tables]
    assert sum(map(len, each)) == len(set(chain(*each)))
    assert set(range(LAST + 1)) - set(chain(*each)) == FREE[machine]


def test_calls_since_linux_5_1_have_the_same_number_everywhere():
    for name, (x86, arm) in (ALLOWED | REFUSED_CALLS).items():
        assert x86 == arm or min(n for n in (x86, arm) if n is not None) < 424, name


@pytest.mark.parametrize("number", [1_000, 2**31, 2**32 - 1, X32, X32 | 39])
def test_numbers_beyond_all_lists_are_refused(ask, number):
    assert ask(number) == ENOSYS


@pytest.mark.parametrize("foreign", [I386, ARM, 0, 0xC00000B7])
def test_the_numbers_of_another_kind_of_machine_are_refused(foreign):
    program = seccomp.program("x86_64")
    assert {answer(program, number, (), foreign) for number in NUMBERS} == {ENOSYS}


@pytest.mark.slow
def test_what_is_looked_at_is_let_through_for_its_values_alone(machine, ask):
    for name, check in CHECKED.items():
        number = check.numbers[MACHINES[machine][0]]
        for value in {*range(2_000), *check.values, *(2**n for n in range(33)), 2**32 + 2}:
            arguments = [7, 7, 7, 7, 7, 7]
            arguments[check.argument] = value
            right = value % 2**32 & check.mask in check.values
            assert ask(number, *arguments) == (LET_THROUGH if right else 0x00050000 | check.error), (name, value)


def test_each_thing_that_the_selftest_asks_for_is_refused(machine, ask):
    for name, (both, arguments) in REFUSED_ARGUMENTS.items():
        assert ask(both[MACHINES[machine][0]], *(x % 2**64 for x in arguments)) == ENOSYS, name


def test_what_has_let_processes_out_before_is_refused(ask, machine):
    known = {"mount": (165, 40), "unshare": (272, 97), "setns": (308, 268), "ptrace": (101, 117), "bpf": (321, 280),
             "keyctl": (250, 219), "userfaultfd": (323, 282), "perf_event_open": (298, 241), "shmget": (29, 194),
             "io_uring_setup": (425, 425), "clone3": (435, 435), "open_tree_attr": (467, 467),
             "statmount": (457, 457), "move_pages": (279, 239), "mbind": (237, 235), "process_madvise": (440, 440),
             "flock": (73, 32)}  # fmt: skip
    assert {name for name, both in known.items() if ask(both[MACHINES[machine][0]]) != ENOSYS} == set()


def test_processes_are_forked_and_threads_started_but_no_namespaces(ask, machine):
    clone, socket = ((56, 41), (220, 198))[MACHINES[machine][0]]
    fork, thread = 17 | 0x01200000, 0x3D0F00
    assert {ask(clone, flags) for flags in (17, fork, thread)} == {LET_THROUGH}
    spaces = (0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
    assert {ask(clone, flags) for space in spaces for flags in (space, space | fork, 2**40 | space)} == {ENOSYS}
    assert [ask(socket, family) for family in (1, 2, 10, 16, 2**32 + 1)] == [
        LET_THROUGH,
        *[ENETUNREACH] * 3,
        LET_THROUGH,
    ]


def test_the_action_for_children_that_end_can_be_asked_for_and_setting_it_does_nothing(ask, machine):
    """Else SIG_IGN, or SA_NOCLDWAIT in memory, would have the kernel drop their processor time."""
    number, child, pretended = (13, 134)[MACHINES[machine][0]], 17, 0x00050000
    assert ask(number, child, 0) == LET_THROUGH
    assert {ask(number, child, at) for at in (1, 2**31, 2**32, 2**47, 2**64 - 1)} == {pretended}
    assert ask(number, child + 2**32, 1) == pretended, "the kernel looks at 32 bits of a signal's number"
    assert {ask(number, signal, 2**47) for signal in range(1, 65) if signal != child} == {LET_THROUGH}


def test_the_filter_is_short_enough_for_the_kernel(machine):
    assert len(seccomp.program(machine)) // 8 <= 4096


@pytest.mark.slow
def test_a_list_of_any_length_can_be_searched(monkeypatch):
    """Every other number is allowed: no jump is too long."""
    monkeypatch.setattr(seccomp, "ALLOWED", {str(n): (n, n) for n in range(0, 1000, 2)})
    monkeypatch.setattr(seccomp, "CHECKED", {"last": syscalls.Check((1000, 1000), 0, tuple(range(500)))})
    program = seccomp.program("x86_64")
    assert [n for n in range(1000) if answer(program, n) == LET_THROUGH] == list(range(0, 1000, 2))
    assert [n for n in range(1000) if answer(program, 1000, (n,)) == LET_THROUGH] == list(range(500))
