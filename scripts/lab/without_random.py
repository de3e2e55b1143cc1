# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs a program without access to the host's random numbers: without_random.py COMMAND...

User-Mode Linux mixes two things into its random pool: the result of getrandom(2), and, when its driver starts, bytes of /dev/random. Here
getrandom(2) is not implemented and /dev/random is /dev/zero, so that random numbers follow from the command line, the clock, and the events in
the kernel. Programs in such a guest call the guest's kernel, not the host's.
"""
import ctypes
import os
import struct
import sys

GETRANDOM = 318             # x86-64
ENOSYS = 38
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06     # BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, BPF_RET|BPF_K
ALLOW, ERROR = 0x7FFF0000, 0x00050000
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
LIBC = ctypes.CDLL(None, use_errno=True)


def call(name, *arguments):
    if getattr(LIBC, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def hide_device():
    """Replaces /dev/random by /dev/zero for this process and its children."""
    user, group = os.geteuid(), os.getegid()
    call("unshare", CLONE_NEWNS | (CLONE_NEWUSER if user else 0))
    if user:
        for file, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{file}", "w") as out:
                out.write(text)
    call("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)
    call("mount", b"/dev/zero", b"/dev/random", None, MS_BIND, None)


def deny_call():
    """Makes getrandom(2) fail as not implemented for this process and its children."""
    program = b"".join(struct.pack("HBBI", *each) for each in (
        (LOAD_WORD, 0, 0, 0),               # the call's number
        (JUMP_IF_EQUAL, 0, 1, GETRANDOM),
        (RETURN, 0, 0, ERROR | ENOSYS),
        (RETURN, 0, 0, ALLOW)))
    code = ctypes.create_string_buffer(program, len(program))
    filters = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    call("prctl", PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.create_string_buffer(filters), 0, 0)


if __name__ == "__main__":
    hide_device()
    deny_call()
    os.execvp(sys.argv[1], sys.argv[1:])
