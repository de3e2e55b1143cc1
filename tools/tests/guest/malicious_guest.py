# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that a malicious third guest does not affect the other two guests of the lab, whatever it does to its own card."""
import itertools
import json
import pathlib
import re
import resource
import signal
import sys
import time

from lab import cache

sys.path.insert(0, str(cache.TREE / "hw/mlx4/tests/support"))

from lab.echo import Echoes
from lab.fabric import Fabric
from lab.testing import test

from stock import active, check, interfaces_up, lid, load
from traffic import StockNode

# A broadcast frame counts once for each of these hosts, so that the flood exceeds its limit even if it is sent slowly.
QUIET_HOSTS = 60
# The malicious guest's card has a port at each end of the trunk that carries the traffic of the other two guests.
LAB = """
[[switch]]
name = "switch1"
[[switch]]
name = "switch2"
[[ethernet]]
name = "lan"
[[host]]
name = "node1"
[[host]]
name = "node2"
[[host]]
name = "node3"
ports = 2
ethernet = "lan"
[[link]]
ends = ["switch1", "switch2"]
[[link]]
ends = ["node1", "switch1"]
[[link]]
ends = ["node2", "switch2"]
[[link]]
ends = ["node3/1", "switch2"]
[[link]]
ends = ["node3/2", "switch1"]
""" + "".join(f"""
[[host]]
name = "quiet{number}"
ethernet = "lan"
""" for number in range(QUIET_HOSTS))

# Limit for the daemon's memory for the cards of three guests, without the guests' own memory: see "What one guest can take" in
# Documentation/connectx.rst.
MEMORY_BOUND_KIB = 512 << 10
# The control socket answers within a second, on a slow host within a multiple of it.
ANSWER_S = 1.0
# Number of descriptors that weftd can still open when the malicious guest connects: enough for its card and for control clients, and fewer than one message
# may contain.
DESCRIPTORS = 14
EXCHANGES = 2000
# The RDMA of one round fills the memory region, in messages of several packets.
MESSAGES, MESSAGE = 16, 16 << 10

# Minimum effects of each action in one round, as counted by weft-intruder, which fails if the card executes something that it should refuse, or vice
# versa.
EFFECTS = {
    "last-descriptors": {"cards-lost": 1},
    "giants": {"requests": 8, "packets": 1 << 15},
    "all-memory": {"mappings": 256, "refused": 4},
    "splits": {"pieces": 65000, "refused": 16},
    "truncated-memory": {"cards-lost": 1},
    "descriptors": {"connections": 500, "descriptors": 256},
    "traps": {"packets": 1000},
    "foreign-members": {"packets": 4},
    "foreign-pkeys": {"packets": 200, "tables": 1},
    "vl15": {"packets": 200},
    "keys": {"writes": 64, "packets": 16},
    "anything": {"registers": 100, "commands": 100},
    "all-paths": {"packets": 1000},
    "multicast-storms": {"requests": 8, "packets": 1 << 12},
    "broken-queues": {"queues": 768},
    "many-members": {"queues": 768, "requests": 8, "received": 1024},
    "ethernet-floods": {"frames": 4000},
}


def anonymous_memory(process):
    """Returns the memory that belongs to the process only: the guests' memory, which it maps, is shared and does not count."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        return int(re.search(r"RssAnon:\s+(\d+) kB", status.read())[1])


def leave_descriptors(process, number):
    """Limits the process to this number of additional descriptors."""
    taken = sorted(int(entry.name) for entry in pathlib.Path(f"/proc/{process.pid}/fd").iterdir())
    limit = next(limit for limit in itertools.count(number) if limit - sum(fd < limit for fd in taken) == number)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (limit, limit))


def port_of(node):
    """Returns LID:GUID, as weft-intruder expects it."""
    gid = node.run("cat /sys/class/infiniband/mlx4_0/ports/1/gids/0").out.strip()
    return f"{lid(node)}:{''.join(gid.split(':')[4:])}"


class Rdma:
    """Writes to the other guest's memory and reads it back; each byte is compared at both ends."""

    def __init__(self, lab, *nodes):
        self._nodes = [StockNode(node, lab.program("weft-traffic")) for node in nodes]
        for node in self._nodes:
            node.load()
        self._here, self._there = (node.open(type="rc", size=MESSAGES * MESSAGE) for node in self._nodes)
        self._here.join(self._there)
        self.rounds = 0

    def round(self):
        """Transfers data in one round. Each round has another seed, so that data of an earlier round does not match."""
        pattern = {"count": MESSAGES, "size": MESSAGE, "seed": 1 + self.rounds * MESSAGES}
        for operation, reached in (("write", self._there), ("read", self._here)):
            done = self._here.send(op=operation, **pattern, **self._there.memory)
            assert done["done"] == str(MESSAGES), done[""]
            assert reached.verify(**pattern)["good"] == str(MESSAGES)
        self.rounds += 1


def effects(output):
    """Returns weft-intruder's report for each action: its turns and its effects."""
    return {name: {word: int(number) for word, number in re.findall(r"(\S+)=(\d+)", rest)}
            for name, rest in re.findall(r"^(\S+) (.*)$", output, re.M)}


@test(kernels=("stock",), timeout=400)
def malicious_guest_does_not_disturb_other_guests(lab):
    """During flood pings, and sends, RDMA writes and RDMA reads whose data are compared, a malicious guest cuts large sends into bytes, maps all of memory, splits windows,
    truncates its memory, takes the last descriptors that the daemon has, sends traps by the thousand, joins and leaves for others, uses foreign P_Keys, VL15 and
    guessed keys, asks for all paths, sends to all by multicast and on an Ethernet, delivers a group's packets to hundreds of queue pairs, and leaves queue pairs in error, in an order drawn from the seed: no ping and no byte of the two is lost, the daemon stays within its memory, and its control socket answers."""
    fabric = Fabric(lab, LAB)
    described = [lab.guest(f"node{number}", kernel="stock", share=None, vfio_user=[socket])
                for number, socket in enumerate(fabric.sockets[:2], 1)]
    with lab.boot(*described) as (node1, node2):
        load(node1, node2)
        active(node1, node2)
        interfaces_up(node1, node2)
        node1.wait_for("ping -q -c 1 -W 1 10.0.0.2", timeout=30, what="a first answer")
        rdma = Rdma(lab, node1, node2)
        echoes = Echoes(node1, node2)
        flood = node1.spawn("ping -f -q 10.0.0.2")
        # From now on the daemon can open only a few descriptors; those for the two guests are already open.
        rdma.round()
        leave_descriptors(fabric.process, DESCRIPTORS)
        largest, slowest, exchanges, concurrent_rounds = 0, 0.0, 0, 0
        serving = asking = intruder = None
        while not intruder or intruder.poll() is None or asking:
            if not asking:
                serving = node1.spawn(f"ibv_rc_pingpong -c -n {EXCHANGES}")
                node1.wait_for("ss -ltn | grep -q :18515", timeout=30, what="ibv_rc_pingpong to listen")
                asking = node2.spawn(f"ibv_rc_pingpong -c -n {EXCHANGES} 10.0.0.1")
            # Start the malicious guest after all the traffic that it could disturb.
            intruder = intruder or lab.start(lab.program("weft-intruder"), "--card", fabric.sockets[2], "--victim", port_of(node1),
                                             "--victim", port_of(node2),
                                             "--ethernet", fabric.directory / "node3-eth0.sock", "--seed", lab.seed, "--turns", len(EFFECTS) * lab.rounds(4, 400))
            concurrent_rounds += intruder.poll() is None
            rdma.round()
            start = time.monotonic()
            fabric.weft("fabric", "show")
            slowest = max(slowest, time.monotonic() - start)
            largest = max(largest, anonymous_memory(fabric.process))
            if asking.status is not None:
                for side in (serving, asking):
                    out = side.wait(60).out
                    assert f"{EXCHANGES} iters in" in out and "invalid data" not in out, out
                exchanges += EXCHANGES
                asking = None
        output = (lab.directory / "weft-intruder.log").read_text()
        assert intruder.returncode == 0, output
        done = effects(output)
        with check("each action of the malicious guest had its effect, and only the expected ones lost its card"):
            assert done.keys() == EFFECTS.keys(), output
            for action, least in EFFECTS.items():
                turns = done[action].pop("turns")
                assert turns >= 1, output
                for effect, number in least.items():
                    assert done[action].get(effect, 0) >= number * turns, (action, effect, output)
                assert done[action].get("cards-lost", 0) == least.get("cards-lost", 0) * turns, (action, output)
        with check("the daemon ran out of descriptors"):
            # The first round must have caused this line. Later lines may be missing, because the number of lines a second is limited.
            assert "no descriptor left" in fabric.log(), output
        with check("floods of the Ethernet were bounded"):
            ports = json.loads(fabric.weft("--json", "counters"))
            assert sum(port.get("rcv_storm_discards", 0) for port in ports.values()) > 0, ports
        with check("every ping was answered"):
            # Use an interrupt, after which ping reports how many it sent.
            sent = int(re.search(r"(\d+) packets transmitted", flood.kill(signal.SIGINT).wait(check=False).out)[1])
            echoes.check(sent)
        with check("sends, writes and reads continued during the attack"):
            # On a busy host, a round may take as long as all actions of the malicious guest together.
            assert exchanges >= EXCHANGES and concurrent_rounds >= 1, (exchanges, concurrent_rounds)
        with check("the daemon's memory stays below its limit"):
            assert largest < MEMORY_BOUND_KIB, f"{largest} KiB"
        with check("the control socket answers within a second"):
            assert slowest < ANSWER_S * node1.slowness, f"{slowest:.2f} s"
        with check("the daemon and both interfaces still work"):
            assert fabric.process.poll() is None
            for source, target in ((node1, "10.0.0.2"), (node2, "10.0.0.1")):
                source.run(f"ping -q -c 5 -i 0.2 {target}", timeout=30)
