# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Starts User-Mode Linux, a kernel that runs as a process of the host, and kills it together with all its processes.

The guest's processes and helpers are processes of the host, too. Not all of them end when the kernel is killed or panics, so a supervisor
process ends them: when the kernel ends, on request, and when the program that started the kernel has ended.
"""
import os
import pathlib
import re
import subprocess
import sys

from lab import image
from lab.errors import LabError

SHARED_MEMORY = "/dev/shm"
ROOM = 4 << 30      # bytes that must be free in /dev/shm, for the memory of several kernels

KEEPER = """ulimit -c 0; set -m; "$@" & kernel=$!; trap 'kill -KILL -- -$kernel 2>/dev/null' EXIT; trap 'exit 143' TERM; wait $kernel; exit $?"""

KERNEL_WORDS = (
    "console=tty0", "con=null", "con0=null,fd:1", "ignore_loglevel", "printk.devkmsg=on",
    "oops=panic", "panic=-1", "noreboot",           # a crash stops it at once, and is detected
    "watchdog_thresh=60", "rcupdate.rcu_cpu_stall_timeout=120",     # a kernel that gets no CPU time is not in a lock-up
)

# If the host's CPU has more registers than the kernel can save (scripts/kernel/um/apply, 3), those beyond SSE are lost at a page fault. The C library
# would use them for copying, so it is configured not to; the kernel passes this to the first process.
ENVIRONMENT = ("GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX,-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-AVX_Fast_Unaligned_Load,-XSAVE,-XSAVEC",)

# The clock jumps to the next timer when the guest is idle, and stands still while anything runs, so the kernel's behaviour does not depend on the
# host.
VIRTUAL_TIME = ("time-travel=inf-cpu", "time-travel-start=1700000000000000000")


NO_RANDOMNESS = pathlib.Path(__file__).resolve().parent / "without_random.py"

NO_SETUID = NO_RANDOMNESS.with_name("no_setuid.py")

# Virtio ID by which UML finds a PCI function behind a vhost-user socket (CONFIG_UML_PCI_OVER_VIRTIO_DEVICE_ID in scripts/kernel/um.config).
PCI_DEVICE_ID = 1234
MOST_CARDS = 8


def _one_word(path, state):
    """Returns the path, or a link to it, because a word of the kernel's command line can contain neither blanks nor quotes, and no comma in a mount
    option."""
    if not re.search(r"[\s,\"'\\]", str(path)):
        return path
    link = state / "share"
    link.symlink_to(path)
    return link


def guest_words(guest, agent_fd, state):
    """Returns the kernel's command line for a Guest, with Debian's root image as a disk, a folder of the host as its share, the agent's port,
    and its cards. state: the guest's own folder."""
    for what in ("vfio_user", "spare_ports", "netdevs", "qemu_args", "icount", "firmware_script", "may_reboot"):
        if getattr(guest, what):
            raise LabError(f"{guest.name}: a guest of kernel {guest.kernel.variant} has no {what}", "use one that QEMU boots")
    # c: without a lock. A lock of the whole file would prevent QEMU from reading it.
    words = [f"ubd0rc={image.root_image()}", "ssl=null", f"ssl0=fd:{agent_fd}", "weft.port=/dev/ttyS0", f"weft.name={guest.name}"]
    if guest.share:
        words.append(f"weft.share={_one_word(guest.share, state)}")
    if guest.kernel.checked:
        words.append("weft.kasan=1")
    if len(guest.cards) > MOST_CARDS:
        raise LabError(f"{guest.name}: a guest of kernel {guest.kernel.variant} has {MOST_CARDS} cards at most")
    words += [f"virtio_uml.device={path}:{PCI_DEVICE_ID}" for path in guest.cards]
    return [*words, *guest.append.split()]


def repeatable_words(name, seed, work, time=VIRTUAL_TIME):
    """Returns the command line of a kernel that runs the same each time (start(repeatable_in=…)), in virtual time. The folder work/NAME has
    the script to run, and then gets the script's output (out, err) and status. `work` is relative to the kernel's working directory, so that the
    command line is the same in each folder. time: other words for the kernel's clock."""
    return [*time, f"weft.seed={seed:#x}", f"weft.tree={image.root_tree()}", f"weft.name={name}", f"weft.work=/proc/self/cwd/{work}"]


def start(kernel, words, *, memory, log, state, pass_fds=(), repeatable_in=None, no_setuid=False):
    """Starts a kernel; returns its keeper, to be ended by end().

    words: for its command line; memory: in the kernel's notation (512M); log: the file for its console; state: a folder for it alone;
    repeatable_in: the folder to start it in; it then reads no random numbers from the host, and its memory has the same addresses each time;
    no_setuid: keep it from making files set-user-ID, because it shares a folder of the host (no_setuid.py).
    """
    confine = [sys.executable, "-B", str(NO_SETUID)] if no_setuid else []
    repeat = ["setarch", "-R", sys.executable, str(NO_RANDOMNESS)] if repeatable_in else []
    argv = ["setpriv", "--pdeathsig", "TERM", *repeat, *confine, "bash", "-c", KEEPER, "keeper", str(kernel.image), f"mem={memory}",
            f"initrd={image.initramfs(kernel)}", f"uml_dir={state}/", "umid=kernel", *KERNEL_WORDS, *ENVIRONMENT, *words]
    with open(log, "wb") as console:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=console, stderr=console, pass_fds=pass_fds, process_group=0, cwd=repeatable_in,
                                env={**os.environ, "TMPDIR": str(_memory_folder() or state)})


def _memory_folder():
    """Returns the directory for the unnamed file with the kernel's memory: /dev/shm if it has space and its pages may be executed, else None.
    If the kernel has cards, weftd also accepts files of a disk or of its own file system (is_of_the_kernel() in tools/base/memory_mapping.cpp)."""
    place = os.statvfs(SHARED_MEMORY)
    if place.f_flag & os.ST_NOEXEC or place.f_bavail * place.f_frsize < ROOM or not os.access(SHARED_MEMORY, os.W_OK):
        return None
    return SHARED_MEMORY


def end(keeper):
    """Kills a kernel at once, like a power cut: nothing in the guest is notified."""
    if keeper.poll() is None:
        keeper.terminate()
        keeper.wait()
