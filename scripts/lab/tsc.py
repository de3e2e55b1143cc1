# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Measures the frequency of the host's time-stamp counter, which an emulated CPU passes on to its guest.

A guest's kernel would measure it by the PIT. On a busy host that measurement is often wrong: of 17 guests on two CPUs at load average 20, five found
42 to 894 MHz in place of 2596, and their clocks ran 3 to 60 times too fast. The kernel parameter tsc_early_khz replaces the measurement.
"""
import ctypes
import functools
import mmap
import platform
import time

# rdtsc; shl rdx, 32; or rax, rdx; ret
READ = bytes.fromhex("0f31 48c1e220 4809d0 c3")
INTERVAL = 0.01     # seconds
ATTEMPTS = 10
# The kernel refines the value later, and keeps it if the result differs by more than 1 %.
PRECISION = 0.001


def _sample(read):
    """Returns (nanoseconds, counter, uncertainty in nanoseconds): the best of several readings, because the process may be preempted in each."""
    best = None
    for _ in range(ATTEMPTS):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        counter = read()
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        if best is None or after - before < best[2]:
            best = before, counter, after - before
    return best


def measured_khz(read):
    """Returns the frequency of the counter that read() returns, or None if no measurement has been precise."""
    for _ in range(ATTEMPTS):
        first = _sample(read)
        time.sleep(INTERVAL)
        last = _sample(read)
        elapsed = last[0] - first[0]
        if first[2] + last[2] < PRECISION * elapsed:
            return round((last[1] - first[1]) * 1_000_000 / elapsed)
    return None


@functools.cache
def frequency_khz():
    """Returns the frequency of the host's time-stamp counter in kHz, or None if it is unknown: on other architectures, or on a host that permits no
    memory to be both written and executed."""
    if platform.machine() != "x86_64":
        return None
    try:
        code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return None
    code.write(READ)
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    return measured_khz(ctypes.CFUNCTYPE(ctypes.c_uint64)(address))
