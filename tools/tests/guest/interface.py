# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""ib0 of Debian's ib_ipoib: packets, streams, offloads, and what they look like on the wire."""
import collections
import json
import shutil
import signal
import subprocess

from lab.testing import Skip, test

from stock import active, check, guests, interfaces_up, load, pair, ping

PINGS = 10_000


def iperf3(server, client, options="-t 1"):
    """What iperf3's report says of the receiving side; of a second, unless the options say otherwise."""
    listener = server.spawn("iperf3 -s -1")
    server.wait_for("ss -ltn | grep -q :5201", timeout=20, what="iperf3 to listen")
    report = client.run(f"iperf3 -J -c 10.0.0.1 {options}", timeout=60)
    listener.wait(60)
    return json.loads(report.out)["end"]


def sent(node):
    """Bytes and packets that ib0 was given to send."""
    stats = json.loads(node.run("ip -j -s link show dev ib0").out)[0]["stats64"]["tx"]
    return stats["bytes"], stats["packets"]


@test(kernels=("stock",), timeout=240)
def packets_and_streams(lab):
    """10,000 pings each way lose nothing; TCP and UDP stream over ib0, with checksums and segmentation by the card."""
    with pair(lab) as (_, (node1, node2)):
        interfaces_up(node1, node2)
        with check(f"{PINGS} pings each way, none lost"):
            ping(node1, node2, "10.0.0.2", PINGS)
            ping(node2, node1, "10.0.0.1", PINGS)
        with check("pings of every size around a packet's limits, their patterns checked, none lost"):
            for size in (0, 1, 2015, 2016, 2017, 8000, 65000):
                ping(node1, node2, "10.0.0.2", 10, f"-i 0.01 -s {size} -p a55a")
        with check("iperf3 streams both ways over TCP"):
            for options in ("-n 8M", "-n 8M -R", "-n 8M -P 4"):
                end = iperf3(node1, node2, options)
                assert end["sum_received"]["bytes"] > 1_000_000, end
        with check("iperf3 streams over UDP, and the receiver finds its counters in order"):
            end = iperf3(node1, node2, "-n 1M -u -b 5M -l 1400")
            assert end["sum"]["packets"] - end["sum"]["lost_packets"] > 500, end

        features = dict(line.strip().split(": ", 1) for line in node2.run("ethtool -k ib0").out.splitlines() if ": " in line)
        with check("the driver offers segmentation and checksums by the card, and TCP uses them"):
            assert features["tcp-segmentation-offload"] == features["rx-checksumming"] == features["tx-checksumming"] == "on", features
            before = sent(node2)
            iperf3(node1, node2)
            after = sent(node2)
            assert (after[0] - before[0]) / (after[1] - before[1]) > 4000, "segments larger than a packet reach the card"
        with check("no checksum that the card computed or judged was wrong"):
            for node in (node1, node2):
                counters = collections.Counter({name: int(value) for name, value in (
                    line.split()[:2] for line in node.run("nstat -az").out.splitlines() if not line.startswith("#"))})
                assert not any(counters[name] for name in ("TcpInCsumErrors", "UdpInCsumErrors", "IcmpInCsumErrors", "IpExtInCsumErrors")), counters
        with check("TCP streams with the offloads off, too: software finds the same checksums right"):
            node1.run("ethtool -K ib0 rx off")
            node2.run("ethtool -K ib0 tso off tx off")
            end = iperf3(node1, node2, "-n 8M")
            assert end["sum_received"]["bytes"] > 1_000_000, end
            node2.run("ethtool -K ib0 tx on tso on")
            end = iperf3(node1, node2, "-n 8M")
            assert end["sum_received"]["bytes"] > 1_000_000, end
            assert "TcpInCsumErrors                 0" in node1.run("nstat -az TcpInCsumErrors").out


def dissect(file, *options):
    """tshark's reading of a capture: each packet a line."""
    # It refuses privileges that it does not need; checksums are not looked at unless asked for.
    done = subprocess.run(["tshark", "-n", "-r", file, "-o", "ip.check_checksum:TRUE", *options],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=True)
    return done.stdout.splitlines()


@test(kernels=("stock",), timeout=120)
def a_capture_opens_in_tshark(lab):
    """`weft capture` of a ping, from the load of the drivers on: tshark names every packet and finds none malformed."""
    if not shutil.which("tshark"):
        raise Skip("tshark is missing: run scripts/setup")
    with guests(lab) as (fabric, (node1, node2)):
        file = lab.directory / "ping.pcap"
        capture = lab.start(lab.program("weft"), "--socket-dir", fabric.directory, "capture", "node1", "--write", file,
                            until=lambda: "captured=" in fabric.weft("fabric", "show"))
        load(node1, node2)
        active(node1, node2)
        interfaces_up(node1, node2)
        ping(node1, node2, "10.0.0.2", 20, "-i 0.01")
        ping(node1, node2, "10.0.0.2", 5, "-i 0.01 -s 5000")
        capture.send_signal(signal.SIGINT)
        assert capture.wait(20) == 0
    packets = dissect(file)
    assert len(packets) > 60, packets
    malformed = dissect(file, "-Y", "_ws.malformed || _ws.expert.severity == error || ip.checksum.status == 0 || icmp.checksum.status == 0")
    assert not malformed, "\n".join(malformed)
    for wanted, least in (("icmp.type == 8", 25), ("icmp.type == 0", 25), ("arp", 1), ("infiniband.mad.mgmtclass == 0x81", 5),
                          ("infiniband.mad.mgmtclass == 3", 3)):
        found = dissect(file, "-Y", wanted)
        assert len(found) >= least, f"{wanted}: {len(found)} packets"
