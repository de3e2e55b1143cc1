# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Selects the accelerator of guests: KVM if a trial boot succeeds, else QEMU's emulated CPU (TCG)."""
import contextlib
import functools
import os
import pathlib
import subprocess

from lab import cache, image, kernels, qemu

# All features that QEMU emulates, except the flags for fast string instructions: with these flags, the kernel would copy and clear memory by single bytes,
# and the emulated CPU takes as long for one byte as for eight.
EMULATED = ["-accel", "tcg,thread=multi", "-cpu", "max,erms=off,fsrm=off,fzrm=off,fsrs=off"]
KVM = ["-accel", "kvm", "-cpu", "host"]


def _trial_boot():
    """Boots a kernel under KVM without a root disk; returns whether its initramfs reports that the disk is missing."""
    program = qemu.find()
    kernel = kernels.find("stock")
    try:
        done = subprocess.run([*program.argv, "-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35", "-m", "256M",
                               *KVM, "-no-reboot", "-serial", "stdio", "-kernel", str(kernel.image),
                               "-initrd", str(image.initramfs(kernel)), "-append", "console=ttyS0 panic=-1"],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False,
                              env={**os.environ, **program.environment})
    except subprocess.TimeoutExpired:
        return False
    return b"no root disk" in done.stdout


@functools.cache
def kvm_works():
    """Returns whether KVM works here. The result is cached until the host reboots."""
    if os.environ.get("WEFT_KVM") == "0" or not qemu.kvm_flags():
        return False
    boot_id = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    record = cache.root() / f"kvm-{boot_id}"
    if not record.exists():
        works = _trial_boot()
        temporary = record.with_suffix(f".{os.getpid()}")
        # If the cache cannot be written, as in a container's read-only image, each run repeats the trial boot.
        with contextlib.suppress(OSError):
            temporary.write_text("yes" if works else "no")
            temporary.rename(record)
        return works
    return record.read_text() == "yes"


def options():
    return list(KVM if kvm_works() else EMULATED)
