# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests the RNIC with an independent peer: Linux's siw over virtio-net on the same Ethernet, with Debian's programs."""
import contextlib
import json
import re
import subprocess

from lab import rnic, siw
from lab.fabric import Fabric
from lab.testing import test
from lab.waiting import wait_until

SIZE = 40000
ATTEMPTS = 4
# The payload has no protocol, but tshark may take four bytes of it for RPC over RDMA.
READ = ("tshark", "-n", "--enable-heuristic", "iwarp_mpa_tcp", "--disable-protocol", "rpcordma", "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-r")
WRONG = "_ws.malformed || _ws.expert.severity == error || iwarp_mpa.bad_length"


class Pair:
    """node1, whose kernel module uses weft's RNIC, and node2, whose rping uses siw."""

    def __init__(self, lab, fabric, ours, theirs):
        self.lab, self.fabric, self.ours, self.theirs = lab, fabric, ours, theirs
        self.connections = 0
        rnic.begin(ours, "10.2.0.1/24")
        siw.begin(theirs, "10.2.0.2/24")
        rnic.serve(ours)

    def spawn_theirs(self, count):
        self.connections += 1
        return self.theirs.spawn(f"set -o pipefail; stdbuf -oL rping -c -v -V -C {count} -S {SIZE} -a 10.2.0.1 | stdbuf -oL cut -c 1-32")

    def they_connected(self, process, count):
        said = process.wait(90).out
        assert re.findall(r"rdma-ping-(\d+):", said) == [str(number) for number in range(count)], said + process.err
        self.ours.wait_for(f"grep -q 'connections={self.connections} ended={self.connections}' {rnic.CONTROL}", what="the end of the connection")

    def they_connect(self, count):
        self.they_connected(self.spawn_theirs(count), count)

    def we_connect(self, count):
        """Connects to siw and returns the captures. siw never processes data that arrives before it has finished accepting the connection; the
        attempt is repeated if the capture shows that this happened."""
        files = []
        while len(files) < ATTEMPTS:
            serving = self.theirs.spawn(f"rping -s -S {SIZE} -a 10.2.0.2")
            self.theirs.wait_for("ss -ltn | grep -q '10.2.0.2:7174 '", timeout=20, what="rping to listen")
            with capture(self.lab, self.fabric, "node1/eth0") as file:
                asked = rnic.talk(self.ours, "10.2.0.2", f"count={count} size={SIZE} timeout_ms=10000", timeout=120, check=False)
            files.append(file)
            good = rnic.said(self.ours)["good"]
            serving.kill()
            serving.wait(30, check=False)
            talk = Conversation(file)
            if asked.status == 0:
                assert good == count, good
                assert not talk.siw_sleeps(), talk
                return files
            assert good == 0 and "timed out" in asked.err and talk.siw_sleeps(), f"{asked.err} after {good}: {talk}"
        raise AssertionError("siw has not answered")


class Conversation:
    """The only connection to siw in a capture."""

    def __init__(self, file):
        def ends(who):
            """Returns the last sequence number that an address has sent, and the last one that it has acknowledged."""
            lines = said(file, "-Y", f"tcp.port == {rnic.PORT} && tcp.flags.ack == 1 && ip.src == {who}", "-T", "fields",
                         "-e", "tcp.seq", "-e", "tcp.len", "-e", "tcp.ack").splitlines()
            rows = [[int(field) for field in line.split()] for line in lines]
            return max((seq + length for seq, length, _ in rows if length), default=0), max((ack for _, _, ack in rows), default=0)
        self.sent, _ = ends("10.2.0.1")
        self.answered, self.acknowledged = ends("10.2.0.2")
        self.reply = max((int(length) for length in said(file, "-Y", "iwarp_mpa.rep", "-T", "fields", "-e", "tcp.len").split()), default=0)
        self.sends = said(file, "-Y", "ip.src == 10.2.0.1", "-V").count("OpCode: Send")

    def siw_sleeps(self):
        """Returns True if siw has accepted the connection and acknowledged the first Send, but has sent nothing since."""
        return self.reply > 0 and self.sends > 0 and self.answered == 1 + self.reply and self.acknowledged >= self.sent

    def __str__(self):
        return f"sent up to {self.sent}, {self.sends} Sends; acknowledged up to {self.acknowledged}; answered up to {self.answered}, a reply of {self.reply}"


@contextlib.contextmanager
def capture(lab, fabric, link):
    """Captures a link into the file that it yields."""
    file = lab.directory / f"capture{len(list(lab.directory.glob('capture*.pcapng')))}.pcapng"
    recorder = lab.start(lab.program("weft"), "--socket-dir", fabric.directory, "capture", link, "--write", file, until=file.exists)
    yield file
    recorder.terminate()
    recorder.wait(timeout=10)


def said(file, *options):
    return subprocess.run([*READ, file, *options], capture_output=True, text=True, check=True, timeout=120).stdout


def read(files):
    """Checks that tshark finds no error, the MPA frames of two connections, and every kind of message, each with a correct CRC."""
    for file in files:
        assert not (wrong := said(file, "-Y", WRONG)), wrong
    text = "".join(said(file, "-V") for file in files)
    assert text.count("ID Req frame: 4d5041204944") == text.count("ID Rep frame: 4d5041204944") >= 2, text[:2000]
    messages = [text.count(f"OpCode: {name}") for name in ("Write", "Read Request", "Read Response", "Send")]
    assert min(messages) >= 8 and text.count("(Good CRC32)") == sum(messages) == text.count("OpCode: "), messages


def discards(fabric):
    """Returns the number of frames that were discarded because the link was down."""
    return sum(port["xmit_discards"] for port in json.loads(fabric.weft("--json", "counters")).values())


@test(kernels=("stock",), timeout=180)
def rping_connects_rnic_and_siw_in_both_directions(lab):
    """rping on siw connects to the RNIC and accepts connections from it, and the returned data is the data that was sent. tshark checks the packets.
    The test also runs over a link that loses, reorders and duplicates packets, and over one that is unplugged."""
    fabric = Fabric(lab, rnic.lab("node1", others=("node2",)))
    with lab.boot(lab.guest("node1", cards=[fabric.sockets[0]]), lab.guest("node2", netdevs=[fabric.netdev("node2")])) as (ours, theirs):
        pair = Pair(lab, fabric, ours, theirs)
        with capture(lab, fabric, "node1/eth0") as file:
            pair.they_connect(4)
        read([file, *pair.we_connect(4)])
        fabric.weft("link", "set", "node2/eth0", "loss=1%", "reordering=2%", "duplication=1%")
        pair.they_connect(5)
        pair.we_connect(5)
        fabric.weft("link", "set", "node2/eth0", "loss=0%", "reordering=0%", "duplication=0%")

        rounds = 200        # enough to last until the link goes down
        asking = pair.spawn_theirs(rounds)
        asking.wait_output("rdma-ping-1:")
        for _ in range(2):
            before = discards(fabric)
            fabric.weft("link", "down", "node2/eth0")
            wait_until("frames to be discarded", lambda before=before: discards(fabric) >= before + 2, 20)
            fabric.weft("link", "up", "node2/eth0")
        pair.they_connected(asking, rounds)
        for guest in (ours, theirs):
            guest.check_log()
        rnic.end(ours)
        theirs.run("rmmod siw")
