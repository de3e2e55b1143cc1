# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests a guest that has both weft's modules and the in-tree RDMA modules: each request to load an RDMA module loads weft's."""
import pathlib

from lab.fabric import PAIR, Fabric
from lab.testing import test

SCRIPTS = pathlib.Path(__file__).resolve().parents[4] / "scripts"
MODULES = ("kern", "core", "mad", "sysfs", "uverbs", "umad", "netlink", "mlx4", "ipoib", "cm", "iw_cm", "rdma_cm", "rdma_ucm")


NODES = "/dev/infiniband"
# Asks by netlink for a node of a kind (GET_CHARDEV), of the first device if it is of one; its name and its number in hexadecimal.
LOOK_FOR_NODE = """
import socket, struct, sys

def ask(operation, flags, attributes):
    rdma = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 20)
    rdma.send(struct.pack("=IHHII", 16 + len(attributes), 5 << 10 | operation, 1 | flags, 1, 0) + attributes)
    text = rdma.recv(65536)[16:]
    found = {}
    while len(text) > 4:
        length, kind = struct.unpack_from("=HH", text)
        found.setdefault(kind, text[4:length])
        text = text[(length + 3) & ~3:]
    return found

def attribute(kind, value):
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)

device = attribute(1, ask(1, 0x300, b"")[1]) if sys.argv[1] != "rdma_cm" else b""
found = ask(15, 0, device + attribute(69, sys.argv[1].encode() + b"\\0"))
number, = struct.unpack("=Q", found[72])
print(found[70][:-1].decode(), "%x:%x" % (number >> 8 & 0xfff, number & 0xff | number >> 12 & ~0xff))
"""
# Named by the card's slot behind the first root port of the guest.
STABLE = "ibp1s0"


def wanted(node, device):
    """Returns the services that systemd would start for a device, according to udev's properties."""
    out = node.run(f"udevadm info --query=property --property=SYSTEMD_WANTS --value /sys/class/infiniband/{device}").out
    return set(out.split())


@test(kernels=("stock",), timeout=120)
def udev_loads_only_weft_modules_for_a_card(lab):
    """udev finds the card, and rdma-core's rules and services work as on the kernel's own stack: only weft's modules are loaded, the device has its
    stable name, and nodes and links are where programs look for them. A netlink socket or an IPoIB link also causes weft's modules to be loaded."""
    with lab.boot(lab.guest("node1", vfio_user=Fabric(lab, PAIR).sockets[:1], memory="768M")) as (node,):
        node.run("mkdir -p /lib/modules/$(uname -r)/updates && cp " + " ".join(f"/share/weft_{name}.ko" for name in MODULES)
                 + " /lib/modules/$(uname -r)/updates && depmod")
        # Without weft's modprobe.d file, ib_uverbs would load the in-tree ib_core.
        assert "/ib_core.ko" in node.run("modprobe -n -v ib_uverbs").out

        node.put("/etc/modprobe.d/weft.conf", (SCRIPTS / "modprobe.d/weft.conf").read_bytes())
        node.put("/etc/udev/rules.d/76-weft.rules", (SCRIPTS / "udev/76-weft.rules").read_bytes())
        node.run("/lib/systemd/systemd-udevd --daemon && udevadm trigger --action=add --subsystem-match=pci && udevadm settle", timeout=60)
        node.wait_for(f"test -e /sys/class/infiniband/{STABLE}/node_desc", timeout=30, what="the device by its stable name")
        node.run("udevadm settle", timeout=30)
        services = wanted(node, STABLE)
        assert {"rdma-load-modules@infiniband.service", "rdma-ndd.service", "rdma-hw.target"} <= services, services
        # rdma-hw.target wants rdma-load-modules@rdma.service.
        wishes = node.run("cat /etc/rdma/modules/rdma.conf /etc/rdma/modules/infiniband.conf | grep -v '^#' | grep .").out.split()
        assert {"ib_uverbs", "ib_umad", "ib_ipoib", "rdma_ucm", "xprtrdma"} <= set(wishes), wishes
        for wish in wishes:
            # modprobe fails only for protocols that weft does not have.
            assert node.run(f"modprobe {wish}", check=False).status == 0 or wish in ("ib_iser", "xprtrdma", "svcrdma"), wish
        node.run("udevadm settle", timeout=30)
        loaded = {line.split()[0] for line in node.run("cat /proc/modules").out.splitlines()}
        assert {f"weft_{name}" for name in MODULES} <= loaded, loaded
        assert not loaded & {"ib_core", "ib_cm", "ib_uverbs", "mlx4_core", "mlx4_ib", "rdma_cm"}, loaded

        # The device nodes have their modes, and udev has made its links to them.
        modes = dict(line.split() for line in node.run(f"cd {NODES} && stat -c '%n %a' *").out.splitlines())
        assert modes == {"uverbs0": "666", "umad0": "600", "issm0": "600", "rdma_cm": "666", "by-ibdev": "755", "by-path": "755"}, modes
        assert node.run(f"readlink -f {NODES}/by-ibdev/* {NODES}/by-path/*").out.split() == [f"{NODES}/uverbs0"] * 2
        assert node.run(f"ls {NODES}/by-ibdev").out.split() == [f"uverbs-{STABLE}"]
        # ibdev2netdev reads an interface's card and port from these files.
        assert node.run("ls /sys/class/net/ib0/device/infiniband").out.split() == [STABLE]
        assert node.run("cat /sys/class/net/ib0/dev_port").out.strip() == "0"
        for shown in ("infiniband_verbs/uverbs0", "infiniband_mad/umad0", "infiniband_mad/issm0"):
            assert node.run(f"cat /sys/class/{shown}/ibdev").out.strip() == STABLE, shown
        # Programs find the device by its stable name.
        assert f"link {STABLE}/1 " in node.run("rdma link").out
        node.wait_for(f"ibv_devinfo -d {STABLE} | grep -q PORT_ACTIVE", timeout=60, what="the port to be active")
        assert f"CA '{STABLE}'" in node.run("ibstat").out
        describing = node.spawn("exec rdma-ndd -f")
        node.wait_for(f"grep -q 'node1 {STABLE}' /sys/class/infiniband/{STABLE}/node_desc", timeout=30, what="rdma-ndd's description")
        describing.kill()

        # When the driver is removed, so are the links of udev; when it is loaded again, the device gets the same name.
        node.run(f"modprobe -r weft_mlx4 && udevadm settle && test \"$(ls {NODES})\" = rdma_cm && ! ls /sys/class/infiniband/*", timeout=30)
        node.run("modprobe weft_mlx4 && udevadm settle", timeout=30)
        # The node may exist before udev has renamed the device.
        node.wait_for(f"ibv_devinfo -d {STABLE}", timeout=30, what="the device with its name")
        node.run("udevadm control --exit", timeout=30)


@test(kernels=(), also=("stock",), timeout=120)
def netlink_get_chardev_loads_uverbs_or_rdma_ucm_and_modprobe_of_in_tree_ulps_fails(lab):
    """A program that looks up a device node by netlink finds it, although nothing has loaded the node's module before. Linux's RDMA consumers are
    refused, and modprobe prints the reason."""
    with lab.boot(lab.guest("node1", vfio_user=Fabric(lab, PAIR).sockets[:1], memory="768M")) as (node,):
        node.run("mkdir -p /lib/modules/$(uname -r)/updates && cp " + " ".join(f"/share/weft_{name}.ko" for name in MODULES)
                 + " /lib/modules/$(uname -r)/updates && depmod")
        node.put("/etc/modprobe.d/weft.conf", (SCRIPTS / "modprobe.d/weft.conf").read_bytes())
        node.run("modprobe weft_mlx4 && modprobe weft_netlink")
        node.put("/tmp/node.py", LOOK_FOR_NODE.encode())
        for module, kind in (("weft_rdma_ucm", "rdma_cm"), ("weft_uverbs", "uverbs")):
            node.run(f"! grep -q '^{module} ' /proc/modules")
            name, number = node.run(f"python3 /tmp/node.py {kind}").out.split()
            node.run(f"grep -q '^{module} ' /proc/modules")
            assert node.run(f"stat -c %t:%T {NODES}/{name}").out.strip() == number, (name, number)
        for module in ("ib_srp", "ib_iser", "rpcrdma"):
            if node.run(f"modinfo -n {module}", check=False).status == 0:
                refused = node.run(f"modprobe {module} 2>&1", check=False)
                assert refused.status and "cannot be used together with weft's modules" in refused.out, (module, refused.out)
