# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Writes a setup script for each guest in virtual time, which loads the modules of the guest's card before the guest's own script runs. Also provides
the directory from which guests load these modules."""
import pathlib

import stack
from lab import shared_time
from labs import MODULES_DIRECTORY, MOUNT, NODE_SETUP, UNMANAGED_SETUP, address_of

# The guest sees the host's directory relative to the one in which its kernel was started.
MOUNT_HERE = MOUNT.format(modules=f"/proc/self/cwd/{shared_time.MODULES}")


class Setup:
    """Modules of one stack for the guests of a lab. Weft's modules are copied into a directory of the lab, because the kernel's own directory does
    not have them."""

    def __init__(self, name, kernel, directory):
        self._name = name
        self._kernel = kernel
        self.modules = kernel.modules if name == stack.LINUX else pathlib.Path(directory)

    def _load(self, model):
        """Returns (lines that load modules, names for modprobe)."""
        if self._name == stack.LINUX:
            return "", stack.modules_of(self._kernel, model)
        modules = stack.weft_modules(model, self._kernel.release)
        self.modules.mkdir(parents=True, exist_ok=True)
        for name, contents in modules:
            (self.modules / f"{name}.ko").write_bytes(contents)
        return "".join(f"insmod {MODULES_DIRECTORY}/{name}.ko || exit 1\n" for name, _ in modules), ()

    def scripts(self, fabric):
        """Returns the script of each host, given the fabric as weftd shows it. It ends by setting the addresses of `weft run`."""
        result = {}
        for number, host in enumerate(shared_time.hosts_of(fabric), 1):
            lines, names = self._load(host["model"])
            interface = stack.interface(host["model"])
            waits = fabric["subnet_manager"] is not None or interface != stack.IPOIB
            result[host["name"]] = (f"(\n{MOUNT_HERE}{lines}set -- {address_of(number)} {interface} {' '.join(names)}\n"
                                    f"{NODE_SETUP if waits else UNMANAGED_SETUP}) || exit 1\n")
        return result
