# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that malicious datagrams of a guest are counted and dropped, and that other traffic continues."""
import json
import re
import shutil

from lab.echo import ping
from lab.fabric import PAIR
from lab.testing import test
from lab.waiting import wait_until

from pair import interfaces_up, iperf3, mixed_pair, reachable, weft, weft_pair

# A partition without a broadcast group, in addition to the default one.
REFUSING = PAIR + """[sm]
[[sm.partition]]
name = "default"
pkey = 0xffff
others = "full"
[[sm.partition]]
name = "bare"
pkey = 0x8002
others = "full"
ipoib = false
"""


def counters(node):
    return {name: int(value) for name, value in re.findall(r"(\w+): (\d+)", node.run("ethtool -S ib0").out)}


def log_lines(node):
    return int(node.run("dmesg | wc -l").out)


def lid_of(node, hardware_address):
    guid = "0x" + hardware_address.replace(":", "")[-16:]
    return int(re.search(r"LID start (0x\w+)", node.run(f"ibaddr -l -G {guid}").out)[1], 16)


@test(kernels=("um-debug",), also=("debug", "stock", "plain"), timeout=400)
def malicious_datagrams_do_not_disturb_other_traffic(lab):
    """A process of the peer, on stock verbs, sends tens of thousands of random datagrams to ib0. There is no kernel report, no leak and no flood of
    the log, and the interface still serves other guests."""
    share = lab.directory / "share"
    share.mkdir()
    shutil.copy(lab.program("weft-malicious-guest"), share)
    with mixed_pair(lab, peer_share=share) as (ours, theirs):
        interfaces_up(ours, theirs)
        theirs.run("modprobe ib_umad && modprobe ib_uverbs")
        theirs.wait_for("ls /dev/infiniband/umad0 /dev/infiniband/uverbs0", what="the devices of the stock stack")
        reachable(theirs, "10.0.0.1")
        address = ours.run("cat /sys/class/net/ib0/address").out.strip()
        groups = theirs.run("saquery -g").out
        found = re.search(r"MGID\.*ff12:401b:ffff::ffff:ffff\s+Mlid\.*(0x\w+)", groups, re.IGNORECASE)
        assert found, groups
        group = found[1]
        before, lines = counters(ours), log_lines(ours)
        flood = theirs.spawn("ping -f -q -w 600 10.0.0.1")
        theirs.run(f"/share/weft-malicious-guest --address {address} --lid {lid_of(theirs, address)} --multicast-lid {group} "
                   f"--seed {lab.seed} --count {lab.rounds(20_000, 2_000_000)}", timeout=60 + lab.rounds(0, 2000))
        flood.kill()
        after = counters(ours)
        for dropped in ("rx_too_short", "rx_unknown_type"):
            assert after[dropped] > before[dropped], (dropped, after)
        assert log_lines(ours) - lines < 50, ours.run("dmesg | tail -100").out
        # It sent false hardware addresses: flushing the entries makes the peers resolve them again.
        for node in (ours, theirs):
            node.run("ip neigh flush dev ib0")
        reachable(theirs, "10.0.0.1")
        reachable(ours, "10.0.0.2")
        end = iperf3(theirs, ours, "10.0.0.2")
        assert end["sum_received"]["bytes"] > 1_000_000, end


@test(kernels=("stock",), also=("plain", "debug"), timeout=300)
def interface_has_no_carrier_without_a_broadcast_group(lab):
    """If the SA has no broadcast group, the interface has no carrier, logs little, and can be removed completely."""
    with weft_pair(lab, REFUSING) as (node1, node2):
        interfaces_up(node1, node2)
        lines = log_lines(node1)
        node1.run("ip link add link ib0 name ib0.8002 type ipoib pkey 0x8002")
        node1.run("ip link set ib0.8002 up && ip addr add 10.0.2.1/24 dev ib0.8002")
        # Long enough for several attempts; traffic continues meanwhile.
        ping(node1, node2, "10.0.0.2", 30, "-i 0.2")
        assert "NO-CARRIER" in node1.run("ip link show dev ib0.8002").out
        assert log_lines(node1) - lines < 20, node1.run("dmesg | tail -30").out
        node1.run("ip link del ib0.8002")


@test(kernels=("stock",), also=("plain", "debug"), timeout=300)
def interface_comes_up_when_a_subnet_manager_starts(lab):
    """Without a subnet manager an interface waits. It comes up automatically when there is one, and resolves neighbours that are new to it."""
    with weft_pair(lab) as (node1, node2):
        interfaces_up(node2)
        weft(lab, "sm", "disable")
        wait_until("the manager to end its work",
                   lambda: json.loads(weft(lab, "--json", "fabric", "show"))["subnet_manager"]["state"] == "not active", timeout=20)
        lines = log_lines(node1)
        node1.run("ip link set ib0 up && ip addr add 10.0.0.9/24 dev ib0")
        assert node1.run("ping -c 3 -W 1 10.0.0.1", check=False).status != 0
        assert "NO-CARRIER" in node1.run("ip link show dev ib0").out
        weft(lab, "sm", "enable")
        node1.wait_for("ip link show dev ib0 | grep -q LOWER_UP", timeout=60, what="the carrier")
        reachable(node1, "10.0.0.1")
        assert log_lines(node1) - lines < 20, node1.run("dmesg | tail -30").out


@test(kernels=("stock",), also=("plain", "debug"), timeout=400)
def interface_recovers_from_corrupt_sa_replies(lab):
    """The SA replies with random data, zeros, refusals and wrong attributes. The interface may or may not come up, but there is no kernel report, no
    flood of the log and no leak. Once the replies are correct, the interface works."""
    with weft_pair(lab) as (node1, node2):
        interfaces_up(node1, node2)
        reachable(node1, "10.0.0.2")
        lines = log_lines(node1)
        corrupted = 0
        for round_ in range(lab.rounds(6, 50)):
            # Corrupt first all replies, including those to the join, and then half of them, so that a join may succeed and a later query fail.
            one_in = 1 + round_ % 2
            weft(lab, "sm", "corrupt-replies", "--seed", lab.seed + round_, "--one-in", one_in)
            node1.run("ip link set ib0 down && ip link set ib0 up")
            node1.run("ip maddr add 01:00:5e:01:02:03 dev ib0; ip neigh flush dev ib0")
            node1.run("ping -c 4 -i 0.2 -W 1 -q 10.0.0.2; ping -c 2 -W 1 -q -I ib0 224.0.0.1; true", timeout=30)
            node1.run("ip maddr del 01:00:5e:01:02:03 dev ib0")
            now = json.loads(weft(lab, "--json", "sm", "corrupt-replies", "--one-in", 0))["corrupted"]
            # If half of the replies are corrupted, that may be none: a round requests five to ten.
            assert now > corrupted or one_in > 1, "the SA received no request"
            corrupted = now
        # A corrupt record that the interface has accepted is dropped when the interface goes down.
        for node in (node1, node2):
            node.run("ip link set ib0 down && ip link set ib0 up")
        for source, target in ((node1, "10.0.0.2"), (node2, "10.0.0.1")):
            source.wait_for("ip link show dev ib0 | grep -q LOWER_UP", timeout=60, what="the carrier")
            reachable(source, target)
        assert log_lines(node1) - lines < 20 + 10 * lab.rounds(6, 50), node1.run("dmesg | tail -60").out
