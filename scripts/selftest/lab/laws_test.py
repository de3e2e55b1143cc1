# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""A breach of a law is found, and the tree has none."""
import pathlib
import tempfile
import unittest

from lab import cache, laws

MODULE = '#include <kern/module.h>\n\nKERN_MODULE("a (b)", weft_a_init, weft_a_exit);\nKERN_PCI_IDS(ids, KERN_PCI_ID(1, 2, 0));\n'


class Laws(unittest.TestCase):
    def complaints(self, name, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True)
            path.write_text(text)
            return laws.complaints(pathlib.Path(folder))

    def assert_breaks(self, law, name, text):
        said = self.complaints(name, text)
        self.assertEqual(len(said), 1, said)
        self.assertIn(name, said[0])
        self.assertIn(f"against law {law}", said[0])

    def assert_keeps(self, name, text):
        self.assertEqual(self.complaints(name, text), [])

    def test_this_tree_keeps_them(self):
        self.assertEqual(laws.complaints(cache.TREE), [])

    def test_a_header_of_the_kernel(self):
        self.assert_breaks(1, "core/verbs/qp.cpp", "#include <linux/slab.h>\n")
        self.assert_breaks(1, "include/rdma/ib_verbs.h", "#ifndef __cplusplus\n# include <linux/types.h>\n#endif\n")
        self.assert_breaks(1, "ulp/ipoib/tests/wire_test.cpp", "#include <kunit/test.h>\n")
        self.assert_keeps("ulp/ipoib/tests/guest/program.c", "#include <linux/if_link.h>\nint main(void) { return 0; }\n")
        self.assert_keeps("core/kern/lock.c", "#include <linux/mutex.h>\n")
        self.assert_keeps("include/kern/export.h", "#include <linux/export.h>\n")

    def test_more_c_than_a_module_needs(self):
        self.assert_keeps("hw/x/module.c", MODULE)
        self.assert_keeps("hw/x/tests/recovery_module.c", MODULE)
        self.assert_breaks(1, "hw/x/tests/recovery_module.c", MODULE + "int one;\n")
        self.assert_breaks(1, "hw/x/module.c", MODULE + "int weft_a_init(void)\n{\n\treturn 0;\n}\n")
        self.assert_breaks(1, "core/verbs/exports.c", "#include <kern/export.h>\nEXPORT_SYMBOL_GPL(ib_a);\n")
        self.assert_breaks(1, "core/verbs/helper.c", "int one;\n")

    def test_what_driver_and_card_share_knows_neither(self):
        self.assert_breaks(2, "include/hw/connectx/cqe.hpp", "#include <kern/types.h>\n")
        self.assert_breaks(2, "include/ib/types.hpp", "#include <hw/connectx/cqe.hpp>\n")
        self.assert_keeps("include/hw/connectx/cqe.hpp", "#include <cstdint>\n#include <ib/endian.hpp>\n")

    def test_a_layer_looks_into_another(self):
        self.assert_breaks(3, "core/verbs/qp.cpp", "#include <rdma/ib_mad.h>\n")
        self.assert_breaks(3, "ulp/ipoib/client.cpp", '#include "../../core/verbs/device.hpp"\n')
        self.assert_breaks(3, "hw/connectx/qp.cpp", '#include "../../core/registry/events.hpp"\n')
        self.assert_keeps("core/mgmt/api.cpp", "#include <rdma/ib_verbs.h>\n#include <rdma/verbs/qp.h>\n")

        self.assert_breaks(3, "core/rdma_cm/id.cpp", '#include "../mgmt/agent.hpp"\n')

    def test_cards_protocols_and_the_daemon(self):
        self.assert_breaks(3, "tools/connectx/card.cpp", '#include "vfio-user/server.hpp"\n')
        self.assert_breaks(3, "tools/vhost-user/session.cpp", '#include "connectx/card.hpp"\n')
        self.assert_breaks(3, "tools/pci/endpoint.cpp", '#include "weftd/world.hpp"\n')
        self.assert_breaks(3, "tools/weftd/world.cpp", '#include "connectx/card.hpp"\n')
        self.assert_keeps("tools/weftd/world.cpp", '#include "cards/model.hpp"\n')
        self.assert_keeps("tools/vfio-user/session.cpp", '#include "pci/endpoint.hpp"\n')

    def test_drivers_and_the_kernel_face(self):
        self.assert_breaks(3, "hw/connectx/cq.cpp", '#include "../infinihost/cq.hpp"\n')
        self.assert_breaks(3, "hw/infinihost/cq.cpp", '#include "../connectx/cq.hpp"\n')
        self.assert_breaks(3, "hw/example/device.cpp", '#include "../mellanox/adapter.hpp"\n')
        self.assert_breaks(3, "core/kern/netdev.c", "#include <rdma/ib_verbs.h>\n")
        self.assert_breaks(3, "include/kern/work.hpp", "#include <ib/types.hpp>\n")
        self.assert_keeps("hw/connectx/cq.cpp", '#include "../mellanox/adapter.hpp"\n#include <hw/connectx/cqe.hpp>\n')

    def test_what_all_rooms_stand_on(self):
        self.assert_breaks(3, "tools/base/bell.cpp", '#include "pci/device.hpp"\n')
        self.assert_breaks(3, "tools/endpoint/model.cpp", '#include "hca/port.hpp"\n')
        self.assert_breaks(3, "tools/weftd/world.cpp", '#include "endpoint/model.hpp"\n')
        self.assert_keeps("tools/base/bell.cpp", '#include "base/bell.hpp"\n#include <sys/socket.h>\n#include <vector>\n')
        self.assert_keeps("tools/endpoint/model.cpp", '#include "cards/model.hpp"\n#include "fabric/mad_port.hpp"\n')

    def test_a_room_of_cards_knows_those_below_it(self):
        self.assert_breaks(3, "tools/hca/transport/engine.cpp", '#include "connectx/card_context.hpp"\n')
        self.assert_breaks(3, "tools/hca/requests.hpp", "#include <hw/connectx/wqe.hpp>\n")
        self.assert_breaks(3, "tools/hca/port.hpp", '#include "mellanox/icm_map.hpp"\n')
        self.assert_breaks(3, "tools/mellanox/memory_table.cpp", '#include "connectx/limits.hpp"\n')
        self.assert_breaks(3, "tools/mellanox/function.hpp", '#include "pci/server.hpp"\n')
        self.assert_breaks(3, "tools/hca/port.hpp", '#include "pci/device.hpp"\n')
        self.assert_breaks(3, "tools/infinihost/core.cpp", '#include "connectx/core.hpp"\n')
        self.assert_keeps("tools/mellanox/function.hpp", '#include "pci/device.hpp"\n')
        self.assert_keeps("tools/connectx/core.hpp", '#include "hca/agents.hpp"\n#include "mellanox/icm_map.hpp"\n')

    def test_manager_and_fabric(self):
        self.assert_breaks(7, "tools/sm/paths.cpp", '#include "connectx/card.hpp"\n')
        self.assert_breaks(7, "tools/fabric/link.cpp", '#include "sm/paths.hpp"\n')
        self.assert_breaks(7, "tools/fabric/switch.cpp", '#include "ethernet/switch.hpp"\n')
        self.assert_breaks(3, "tools/ethernet/switch.cpp", '#include "fabric/switch.hpp"\n')
        self.assert_breaks(3, "tools/ethernet/station.cpp", '#include "pci/server.hpp"\n')
        self.assert_keeps("tools/ethernet/station.cpp", '#include "pci/rated_sink.hpp"\n#include "fabric/link.hpp"\n')
        self.assert_breaks(3, "tools/iwarp/stream.cpp", '#include "base/loop.hpp"\n')
        self.assert_keeps("tools/iwarp/stream.cpp", '#include "iwarp/mpa.hpp"\n#include <span>\n')

    def test_time_beside_the_seam(self):
        self.assert_breaks(10, "tools/sm/services.cpp", "const auto now = std::chrono::steady_clock::now();\n")
        self.assert_breaks(10, "tools/fabric/timeline.cpp", "std::thread thread(run);\n")
        self.assert_breaks(10, "tools/weftd/lab.cpp", "std::random_device random;\n")
        self.assert_keeps("tools/base/environment.cpp", "return std::chrono::steady_clock::now();\n")
        self.assert_keeps("tools/sm/services.cpp", "#include <chrono>\nconst auto now = loop.now();\n")


if __name__ == "__main__":
    unittest.main()
