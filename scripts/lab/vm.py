# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Builds QEMU's command line for the virtual machine on which a guest runs."""
import itertools
import json
import os
import pathlib

from lab import accelerator, image, ipxe, tsc

EMPTY_PORT_ID = "spare"
TEST_MEMORY = 4 << 30   # bytes of memory per guest test, including its host programs
_nics = itertools.count(1)

# Linux considers the time-stamp counters of several AMD CPUs unsynchronised, and an emulated CPU is one of those, although QEMU derives all from one
# clock. The kernel would then read the HPET, which is an emulated device: with all debug checks on two CPUs, timer interrupts would leave no time for
# anything else.
EMULATED_WORDS = ("tsc=reliable",)
KERNEL_WORDS = (
    "console=ttyS0,115200", "earlyprintk=ttyS0,115200", "ignore_loglevel",
    "oops=panic", "panic=-1",                       # a crash stops the guest at once, and is detected
    "no_timer_check",                               # it panics if an emulated CPU gets too little time
    # For a moment, with interrupts enabled, the kernel does not use the fact that the CPU has five levels of page tables, and KASAN then takes all
    # memory for invalid.
    "no5lvl",
    "mitigations=off", "random.trust_cpu=on", "audit=0", "apparmor=0", "8250.nr_uarts=1",     # a quick boot
    "cryptomgr.notests",                            # also for a quick boot: saves 0.3 s of an emulated CPU
    "net.ifnames=0",
    "watchdog_thresh=60", "rcupdate.rcu_cpu_stall_timeout=120",     # a virtual CPU that gets no time is not a lock-up
)


# Allocated memory is not zeroed, which takes 0.4 s of the 4.4 s that an emulated CPU needs to boot. Tests do not use this: Linux 6.1's ib_mthca
# does not initialise its memory regions, and the programs of verbs then cause kernel reports.
WITHOUT_ZEROING = "init_on_alloc=0"


def guest_tests_at_a_time():
    """Returns the number of guest tests that run at once. Most have two guests that wait for each other, so that one CPU is busy."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(os.cpu_count() or 1, memory // TEST_MEMORY))


def quoted(path):
    """Returns a path as a value of a QEMU option, in which commas are doubled."""
    return str(path).replace(",", ",,")


def root_port(identity, number):
    """Returns options for a PCIe root port with space for a card's BARs."""
    return ["-device", f"pcie-root-port,id={identity},chassis={number},slot={number},mem-reserve=4M,pref64-reserve=32M"]


def vfio_user_device(bus, path):
    """Returns the properties of a device that a vfio-user server implements."""
    return {"driver": "vfio-user-pci", "bus": bus, "rombar": 0, "socket": {"type": "unix", "path": str(pathlib.Path(path).resolve())}}


def ethernet_netdev(socket):
    """Returns the value of QEMU's -netdev that attaches a guest to a lab's Ethernet by the attachment's socket. It has no carrier while weftd does not serve it."""
    return f"stream,server=off,addr.type=unix,addr.path={quoted(pathlib.Path(socket).resolve())},reconnect-ms=200"


def command_line(guest):
    """Returns the kernel's command line for a Guest."""
    words = [*KERNEL_WORDS, f"weft.name={guest.name}"]
    if not accelerator.kvm_works():
        words += EMULATED_WORDS
        # With icount, the guest's counter is not the host's.
        if not guest.icount and (frequency := tsc.frequency_khz()):
            words.append(f"tsc_early_khz={frequency}")
    if guest.share:
        words.append("weft.share=1")
    if guest.kernel.checked:
        words.append("weft.kasan=1")
    if guest.kernel.modules_disk:
        words.append("weft.modules=/dev/vdb")
    words.append(guest.append)
    return " ".join(words).strip()


def options(guest, agent_fd, monitor_fd):
    """Returns QEMU's options for a Guest, which documents the parameters."""
    if guest.firmware_script:
        # Without graphics, iPXE prints to the serial port.
        boots, kind = ["-kernel", str(ipxe.image()), "-initrd", str(guest.firmware_script)], "q35,graphics=off"
    else:
        boots, kind = ["-kernel", str(guest.kernel.image), "-initrd", str(image.initramfs(guest.kernel)), "-append", command_line(guest)], "q35"
    root, root_format = image.root_disk()
    argv = ["-nodefaults", "-no-user-config", "-display", "none", "-machine", f"{kind},memory-backend=mem", "-m", guest.memory,
            "-object", f"memory-backend-memfd,id=mem,size={guest.memory},share=on", "-smp", str(guest.cpus), *boots,
            "-chardev", f"file,id=console,path={quoted(guest.log_target())}", "-serial", "chardev:console",
            "-chardev", f"socket,id=monitor,fd={monitor_fd}", "-mon", "chardev=monitor,mode=control",
            "-drive", f"if=none,id=root,format={root_format},readonly=on,file={quoted(root)},file.locking=off", "-device", "virtio-blk-pci,drive=root",
            "-device", "virtio-serial-pci", "-chardev", f"socket,id=agent,fd={agent_fd}",
            "-device", "virtserialport,chardev=agent,name=weft.agent", "-device", "virtio-rng-pci"]
    if guest.kernel.modules_disk:
        argv += ["-drive", f"if=none,id=modules,format=raw,readonly=on,file={quoted(guest.kernel.modules_disk)},file.locking=off",
                 "-device", "virtio-blk-pci,drive=modules"]
    if guest.icount:
        sleep = "on" if guest.icount == "sleep" else "off"
        argv += ["-accel", "tcg,thread=single", "-icount", f"shift=0,sleep={sleep}", "-cpu", "max"]
    else:
        argv += accelerator.options()
    if not guest.may_reboot:
        argv.append("-no-reboot")
    port = itertools.count(1)
    for path in guest.vfio_user:
        number = next(port)
        argv += root_port(f"rp{number}", number) + ["-device", json.dumps(vfio_user_device(f"rp{number}", path))]
    if guest.spare_ports:
        # Native PCIe hot-plug, because the test kernels have no ACPI hot-plug.
        argv += ["-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off"]
    for spare in range(guest.spare_ports):
        argv += root_port(f"{EMPTY_PORT_ID}{spare}", next(port))
    if guest.share:
        argv += ["-fsdev", f"local,id=share,path={quoted(guest.share)},security_model=none,multidevs=remap",
                 "-device", "virtio-9p-pci,fsdev=share,mount_tag=share"]
    for number, netdev in enumerate(guest.netdevs):
        serial = next(_nics)
        netdev, mac = netdev if isinstance(netdev, tuple) else (
            netdev, f"52:54:{os.getpid() >> 8 & 255:02x}:{os.getpid() & 255:02x}:{serial >> 8 & 255:02x}:{serial & 255:02x}")
        argv += ["-netdev", f"{netdev},id=net{number}", "-device", f"virtio-net-pci,netdev=net{number},mac={mac},romfile="]
    return argv + guest.qemu_args
