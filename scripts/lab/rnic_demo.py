# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs the demonstration of `make demo CARD=amso1100`: two guests with weft's RNIC and one with siw, Linux's software iWARP, on one Ethernet."""
import contextlib
import re

from lab import cache, rnic, siw, vm
from lab.errors import LabError

WORDS = "one Ethernet, two Ammasso RNICs, and a guest with virtio-net"
LAB = rnic.lab("node1", "node2", others=("node3",))
COUNT, SIZE = 16, 16384


def prepare(demo):
    demo.say("siw, of Debian's source, for Debian's kernel")
    siw.module()


def guests(lab):
    return [*(lab.guest(name, vfio_user=[lab.socket_path(f"{name}.sock")]) for name in ("node1", "node2")),
            lab.guest("node3", netdevs=[vm.ethernet_netdev(lab.socket_path("node3-eth0.sock"))])]


def _netdevs(demo, nodes):
    demo.say("the cards' own interfaces: node1 pings node2")
    for number, node in enumerate(nodes[:2], 1):
        node.run(f"ip address add 10.3.0.{number}/24 dev eth0 && ip link set eth0 up")
    print(nodes[0].run("ping -c 4 -i 0.2 -W 20 10.3.0.2").out, end="", flush=True)
    demo.summary.append(f"{'IPv4':<16} 10.3.0.1 to 10.3.0.2 over the cards' Ethernet interfaces, answered")


def _between_cards(demo, nodes):
    demo.say("node1's kernel connects to node2's, from card to card: rdma_resolve_addr, rdma_connect, then send, RDMA read, RDMA write")
    rnic.serve(nodes[1])
    rnic.talk(nodes[0], "10.2.0.2", f"count={COUNT} size={SIZE}", timeout=60)
    good = rnic.said(nodes[0])["good"]
    print(f"{good} times {SIZE} bytes read by node2 and written back, every byte compared", flush=True)
    demo.summary.append(f"{'card to card':<16} connected by rdma_cm, {good} exchanges whole")


def _with_siw(demo, nodes):
    command = "rping -c -v -V -C 10 -S 64 -a 10.2.0.1"
    demo.say(f"{command}, from node3 (siw) to node1 (the card)")
    rnic.serve(nodes[0])
    out = nodes[2].run(command, timeout=60).out
    print(out, end="", flush=True)
    if len(re.findall(r"^ping data: rdma-ping-\d:", out, re.MULTILINE)) != 10:
        raise LabError("the output of rping is not as expected")
    demo.summary.append(f"{'rping over siw':<16} connected by rdma_cm, 10 exchanges whole")


@contextlib.contextmanager
def _capture(demo, lab, file):
    recorder = lab.start(lab.program("weft"), "--socket-dir", lab.socket_path(""), "capture", "lan", "-w", file, until=file.exists)
    yield
    recorder.terminate()
    recorder.wait(timeout=10)
    demo.summary.append(f"{'capture':<16} {file.relative_to(cache.TREE)}, for Wireshark")


def show(demo, lab, nodes, directory):
    """Runs all steps of the demonstration, in order."""
    demo.say(f"insmod {' '.join(rnic.MODULES)}, on node1 and node2; ip link set iw0 up")
    for number, node in enumerate(nodes[:2], 1):
        rnic.begin(node, f"10.2.0.{number}/24")
    demo.say("insmod siw.ko, rdma link add siw0 type siw netdev eth0, on node3")
    siw.begin(nodes[2], "10.2.0.3/24")
    _netdevs(demo, nodes)
    with _capture(demo, lab, directory / "iwarp.pcapng"):
        _between_cards(demo, nodes)
        _with_siw(demo, nodes)
    demo.say("state and counters")
    demo.show("node1: ip -d link show iw0", nodes[0].run("ip -d link show dev iw0").out)
    demo.show("node3: rdma link", nodes[2].run("rdma link").out)
    demo.show("weft fabric show", demo.weft(lab, "fabric", "show"))
    demo.show("weft counters --cards", demo.weft(lab, "counters", "--cards"))
    for node in nodes:
        node.check_log()
    demo.summary += [f"{'kernel logs':<16} clean on all three", f"{'logs':<16} {directory.relative_to(cache.TREE)}/"]
