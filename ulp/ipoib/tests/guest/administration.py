# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests actions of administrators and programs on ib0 other than sending packets, one at a time, with a peer on Debian's stack."""
import re
import subprocess

from lab import cache
from lab.fabric import PAIR
from lab.process import CommandFailed
from lab.testing import full, test
from lab.waiting import DeadlineExceeded, wait_until

from pair import STACK, interfaces_up, mixed_pair, reachable, weft

TOOL = "/tmp/administrator"
# A subnet administration that shows all memberships to clients with its key.
SA_KEY = 1
OPEN = PAIR + f"""[sm]
sa_key = {SA_KEY}
"""
SEND_ONLY_MAX = 256     # Multicast::send_only_max


def install_tool(lab, *nodes):
    """Compiles administrator.c and copies it into the guests as TOOL."""
    program = lab.directory / "administrator"
    source = cache.TREE / "ulp/ipoib/tests/guest/administrator.c"
    subprocess.run(["gcc", "-O2", "-static", "-Wall", "-Wextra", "-Werror", source, "-o", program], stdin=subprocess.DEVNULL, check=True)
    for node in nodes:
        node.put(TOOL, program.read_bytes())
        node.run(f"chmod +x {TOOL}")


def tool(node, *arguments):
    return node.run(f"{TOOL} {' '.join(map(str, arguments))}").out.strip()


def memberships(peer, node):
    """Returns the join states that the SA has recorded for a node's port, by MGID, as the peer queries them."""
    guid = node.run("cat /sys/class/net/ib0/address").out.strip().replace(":", "")[-16:]
    records = re.findall(r"MGID\.*(\S+).*?PortGid\.*(\S+).*?ScopeState\.*0x(\w+)", peer.run(f"saquery --smkey {SA_KEY} --timeout 20000 -m", timeout=30).out, re.DOTALL)

    def interface_id(gid):
        return "".join(part.zfill(4) for part in gid.split(":")[-4:])

    return {mgid: int(state, 16) & 0xf for mgid, gid, state in records if interface_id(gid) == guid}


def of_groups(states, second):
    """Returns the memberships of the IPv4 groups 239.SECOND.0.0/16: ff12:401b:ffff::0fSS:xxxx."""
    return {mgid: state for mgid, state in states.items() if re.search(rf":f{second:02x}:\w+$", mgid)}


def ib0_returns_when_its_namespace_is_deleted(lab, node1, node2):
    """The port's own interface returns to the first namespace, where it can be used again."""
    node1.run("ip netns add away && ip link set ib0 netns away && ip -n away link set ib0 up && ip netns del away")
    node1.wait_for("ip link show dev ib0", what="ib0 back in the first namespace")
    node1.run("ip link set ib0 up && ip addr add 10.0.0.1/24 dev ib0")
    reachable(node1, "10.0.0.2")


def packets_without_a_hardware_address_are_refused(lab, node1, node2):
    """Packets without a link-layer address, or too short to have one, are refused; packets with one are sent."""
    broadcast = node1.run("cat /sys/class/net/ib0/broadcast").out.strip().replace(":", "")
    assert tool(node1, "packet", "ib0", "dgram", 64) == "EINVAL"
    assert tool(node1, "packet", "ib0", "raw", 19) == "EINVAL"
    assert tool(node1, "packet", "ib0", "raw", 23) == "EINVAL"
    assert tool(node1, "packet", "ib0", "raw", 64) == "ok"
    assert tool(node1, "packet", "ib0", "dgram", 64, broadcast) == "ok"
    reachable(node1, "10.0.0.2")


def joined_group_is_received_after_sending_to_it(lab, node1, node2):
    """A program that joins a group receives its packets, although the port has been a send-only member of it before."""
    peer = node2.spawn(f"{TOOL} listen ib0 239.1.0.1 1")
    peer.wait_output("ok")
    for _ in range(3):
        tool(node1, "send", "ib0", "239.1.0.1", 1)
    node2.wait_for("saquery -g | grep -qi '0f01:1\\|:f01:1'", what="the group at the SA")
    listener = node1.spawn(f"{TOOL} receive ib0 239.1.0.1")
    listener.wait_output("joined")
    sender = node2.spawn(f"while {TOOL} send ib0 239.1.0.1 1; do sleep 0.2; done")
    listener.wait_output("hello", timeout=30)
    sender.kill()
    peer.kill()


def number_of_send_only_memberships_is_bounded(lab, node1, node2):
    """A sender becomes a SendOnlyNonMember of at most SEND_ONLY_MAX groups, and leaves a group that has no full member."""
    wanted = SEND_ONLY_MAX + 40
    peer = node2.spawn(f"{TOOL} listen ib0 239.2.0.0 {wanted}")
    peer.wait_output("ok", timeout=60)

    def joined_by_the_peer():
        return len(of_groups(memberships(node2, node2), 2)) == wanted

    wait_until("the peer's joins", joined_by_the_peer, 30 * lab.slowness, interval=0.5)
    # The first packet to a group waits for the join, and may be dropped if the group does not exist yet.
    tool(node1, "send", "ib0", "239.2.0.0", wanted)
    wait_until("joins for sending", lambda: len(of_groups(memberships(node2, node1), 2)) >= SEND_ONLY_MAX - 10, 30 * lab.slowness, interval=0.5)
    reachable(node1, "10.0.0.2")
    found = of_groups(memberships(node2, node1), 2)
    assert set(found.values()) == {4}, found
    assert len(found) <= SEND_ONLY_MAX, len(found)
    peer.kill()
    # Without full members the groups are deleted.
    wait_until("the end of the groups", lambda: not of_groups(memberships(node2, node1), 2), 60 * lab.slowness, interval=0.5)
    if full():
        # After two minutes without a packet, the port leaves a group that still exists.
        peer = node2.spawn(f"{TOOL} listen ib0 239.3.0.0 1")
        peer.wait_output("ok")
        wait_until("the peer's join", lambda: of_groups(memberships(node2, node2), 3), 30 * lab.slowness, interval=0.5)
        node1.wait_for(f"{TOOL} send ib0 239.3.0.0 1")
        wait_until("a join for sending", lambda: of_groups(memberships(node2, node1), 3), 30 * lab.slowness, interval=0.5)
        wait_until("its end", lambda: not of_groups(memberships(node2, node1), 3), 200 * lab.slowness, interval=0.5)
        assert of_groups(memberships(node2, node2), 3)
        peer.kill()


def vlan_is_refused(lab, node1, node2):
    """IPoIB frames have no field for a VLAN tag, so the interface refuses a VLAN device."""
    assert "vlan-challenged: on" in node1.run("ethtool -k ib0").out
    if lab.kernel == "stock":
        refused = node1.run("modprobe 8021q && ip link add link ib0 name tagged type vlan id 5", check=False)
        assert refused.status != 0 and "not supported" in refused.err, refused.err


def ethtool_rx_selects_checksum_offload(lab, node1, node2):
    """Received packets are marked as verified by the card only if ethtool -K rx is on."""
    # GRO verifies checksums itself.
    node1.run("ethtool -K ib0 gro off")
    for state, seen in (("off", "not looked at"), ("on", "valid")):
        node1.run(f"ethtool -K ib0 rx {state}")
        observer = node1.spawn(f"{TOOL} checksums ib0")
        observer.wait_output("listening")
        sender = node2.spawn("while sleep 0.1; do echo x >/dev/udp/10.0.0.1/9; done")
        observer.wait_output("valid|not looked at")
        sender.kill()
        assert seen in observer.out, (state, observer.out)
    node1.run("ethtool -K ib0 gro on")


def removal_does_not_wait_for_the_sa(lab, node1, node2):
    """SA queries that a silent SA has not answered are cancelled when the interface is removed."""
    weft(lab, "sm", "disable")
    times = []
    nobody = "00:00:05:5f:fe:80:00:00:00:00:00:00:02:02:c9:03:00:de:ad:01"
    for _ in range(2):
        node1.run(f"ip neigh replace 10.0.0.77 lladdr {nobody} dev ib0 && echo x >/dev/udp/10.0.0.77/9")
        took = node1.run("start=$(date +%s%N); rmmod weft_ipoib; echo $(( ($(date +%s%N) - start) / 1000000 ))").out
        times.append(int(took))
        if len(times) < 2:
            weft(lab, "sm", "enable")
            node1.insmod(f"/share/{STACK[-1]}.ko")
            interfaces_up(node1)
            reachable(node1, "10.0.0.2")
            weft(lab, "sm", "disable")
    weft(lab, "sm", "enable")
    node1.insmod(f"/share/{STACK[-1]}.ko")
    interfaces_up(node1)
    reachable(node1, "10.0.0.2")
    # An SA query times out only after three seconds.
    assert min(times) < 2000, times


CHECKS = (vlan_is_refused, ethtool_rx_selects_checksum_offload, joined_group_is_received_after_sending_to_it,
          number_of_send_only_memberships_is_bounded, removal_does_not_wait_for_the_sa, packets_without_a_hardware_address_are_refused,
          ib0_returns_when_its_namespace_is_deleted)


@test(kernels=("stock",), also=("plain", "debug"), timeout=200)
def network_namespaces_packet_sockets_multicast_and_vlans_behave_as_with_stock_ipoib(lab):
    """Network namespaces, packet sockets, multicast, VLANs, checksums and removal behave as on Linux's stack."""
    with mixed_pair(lab, OPEN) as (node1, node2):
        install_tool(lab, node1, node2)
        interfaces_up(node1, node2)
        node2.run("modprobe ib_umad")
        node2.wait_for("ls /dev/infiniband/umad0", what="the devices of the stock stack")
        reachable(node1, "10.0.0.2")
        failures = []
        for check in CHECKS:
            try:
                check(lab, node1, node2)
            except (AssertionError, CommandFailed, DeadlineExceeded) as error:
                failures.append(f"{check.__name__}: {error!r}")
        assert not failures, "\n".join(failures)
