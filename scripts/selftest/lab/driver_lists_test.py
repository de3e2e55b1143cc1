# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that lists of modules and drivers that differ from the Kbuild files and from the drivers' tables of PCI IDs are reported."""
import unittest

from copied_files import CopiedFiles
from lab import cache, driver_lists

LISTS = ("debian/weft-dkms.dkms", "debian/weft.modprobe", "scripts/modprobe.d/weft.conf", "scripts/udev/76-weft.rules", "scripts/demo", "scripts/lab/packages.py",
         "scripts/lab/own_kernel.py", "tools/weft/session/stack.py", "tools/explore/card.cpp")


class DriverLists(CopiedFiles):
    def setUp(self):
        sources = [path for pattern in ("core/*/Kbuild", "hw/*/Kbuild", "ulp/*/Kbuild", "hw/*/module.c", "include/hw/*/registers.hpp") for path in cache.TREE.glob(pattern)]
        self.copy((*LISTS, *(path.relative_to(cache.TREE) for path in sources)))

    def replace(self, path, old, new):
        super().replace(path, old, new)
        return driver_lists.complaints(self.tree)

    def test_driver_lists_of_the_source_tree_agree(self):
        self.assertEqual(driver_lists.complaints(self.tree), [])

    def test_driver_list_that_lacks_a_driver_is_reported(self):
        for path, old, new in (("debian/weft-dkms.dkms", 'BUILT_MODULE_NAME[12]="weft_mthca"', 'BUILT_MODULE_NAME[12]="weft_mad"'),
                               ("debian/weft.modprobe", "blacklist weft_mthca", "# none"),
                               ("scripts/modprobe.d/weft.conf", "alias pci:v000015B3d00006282sv*sd*bc*sc*i* weft_mthca", ""),
                               ("scripts/udev/76-weft.rules", "|weft_mthca", ""),
                               ("scripts/udev/76-weft.rules", 'DRIVERS=="weft_mthca", ENV{ID_RDMA_INFINIBAND}="1"', ""),
                               ("scripts/demo", '"mthca": "weft_mthca", ', ""),
                               ("tools/weft/session/stack.py", '"mthca": ("weft_ipoib",), ', "")):
            with self.subTest(path=path, old=old):
                before = (self.tree / path).read_text()
                found = self.replace(path, old, new)
                self.assertTrue(any(line.startswith(path) and " lacks " in line for line in found), found)
                (self.tree / path).write_text(before)

    def test_new_driver_is_reported_as_missing_in_all_driver_lists(self):
        (self.tree / "hw/mlx5").mkdir()
        (self.tree / "hw/mlx5/Kbuild").write_text("obj-m += weft_mlx5.o\n")
        (self.tree / "hw/mlx5/module.c").write_text("KERN_PCI_IDS(weft_mlx5_pci_ids, KERN_PCI_ID(0x15b3, 0x1017, 0));\n")
        places = {line.split(" lacks ")[0].split(",")[0] for line in driver_lists.complaints(self.tree) if " lacks " in line}
        self.assertLessEqual({"debian/weft-dkms.dkms", "debian/weft.modprobe", "scripts/modprobe.d/weft.conf", "scripts/udev/76-weft.rules", "scripts/demo",
                              "tools/weft/session/stack.py"}, places)

    def test_pci_id_changed_only_in_the_driver_is_reported_for_each_driver_list(self):
        found = self.replace("hw/mlx4/module.c", "0x673c", "0x6750")
        places = {line.split(",")[0].split(" l")[0] for line in found}
        self.assertLessEqual({"scripts/modprobe.d/weft.conf", "tools/explore/card.cpp", "hw/mlx4/module.c"}, places)

    def test_dkms_package_that_contains_a_test_module_is_reported(self):
        self.assertIn("debian/weft-dkms.dkms lists weft_talk, which the Kbuild files and the drivers' module.c do not",
                      self.replace("debian/weft-dkms.dkms", '"weft_umad"', '"weft_talk"'))

    def test_gap_in_the_array_indices_of_the_dkms_configuration_is_reported(self):
        self.assertIn("debian/weft-dkms.dkms does not number DEST_MODULE_LOCATION from 0 to 14",
                      self.replace("debian/weft-dkms.dkms", "DEST_MODULE_LOCATION[14]", "DEST_MODULE_LOCATION[15]"))


if __name__ == "__main__":
    unittest.main()
