# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Measures IP over InfiniBand with weft's modules, and compares it with the in-tree stack (mlx4 and ib_ipoib) on the same card and kernel, and with
virtio-net.

Two pairs of guests, one pair on each stack, run on one fabric at the same time. Samples of the stacks are interleaved, so that other load on the host
affects both alike.
"""
import contextlib
import dataclasses
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "guest"))

from lab import cache, kernels, modules
from lab.benchmarks import benchmark
from pair import iperf3, load_stock, load_stack

PORT = 9000
ROUNDS = 5


def build_datagrams(bench, share):
    source = cache.TREE / "ulp/ipoib/tests/bench/datagrams.c"
    subprocess.run(["gcc", "-O2", "-static", "-Wall", "-Wextra", "-Werror", source, "-o", share / "datagrams"], stdin=subprocess.DEVNULL, check=True)


@dataclasses.dataclass(frozen=True)
class Card:
    """Setup of all four guests, with the drivers of both stacks; in a lab file: the lines of a host, and which of its ports has the link."""
    ours: str
    theirs: str
    lines: str = ""
    port: str = ""


MLX4 = Card("weft_mlx4", "mlx4_ib")
MTHCA = Card("weft_mthca", "ib_mthca", 'model = "mthca"\nports = 2\n', "/1")


def lab_file(bench, names, card):
    text = '[[switch]]\nname = "leaf"\n'
    for port, name in enumerate(names, 1):
        text += f'[[host]]\nname = "{name}"\n{card.lines}[[link]]\nends = ["{name}{card.port}", "leaf/{port}"]\n'
    path = bench.directory / "lab.toml"
    path.write_text(text)
    return path


@contextlib.contextmanager
def pairs(bench, counted=None, cpus=1, card=MLX4):
    """Both pairs with ib0 up: (ours1, ours2), (theirs1, theirs2). Ours have a virtio-net link between them, too.

    counted: which of each pair has its instructions counted, 0 or 1. cpus: of each guest.
    """
    kernel = kernels.find("stock")
    modules.build(kernel.kdir)
    build_datagrams(bench, bench.directory)
    names = ("ours1", "ours2", "theirs1", "theirs2")
    sockets = [bench.socket_path(f"{name}.sock") for name in names]
    bench.start(bench.program("weftd"), "--socket-dir", sockets[0].parent, "--lab", lab_file(bench, names, card),
                until=lambda: all(path.is_socket() for path in sockets))
    wire = [bench.socket_path(f"wire{end}") for end in (0, 1)]
    netdev = [f"dgram,local.type=unix,local.path={wire[end]},remote.type=unix,remote.path={wire[1 - end]}" for end in (0, 1)]
    guests = [bench.guest(name, vfio_user=[socket], netdevs=[netdev[number]] if number < 2 else (), cpus=cpus,
                          icount="sleep" if counted == number % 2 else False)
              for number, (name, socket) in enumerate(zip(names, sockets))]
    with bench.boot(*guests) as nodes:
        for node in nodes:
            node.put("/tmp/datagrams", (bench.directory / "datagrams").read_bytes())
            node.run("chmod +x /tmp/datagrams")
        for node in nodes[:2]:
            load_stack(node, card.ours)
        for node in nodes[2:]:
            load_stock(node, card.theirs)
        for number, node in enumerate(nodes):
            node.run(f"ip link set ib0 up && ip addr add 10.0.{number // 2}.{number % 2 + 1}/24 dev ib0")
            node.wait_for("ip link show dev ib0 | grep -q LOWER_UP", timeout=60, what=f"the carrier of {node.name}")
        for number, node in enumerate(nodes[:2], 1):
            node.run(f"modprobe virtio_net; ip link set eth0 up && ip addr add 10.0.2.{number}/24 dev eth0")
        yield nodes[:2], nodes[2:]


def throughput(server, client, address, options=""):
    """TCP: Gbit/s that arrived."""
    return iperf3(server, client, address, f"-O 1 {options}", amount="-t 3", timeout=90)["sum_received"]["bits_per_second"] / 1e9


def round_trip(source, address):
    """Microseconds: the average of a flood of pings, one in flight."""
    out = source.run(f"ping -f -q -c 3000 -W 5 {address}", timeout=90).out
    return float(re.search(r"= [\d.]+/([\d.]+)/", out)[1]) * 1000


def datagrams(receiver, sender, address, count=60_000):
    """Thousands of 64-byte datagrams a second that reached the receiving program."""
    listener = receiver.spawn("/tmp/datagrams receive")
    receiver.wait_for(f"ss -lun | grep -q :{PORT}", what="the receiver")
    sender.run(f"/tmp/datagrams send {address} 64 {count}", timeout=90)
    listener.wait(60)
    arrived, nanoseconds = map(int, listener.out.split())
    return arrived / nanoseconds * 1e6


def busy(node):
    """Nanoseconds, which are instructions where they are counted, that CPU 0 was not idle since it booted."""
    timers = node.run("cat /proc/timer_list").out
    return int(re.search(r"^now at (\d+) nsecs", timers, re.MULTILINE)[1]) - int(re.search(r"\.idle_sleeptime\s*: (\d+)", timers)[1])


def packets(node, direction, dev="ib0"):
    return int(node.run(f"cat /sys/class/net/{dev}/statistics/{direction}_packets").out)


def per_packet(node, run, count, direction, dev="ib0"):
    """Returns the instructions of a guest for each packet of run(count), without the constant part, which does not depend on the number of packets."""
    measured = []
    for number in (count // 10, count):
        instructions, passed = busy(node), packets(node, direction, dev)
        run(number)
        measured.append((busy(node) - instructions, packets(node, direction, dev) - passed))
    (few_instructions, few), (instructions, passed) = measured
    return (instructions - few_instructions) / (passed - few)


def nowhere(sender, receiver, network):
    """Gives the sender a neighbour entry for an address without a route at the receiver, which therefore drops the packets after its routing decision."""
    address = f"{network}.99"
    hardware = receiver.run("cat /sys/class/net/ib0/address").out.strip()
    sender.run(f"ip neigh replace {address} lladdr {hardware} dev ib0 nud permanent")
    return address


def send(near, to, count):
    near.run(f"/tmp/datagrams send {to} 64 {count}", timeout=90)


def ping(near, to, count):
    near.run(f"ping -f -q -c {count} {to}", timeout=90)


@benchmark(figures=("ipoib.insn-*",), kernel="stock")
def instructions_per_packet(bench):
    """Measures one guest of each pair at a time, which does nothing else; its peer is not counted.

    Sent datagrams start in a program. For "send-own", the instructions of the same program on an interface that does nothing (dummy) are subtracted.
    """
    samples = {}
    for counted in (0, 1):
        with pairs(bench, counted=counted) as stacks:
            for stack, network, (near, far) in zip(("ours", "theirs"), ("10.0.0", "10.0.1"), stacks):
                ping(near, f"{network}.2", 10)
                to = nowhere(near, far, network)
                if counted == 0:
                    near.run("modprobe dummy numdummies=0; ip link add dummy0 type dummy && ip addr add 10.0.3.1/24 dev dummy0 && "
                             "ip link set dummy0 up && ip neigh replace 10.0.3.2 lladdr 02:00:00:00:00:01 dev dummy0 nud permanent")
                    samples[stack, "send"] = [per_packet(near, lambda number: send(near, to, number), 20_000, "tx") for _ in range(3)]
                    nothing = per_packet(near, lambda number: send(near, "10.0.3.2", number), 20_000, "tx", "dummy0")
                    samples[stack, "send-own"] = [sample - nothing for sample in samples[stack, "send"]]
                else:
                    samples[stack, "receive"] = [per_packet(far, lambda number: send(near, to, number), 20_000, "rx") for _ in range(3)]
                    samples[stack, "echo"] = [per_packet(far, lambda number: ping(near, f"{network}.2", number), 5_000, "rx") for _ in range(3)]
    for name in ("send", "send-own", "receive", "echo"):
        bench.figure(f"ipoib.insn-{name}", "insn", samples["ours", name], samples["theirs", name])


MEASURES = {
    "tcp-1": ("Gbit/s", lambda near, far, to: throughput(far, near, to)),
    "tcp-4": ("Gbit/s", lambda near, far, to: throughput(far, near, to, "-P 4")),
    "ping": ("us", lambda near, far, to: round_trip(near, to)),
    "datagrams": ("1000/s", lambda near, far, to: datagrams(far, near, to)),
}


def measure_traffic(bench, prefix, cpus):
    with pairs(bench, cpus=cpus) as (ours, theirs):
        links = {"ours": (*ours, "10.0.0.2"), "theirs": (*theirs, "10.0.1.2"), "virtio": (*ours, "10.0.2.2")}
        for name, (unit, measure) in MEASURES.items():
            samples = {link: [] for link in links}
            for _ in range(ROUNDS):
                for link, where in links.items():
                    samples[link].append(measure(*where))
            bench.figure(f"{prefix}.{name}", unit, samples["ours"], samples["theirs"])
            bench.figure(f"{prefix}.virtio-{name}", unit, samples["ours"], samples["virtio"])


@benchmark(figures=("ipoib.tcp-*", "ipoib.ping", "ipoib.datagrams", "ipoib.virtio-*"), kernel="stock")
def tcp_ping_and_datagram_rates(bench):
    measure_traffic(bench, "ipoib", cpus=1)


def asked_of_cards(bench):
    """Returns the requests of the drivers to the card of each host, and the interrupts that it raised."""
    return json.loads(cache.tool(bench.program("weft"), "--socket-dir", bench.socket_path("ours1.sock").parent, "--json", "counters", "--cards"))


@benchmark(figures=("ipoib.ping-*",), kernel="stock")
def doorbells_and_interrupts_per_ping(bench):
    """Costs of a round trip between the guests: doorbells and interrupts of both cards for each ping that is sent alone."""
    count = 1000
    with pairs(bench) as stacks:
        samples = {}
        for stack, network, (near, _far) in zip(("ours", "theirs"), ("10.0.0", "10.0.1"), stacks):
            near.run(f"ping -q -c 10 -i 0.01 {network}.2", timeout=30)
            for _ in range(3):
                before = asked_of_cards(bench)
                near.run(f"ping -q -c {count} -i 0.005 {network}.2", timeout=90)
                after = asked_of_cards(bench)
                for name in before[f"{stack}1"]:
                    passed = sum(after[host][name] - before[host][name] for host in (f"{stack}1", f"{stack}2"))
                    samples.setdefault(name, {}).setdefault(stack, []).append(passed / count)
    for name, by_stack in samples.items():
        if any(any(values) for values in by_stack.values()):
            bench.figure(f"ipoib.ping-{name.replace('_', '-')}", "1/ping", by_stack["ours"], by_stack["theirs"])


@benchmark(figures=("ipoib.mthca.*",), kernel="stock")
def tcp_ping_and_datagram_rates_over_mthca(bench):
    """The same, but for virtio-net, on the other card, whose link is half as fast and whose MTU is the same."""
    with pairs(bench, card=MTHCA) as (ours, theirs):
        for name, (unit, measure) in MEASURES.items():
            samples = {"ours": [], "theirs": []}
            for _ in range(ROUNDS):
                samples["ours"].append(measure(*ours, "10.0.0.2"))
                samples["theirs"].append(measure(*theirs, "10.0.1.2"))
            bench.figure(f"ipoib.mthca.{name}", unit, samples["ours"], samples["theirs"])


@benchmark(figures=("ipoib.cpus.*",), kernel="stock")
def tcp_ping_and_datagram_rates_with_two_cpus(bench):
    """The same between guests of two CPUs, each of which sends through a queue of its own."""
    measure_traffic(bench, "ipoib.cpus", cpus=2)


@benchmark(figures=("ipoib.connected.tcp-*",), kernel="stock")
def tcp_rate_in_connected_mode(bench):
    """TCP in connected mode, with its MTU of 65520."""
    with pairs(bench) as (ours, theirs):
        for node in (*ours, *theirs):
            node.run("echo connected > /sys/class/net/ib0/mode && ip link set ib0 mtu 65520")
        for node in (*ours, *theirs):
            node.wait_for("ip link show dev ib0 | grep -q LOWER_UP", timeout=60, what=f"the carrier of {node.name} in connected mode")
        links = {"ours": (*ours, "10.0.0.2"), "theirs": (*theirs, "10.0.1.2")}
        for near, _far, to in links.values():
            near.wait_for(f"ping -c 1 -W 1 -q -M do -s 60000 {to}", timeout=60, what="an answer by a connection")
        for name in ("tcp-1", "tcp-4"):
            unit, measure = MEASURES[name]
            samples = {link: [] for link in links}
            for _ in range(ROUNDS):
                for link, where in links.items():
                    samples[link].append(measure(*where))
            bench.figure(f"ipoib.connected.{name}", unit, samples["ours"], samples["theirs"])
