"""The seccomp filter, run instruction by instruction: what it says of every call, on both machines."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import pytest

from sandbox.isolation import libc, seccomp

MACHINES = sorted(seccomp.AUDIT_ARCH)
PROT_EXEC = 4
HIGHEST_NUMBER = 1024
HEADERS = {
    "x86_64": (Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), Path("/usr/include/asm/unistd_64.h")),
    # aarch64 uses the generic table, which is installed on every architecture.
    "aarch64": (Path("/usr/include/asm-generic/unistd.h"),),
}


def verdict(machine, number, args=(0, 0, 0, 0, 0, 0), arch=None):
    """Return what the machine's filter answers, by interpreting classic BPF."""
    arch = seccomp.AUDIT_ARCH[machine] if arch is None else arch
    data = {0: number & 0xFFFFFFFF, 4: arch}
    for index, value in enumerate(args):
        data[16 + 8 * index] = value & 0xFFFFFFFF
    program = seccomp.build(machine)
    accumulator, at = 0, 0
    while True:
        code, jump_true, jump_false, k = program[at]
        at += 1
        if code == 0x20:
            accumulator = data[k]
        elif code == 0x54:
            accumulator &= k
        elif code == 0x15:
            at += jump_true if accumulator == k else jump_false
        elif code == 0x35:
            at += jump_true if accumulator >= k else jump_false
        elif code == 0x45:
            at += jump_true if accumulator & k else jump_false
        else:
            assert code == 0x06
            return k


@pytest.mark.parametrize("machine", MACHINES)
def test_exactly_the_listed_calls_are_allowed(machine):
    numbers = libc.SYSCALLS[machine]
    listed = {*seccomp.ALLOWED, *(name for name, _ in seccomp.NO_FLAGS), "mmap", "futex"}
    expected = {numbers[name] for name in listed if name in numbers}
    allowed = {number for number in range(HIGHEST_NUMBER) if verdict(machine, number) == seccomp.RET_ALLOW}
    assert expected == allowed


@pytest.mark.parametrize("machine", MACHINES)
def test_every_other_call_is_answered_with_eperm(machine):
    answers = {verdict(machine, number) for number in range(HIGHEST_NUMBER)}
    assert {seccomp.RET_ALLOW, seccomp.RET_EPERM} == answers


@pytest.mark.parametrize("machine", MACHINES)
def test_a_foreign_architecture_is_killed(machine):
    for arch in (0x40000003, 0x40000028, 0, *seccomp.AUDIT_ARCH.values()):
        if arch != seccomp.AUDIT_ARCH[machine]:
            assert seccomp.RET_KILL_PROCESS == verdict(machine, 0, arch=arch)


def test_the_x32_calls_of_an_x86_64_kernel_are_killed():
    x32 = [verdict("x86_64", 0x40000000 | number) for number in range(HIGHEST_NUMBER)]
    assert {seccomp.RET_KILL_PROCESS} == set(x32)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("protection", range(16))
def test_memory_is_mapped_but_never_executable(machine, protection):
    answer = verdict(machine, libc.SYSCALLS[machine]["mmap"], (0, 4096, protection, 0x22, -1, 0))
    assert (answer == seccomp.RET_ALLOW) == (not protection & PROT_EXEC)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", ["sendto", "recvfrom"])
def test_the_wire_takes_no_flags(machine, name):
    number = libc.SYSCALLS[machine][name]
    assert seccomp.RET_ALLOW == verdict(machine, number, (3, 1, 1, 0))
    flagged = {verdict(machine, number, (3, 1, 1, 1 << bit)) for bit in range(32)}
    assert {seccomp.RET_EPERM} == flagged


@pytest.mark.parametrize("machine", MACHINES)
def test_futexes_wait_and_wake_and_do_nothing_else(machine):
    number = libc.SYSCALLS[machine]["futex"]
    allowed = {op for op in range(0x80) if verdict(machine, number, (0, op)) == seccomp.RET_ALLOW}
    assert set(seccomp.FUTEX_OPERATIONS) == allowed
    assert seccomp.RET_ALLOW == verdict(machine, number, (0, 128 | 256 | 9))
    assert seccomp.RET_EPERM == verdict(machine, number, (0, 128 | 6))


@pytest.mark.parametrize("machine", MACHINES)
def test_the_numbers_are_those_of_the_kernels_headers(machine):
    header = next((path for path in HEADERS[machine] if path.exists()), None)
    if header is None:
        pytest.skip("the kernel's headers are not installed")
    defined = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text(encoding="ascii")))
    ours = {name: str(number) for name, number in libc.SYSCALLS[machine].items()}
    assert ours == {name: defined.get(name) for name in ours}


def test_both_machines_know_the_same_calls_but_for_poll():
    assert {"poll"} == set(libc.SYSCALLS["x86_64"]) ^ set(libc.SYSCALLS["aarch64"])


@pytest.mark.parametrize("machine", MACHINES)
def test_no_number_is_used_twice(machine):
    numbers = list(libc.SYSCALLS[machine].values())
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("machine", MACHINES)
def test_every_jump_stays_inside_the_program(machine):
    program = seccomp.build(machine)
    for at, (code, jump_true, jump_false, _) in enumerate(program):
        if code & 0x07 == 0x05:
            assert max(at + 1 + jump_true, at + 1 + jump_false) < len(program)
            assert max(jump_true, jump_false) < 256


def test_an_unknown_machine_has_no_filter():
    with pytest.raises(OSError, match="riscv64"):
        seccomp.build("riscv64")


def test_this_machine_is_one_of_the_two_or_has_no_filter():
    assert (platform.machine() in MACHINES) == (libc.MACHINE in seccomp.AUDIT_ARCH)
