# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Debian's programs that connect by IP address, as judges: how each end is called, and what it must say."""
import dataclasses
import re

# Some program has the node open, and is about to listen.
LISTENS = "ls -l /proc/*/fd 2>/dev/null | grep -q infiniband/rdma_cm"
LIMIT = 30
# A row of perftest's table.
MEASURED = r"^ *\d+ +\d+ +\d+\.\d+"
GROUP = "239.1.2.3"


@dataclasses.dataclass(frozen=True)
class Judge:
    """A program's two ends; {4} and {6} are the server's addresses, {own} is the client's by IPv4."""
    server: str
    client: str
    says: str = ""              # what the client's output has to match
    ready: str = LISTENS        # how the server's guest knows that it listens
    prints: str = ""            # or what the server says then
    endless: bool = False       # the server does not end by itself


def perftest(words, **options):
    return Judge(f"{words} -R -F -n 50", words + " -R -F -n 50 {4}", MEASURED, **options)


def stream(name, client, server, **options):
    """Both ends have to be told how much there is to come."""
    return Judge(f"{name} -C 20 -S 4096 {server}", f"{name} -C 20 -S 4096 {client}", r"^custom +4k +20 ", **options)


# Of every run: what goes by each way that there is.
FEW = (
    Judge("cmtime", "cmtime -s {4} -c 50", "^connect ", endless=True),
    stream("rstream", "-T v -s {4}", "-T v"),
    # Who has joined says so; a datagram that came before would be missed for ever.
    Judge(f"mckey -m {GROUP} -C 10 -b {{4}}", f"mckey -s -m {GROUP} -C 10 -b {{own}}", "return status 0", prints="receiving data transfers"),
)
# Not XRC: perftest has none with rdma_cm.
ALL = (
    Judge("rping -s -v -C 10 -a {6}", "rping -c -v -C 10 -a {6}", "^ping data: rdma-ping-9"),
    Judge("ucmatose -c 5 -f ip6 -b {6}", "ucmatose -c 5 -f ip6 -s {6}", "return status 0"),
    *FEW,
    stream("riostream", "-T v -s {4}", "-T v"),
    *(perftest(f"ib_{operation}_{kind}") for operation in ("send", "write", "read", "atomic") for kind in ("lat", "bw")),
    *(perftest(f"ib_{operation}_bw -e") for operation in ("send", "read", "atomic")),
    perftest("ib_send_lat -e"),
    perftest("ib_send_lat -c UD"),
    perftest("ib_send_bw -c UD"),
    Judge("qperf", "qperf {4} -cm 1 -t 1 rc_lat && qperf {4} quit", "latency", "ss -ltn | grep -q :19765"),
    Judge("fi_pingpong -p verbs -e msg -I 10", "fi_pingpong -p verbs -e msg -I 10 {4}", "^64 ", "ss -ltn | grep -q :47592"),
    Judge("UCX_TLS=ib,rdmacm,self io_demo -p 1337 -l 20", "UCX_TLS=ib,rdmacm,self io_demo -q -i 20 {4}:1337", "", endless=True),
    Judge("udaddy -c 5", "udaddy -c 5 -s {4}", "return status 0"),
)


def judge(server, client, number, one):
    """The judge's word about a server and a client; the server is node `number` of two."""
    said = {"4": f"10.0.0.{number}", "6": f"fd00::{number}", "own": f"10.0.0.{3 - number}"}
    fill = re.compile(r"\{(4|6|own)\}")

    def spelt(command):
        return fill.sub(lambda found: said[found[1]], command)
    serving = server.spawn(("stdbuf -oL " if one.prints else "") + spelt(one.server))
    try:
        if one.prints:
            serving.wait_output(one.prints, LIMIT)
        else:
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


def hear(nodes, judges, roles=(1, 2)):
    """Each judge, with each of the nodes that `roles` numbers as the server. All are heard, and what they complain of is told together."""
    failed = []
    for one in judges:
        for number in roles:
            try:
                judge(nodes[number - 1], nodes[2 - number], number, one)
            except Exception as error:
                failed.append("\n".join((f"{one.client}: {error}", *getattr(error, "__notes__", ()))))
    assert not failed, f"{len(failed)} of {len(roles) * len(judges)} failed:\n" + "\n\n".join(failed)
