# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""A third machine that means no good: what it does at its own card takes nothing from two others on the lab."""
import re
import signal
import time

from lab.echo import answers
from lab.fabric import PAIR, Fabric
from lab.testing import test
from lab.waiting import wait_until

from stock import active, check, interfaces_up, lid, load

LAB = PAIR + """
[[host]]
name = "node3"
[[link]]
ends = ["node3", "switch1"]
"""

# What the cards of three machines may take of the daemon, beside the machines' own memory: see "What one guest can take" in
# Documentation/connectx.rst.
MEMORY_BOUND_KIB = 512 << 10
# The control socket answers within a second; on a machine so much slower, later.
ANSWER_S = 1.0
EXCHANGES = 2000


def anonymous_memory(process):
    """What the process has taken for itself: the machines' memory, which it maps, is shared and does not count."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        return int(re.search(r"RssAnon:\s+(\d+) kB", status.read())[1])


def port_of(node):
    """LID:GUID, as weft-intruder wants to have it."""
    gid = node.run("cat /sys/class/infiniband/mlx4_0/ports/1/gids/0").out.strip()
    return f"{lid(node)}:{''.join(gid.split(':')[4:])}"


@test(kernels=("stock",), timeout=400)
def two_machines_lose_nothing(lab):
    """Beside flood pings and sends whose data are checked, a neighbour cuts large sends into bytes, maps all of memory, splits windows,
    truncates its memory, takes descriptors, sends traps by the thousand, joins and leaves for others, uses foreign P_Keys, VL15 and
    guessed keys: no ping and no byte of the two is lost, the daemon stays within its memory, and its control socket answers."""
    fabric = Fabric(lab, LAB, log_level="warning")
    machines = [lab.guest(f"node{number}", kernel="stock", share=None, vfio_user=[socket])
                for number, socket in enumerate(fabric.sockets[:2], 1)]
    with lab.boot(*machines) as (node1, node2):
        load(node1, node2)
        active(node1, node2)
        interfaces_up(node1, node2)
        node1.wait_for("ping -q -c 1 -W 1 10.0.0.2", timeout=30, what="a first answer")
        before = answers(node1)
        flood = node1.spawn("ping -f -q -w 600 10.0.0.2")
        intruder = lab.start(lab.program("weft-intruder"), "--card", fabric.sockets[2], "--victim", port_of(node1), "--victim",
                             port_of(node2), "--seed", lab.seed, "--turns", 11 * lab.rounds(2, 200))
        largest, slowest, exchanges = 0, 0.0, 0
        serving = asking = None
        while intruder.poll() is None or asking:
            if not asking:
                serving = node1.spawn(f"ibv_rc_pingpong -c -n {EXCHANGES}")
                node1.wait_for("ss -ltn | grep -q :18515", timeout=30, what="ibv_rc_pingpong to listen")
                asking = node2.spawn(f"ibv_rc_pingpong -c -n {EXCHANGES} 10.0.0.1")
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
        turns = dict(line.split() for line in output.splitlines())
        with check("the neighbour did each of its acts, and lost the cards whose memory it took away"):
            assert all(int(count) >= 1 for count in turns.values()), output
        with check("every ping was answered"):
            # By an interrupt, after which ping says how many it sent.
            sent = int(re.search(r"(\d+) packets transmitted", flood.kill(signal.SIGINT).wait(check=False).out)[1])
            wait_until("the last answers", lambda: answers(node1) - before >= sent, 10 * node1.slowness)
        with check("checked sends went on all the time"):
            assert exchanges >= EXCHANGES, exchanges
        with check("the daemon stays within its memory"):
            assert largest < MEMORY_BOUND_KIB, f"{largest} KiB"
        with check("the control socket answers within a second"):
            assert slowest < ANSWER_S * node1.slowness, f"{slowest:.2f} s"
        with check("the daemon is there, and so are both interfaces"):
            assert fabric.process.poll() is None
            for source, target in ((node1, "10.0.0.2"), (node2, "10.0.0.1")):
                source.run(f"ping -q -c 5 -i 0.2 {target}", timeout=30)
