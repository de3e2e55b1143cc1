# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""A machine that has the suite's modules and the kernel's own: the first are loaded, whoever asks, and the second never."""
import pathlib

from lab.fabric import PAIR, Fabric
from lab.testing import test

CONFIGURATION = pathlib.Path(__file__).resolve().parents[4] / "scripts/modprobe.d/weft.conf"
MODULES = ("kern", "core", "mad", "sysfs", "uverbs", "umad", "netlink", "connectx", "ipoib", "cm", "iw_cm", "rdma_cm", "ucm")


@test(kernels=("stock",), timeout=90)
def the_suites_modules_are_loaded(lab):
    """By the card, by what rdma-core's services load, by a socket of netlink and by a link of IPoIB: the suite's modules, and not the kernel's own ib_core."""
    with lab.boot(lab.guest("node1", vfio_user=Fabric(lab, PAIR).sockets[:1], memory="768M")) as (node,):
        node.run("mkdir -p /lib/modules/$(uname -r)/updates && cp " + " ".join(f"/share/weft_{name}.ko" for name in MODULES)
                 + " /lib/modules/$(uname -r)/updates && depmod")
        # So it is without: the service's first wish brings it.
        assert "/ib_core.ko" in node.run("modprobe -n -v ib_uverbs").out

        node.put("/etc/modprobe.d/weft.conf", CONFIGURATION.read_bytes())
        node.run(f"modprobe $(cat {node.card}/modalias)")
        node.run("rdma dev")
        wishes = node.run("cat /etc/rdma/modules/rdma.conf /etc/rdma/modules/infiniband.conf | grep -v '^#' | grep .").out.split()
        assert {"ib_uverbs", "ib_umad", "ib_ipoib", "rdma_ucm", "xprtrdma"} <= set(wishes), wishes
        for wish in wishes:
            # What there is no suite's of, there is none of.
            assert node.run(f"modprobe {wish}", check=False).status == 0 or wish in ("ib_iser", "xprtrdma", "svcrdma"), wish
        loaded = {line.split()[0] for line in node.run("cat /proc/modules").out.splitlines()}
        assert {f"weft_{name}" for name in MODULES} <= loaded, loaded
        assert not loaded & {"ib_core", "ib_cm", "ib_uverbs", "mlx4_core", "mlx4_ib", "rdma_cm"}, loaded
        node.wait_for("ibv_devinfo | grep -q PORT_ACTIVE", timeout=60, what="the port to be active")
