# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Provides guests for tests: kernels, QEMU, images, and virtual machines that a test controls from the host.

    from lab import Guest
    with Guest("node1", kernel="stock") as node1:
        print(node1.run("uname -r").out)
"""
from lab.errors import LabError
from lab.guest import Guest, GuestDied, KernelReport, boot
from lab.process import CommandFailed
from lab.waiting import DeadlineExceeded, wait_until

__all__ = ["CommandFailed", "DeadlineExceeded", "Guest", "GuestDied", "KernelReport", "LabError", "boot", "wait_until"]
