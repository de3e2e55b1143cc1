# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Describes Debian's programs that connect by IP address: the command line of each end and its expected output. It also provides two guests for these
programs; the caller selects the card and the stack of each."""
import contextlib
import dataclasses
import re

from lab.fabric import Fabric

# Some program has the node open, and is about to listen.
LISTENS = "ls -l /proc/*/fd 2>/dev/null | grep -q infiniband/rdma_cm"
# Some program waits for an event of weft's or Linux's RDMA CM. A server that has one thread listens by then.
WAITS_FOR_EVENT = "cat /proc/[0-9]*/wchan | grep -qE '(next|ucma_get)_event'"
LIMIT = 30
# Prints what the programs of a guest that use RDMA wait for.
STATE = """for process in /proc/[0-9]*; do
    ls -l $process/fd 2> /dev/null | grep -q infiniband || continue
    tr '\\0' ' ' < $process/cmdline; echo "in state $(cut -d ' ' -f 3 $process/stat) waits in $(cat $process/wchan)"
    cat $process/task/*/stack
done
rdma resource show qp; rdma resource show cm_id
grep -rs . /sys/class/infiniband/*/hw_counters /sys/class/infiniband/*/ports/1/cm_* | grep -v ':0$'"""
# A row of perftest's table.
MEASURED = r"^ *\d+ +\d+ +\d+\.\d+"
GROUP = "239.1.2.3"
DRIVERS = {("weft", "mlx4"): "weft_mlx4", ("weft", "mthca"): "weft_mthca", ("linux", "mlx4"): "mlx4_ib", ("linux", "mthca"): "ib_mthca"}
BELOW, ABOVE = ("weft_kern", "weft_core", "weft_mad", "weft_cm", "weft_sysfs", "weft_uverbs", "weft_netlink"), ("weft_ipoib", "weft_iw_cm", "weft_rdma_cm", "weft_rdma_ucm")
IN_TREE = ("ib_uverbs", "ib_umad", "ib_ipoib", "rdma_ucm")


@dataclasses.dataclass(frozen=True)
class End:
    """The card and the stack (weft's or Linux's) of one of the two guests."""
    card: str = "mlx4"
    stack: str = "weft"

    def load(self, node):
        driver = DRIVERS[self.stack, self.card]
        if self.stack == "weft":
            node.insmod(*(f"/share/{name}.ko" for name in (*BELOW, driver, *ABOVE)))
        else:
            node.run(f"modprobe {driver} && modprobe -a {' '.join(IN_TREE)}", timeout=60)


def lab_file(ends):
    """Returns a lab file with one switch and one host for each end, connected by its first port."""
    return '[[switch]]\nname = "switch1"\n' + "".join(
        f'[[host]]\nname = "node{number}"\nmodel = "{end.card}"\n{"ports = 2" if end.card == "mthca" else ""}\n'
        f'[[link]]\nends = ["node{number}{"/1" if end.card == "mthca" else ""}", "switch1"]\n' for number, end in enumerate(ends, 1))


@contextlib.contextmanager
def two_guests(lab, *ends):
    """Yields a fabric and a guest for each end, with 10.0.0.N and fd00::N on ib0."""
    fabric = Fabric(lab, lab_file(ends))
    with lab.boot(*(lab.guest(f"node{number}", vfio_user=[socket], memory="768M") for number, socket in enumerate(fabric.sockets, 1))) as nodes:
        for number, (node, end) in enumerate(zip(nodes, ends, strict=True), 1):
            end.load(node)
            node.wait_for("test -e /sys/class/net/ib0", timeout=20, what="ib0")
            node.run(f"ip link set ib0 up && ip addr add 10.0.0.{number}/24 dev ib0 && ip addr add fd00::{number}/64 dev ib0 nodad")
        for node in nodes:
            node.wait_for("ip link show dev ib0 | grep -q LOWER_UP", timeout=60, what=f"carrier of ib0 on {node.name}")
        nodes[1].wait_for("ping -c 1 -W 1 -q 10.0.0.1 && ping -c 1 -W 1 -q fd00::1", timeout=60, what="answers of node1")
        yield fabric, nodes


@dataclasses.dataclass(frozen=True)
class Program:
    """A program's two ends; {4} and {6} are the server's addresses, {own} is the client's by IPv4."""
    server: str
    client: str
    says: str = ""              # pattern that the client's output must match
    ready: str = LISTENS        # the command that succeeds when the server listens
    prints: str = ""            # or what the server prints then
    endless: bool = False       # the server does not end by itself


def perftest(words, **options):
    # Its client gives up if it is rejected, and thus must not start before the server listens.
    return Program(f"{words} -R -F -n 50", words + " -R -F -n 50 {4}", MEASURED, WAITS_FOR_EVENT, **options)


def stream(name, client, server, **options):
    """Both ends get the number and the size of the transfers as options."""
    return Program(f"{name} -C 20 -S 4096 {server}", f"{name} -C 20 -S 4096 {client}", r"^custom +4k +20 ", **options)


# Part of every run: one program for each kind of connection.
FEW = (
    Program("cmtime", "cmtime -s {4} -c 50", "^connect ", endless=True),
    stream("rstream", "-T v -s {4}", "-T v"),
    # A member reports when it has joined; it would miss a datagram that came before.
    Program(f"mckey -m {GROUP} -C 10 -b {{4}}", f"mckey -s -m {GROUP} -C 10 -b {{own}}", "return status 0", prints="receiving data transfers"),
)
# Every send of a queue pair of ucmatose completes, by sq_sig_all and not by a flag of the request.
UCMATOSE = (Program("ucmatose", "ucmatose -s {4}", "return status 0"), Program("ucmatose -c 100", "ucmatose -c 100 -s {4}", "return status 0"))
# Not XRC: perftest has none with rdma_cm. Not udpong: its client also waits forever between two guests on Linux's stack.
ALL = (
    Program("rping -s -v -C 10 -a {6}", "rping -c -v -C 10 -a {6}", "^ping data: rdma-ping-9"),
    Program("ucmatose -c 5 -f ip6 -b {6}", "ucmatose -c 5 -f ip6 -s {6}", "return status 0"),
    *FEW,
    stream("riostream", "-T v -s {4}", "-T v"),
    *(perftest(f"ib_{operation}_{kind}") for operation in ("send", "write", "read", "atomic") for kind in ("lat", "bw")),
    *(perftest(f"ib_{operation}_bw -e") for operation in ("send", "read", "atomic")),
    perftest("ib_send_lat -e"),
    perftest("ib_send_lat -c UD"),
    perftest("ib_send_bw -c UD"),
    # Its client may connect before its server listens by RDMA CM, on either stack, and gives up when it is rejected.
    Program("qperf", "until qperf {4} -cm 1 -t 1 rc_lat; do ((++tries < 5)) || exit 1; done; qperf {4} quit", "latency", "ss -ltn | grep -q :19765"),
    Program("fi_pingpong -p verbs -e msg -I 10", "fi_pingpong -p verbs -e msg -I 10 {4}", "^64 ", "ss -ltn | grep -q :47592"),
    Program("UCX_TLS=ib,rdmacm,self io_demo -p 1337 -l 20", "UCX_TLS=ib,rdmacm,self io_demo -q -i 20 {4}:1337", "", endless=True),
    Program("udaddy -c 5", "udaddy -c 5 -s {4}", "return status 0"),
    *UCMATOSE,
    # InfiniHosts attach up to 56 queue pairs to a group.
    Program(f"mckey -m {GROUP} -c 50 -C 10 -b {{4}}", f"mckey -s -m {GROUP} -c 50 -C 10 -b {{own}}", "return status 0", prints="receiving data transfers"),
    Program("udaddy", "udaddy -s {4}", "return status 0"),
    Program("udaddy -c 100", "udaddy -c 100 -s {4}", "return status 0"),
    Program("cmtime", "cmtime -s {4} -c 100", "^connect ", endless=True),
    Program("rping -s -C 100 -a {4}", "rping -c -C 100 -a {4}", ""),
    Program("rcopy", "head -c 3000000 /dev/urandom > /tmp/source && rcopy /tmp/source {4}:/tmp/copy", "", endless=True),
)
# Linux's ib_mthca takes four outstanding reads and atomics for each queue pair, and refuses the sixteen that the peer's program would
# offer by the attributes of its own device (Documentation/infinihost.rst).
WITH_FOUR_READS = tuple(dataclasses.replace(one, server=f"{one.server} -o 4", client=f"{one.client} -o 4")
                        if one.client.startswith(("ib_read", "ib_atomic")) else one for one in ALL)


def program(server, client, number, one):
    """The program's word about a server and a client; the server is node `number` of two."""
    said = {"4": f"10.0.0.{number}", "6": f"fd00::{number}", "own": f"10.0.0.{3 - number}"}
    fill = re.compile(r"\{(4|6|own)\}")

    def spelt(command):
        return fill.sub(lambda found: said[found[1]], command)
    serving, asking = server.spawn(("stdbuf -oL " if one.prints else "") + spelt(one.server)), None
    try:
        if one.prints:
            serving.wait_output(one.prints, LIMIT)
        else:
            server.wait_for(one.ready, timeout=20, what=f"`{serving.command}` to listen")
        asking = client.spawn(spelt(one.client))
        out = asking.wait(LIMIT).out
        assert re.search(one.says, out, re.MULTILINE), out
        if not one.endless:
            serving.wait(LIMIT)
    except Exception as error:
        error.add_note(f"`{one.client}` from {client.name} to {server.name}, whose program printed:\n{serving.out[-2000:]}{serving.err[-2000:]}")
        for node in (client, server):
            error.add_note(f"{node.name}:\n{node.run(STATE, check=False).out[-6000:]}")
        if asking:
            error.add_note(f"The client printed:\n{asking.out[-2000:]}{asking.err[-2000:]}")
            asking.kill()
        raise
    finally:
        serving.kill()
        serving.wait(LIMIT, check=False)


def check_programs(nodes, programs, roles=(1, 2)):
    """Runs each program with each node in `roles` as the server, and reports all failures together at the end."""
    failed = []
    for one in programs:
        for number in roles:
            try:
                program(nodes[number - 1], nodes[2 - number], number, one)
            except Exception as error:
                failed.append("\n".join((f"{one.client}: {error}", *getattr(error, "__notes__", ()))))
    assert not failed, f"{len(failed)} of {len(roles) * len(programs)} failed:\n" + "\n\n".join(failed)
