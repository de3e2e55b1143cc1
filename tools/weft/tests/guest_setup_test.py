#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests, without guests, that `weft run --deterministic --stack` loads the right modules in guests."""
import pathlib
import sys
import tempfile
import types
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "session"), str(HERE.parents[2] / "scripts")]

import guest_setup  # noqa: E402
import stack  # noqa: E402
from lab.errors import LabError  # noqa: E402


class GuestSetup(unittest.TestCase):
    """Tests what guests in virtual time load for their cards."""

    FABRIC = {"subnet_manager": {}, "hosts": [{"name": "node1", "model": "mlx4", "socket": "a"}, {"name": "switchless", "model": "mlx4", "socket": None},
                                              {"name": "node2", "model": "mlx4", "socket": "b"}]}

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-setup-")))
        (self.folder / "modules").mkdir()

    def scripts(self, name="linux", fabric=None, dep="", builtin=""):
        (self.folder / "modules/modules.dep").write_text(dep)
        (self.folder / "modules/modules.builtin").write_text(builtin)
        kernel = types.SimpleNamespace(release="6.1.0-um", modules=self.folder / "modules")
        return guest_setup.Setup(name, kernel, self.folder / "copies").scripts(fabric or self.FABRIC)

    def test_guests_load_the_rdma_modules_of_their_kernel(self):
        scripts = self.scripts(dep="kernel/mlx4_ib.ko: kernel/mlx4_core.ko\nkernel/ib-umad.ko.xz:\n", builtin="kernel/ib_uverbs.ko\nkernel/ib_ipoib.ko\n")
        self.assertEqual(list(scripts), ["node1", "node2"])
        self.assertIn("set -- 10.1.0.2 ib0 mlx4_ib ib_uverbs ib_umad ib_ipoib\n", scripts["node2"])
        self.assertIn("did not get a carrier", scripts["node1"])

    def test_guest_does_not_wait_for_a_carrier_if_the_fabric_has_no_subnet_manager(self):
        fabric = {**self.FABRIC, "subnet_manager": None}
        self.assertNotIn("carrier", self.scripts(fabric=fabric, builtin="a/mlx4_ib.ko a/ib_uverbs.ko a/ib_umad.ko a/ib_ipoib.ko".replace(" ", "\n"))["node1"])

    def test_kernel_without_a_required_rdma_module_is_refused(self):
        with self.assertRaisesRegex(LabError, "the kernel 6.1.0-um has no module ib_umad, which --stack linux loads for mlx4: use another --card, or --stack weft"):
            self.scripts(dep="kernel/mlx4_ib.ko: kernel/ib_umad.ko\nkernel/ib_uverbs.ko:\nkernel/ib_ipoib.ko:\n")

    def test_modules_of_weft_are_copied_for_the_guests(self):
        with unittest.mock.patch.object(stack, "weft_modules", lambda model, release: (("weft_kern", b"k"), (f"weft_{model}", release.encode()))):
            scripts = self.scripts("weft")
        self.assertEqual((self.folder / "copies/weft_mlx4.ko").read_bytes(), b"6.1.0-um")
        self.assertLess(scripts["node1"].index("weft_kern.ko"), scripts["node1"].index("weft_mlx4.ko"))


if __name__ == "__main__":
    unittest.main()
