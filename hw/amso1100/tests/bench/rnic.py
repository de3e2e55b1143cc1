# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Compares the RNIC with Linux's siw over virtio-net: two pairs of guests on one Ethernet, all running at once; samples are interleaved.

The RNIC is measured in the kernel (weft_talk), because its driver has no user verbs, and siw is measured by perftest and cmtime. All measure the same
quantities: the round trip of messages and Writes, streams of them, and the time from the connect call to its event. For messages, both ends wait for
completion events; for the round trips of Writes, both poll.
"""
import contextlib
import re

from lab import kernels, modules, rnic, siw
from lab.benchmarks import benchmark
from lab.fabric import Fabric
from lab.waiting import DeadlineExceeded

LAB = rnic.lab("ours1", "ours2", others=("theirs1", "theirs2"))
ROUNDS = 3
SMALL, LARGE = 64, 65536
THERE_AND_BACK, STREAM = 1000, 512
CONNECTIONS = 10
CMTIMES = 3
ATTEMPTS, TIMEOUT = 3, 30
PERFTEST = ":18515 "
CMTIME = ":7471 "
EVENTS = {"send": " -e", "write": ""}


@contextlib.contextmanager
def pairs(bench):
    modules.build(kernels.find("stock").kdir)
    fabric = Fabric(bench, LAB)
    guests = [bench.guest(name, cards=[socket]) for name, socket in zip(("ours1", "ours2"), fabric.sockets)]
    guests += [bench.guest(name, netdevs=[fabric.netdev(name)]) for name in ("theirs1", "theirs2")]
    with bench.boot(*guests) as nodes:
        for number, node in enumerate(nodes, 1):
            (rnic if number <= 2 else siw).begin(node, f"10.2.0.{number}/24")
        yield nodes


def by_kernel(server, client, what, size, count):
    """The nanoseconds of all."""
    rnic.send_command(server, f"serve port={rnic.PORT} as=meter")
    rnic.measure(client, "10.2.0.1", f"what={what} size={size} count={count}")
    return rnic.said(client)["ns"]


def serve(server, command, port):
    serving = server.spawn(command)
    server.wait_for(f"ss -ltn | grep -q '{port}'", timeout=30, what=f"`{command}` to listen")
    return serving


def by_perftest(server, client, words, column):
    """Returns a column of perftest's table; -R connects by IP address. siw may hang, and the run is then repeated."""
    for _ in range(ATTEMPTS):
        serving = serve(server, f"{words} -R -F", PERFTEST)
        try:
            out = client.run(f"{words} -R -F 10.2.0.3", timeout=TIMEOUT).out
            return float(re.search(r"^ *\d+ +\d+ +[\d.]+ .*", out, re.MULTILINE)[0].split()[column])
        except DeadlineExceeded as error:
            print(error, flush=True)
        finally:
            serving.kill()
            serving.wait(30, check=False)
    raise AssertionError(f"{words} has not ended")


def connections(server, client):
    """Measures the connections a second that weft's RNICs establish, one after the other."""
    rnic.send_command(server, f"serve port={rnic.PORT}")
    rnic.connect(client, "10.2.0.1", f"count={CONNECTIONS}")
    said = rnic.said(client)
    return said["good"] / said["ns"] * 1e9


def by_cmtime(server, client):
    """The same, by cmtime's step `connect`."""
    milliseconds = 0.0
    for _ in range(CMTIMES):
        serving = serve(server, "cmtime", CMTIME)
        try:
            out = client.run("cmtime -s 10.2.0.3 -c 1", timeout=60).out
        finally:
            serving.kill()
            serving.wait(30, check=False)
        milliseconds += float(re.search(r"^connect *: *([\d.]+)", out, re.MULTILINE)[1])
    return CMTIMES / milliseconds * 1000


@benchmark(figures=("rnic.latency-*", "rnic.bandwidth-*", "rnic.connections"), kernel="stock")
def latency_bandwidth_and_connection_rate_of_rnic_and_siw(bench):
    with pairs(bench) as nodes:
        ours, theirs = nodes[:2], nodes[2:]
        ways = {
            **{f"rnic.latency-{what}": (
                "us", lambda what=what: by_kernel(*ours, f"echo-{what}", SMALL, THERE_AND_BACK) / THERE_AND_BACK / 2000,
                lambda what=what: by_perftest(*theirs, f"ib_{what}_lat -s {SMALL} -n {THERE_AND_BACK}{EVENTS[what]}", 5)) for what in ("send", "write")},
            **{f"rnic.bandwidth-{what}": (
                "MiB/s", lambda what=what: STREAM * LARGE / (1 << 20) / by_kernel(*ours, what, LARGE, STREAM) * 1e9,
                lambda what=what: by_perftest(*theirs, f"ib_{what}_bw -s {LARGE} -n {STREAM}{EVENTS[what]}", 3)) for what in ("send", "write")},
            "rnic.connections": ("1/s", lambda: connections(*ours), lambda: by_cmtime(*theirs)),
        }
        for name, (unit, ours_once, theirs_once) in ways.items():
            samples = [(ours_once(), theirs_once()) for _ in range(ROUNDS)]
            bench.figure(name, unit, *zip(*samples))
