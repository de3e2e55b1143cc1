#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests how `weft run --kernel` finds the user's own kernel and its modules, and which modules it requires."""
import gzip
import lzma
import os
import unittest

from session_folder import Folder  # sets the paths of the modules below

from lab import cache, image, own_kernel
from lab.errors import LabError

RELEASE = "6.18.0-mine+"
EVERYTHING = own_kernel.required(share=True, card="mlx4")


def bzimage(release=RELEASE):
    """Returns the header of a bzImage, with the boot protocol's magic number and the offset of the version."""
    data = bytearray(4096)
    data[0x202:0x206] = b"HdrS"
    data[0x20E:0x210] = (0x600).to_bytes(2, "little")
    text = f"{release} (me@here) #1 SMP".encode() + b"\0"
    data[0x800:0x800 + len(text)] = text
    return bytes(data)


class UserKernel(Folder):
    def tree(self, modular=(), built_in=(), suffix=".o", config=""):
        """Creates a tree in which a kernel with these modules was built."""
        self.write("tree/arch/x86/boot/bzImage", bzimage())
        self.write("tree/include/config/kernel.release", f"{RELEASE}\n")
        self.write("tree/.config", "CONFIG_BLK_DEV_INITRD=y\nCONFIG_DEVTMPFS=y\nCONFIG_TMPFS=y\nCONFIG_PCI_MSI=y\n" + config)
        self.write("tree/modules.builtin", "".join(f"kernel/drivers/{name}.ko\n" for name in built_in))
        self.write("tree/modules.order", "".join(f"drivers/{name}{suffix}\n" for name in modular))
        for name in modular:
            self.write(f"tree/drivers/{name}.ko")
        return self.folder / "tree"

    def installed(self, *names, built_in=()):
        """Creates an installed kernel, as from a package and modules_install."""
        self.write(f"boot/vmlinuz-{RELEASE}", bzimage())
        self.write(f"lib/modules/{RELEASE}/modules.dep", "".join(f"kernel/drivers/{name}:\n" for name in names))
        self.write(f"lib/modules/{RELEASE}/modules.builtin", "".join(f"kernel/drivers/{name}.ko\n" for name in built_in))
        for name in names:
            self.write(f"lib/modules/{RELEASE}/kernel/drivers/{name}")
        return self.folder / "boot" / f"vmlinuz-{RELEASE}"

    def test_built_kernel_tree_provides_image_release_and_modules(self):
        """Image, release and modules are found in a tree, whichever way its modules.order names them."""
        for suffix in (".o", ".ko"):
            found = own_kernel.look(self.tree(["virtio-blk", "ext4"], ["virtio_pci"], suffix))
            self.assertEqual((found.image.name, found.release), ("bzImage", RELEASE))
            self.assertEqual([path for path, _ in found.modules], ["kernel/drivers/virtio-blk.ko", "kernel/drivers/ext4.ko"])
            self.assertIsNone(found.lack(own_kernel.CARRIES_A_GUEST[:3]))

    def test_modules_of_an_installed_kernel_are_found(self):
        """vmlinuz-RELEASE has its modules in ../lib/modules/RELEASE, compressed or not; --modules takes any of three folders."""
        found = own_kernel.look(self.installed("virtio_blk.ko.xz", "ext4.ko.zst", "overlay.ko"))
        self.assertIsNone(found.lack([("virtio_blk", "X", ""), ("ext4", "X", ""), ("overlay", "X", "")]))
        alone = self.write("alone/deep/bzImage", bzimage())
        self.assertEqual(own_kernel.look(alone).modules, ())
        for given in ("", "lib/modules", f"lib/modules/{RELEASE}"):
            self.assertEqual(len(own_kernel.look(alone, self.folder / given).modules), 3, given)

    def test_missing_kernel_config_option_is_reported(self):
        """A kernel without any one of the options that a guest needs is refused in one line with the option and the module."""
        names = [module for module, _, _ in EVERYTHING]
        for missing, option, _ in EVERYTHING:
            found = own_kernel.look(self.tree(built_in=[name for name in names if name != missing]))
            lack = found.lack(EVERYTHING)
            self.assertIn(f"lacks CONFIG_{option} (module {missing})", lack)
            self.assertEqual(len(lack.splitlines()), 1)
        self.assertIsNone(own_kernel.look(self.tree(built_in=names)).lack(EVERYTHING))

    def test_kernel_is_accepted_if_it_has_the_driver_of_the_card_model(self):
        for model in own_kernel.DRIVERS:
            found = own_kernel.look(self.tree(built_in=[name for name, _, _ in own_kernel.required(True, model)]))
            for other in own_kernel.DRIVERS:
                lack = found.lack(own_kernel.required(True, other))
                if other == model:
                    self.assertIsNone(lack)
                else:
                    self.assertIn(own_kernel.DRIVERS[other][0][1], lack)

    def test_missing_module_is_reported(self):
        """If an option is m and its module is missing, the message says that the module is needed, not that the option is missing."""
        found = own_kernel.look(self.tree(config="CONFIG_VIRTIO_CONSOLE=m\n"))
        self.assertIn("needs the module virtio_console (CONFIG_VIRTIO_CONSOLE=m)", found.lack([("virtio_console", "VIRTIO_CONSOLE", "commands")]))
        found = own_kernel.look(self.tree(config="CONFIG_VIRTIO_CONSOLE=y\n"))
        self.assertIsNone(found.lack([("virtio_console", "VIRTIO_CONSOLE", "commands")]))

    def test_required_kernel_config_options_are_checked_even_if_no_modules_are_found(self):
        self.assertIsNone(own_kernel.look(self.tree()).lack_of_options())
        (self.folder / "tree/.config").write_text("CONFIG_BLK_DEV_INITRD=y\n")
        self.assertIn("lacks CONFIG_DEVTMPFS", own_kernel.look(self.folder / "tree").lack_of_options())

    def test_bzimage_without_kernel_tree_and_modules_is_accepted_without_checks(self):
        """A bzImage without a tree and modules cannot be checked, so it is accepted, and its console shows the outcome."""
        self.assertIsNone(own_kernel.look(self.write("alone/deep/bzImage", bzimage())).lack(EVERYTHING))

    def test_file_that_is_not_a_kernel_is_refused(self):
        for path, said in ((self.write("text", "no kernel"), "is not an x86 kernel"), (self.folder / "none", "there is no kernel"),
                           (self.write("tree/Makefile").parent, "contains no kernel built")):
            with self.assertRaisesRegex(LabError, said):
                own_kernel.look(path)
        with self.assertRaisesRegex(LabError, f"no modules of the kernel {RELEASE}"):
            own_kernel.look(self.write("bzImage", bzimage()), self.folder)

    def test_partly_built_tree_is_refused(self):
        tree = self.tree(["ext4"])
        (tree / "drivers/ext4.ko").unlink()
        with self.assertRaisesRegex(LabError, "lacks the module drivers/ext4.ko: run make modules"):
            own_kernel.look(tree)

    def test_kernel_release_is_read_from_an_elf_image(self):
        image_file = self.write("vmlinux", b"\x7fELF" + bytes(100) + b"Linux version 6.1.0-9-amd64 (debian)\0")
        self.assertEqual(own_kernel.release_of(image_file), "6.1.0-9-amd64")

    def test_boot_failure_is_diagnosed_from_the_console(self):
        """A fault that shows only during the boot is recognised from messages of the init programs and of the kernel."""
        for said, option in (("[ 1.0] x\nweft-guest: no root disk after 10 s\n", "CONFIG_VIRTIO_BLK"), ("weft-guest: no agent port after 10 s", "CONFIG_VIRTIO_CONSOLE"),
                             ("weft-guest: the overlay could not be mounted", "CONFIG_OVERLAY_FS"), ("", "CONFIG_SERIAL_8250_CONSOLE"),
                             ("Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)", "CONFIG_BLK_DEV_INITRD")):
            self.assertIn(option, own_kernel.why_not_up(said))
        self.assertIsNone(own_kernel.why_not_up("BUG: something else"))
        for text in ("no root disk", "no agent port", "the overlay could not be mounted", "the root image could not be mounted"):
            self.assertIn(text, (image.HERE / "agent/init").read_text() + (image.HERE / "agent/start").read_text())

    def test_compressed_modules_are_unpacked(self):
        for name, data in (("a.ko", b"elf"), ("a.ko.xz", lzma.compress(b"elf")), ("a.ko.gz", gzip.compress(b"elf"))):
            self.assertEqual(image.module_bytes(self.write(name, data)), b"elf")

    def test_cache_keeps_only_the_newest_disk_images_of_modules(self):
        """Only the newest entries of a kind are kept in the cache."""
        before = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = str(self.folder)
        try:
            for number in range(6):
                os.utime(self.write(f"weft/own-modules-{number}/modules.img").parent, (number, number))
            cache.keep_newest("own-modules", 4)
        finally:
            del os.environ["XDG_CACHE_HOME"]
            if before is not None:
                os.environ["XDG_CACHE_HOME"] = before
        self.assertEqual(sorted(path.name for path in (self.folder / "weft").glob("own-*")), [f"own-modules-{number}" for number in (2, 3, 4, 5)])


if __name__ == "__main__":
    unittest.main()
