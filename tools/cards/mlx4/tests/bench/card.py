# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Measures the emulated card under Debian's own stack: perftest between two guests, compared with rdma_rxe over virtio-net between the same guests.

Samples of the two are interleaved, so that other load on the host affects both alike.
"""
import contextlib
import os
import re
import subprocess
import time

from lab import cache, kernels, reference
from lab.benchmarks import benchmark
from lab.waiting import wait_until

ROOM = "tools/cards/mlx4/tests/bench"
SERVER = "10.0.0.1"
ROUNDS = 5
SIZES = {"64k": 65536, "1m": 1 << 20}
OTHER_BUILD = "WEFTD_BEFORE"
DEVICES = {"card": "mlx4_0", "rxe": "rxe0"}


def start_fabric(bench, count, program=None, prefix="node", model="mlx4"):
    """Starts a weftd with this number of cards of a model on one switch; returns it and the sockets. program: another build of weftd."""
    names = [f"{prefix}{number}" for number in range(1, count + 1)]
    text = '[[switch]]\nname = "leaf"\n' + "".join(
        f'[[host]]\nname = "{name}"\nmodel = "{model}"\n[[link]]\nends = ["{name}", "leaf/{port}"]\n' for port, name in enumerate(names, 1))
    lab_file = bench.directory / f"{prefix}.toml"
    lab_file.write_text(text)
    folder = bench.socket_path(prefix)
    folder.mkdir(0o700)
    sockets = [folder / f"{name}.sock" for name in names]
    process = bench.start(program or bench.program("weftd"), "--socket-dir", folder, "--lab", lab_file,
                          until=lambda: all(path.is_socket() for path in sockets))
    return process, sockets


def wait_active(guest, device="mlx4_0"):
    guest.wait_for(f"grep -q ACTIVE /sys/class/infiniband/{device}/ports/1/state", timeout=60, what=f"{device}'s port to be ACTIVE")


def prepare(bench, nodes):
    """Finds both devices in both guests."""
    for number, node in enumerate(nodes, 1):
        node.run("modprobe mlx4_ib; modprobe ib_uverbs; modprobe virtio_net; modprobe rdma_rxe")
        node.run(f"ip link set eth0 up && ip addr add 10.0.0.{number}/24 dev eth0 && rdma link add rxe0 type rxe netdev eth0")
    for node in nodes:
        for device in DEVICES.values():
            wait_active(node, device)
    nodes[1].wait_for(f"ping -c 1 -W 1 {SERVER}")


def perftest(nodes, tool, device, options):
    """Runs a tool of perftest; returns the numbers of its last line."""
    server, client = nodes
    command = f"{tool} -d {device} -F {options}"
    listener = server.spawn(command)
    server.wait_for("ss -ltn | grep -q :18515", timeout=30, what=f"{tool} to listen")
    out = client.run(f"{command} {SERVER}", timeout=300).out
    listener.wait(60)
    lines = [line for line in out.splitlines() if re.match(r"^ *\d+ +\d+ ", line)]
    return [float(word) for word in lines[-1].split()]


def bandwidth(nodes, tool, device, size, count):
    """Returns bytes per microsecond (perftest's megabyte has 2^20 bytes)."""
    return perftest(nodes, tool, device, f"-s {size} -n {count}")[3] * 1.048576


def message_rate(nodes, device, count):
    """Returns RDMA writes of 32 bytes per second."""
    return perftest(nodes, "ib_write_bw", device, f"-s 32 -n {count}")[4] * 1e6


def latency(nodes, device, count):
    """Returns the median latency in microseconds, one way, of a small send between programs that poll."""
    return perftest(nodes, "ib_send_lat", device, f"-s 8 -n {count}")[4]


def pingpong(nodes, device, count=1000):
    """Returns the latency in microseconds, one way, of a small send between programs that wait for events (perftest takes an event for a completion)."""
    server, client = nodes
    command = f"ibv_rc_pingpong -d {device} -e -s 8 -n {count} {'-g 1' if device == DEVICES['rxe'] else ''}"
    listener = server.spawn(command)
    server.wait_for("ss -ltn | grep -q :18515", timeout=30, what="the server to listen")
    out = client.run(f"{command} {SERVER}", timeout=300).out
    listener.wait(60)
    return float(re.search(r"([\d.]+) usec/iter", out)[1]) / 2


def build_memcpy(bench):
    program = bench.directory / "memcpy"
    subprocess.run(["gcc", "-O2", cache.TREE / ROOM / "memcpy.c", "-o", program], stdin=subprocess.DEVNULL, check=True)
    return lambda size: float(subprocess.run([program, str(size), "0.3"], capture_output=True, check=True).stdout)


def take_turns(measures):
    """Returns interleaved samples of each measurement, by name."""
    samples = {}
    for _ in range(ROUNDS):
        for name, measure in measures.items():
            samples.setdefault(name, []).append(measure())
    return samples


def bare(node):
    """Returns microseconds from a doorbell to the interrupt that answers it, in the guest's kernel."""
    node.run("insmod /share/card_reference.ko measure=doorbell && rmmod card_reference", timeout=120)
    return reference.figures(node.sync_log())["driver.doorbell-to-interrupt"] / 1000


@contextlib.contextmanager
def two_guests(bench):
    """Yields two guests on the stock stack with both devices up."""
    share = reference.build(kernels.find("stock"), bench.directory, "hw/mlx4/tests/bench")
    _, sockets = start_fabric(bench, 2)
    wire = [bench.socket_path(f"wire{end}") for end in (0, 1)]
    guests = [bench.guest(f"node{end + 1}", vfio_user=[sockets[end]], share=share,
                          netdevs=[f"dgram,local.type=unix,local.path={wire[end]},remote.type=unix,remote.path={wire[1 - end]}"])
              for end in (0, 1)]
    with bench.boot(*guests) as nodes:
        prepare(bench, nodes)
        yield nodes


@benchmark(figures=("card.write-*", "card.send-*", "card.rxe-*"), kernel="stock")
def bandwidth_of_perftest(bench):
    """Compares the card with memcpy on the host, and with rdma_rxe."""
    memcpy = build_memcpy(bench)
    with two_guests(bench) as nodes:
        for name, size in SIZES.items():
            for tool, verb in (("ib_write_bw", "write"), ("ib_send_bw", "send")):
                count = (1 << 27) // size
                samples = take_turns({
                    "card": lambda tool=tool, size=size, count=count: bandwidth(nodes, tool, DEVICES["card"], size, count),
                    "rxe": lambda tool=tool, size=size, count=count: bandwidth(nodes, tool, DEVICES["rxe"], size, max(count // 8, 5)),
                    "memcpy": lambda size=size: memcpy(size)})
                bench.figure(f"card.{verb}-{name}", "MB/s", samples["card"], samples["memcpy"])
                bench.figure(f"card.rxe-{verb}-{name}", "MB/s", samples["card"], samples["rxe"])


@benchmark(figures=("card.latency*", "card.messages", "card.doorbell-*"), kernel="stock")
def small_message_rate_and_latency(bench):
    """Compares the card with rdma_rxe, and with an interrupt that does nothing."""
    with two_guests(bench) as nodes:
        card, rxe = DEVICES["card"], DEVICES["rxe"]
        samples = take_turns({
            "polled": lambda: latency(nodes, card, 1000), "rxe-polled": lambda: latency(nodes, rxe, 200),
            "event": lambda: pingpong(nodes, card), "rxe-event": lambda: pingpong(nodes, rxe, 200), "bare": lambda: bare(nodes[0]),
            "rate": lambda: message_rate(nodes, card, 20000), "rxe-rate": lambda: message_rate(nodes, rxe, 500)})
        bench.figure("card.messages", "1/s", samples["rate"], samples["rxe-rate"])
        bench.figure("card.latency-polled", "us", samples["polled"], samples["rxe-polled"])
        bench.figure("card.latency-event", "us", samples["event"], samples["rxe-event"])
        bench.figure("card.doorbell-to-interrupt", "us", samples["event"], samples["bare"])


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def own_memory(pid):
    """Returns weftd's memory in MiB without the memory of the guests, which is shared."""
    sizes = dict(re.findall(r"^(Rss\w+):\s+(\d+) kB", open(f"/proc/{pid}/status").read(), re.MULTILINE))
    return (int(sizes["RssAnon"]) + int(sizes["RssFile"])) / 1024


@benchmark(figures=("card.builds-*",), kernel="stock", needs=OTHER_BUILD)
def comparison_of_two_builds(bench):
    """Compares this build of weftd with another one, whose path is WEFTD_BEFORE: the same figures, with interleaved samples."""
    labs = {}
    with contextlib.ExitStack() as stack:
        for build, program in (("now", None), ("before", os.environ[OTHER_BUILD])):
            process, sockets = start_fabric(bench, 2, program, build)
            guests = [bench.guest(f"{build}{number}", vfio_user=[socket], share=None) for number, socket in enumerate(sockets, 1)]
            nodes = stack.enter_context(bench.boot(*guests))
            for number, node in enumerate(nodes, 1):
                node.run(f"modprobe mlx4_ib; modprobe ib_uverbs; modprobe ib_ipoib; ip addr add {SERVER[:-1]}{number}/24 dev ib0; ip link set ib0 up")
                wait_active(node)
            nodes[1].wait_for(f"ping -c 1 -W 1 {SERVER}")
            labs[build] = process.pid, nodes

        def doorbells(pid, nodes):
            used = cpu_seconds(pid)
            perftest(nodes, "ib_write_bw", DEVICES["card"], "-s 8 -n 100000 -l 1")
            return cpu_seconds(pid) - used

        measures = {"cpu-of-100000-doorbells": ("s", doorbells),
                    "messages": ("1/s", lambda _, nodes: message_rate(nodes, DEVICES["card"], 20000)),
                    "latency-polled": ("us", lambda _, nodes: latency(nodes, DEVICES["card"], 1000)),
                    "latency-event": ("us", lambda _, nodes: pingpong(nodes, DEVICES["card"]))}
        for name, size in SIZES.items():
            for tool, verb in (("ib_write_bw", "write"), ("ib_send_bw", "send")):
                measures[f"{verb}-{name}"] = "MB/s", lambda _, nodes, tool=tool, size=size: bandwidth(nodes, tool, DEVICES["card"], size, (1 << 27) // size)
        for name, (unit, measure) in measures.items():
            samples = take_turns({build: lambda lab=lab: measure(*lab) for build, lab in labs.items()})
            bench.figure(f"card.builds-{name}", unit, samples["now"], samples["before"])


@benchmark(figures=("card.idle-cpu", "card.memory*"), kernel="stock")
def cost_of_ten_idle_cards(bench):
    """Measures the CPU time and memory of weftd for ten cards whose guests have loaded the driver and are idle."""
    cards = 10
    process, sockets = start_fabric(bench, cards)
    guests = [bench.guest(f"node{number}", vfio_user=[socket], memory="448M", share=None) for number, socket in enumerate(sockets, 1)]
    try:
        for guest in guests:
            guest.start().ready(180)
            guest.run("modprobe mlx4_ib", timeout=120)
            wait_active(guest)
        shares = []
        for _ in range(3):
            begin, used = time.monotonic(), cpu_seconds(process.pid)
            wait_until("half a minute to pass", lambda begin=begin: time.monotonic() - begin >= 30, 60)
            shares.append((cpu_seconds(process.pid) - used) / (time.monotonic() - begin) * 100)
        bench.figure("card.idle-cpu", "% of a core", shares)
        bench.figure("card.memory", "MiB", own_memory(process.pid) / cards)
    finally:
        for guest in guests:
            guest.close()
