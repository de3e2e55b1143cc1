# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests connected mode (RFC 4755), and the files and attributes by which an administrator configures it."""
import itertools
import json
import re

from lab.testing import full, test

from pair import interfaces_up, iperf3, lost_sizes, mixed_pair, reachable, weft_pair

MODES = ("connected", "datagram")
CONNECTED_MTU = 65520
# Sizes around a datagram and around the copy limit, and the largest packet.
SIZES = (56, 1987, 2017, 8200, 60000, 65492)


def set_mode(node, mode):
    node.put("/sys/class/net/ib0/mode", f"{mode}\n")
    assert node.read("/sys/class/net/ib0/mode") == mode
    # The interface joins the broadcast group again.
    node.wait_for_carrier()


def mtu(node, dev="ib0"):
    return int(node.read(f"/sys/class/net/{dev}/mtu"))


def counter(node, name):
    return int(re.search(rf"\b{name}: (\d+)", node.run("ethtool -S ib0").out)[1])


def octets(node):
    return int(node.read("/sys/class/net/ib0/statistics/rx_bytes"))


def address_of(node):
    return f"10.0.0.{node.name[-1]}"


def pings(source, target):
    reachable(source, target)
    for size in SIZES:
        # The first packets that are too long may be dropped until the sender knows the path MTU.
        source.wait_for(f"ping -c 1 -W 5 -q -s {size} {target}", timeout=60, what=f"an answer to {size} bytes")


def between(ours, theirs):
    pings(ours, "10.0.0.2")
    pings(theirs, "10.0.0.1")


def wrong_checksums(node, within=""):
    """Returns the number of TCP segments that were dropped because of their checksum."""
    return int(re.search(r"TcpInCsumErrors\s+(\d+)", node.run(f"{within} nstat -az TcpInCsumErrors").out)[1])


def forwarded(source, router, to):
    """A router that forwards packets received without a checksum computes it if the next interface does not, also for merged segments and large
    packets. The receiver behind it gets only correct checksums. A packet socket on ib0 sees the packets without one."""
    behind = "ip netns exec behind"
    router.run("echo 1 > /proc/sys/net/ipv4/ip_forward; ip netns add behind && ip link add inside type veth peer name outside netns behind && "
               "ethtool -K inside tx off >/dev/null && ip addr add 10.0.9.1/24 dev inside && ip link set inside up && "
               "ip -n behind addr add 10.0.9.2/24 dev outside && ip -n behind link set outside up && ip -n behind route add default via 10.0.9.1")
    source.run(f"ip route add 10.0.9.0/24 via {to}")
    for mtu_behind in (1500, CONNECTED_MTU):
        router.run(f"ip link set inside mtu {mtu_behind} && ip -n behind link set outside mtu {mtu_behind}")
        unsummed = counter(router, "connected_rx_unsummed")
        listener = source.spawn("iperf3 -s -1")
        source.wait_for("ss -ltn | grep -q :5201", timeout=20, what="iperf3 to listen")
        looks = [router.spawn(f"{within} tcpdump -i {dev} -Z root -c 20 -nvv src port 5201 and greater 500 2>/dev/null")
                 for within, dev in (("", "ib0"), (behind, "outside"))]
        for within, dev in (("", "ib0"), (behind, "outside")):
            router.wait_for(f"{within} cat /proc/net/packet | grep -q '^[0-9a-f]'", timeout=20, what=f"tcpdump to look at {dev}")
        moved = json.loads(router.run(f"{behind} iperf3 -J -c {address_of(source)} -R -n 8M", timeout=60).out)["end"]["sum_received"]["bytes"]
        listener.wait(60)
        assert moved > 1_000_000 and counter(router, "connected_rx_unsummed") > unsummed, (mtu_behind, moved)
        assert wrong_checksums(router, behind) == 0
        before, after = (look.wait(30).out for look in looks)
        assert "(incorrect" in before and "(correct)" in after and "(incorrect" not in after, (before, after)
    source.run("ip route del 10.0.9.0/24")
    router.run("ip netns del behind; echo 0 > /proc/sys/net/ipv4/ip_forward")


def modes_change_under_traffic(source, target):
    """Each end changes to datagram mode and back while TCP sends. TCP continues, and no segment arrives with a wrong checksum."""
    listener = target.spawn("iperf3 -s -1")
    target.wait_for("ss -ltn | grep -q :5201", timeout=20, what="iperf3 to listen")
    sending = source.spawn(f"iperf3 -c {address_of(target)} -t 600")
    for node, mode in itertools.product((source, target), ("datagram", "connected")):
        received = octets(target)
        target.wait_for(f"test $(cat /sys/class/net/ib0/statistics/rx_bytes) -gt {received + 1_000_000}", timeout=60, what="a megabyte")
        set_mode(node, mode)
        # The neighbour entries are from the previous mode.
        for other in (source, target):
            other.run("ip neigh flush dev ib0")
    sent = counter(source, "connected_tx_unsummed")
    source.wait_for(f"test $(ethtool -S ib0 | sed -n 's/ *connected_tx_unsummed: //p') -gt {sent}", timeout=60, what="a packet by a connection")
    for program in (sending, listener):
        program.kill(2)
        program.wait(30, check=False)
    assert wrong_checksums(source) == wrong_checksums(target) == 0


def other_address(node):
    """An administrator can set another GUID in the interface's address, and nothing else. There is no carrier until the port has it. Existing and
    later children get it too."""
    def guids(*devices):
        return {node.read(f"/sys/class/net/{dev}/address")[-23:] for dev in devices}

    node.put("/sys/class/net/ib0/create_child", "0x8001\n")
    own = node.read("/sys/class/net/ib0/address")
    for wrong in ("01" + own[2:], own[:12] + "ff:" + own[15:], own[:-23] + "00:00:00:00:00:00:00:00"):
        assert node.run(f"ip link set ib0 address {wrong}", check=False).status != 0, wrong
    node.run(f"ip link set ib0 address {own[:-5]}a5:5a")
    assert node.read("/sys/class/net/ib0/address") == own[:-5] + "a5:5a"
    node.put("/sys/class/net/ib0/create_child", "0x8002\n")
    assert guids("ib0", "ib0.8001", "ib0.8002") == {own[-23:-5] + "a5:5a"}
    node.wait_for_carrier(there=False)
    node.run(f"ip link set ib0 address {own}")
    assert guids("ib0", "ib0.8001", "ib0.8002") == {own[-23:]}
    node.run("echo 0x8001 > /sys/class/net/ib0/delete_child; echo 0x8002 > /sys/class/net/ib0/delete_child")
    node.wait_for_carrier()


@test(kernels=(), also=("um-debug", "stock", "debug", "plain"), timeout=300)
def connected_mode_carries_64_kib_packets_between_weft_guests(lab):
    """Two guests with weft's stack in connected mode exchange packets of 64 KiB over one connection in each direction, and then return to datagram
    mode."""
    with weft_pair(lab) as (node1, node2):
        interfaces_up(node1, node2)
        for node in (node1, node2):
            set_mode(node, "connected")
            assert mtu(node) == CONNECTED_MTU
        between(node1, node2)
        # No packet is fragmented.
        assert not lost_sizes(node1, "10.0.0.2", 3 * (CONNECTED_MTU - 28,), "-M do")
        for node in (node1, node2):
            assert counter(node, "connections_made") == 1 and counter(node, "connections_accepted") == 1
        # iperf3 ends when TCP has accepted all data. Its buffers hold some megabytes, so the test sends much more.
        end = iperf3(node2, node1, "10.0.0.2", "-P 2", amount="-n 32M")
        assert end["sum_received"]["bytes"] > 1_000_000, end
        # Two guests with weft's stack omit TCP's checksums, because the connection has its own.
        assert counter(node1, "connected_tx_unsummed") > 0 and counter(node2, "connected_rx_unsummed") > 0
        # With ethtool -K rx off, a guest requires checksums.
        node2.run("ethtool -K ib0 rx off")
        unsummed, received = (counter(node2, f"connected_rx{what}") for what in ("_unsummed", ""))
        assert iperf3(node2, node1, "10.0.0.2", amount="-n 8M")["sum_received"]["bytes"] > 1_000_000
        assert counter(node2, "connected_rx_unsummed") == unsummed and counter(node2, "connected_rx") > received
        # rtnetlink also shows and sets the mode.
        node1.run("ip link set ib0 type ipoib mode datagram umcast 1")
        shown = node1.run("ip -d link show dev ib0").out
        assert re.search(r"\bmode +datagram +umcast +0*1\b", shown), shown
        assert node1.read("/sys/class/net/ib0/umcast") == "1" and mtu(node1) == 2044
        assert node1.put("/sys/class/net/ib0/mode", "something\n", check=False).status != 0
        between(node1, node2)
        other_address(node1)
        reachable(node1, "10.0.0.2")


# The other kernels have no veth.
@test(kernels=("stock",), timeout=200)
def omitted_checksums_are_computed_when_a_packet_is_forwarded(lab):
    """A checksum that is omitted between two guests with weft is computed when the packet is forwarded. No packet remains without one when either end
    changes its mode."""
    with weft_pair(lab) as (node1, node2):
        interfaces_up(node1, node2)
        for node in (node1, node2):
            set_mode(node, "connected")
        reachable(node1, "10.0.0.2")
        forwarded(node1, node2, "10.0.0.2")
        modes_change_under_traffic(node1, node2)


@test(kernels=("um-debug",), also=("stock", "plain", "debug"), timeout=400)
def connected_mode_carries_traffic_between_weft_and_stock_stacks(lab):
    """Traffic in both directions with a peer on Debian's stack, in each combination of modes that uses connections (with --full: in every
    combination). If both are in connected mode, they use connections."""
    with mixed_pair(lab) as (node1, node2):
        interfaces_up(node1, node2)
        for ours, theirs in itertools.product(MODES, MODES):
            if ours == theirs == "datagram" and not full():
                continue  # all other tests use this combination
            set_mode(node1, ours)
            set_mode(node2, theirs)
            # The neighbour entries may be from the previous mode.
            for node in (node1, node2):
                node.run("ip neigh flush dev ib0; ip route flush cache")
            sent, received = (counter(node1, f"connected_{way}") for way in ("tx", "rx"))
            between(node1, node2)
            # The in-tree stack accepts connections in either mode, but makes them only in connected mode.
            assert (counter(node1, "connected_tx") > sent) == (ours == "connected"), (ours, theirs)
            assert (counter(node1, "connected_rx") > received) == (ours == theirs == "connected"), (ours, theirs)
            if ours == "connected":
                # If a checksum were missing or wrong, no data would arrive.
                for server, client, to in ((node2, node1, "10.0.0.2"), (node1, node2, "10.0.0.1")):
                    end = iperf3(server, client, to, amount="-n 16M")
                    assert end["sum_received"]["bytes"] > 1_000_000, end
                assert counter(node1, "connected_tx_unsummed") == 0


@test(kernels=("um-debug",), also=("stock", "debug", "plain"), timeout=200)
def child_interfaces_are_created_through_sysfs(lab):
    """Files in the parent's directory create and delete children, and each child shows its partition."""
    with weft_pair(lab) as (node1, _node2):
        files = "/sys/class/net/ib0"
        assert node1.run(f"cat {files}/pkey").out.strip() == "0xffff"
        node1.put(f"{files}/create_child", "0x8001\n")
        assert node1.read("/sys/class/net/ib0.8001/pkey") == "0x8001"
        assert node1.put(f"{files}/create_child", "0x8001\n", check=False).status != 0
        assert node1.put("/sys/class/net/ib0.8001/create_child", "0x8002\n", check=False).status != 0
        assert node1.put(f"{files}/delete_child", "0x8002\n", check=False).status != 0
        node1.put(f"{files}/delete_child", "0x8001\n")
        assert node1.run("ls -d /sys/class/net/ib0.8001", check=False).status != 0
        node1.run("ip link add link ib0 name fast type ipoib pkey 0x8001 mode connected")
        assert node1.read("/sys/class/net/fast/mode") == "connected" and mtu(node1, "fast") == CONNECTED_MTU
        node1.run("ip link del fast")
