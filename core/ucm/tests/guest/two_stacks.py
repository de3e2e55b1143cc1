# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Stock programs that connect by IP address, each at one end on the suite and at the other on Debian's own stack, and the other way round."""
import contextlib
import dataclasses
import re

from lab.fabric import PAIR, Fabric
from lab.testing import test

from connections import LISTENS, SUITE

DEBIANS = ("mlx4_ib", "ib_uverbs", "ib_umad", "ib_ipoib", "rdma_ucm")
LIMIT = 30
# A row of perftest's table.
MEASURED = r"^ *\d+ +\d+ +\d+\.\d+"


@dataclasses.dataclass(frozen=True)
class Judge:
    """A program's two ends; {4} and {6} are the server's addresses."""
    server: str
    client: str
    says: str = ""              # what the client's output has to match
    ready: str = LISTENS        # how the server's guest knows that it listens
    endless: bool = False       # the server does not end by itself


def perftest(words, **options):
    return Judge(f"{words} -R -F -n 50", words + " -R -F -n 50 {4}", MEASURED, **options)


def stream(name, client, server, **options):
    """Both ends have to be told how much there is to come."""
    return Judge(f"{name} -C 20 -S 4096 {server}", f"{name} -C 20 -S 4096 {client}", r"^custom +4k +20 ", **options)


# Not XRC: perftest has none with rdma_cm.
JUDGES = (
    Judge("rping -s -v -C 10 -a {6}", "rping -c -v -C 10 -a {6}", "^ping data: rdma-ping-9"),
    Judge("ucmatose -c 5 -f ip6 -b {6}", "ucmatose -c 5 -f ip6 -s {6}", "return status 0"),
    Judge("cmtime", "cmtime -s {4} -c 50", "^connect ", endless=True),
    stream("rstream", "-T v -s {4}", "-T v"),
    stream("riostream", "-T v -s {4}", "-T v"),
    perftest("ib_send_bw"),
    perftest("ib_send_lat -e"),
    Judge("qperf", "qperf {4} -cm 1 -t 1 rc_lat && qperf {4} quit", "latency", "ss -ltn | grep -q :19765"),
    Judge("fi_pingpong -p verbs -e msg -I 10", "fi_pingpong -p verbs -e msg -I 10 {4}", "^64 ", "ss -ltn | grep -q :47592"),
    Judge("UCX_TLS=ib,rdmacm,self io_demo -p 1337 -l 20", "UCX_TLS=ib,rdmacm,self io_demo -q -i 20 {4}:1337", "", endless=True),
    Judge("udaddy -c 5", "udaddy -c 5 -s {4}", "return status 0"),
)


@contextlib.contextmanager
def guests(lab):
    """Two guests at 10.0.0.N and fd00::N on ib0: node1 on our stack, node2 on Debian's."""
    fabric = Fabric(lab, PAIR)
    machines = [lab.guest(f"node{number}", vfio_user=[socket]) for number, socket in enumerate(fabric.sockets, 1)]
    with lab.boot(*machines) as nodes:
        for number, (node, own) in enumerate(zip(nodes, (True, False)), 1):
            if own:
                node.insmod(*(f"/share/{name}.ko" for name in SUITE))
            else:
                node.run(f"modprobe mlx4_core && modprobe -a {' '.join(DEBIANS)}", timeout=60)
            node.wait_for("test -e /sys/class/net/ib0", timeout=20, what="ib0")
            node.run(f"ip link set ib0 up && ip addr add 10.0.0.{number}/24 dev ib0 && ip addr add fd00::{number}/64 dev ib0 nodad")
        for node in nodes:
            node.wait_for("ip link show dev ib0 | grep -q LOWER_UP", timeout=60, what=f"carrier of ib0 on {node.name}")
        nodes[1].wait_for("ping -c 1 -W 1 -q 10.0.0.1 && ping -c 1 -W 1 -q fd00::1", timeout=60, what="answers of node1")
        yield nodes


def judge(server, client, number, one):
    """The judge's word about a server and a client; the server is node `number`."""
    addresses = {"4": f"10.0.0.{number}", "6": f"fd00::{number}"}
    fill = re.compile(r"\{([46])\}")
    def spelt(command):
        return fill.sub(lambda found: addresses[found[1]], command)
    serving = server.spawn(spelt(one.server))
    try:
        server.wait_for(one.ready, timeout=20, what=f"`{serving.command}` to listen")
        out = client.run(spelt(one.client), timeout=LIMIT).out
        assert re.search(one.says, out, re.MULTILINE), out
        if not one.endless:
            serving.wait(LIMIT)
    except Exception as error:
        error.add_note(f"`{one.client}` from {client.name} to {server.name}, whose program said:\n{serving.out[-2000:]}{serving.err[-2000:]}")
        raise
    finally:
        serving.kill()
        serving.wait(LIMIT, check=False)


def hear(nodes):
    """Each judge with either node as the server. All are heard, and what they complain of is told together."""
    failed = []
    for one in JUDGES:
        for number, (server, client) in enumerate((nodes, nodes[::-1]), 1):
            try:
                judge(server, client, number, one)
            except Exception as error:
                failed.append("\n".join((str(error), *error.__notes__)))
    assert not failed, f"{len(failed)} of {2 * len(JUDGES)} failed:\n" + "\n\n".join(failed)


@test(kernels=(), also=("stock", "plain"), timeout=300)
def programs_between_two_stacks(lab):
    """Programs on the suite and on Debian's stack connect to each other by IPv4 and IPv6, either of them as the server."""
    with guests(lab) as nodes:
        hear(nodes)
