# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests the container image: which kernel and root image are found in its cache, how its size is counted, and that its Containerfile uses only existing
files and steps."""
import pathlib
import re
import tempfile
import unittest
import unittest.mock

from lab import cache, container, image, kernels

HERE = cache.TREE / "scripts/ci/container"


class Container(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(unittest.mock.patch("lab.cache.root", lambda: self.root))

    def keep(self, directory, name):
        file = self.root / directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("there\n")
        return file

    def test_cached_kernel_whose_vmlinux_is_missing_is_ignored(self):
        self.assertIsNone(kernels._kept_release())
        for release in ("6.1.0-1-amd64", "6.1.0-2-amd64"):
            directory = f"kernel-stock-{cache.key_of(kernels.STOCK_FORMAT, release)}"
            self.keep(directory, f"lib/modules/{release}/modules.dep")
        # An entry without its image is ignored.
        self.keep(directory, "vmlinux")
        self.assertEqual(kernels._kept_release()[1], "6.1.0-2-amd64")

    def test_compressed_root_image_is_preferred_to_a_raw_root_image(self):
        self.enterContext(unittest.mock.patch("lab.image._root_key", lambda: "key"))
        raw = self.keep("guest-root-key", image.ROOT_IMAGE)
        self.assertEqual(image.root_disk(), (raw, "raw"))
        compressed = self.keep("guest-root-key", image.COMPRESSED_ROOT_IMAGE)
        self.assertEqual(image.root_disk(), (compressed, "qcow2"))

    def test_image_size_counts_a_hard_linked_file_once(self):
        first = self.root / "first"
        first.write_bytes(bytes(3000))
        (self.root / "second").hardlink_to(first)
        (self.root / "third").write_bytes(bytes(500))
        self.assertEqual(container.size_of(self.root), 3500)

    def test_containerfile_runs_all_build_steps_in_order_and_copies_only_existing_files(self):
        environment, steps = container._settings(HERE / "Containerfile")
        self.assertEqual(environment, {"XDG_CACHE_HOME": "/var/cache"})
        known = re.findall(r'^(\w+)\) \w+ "\$2" "\$3" ;;$', (HERE / "step").read_text(), re.MULTILINE)
        self.assertEqual(steps, known)
        copied = [word for line in re.findall(r"^COPY (?!--from)(.*)$", (HERE / "Containerfile").read_text(), re.MULTILINE) for word in line.split()[:-1]]
        self.assertTrue(copied)
        for name in copied:
            self.assertTrue(name.startswith("build/dist/weft-") or (cache.TREE / name).is_file(), name)


if __name__ == "__main__":
    unittest.main()
