# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests the Ammasso's Ethernet interface between two QEMU guests. User-Mode Linux supports neither the card's large BARs nor its interrupt pin."""
import json

from lab import rnic
from lab.echo import ping
from lab.fabric import Fabric
from lab.testing import test

LAB = rnic.lab("node1", "node2", ethernet='{ network = "lan", delay = "1ms" }')
MODULES = "; ".join(f"insmod /share/{name}.ko" for name in ("weft_kern", "weft_core", "weft_iw_cm", "weft_amso1100"))
UP = "ip address add 10.2.0.{0}/24 dev eth0 && ip link set eth0 up"
DRIVER = "/sys/bus/pci/drivers/weft_amso1100"


TALK = rnic.CONTROL
CONNECTING = "; ".join(f"insmod /share/{name}.ko" for name in ("weft_mad", "weft_cm", "weft_rdma_cm", "weft_talk"))


def talk(node1, node2):
    """Two RNICs connect by the RDMA CM and exchange messages, reads and writes with every byte compared. A connection to a port without a
    listener fails, and so do connections whose driver is unbound."""
    for number, guest in ((1, node1), (2, node2)):
        # The kernel must not answer on the other interface for addresses that the card answers for.
        guest.run(f"{CONNECTING}; sysctl -qw net.ipv4.conf.all.arp_ignore=1; ip address add 10.3.0.{number}/24 dev iw0; ip link set iw0 up; "
                  "mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug")
    node2.run(f"echo serve port=7174 > {TALK}")
    to = "a=10 b=3 c=0 d=2"
    for number, (count, size) in enumerate(((16, 4096), (4, 100000), (1, 1)), 1):
        node1.run(f"echo talk {to} port=7174 count={count} size={size} > {TALK}", timeout=90)
        assert f"good={count} " in node1.run(f"cat {TALK}").out
        node2.wait_for(f"grep -q 'connections={number} ended={number}' {TALK}", what=f"the end of connection {number}")
    assert node1.run(f"echo talk {to} port=7175 count=1 size=1 > {TALK}", check=False).status != 0
    # The card loses an address only with its last prefix, and the device is found whatever name its interface has.
    node2.run("ip address add 10.3.0.2/16 dev iw0; ip address del 10.3.0.2/16 dev iw0; ip link set iw0 down; ip link set iw0 name rdma0; ip link set rdma0 up")
    node1.run(f"echo talk {to} port=7174 count=1 size=64 > {TALK}", timeout=90)
    for going, address in ((node1, "10.3.0.1/24"), (node2, "10.3.0.2/24")):
        leave(node1, node2, going, address)


def leave(node1, node2, going, address):
    """If the driver is unbound while connections are set up and torn down, the connecting guest gets an error. After it is bound again,
    connections work."""
    before = rnic.said(node2)["connections"]
    connecting = node1.spawn(f"echo connect a=10 b=3 c=0 d=2 port=7174 count=1000 timeout_ms=5000 > {TALK}")
    node2.wait_for(f"[ $(sed 's/.*connections=//; s/ .*//' {TALK}) -ge {before + 3} ]", what="connections")
    card = going.run(f"cd {DRIVER}; ls -d 0000:*").out.strip()
    going.run(f"echo {card} > {DRIVER}/unbind", timeout=60)
    assert connecting.wait(90, check=False).status != 0
    going.run(f"echo {card} > {DRIVER}/bind; ip address add {address} dev iw0; ip link set iw0 up")
    node2.wait_for(f"read _ connections ended _ < {TALK}; [ ${{connections#*=}} = ${{ended#*=}} ]", what="the end of all connections", timeout=90)
    node1.run(f"echo talk a=10 b=3 c=0 d=2 port=7174 count=1 size=64 > {TALK}", timeout=90)


def stream(node1, node2, mebibytes):
    """Runs iperf3 over TCP and returns its final report."""
    node2.run("iperf3 -s -D --one-off; until ss -ltn | grep -q :5201; do sleep 0.1; done")
    end = json.loads(node1.run(f"iperf3 -J -n {mebibytes}M -c 10.2.0.2", timeout=120).out)["end"]
    node2.wait_for("! pgrep -x iperf3", what="the server's end")
    # iperf3 ends when the sender's TCP has accepted the last byte, before it has arrived; up to 4 MiB may be buffered (net.ipv4.tcp_wmem).
    assert end["sum_received"]["bytes"] >= mebibytes << 19, end
    return end


@test(kernels=("stock",), also=("debug",), timeout=180)
def ethernet_traffic_resumes_after_packet_loss_link_flaps_driver_rebind_and_reset(lab):
    """Two guests ping and use TCP over their cards: over a lossy link, over a link that went down and up, after rebinding and resetting the driver,
    with another MTU, and after removal. Their RNICs also connect."""
    fabric = Fabric(lab, LAB)
    with lab.boot(lab.guest("node1", cards=[fabric.sockets[0]]), lab.guest("node2", cards=[fabric.sockets[1]])) as (node1, node2):
        for number, guest in ((1, node1), (2, node2)):
            guest.run(f"{MODULES}; {UP.format(number)}")
        ping(node1, node2, "10.2.0.2", 64, "-f -s 1400")
        stream(node1, node2, 16)
        counts = json.loads(fabric.weft("--json", "counters", "--cards"))
        assert counts["node1"]["transmitted"] > 5000 and counts["node1"]["bad-transmits"] == 0, counts
        assert counts["node2"]["received"] > 5000, counts
        fabric.weft("link", "set", "node2/eth0", "loss=1%", "reordering=2%")
        end = stream(node1, node2, 16)
        assert end["sum_sent"]["retransmits"] > 0, end
        fabric.weft("link", "set", "node2/eth0", "loss=0%", "reordering=0%")

        node1.run("ip link set eth0 down; ip link set eth0 mtu 9000; ip link set eth0 up")
        node2.run("ip link set eth0 down; ip link set eth0 mtu 9000; ip link set eth0 up")
        ping(node1, node2, "10.2.0.2", 8, "-i 0.05 -M do -s 8900")

        card = node1.run(f"cd {DRIVER}; ls -d 0000:*").out.strip()
        node1.run(f"echo {card} > {DRIVER}/unbind; echo {card} > {DRIVER}/bind; {UP.format(1)}")
        ping(node1, node2, "10.2.0.2", 8, "-i 0.05")
        # After a reset, the Ethernet interface and the RNIC are registered again.
        node1.run(f"echo 1 > /sys/bus/pci/devices/{card}/reset; {UP.format(1)}")
        ping(node1, node2, "10.2.0.2", 8, "-i 0.05")
        talk(node1, node2)
        for guest in (node1, node2):
            guest.run("rmmod weft_talk weft_rdma_cm weft_cm weft_mad weft_amso1100 weft_iw_cm weft_core weft_kern")


# Prints the protocol of the first device in a netlink dump (RDMA_NLDEV_CMD_GET, RDMA_NLDEV_ATTR_DEV_PROTOCOL). Debian 12's rdma does not print it.
PROTOCOL = """
import socket, struct

rdma = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 20)
rdma.send(struct.pack("=IHHII", 16, 5 << 10 | 1, 0x301, 1, 0))
answer, at = rdma.recv(65536), 16
while at + 4 <= struct.unpack_from("=I", answer)[0]:
    length, kind = struct.unpack_from("=HH", answer, at)
    if kind & 0x3fff == 67:
        print(answer[at + 4:at + length].rstrip(b"\\0").decode())
    at += (length + 3) & ~3
"""


@test(kernels=("stock",), also=("debug",), timeout=120)
def netlink_reports_the_rnic_as_an_iwarp_device(lab):
    """Netlink reports the type and the protocol of an RNIC as Linux's RDMA subsystem does: rnic and iw."""
    with lab.boot(lab.guest("node1", cards=Fabric(lab, LAB).sockets[:1])) as (node,):
        node.run(f"{MODULES}; {UP.format(1)}; insmod /share/weft_netlink.ko")
        device, = json.loads(node.run("rdma -j dev").out)
        assert device["node_type"] == "rnic", device
        node.put("/tmp/protocol.py", PROTOCOL.encode())
        assert node.run("python3 /tmp/protocol.py").out.split() == ["iw"]
        node.run("rmmod weft_netlink weft_amso1100 weft_iw_cm weft_core weft_kern")
