#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs a program and prevents it from setting the set-user-ID and set-group-ID bits of files: no_setuid.py PROGRAM [ARGUMENT...]

A guest writes to its shared directory through QEMU or User-Mode Linux, which run as weft's user. A set-user-ID file that a guest made there
would give that user's rights to everybody on the host who may execute it. A seccomp filter refuses (EPERM) the system calls that would set
these bits. The guest's other changes to the directory are not affected.
"""
import ctypes
import os
import sys

MODE_BITS = 0o6000
EPERM, ENOSYS = 1, 38
O_CREAT, O_TMPFILE = 0o100, 0o20000000
AUDIT_ARCH_X86_64 = 0xC000003E
X32 = 0x40000000
# System calls of x86-64, with the index of the mode argument.
MODE_OF = {
    90: 1,      # chmod
    91: 1,      # fchmod
    268: 2,     # fchmodat
    452: 2,     # fchmodat2
    85: 1,      # creat
    133: 1,     # mknod
    259: 2,     # mknodat
}
# System calls whose mode argument is used only with certain flags: (argument with flags, argument with the mode).
OPEN = {2: (1, 2), 257: (2, 3)}     # open, openat
# Their arguments are in memory, which a filter cannot read: openat2, and operations of io_uring.
UNKNOWN = (437, 425)

LOAD, JUMP_EQUAL, JUMP_GREATER_EQUAL, JUMP_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, ERROR = 0x7FFF0000, 0x00050000
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16


class Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("if_true", ctypes.c_uint8), ("if_false", ctypes.c_uint8), ("value", ctypes.c_uint32))


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("filter", ctypes.POINTER(Instruction)))


def _argument(number):
    """Returns the offset of an argument's lower 32 bits, which contain modes and flags."""
    return ARGUMENTS + 8 * number


def instructions():
    """Returns the filter as (code, jump if true, jump if false, value)."""
    made = [(LOAD, 0, 0, ARCHITECTURE), (JUMP_EQUAL, 1, 0, AUDIT_ARCH_X86_64), (RETURN, 0, 0, ERROR | EPERM),
            (LOAD, 0, 0, NUMBER), (JUMP_GREATER_EQUAL, 0, 1, X32), (RETURN, 0, 0, ERROR | EPERM)]
    for number in UNKNOWN:
        made += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, ERROR | ENOSYS)]
    for number, mode in MODE_OF.items():
        made += [(JUMP_EQUAL, 0, 4, number), (LOAD, 0, 0, _argument(mode)), (JUMP_SET, 0, 1, MODE_BITS), (RETURN, 0, 0, ERROR | EPERM), (RETURN, 0, 0, ALLOW)]
    for number, (flags, mode) in OPEN.items():
        made += [(JUMP_EQUAL, 0, 6, number), (LOAD, 0, 0, _argument(flags)), (JUMP_SET, 0, 3, O_CREAT | O_TMPFILE),
                 (LOAD, 0, 0, _argument(mode)), (JUMP_SET, 0, 1, MODE_BITS), (RETURN, 0, 0, ERROR | EPERM), (RETURN, 0, 0, ALLOW)]
    return [*made, (RETURN, 0, 0, ALLOW)]


def refuse():
    """Installs the filter for this process and all its children."""
    if os.uname().machine != "x86_64":
        raise OSError("the system calls of this architecture are not known")
    made = instructions()
    code = (Instruction * len(made))(*(Instruction(*each) for each in made))
    libc = ctypes.CDLL(None, use_errno=True)
    set_no_new_privs, set_seccomp, mode_filter = 38, 22, 2
    program = Program(len(made), code)
    if libc.prctl(set_no_new_privs, 1, 0, 0, 0) or libc.prctl(set_seccomp, mode_filter, ctypes.byref(program), 0, 0):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), "seccomp")


if __name__ == "__main__":
    refuse()
    os.execvp(sys.argv[1], sys.argv[1:])
