# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""A neighbour that means no good: what it sends is counted and dropped, and traffic goes on beside it."""
import re
import shutil

from lab.testing import test

from pair import interfaces_up, iperf3, mixed_pair, reachable


def counters(node):
    return {name: int(value) for name, value in re.findall(r"(\w+): (\d+)", node.run("ethtool -S ib0").out)}


def log_lines(node):
    return int(node.run("dmesg | wc -l").out)


def lid_of(node, hardware_address):
    guid = "0x" + hardware_address.replace(":", "")[-16:]
    return int(re.search(r"LID start (0x\w+)", node.run(f"ibaddr -l -G {guid}").out)[1], 16)


@test(kernels=("plain", "stock", "debug"), timeout=400)
def datagrams_of_a_stranger(lab):
    """A process on the peer, on the stock verbs, feeds ib0 random datagrams by the ten thousand: no report, no leak, no flood
    of the log, and the interface still serves its neighbours."""
    share = lab.directory / "share"
    share.mkdir()
    shutil.copy(lab.program("weft-stranger"), share)
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
        theirs.run(f"/share/weft-stranger --address {address} --lid {lid_of(theirs, address)} --multicast-lid {group} "
                   f"--seed {lab.seed} --count {lab.rounds(20_000, 2_000_000)}", timeout=60 + lab.rounds(0, 2000))
        flood.kill()
        after = counters(ours)
        for dropped in ("rx_too_short", "rx_unknown_type"):
            assert after[dropped] > before[dropped], (dropped, after)
        assert log_lines(ours) - lines < 50, ours.run("dmesg | tail -100").out
        # It lied about who has which hardware address: what the peers believe now is mended by asking again.
        for node in (ours, theirs):
            node.run("ip neigh flush dev ib0")
        reachable(theirs, "10.0.0.1")
        reachable(ours, "10.0.0.2")
        end = iperf3(theirs, ours, "10.0.0.2")
        assert end["sum_received"]["bytes"] > 1_000_000, end
