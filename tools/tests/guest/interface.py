# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests IPoIB with Debian's ib_ipoib: packets, streams, offloads, and their encoding on the wire."""
import collections
import contextlib
import json
import re
import shutil
import signal
import subprocess

from lab.fabric import PAIR
from lab.testing import Skip, test

from stock import active, check, guests, interfaces_up, load, pair, ping

PINGS = 10_000
PAIR_ON_ETHERNET = '[[ethernet]]\nname = "lan"\n' + re.sub(r'(name = "node.")', r'\1\nethernet = "lan"', PAIR)


def iperf3(server, client, options="-t 1", address="10.0.0.1"):
    """Returns the receiving side's part of iperf3's report; of a second, unless the options say otherwise."""
    listener = server.spawn("iperf3 -s -1")
    server.wait_for("ss -ltn | grep -q :5201", timeout=20, what="iperf3 to listen")
    report = client.run(f"iperf3 -J -c {address} {options}", timeout=60)
    listener.wait(60)
    return json.loads(report.out)["end"]


def sent(node):
    """Returns the numbers of bytes and packets that the stack has passed to ib0."""
    stats = json.loads(node.run("ip -j -s link show dev ib0").out)[0]["stats64"]["tx"]
    return stats["bytes"], stats["packets"]


@test(kernels=("stock",), timeout=240)
def iperf3_over_ib0_transfers_data_with_and_without_offloads_and_no_ping_is_lost(lab):
    """No ping in either direction is lost, and TCP and UDP work over ib0 with and without checksum and segmentation offload."""
    with pair(lab) as (_, (node1, node2)):
        interfaces_up(node1, node2)
        with check(f"none of {PINGS} pings in each direction is lost"):
            ping(node1, node2, "10.0.0.2", PINGS)
            ping(node2, node1, "10.0.0.1", PINGS)
        with check("pings of sizes around the limits of a packet arrive with an unchanged pattern"):
            for size in (0, 1, 2015, 2016, 2017, 8000, 65000):
                ping(node1, node2, "10.0.0.2", 10, f"-i 0.01 -s {size} -p a55a")
        with check("iperf3 streams over TCP in both directions"):
            for options in ("-n 8M", "-n 8M -R", "-n 8M -P 4"):
                end = iperf3(node1, node2, options)
                assert end["sum_received"]["bytes"] > 1_000_000, end
        with check("iperf3 streams over UDP, and most packets arrive"):
            end = iperf3(node1, node2, "-n 1M -u -b 5M -l 1400")
            assert end["sum"]["packets"] - end["sum"]["lost_packets"] > 500, end

        features = dict(line.strip().split(": ", 1) for line in node2.run("ethtool -k ib0").out.splitlines() if ": " in line)
        with check("segmentation and checksum offload are on, and TCP uses segmentation offload"):
            assert features["tcp-segmentation-offload"] == features["rx-checksumming"] == features["tx-checksumming"] == "on", features
            before = sent(node2)
            iperf3(node1, node2)
            after = sent(node2)
            assert (after[0] - before[0]) / (after[1] - before[1]) > 4000, "segments larger than a packet reach the card"
        with check("no checksum that the card computed or verified was wrong"):
            for node in (node1, node2):
                counters = collections.Counter({name: int(value) for name, value in (
                    line.split()[:2] for line in node.run("nstat -az").out.splitlines() if not line.startswith("#"))})
                assert not any(counters[name] for name in ("TcpInCsumErrors", "UdpInCsumErrors", "IcmpInCsumErrors", "IpExtInCsumErrors")), counters
        with check("TCP streams without offloads have correct checksums"):
            node1.run("ethtool -K ib0 rx off")
            node2.run("ethtool -K ib0 tso off tx off")
            end = iperf3(node1, node2, "-n 8M")
            assert end["sum_received"]["bytes"] > 1_000_000, end
            node2.run("ethtool -K ib0 tx on tso on")
            end = iperf3(node1, node2, "-n 8M")
            assert end["sum_received"]["bytes"] > 1_000_000, end
            assert "TcpInCsumErrors                 0" in node1.run("nstat -az TcpInCsumErrors").out


def dissect(file, *options):
    """Returns tshark's output for a capture, one line for each packet."""
    # As root, tshark prints a warning to standard error. It verifies checksums only if requested.
    done = subprocess.run(["tshark", "-n", "-r", file, "-o", "ip.check_checksum:TRUE", *options],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=True)
    return done.stdout.splitlines()


@contextlib.contextmanager
def captured(lab, fabric, link, file):
    """Captures a link or an Ethernet within a context."""
    before = fabric.weft("fabric", "show").count("captured=")
    capture = lab.start(lab.program("weft"), "--socket-dir", fabric.directory, "capture", link, "--write", file,
                        until=lambda: fabric.weft("fabric", "show").count("captured=") > before)
    yield
    capture.send_signal(signal.SIGINT)
    assert capture.wait(20) == 0


def ethernet(lab, fabric, node1, node2, file):
    """Lets the two guests communicate by virtio-net over the lab's Ethernet, and captures it."""
    for node in (node1, node2):
        node.run("modprobe virtio_net")
    interfaces_up(node1, node2, dev="eth0", network="10.2.0")
    with captured(lab, fabric, "lan", file):
        with check("none of 200 pings in each direction over the lab's Ethernet is lost"):
            ping(node1, node2, "10.2.0.2", 200)
            ping(node2, node1, "10.2.0.1", 200)
        with check("iperf3 streams over the lab's Ethernet"):
            assert iperf3(node1, node2, "-n 4M", "10.2.0.1")["sum_received"]["bytes"] > 1_000_000
    with check("a TCP stream completes under loss and reordering"):
        fabric.weft("link", "set", "node2/eth0", "loss=1%", "reordering=1%")
        end = iperf3(node1, node2, "-n 4M", "10.2.0.1")
        assert end["sum_received"]["bytes"] > 1_000_000 and end["sum_sent"]["retransmits"] > 0, end
        fabric.weft("link", "set", "node2/eth0", "loss=0", "reordering=0")
    with check("frames on a link that is down are discarded and counted, and pass again once it is up"):
        fabric.weft("link", "down", "node1/eth0")
        assert node2.run("ping -q -c 3 -i 0.01 -W 1 10.2.0.1", check=False).status == 1
        counted = fabric.weft("counters", "lan/1")
        assert (discards := re.search(r"^lan/1 .*xmit_discards=(\d+)", counted, re.MULTILINE)) and int(discards[1]) >= 3, counted
        fabric.weft("link", "up", "node1/eth0")
        ping(node2, node1, "10.2.0.1", 10)


def ethernet_dissected(file):
    options = ("-o", "tcp.check_checksum:TRUE")
    malformed = dissect(file, *options, "-Y", "_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0 || icmp.checksum.status == 0")
    assert not malformed, "\n".join(malformed)
    # The packets are captured on both links.
    for wanted, least in (("icmp.type == 8", 800), ("icmp.type == 0", 800), ("arp", 4), ('tcp && frame.interface_name == "node1/eth0-lan/1"', 100)):
        found = dissect(file, "-Y", wanted)
        assert len(found) >= least, f"{wanted}: {len(found)} frames"


@test(kernels=("stock",), timeout=120)
def tshark_finds_no_malformed_packet_in_infiniband_and_ethernet_captures(lab):
    """tshark finds no malformed packet in captures of the drivers' start, of pings and of the lab's Ethernet."""
    if not shutil.which("tshark"):
        raise Skip("tshark is missing: run scripts/setup")
    file, frames = lab.directory / "ping.pcap", lab.directory / "lan.pcapng"
    with guests(lab, PAIR_ON_ETHERNET) as (fabric, (node1, node2)):
        with captured(lab, fabric, "node1", file):
            load(node1, node2)
            active(node1, node2)
            interfaces_up(node1, node2)
            ping(node1, node2, "10.0.0.2", 20, "-i 0.01")
            ping(node1, node2, "10.0.0.2", 5, "-i 0.01 -s 5000")
        ethernet(lab, fabric, node1, node2, frames)
    ethernet_dissected(frames)
    packets = dissect(file)
    assert len(packets) > 60, packets
    malformed = dissect(file, "-Y", "_ws.malformed || _ws.expert.severity == error || ip.checksum.status == 0 || icmp.checksum.status == 0")
    assert not malformed, "\n".join(malformed)
    for wanted, least in (("icmp.type == 8", 25), ("icmp.type == 0", 25), ("arp", 1), ("infiniband.mad.mgmtclass == 0x81", 5),
                          ("infiniband.mad.mgmtclass == 3", 3)):
        found = dissect(file, "-Y", wanted)
        assert len(found) >= least, f"{wanted}: {len(found)} packets"
