# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Compares the sysfs files that weft's modules show for a card with those that Linux's own stack shows. Each permitted difference is listed with its
reason."""
import re

from lab.fabric import TWO_PORTS, Fabric
from lab.testing import test

STOCK = "mlx4_ib ib_ipoib ib_uverbs ib_umad rdma_ucm"
WEFT = "kern core mad sysfs uverbs umad netlink mlx4 cm ipoib iw_cm rdma_cm rdma_ucm".split()
TREES = ("/sys/class/infiniband/mlx4_0", "/sys/class/infiniband_verbs/uverbs0", "/sys/class/infiniband_mad/umad0", "/sys/class/net/ib0")

# Files that only one of the stacks has, Linux's or weft's: a regular expression, and the reason.
ONLY_STOCK = {
    r"(infiniband/DEVICE|net/ib0)/power(/.*)?": "runtime power management of class devices: weft's have none to configure",
    r"infiniband/DEVICE/iov(/.*)?": "SR-IOV: the card models have no virtual functions",
    r"infiniband/DEVICE/ports/N/(mcgs|pkey_idx|smi_enabled|enable_smi_admin|gids_tbl)(/.*)?": "SR-IOV: the card models have no virtual functions",
    r"infiniband/DEVICE/ports/N/mad_.*": "SR-IOV: the card models have no virtual functions",
    r"net/ib0/(statistics|queues|phys_.*|proto_down|threaded|testing|napi_.*|gro_.*)(/.*)?": "of the network core, the same for each interface",
    r"infiniband(_verbs|_mad)?/\w+/(power)(/.*)?": "runtime power management of class devices: weft's have none to configure",
}
ONLY_WEFT = {
    r"infiniband/DEVICE/ports/N/hw_counters(/.*)?": "weft shows the counters of a card's only port, or of each port that counts, at the port, too",
    r"infiniband/DEVICE/hw_counters/.*": "counters that mlx4 shows at the port",
    r"infiniband(_verbs|_mad)?/\w+/power(/.*)?": "runtime power management of class devices",
}

# Files that Debian 12's prometheus-node-exporter reads (procfs, sysfs/class_infiniband.go): it skips a device if one of them cannot be read.
EXPORTER_FILES = {"board_id": r".+", "fw_ver": r"\d+\.\d+\.\d+", "hca_type": r"MT\d+"}
EXPORTER_PORT_FILES = {"state": r"\d+: \w+", "phys_state": r"\d+: \w+", "rate": r"\d+(\.\d+)? Gb/sec \(\d+X( \w+)?\)"}


def entries(node):
    """The names of all files below the trees, with numbers of ports and entries made equal."""
    found = set()
    for tree in TREES:
        out = node.run(f"cd {tree}/ && find . -not -path './device/*' -not -path './subsystem/*' \\( -type f -o -type d \\)", timeout=60).out
        prefix = tree.removeprefix("/sys/class/").replace("mlx4_0", "DEVICE")
        for line in out.split():
            found.add(re.sub(r"/\d+(?=/|$)", "/N", f"{prefix}/{line.removeprefix('./')}".removesuffix("/.")))
    return found


def reasons(names, table):
    """Returns the names for which the table has no reason."""
    return sorted(name for name in names if not any(re.fullmatch(pattern, name) for pattern in table))


def check_exporter(node):
    """Reads what the exporter reads of a device, as it does."""
    device = TREES[0]
    for name, expected in EXPORTER_FILES.items():
        text = node.run(f"cat {device}/{name}").out.strip()
        assert re.fullmatch(expected, text), (name, text)
    for port in node.run(f"ls {device}/ports").out.split():
        for name, expected in EXPORTER_PORT_FILES.items():
            text = node.run(f"cat {device}/ports/{port}/{name}").out.strip()
            assert re.fullmatch(expected, text), (port, name, text)
        for text in node.run(f"cd {device}/ports/{port}/counters && grep -H . *").out.splitlines():
            assert re.fullmatch(r"\w+:(\d+|N/A \(no PMA\))", text), text


def other_facts(node):
    """Returns what programs report of the card and its interfaces beyond the tree."""
    return {
        "board": node.run("ibv_devinfo | grep board_id").out.split(),
        "firmware": node.run("ethtool -i ib0 | grep firmware-version").out.split(),
        "gid type": node.run(f"cat {TREES[0]}/ports/1/gid_attrs/types/0").out.strip(),
        "no interface": node.run(f"cat {TREES[0]}/ports/1/gid_attrs/ndevs/0 2>&1", check=False).out.strip().rsplit(": ", 1)[-1],
        "no gid": node.run(f"cat {TREES[0]}/ports/1/gid_attrs/types/5 2>&1", check=False).out.strip().rsplit(": ", 1)[-1],
        "ports": [node.run(f"cat /sys/class/net/ib{number}/dev_id /sys/class/net/ib{number}/dev_port").out.split() for number in (0, 1)],
    }


@test(kernels=(), also=("stock",), timeout=240)
def sysfs_files_match_the_files_of_the_in_tree_stack(lab):
    """Linux's stack and weft's, one after the other on the same card, show the same files, except for differences with a documented reason. Board,
    firmware and ports are the same, and the metrics exporter finds all files that it needs."""
    with lab.boot(lab.guest("node1", cards=Fabric(lab, TWO_PORTS).sockets[:1], memory="768M")) as (node,):
        seen = []
        for stock in (True, False):
            if stock:
                node.run("for module in " + STOCK + "; do modprobe $module || exit 1; done", timeout=120)
            else:
                node.insmod(*(f"/share/weft_{name}.ko" for name in WEFT))
            node.wait_for("test -e /sys/class/net/ib1", timeout=60, what="both interfaces")
            check_exporter(node)
            seen.append((entries(node), other_facts(node)))
            if stock:
                node.run("modprobe -r rdma_ucm ib_umad ib_ipoib mlx4_ib mlx4_en mlx4_core; modprobe -r ib_uverbs rdma_cm ib_cm iw_cm ib_core;"
                         " ! grep -q '^ib_core ' /proc/modules", timeout=120)
        (stock_tree, stock_facts), (own_tree, own_facts) = seen
        assert stock_facts == own_facts, (stock_facts, own_facts)
        missing, added = reasons(stock_tree - own_tree, ONLY_STOCK), reasons(own_tree - stock_tree, ONLY_WEFT)
        assert not missing and not added, f"without a reason, only stock's: {missing}; only weft's: {added}"
