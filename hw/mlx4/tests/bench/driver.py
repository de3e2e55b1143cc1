# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Compares weft's drivers of the Mellanox cards with the kernel's on the same emulated card: instructions per call, doorbells, bandwidth, latency,
probe.

Both drivers run on the stock kernel, each in a guest with a card of its own on one fabric; the measuring code is the same source.
Measurements of time are interleaved, so that other load on the host affects both alike.
"""
import dataclasses
import json
import re
import subprocess

from lab import kernels, modules, reference
from lab.benchmarks import benchmark
from lab.fabric import PAIR

ROUNDS = 5
UNITS = {"driver.write-latency": "ns", "driver.doorbell-to-interrupt": "ns", "driver.message-rate": "1/s"}    # the others are bytes a microsecond


@dataclasses.dataclass(frozen=True)
class Card:
    """A kind of card: its lab, and how its two drivers are loaded and called; figures: prefix of their figures."""
    figures: str
    lab_file: str
    ours: str
    theirs: str
    theirs_is_loaded_by: str

    def named(self, figure):
        return self.figures + figure.removeprefix("driver")


MLX4 = Card("driver", PAIR, "weft_mlx4", "mlx4_core", "mlx4_ib")
MTHCA = Card("mthca", re.sub(r'(name = "node\d"\n)', r'\1model = "mthca"\nports = 2\n', re.sub(r'\["(node\d)"', r'["\1/1"', PAIR)),
                  "weft_mthca", "ib_mthca", "ib_mthca")


class Side:
    """A guest with one of the two drivers, and its card."""

    def __init__(self, guest, card, drivers, figures, driver):
        self.guest, self.card, self.drivers, self.figures = guest, card, drivers, figures
        self.driver = f"/sys/bus/pci/drivers/{driver}"

    def load(self):
        for command in self.drivers:
            self.guest.run(command)

    def measure(self, what):
        """Loads the measuring module; returns its figures."""
        self.guest.run(f"insmod /share/{self.figures}.ko measure={what} && rmmod {self.figures}", timeout=300)
        return reference.figures(self.guest.sync_log())

    def probe(self):
        """Unbinds the driver and binds it again: seconds until the device is registered."""
        out = self.guest.run(f"""
            echo 0000:01:00.0 > {self.driver}/unbind && begin=$EPOCHREALTIME &&
            echo 0000:01:00.0 > {self.driver}/bind && end=$EPOCHREALTIME && echo $begin $end""").out
        begin, end = map(float, re.findall(r"\d+\.\d+", out))
        return end - begin


class Fabric:
    """Two cards on a weftd, and the numbers of their drivers' requests."""

    def __init__(self, bench, card=MLX4):
        self._bench = bench
        self._card = card
        self._directory = bench.socket_path("fabric")
        lab_file = bench.directory / f"{card.figures}.toml"
        lab_file.write_text(card.lab_file)
        bench.start(bench.program("weftd"), "--lab", lab_file, "--socket-dir", self._directory, until=(self._directory / "node2.sock").is_socket)
        kernel = kernels.find("stock")
        modules.build(kernel.kdir)
        self._reference = reference.build(kernel, bench.directory, "hw/mlx4/tests/bench")

    def sides(self, **options):
        """Returns the guests of weft's driver and of the in-tree one, not started."""
        ours, theirs = (self._bench.guest(name, vfio_user=[self._directory / f"{card}.sock"], **share, **options)
                        for name, card, share in (("ours", "node1", {}), ("theirs", "node2", {"share": self._reference})))
        return (Side(ours, "node1", [f"insmod /share/{name}.ko" for name in ("weft_kern", "weft_core", self._card.ours)],
                     "weft_card_figures", self._card.ours),
                Side(theirs, "node2", [f"modprobe {self._card.theirs_is_loaded_by}"], "card_reference", self._card.theirs))

    def counters(self, side):
        done = subprocess.run([self._bench.program("weft"), "--socket-dir", self._directory, "--json", "counters", "--cards"],
                              capture_output=True, check=True, timeout=20)
        return json.loads(done.stdout)[side.card]

    def counted(self, side, action):
        """Returns the requests that an action sends to a side's card, and its result."""
        before = self.counters(side)
        result = action()
        after = self.counters(side)
        return {name: after[name] - before[name] for name in after}, result


def count(bench, card):
    """Counts instructions in one guest after the other."""
    counts = []
    for side in Fabric(bench, card).sides(icount=True):
        with side.guest:
            side.load()
            counts.append(side.measure("counts"))
    ours, theirs = counts
    for name, ticks in ours.items():
        bench.figure(card.named(name), "insn", [ticks], [theirs[name]])


COUNTED = ("post-*", "poll-*", "req-notify", "interrupt*")


@benchmark(figures=[f"driver.{name}" for name in COUNTED], kernel="stock")
def instructions_of_mlx4(bench):
    """Instructions of the ConnectX's drivers."""
    count(bench, MLX4)


@benchmark(figures=[f"mthca.{name}" for name in COUNTED], kernel="stock")
def instructions_of_mthca(bench):
    """Instructions of the InfiniHost's drivers."""
    count(bench, MTHCA)


def take_probes(fabric, sides, take):
    """Measures the time from bind to registration; samples of both stacks are interleaved."""
    for _ in range(ROUNDS):
        for which, side in enumerate(sides):
            asked, seconds = fabric.counted(side, side.probe)
            take("driver.probe-time", "s", which, seconds)
            take("driver.probe-commands", "1", which, asked["commands"])


@benchmark(figures=("mthca.probe-*",), kernel="stock")
def probe_time_of_mthca(bench):
    """Measures the time and the card's work of a probe."""
    fabric = Fabric(bench, MTHCA)
    sides = fabric.sides()
    taken = {}
    with bench.boot(*(side.guest for side in sides)):
        for side in sides:
            side.load()
        take_probes(fabric, sides, lambda name, unit, which, value: taken.setdefault((name, unit), ([], []))[which].append(value))
    for (name, unit), (ours, theirs) in taken.items():
        bench.figure(MTHCA.named(name), unit, ours, theirs)


@benchmark(figures=("driver.write-*", "driver.message-rate", "driver.doorbell-*", "driver.stream-*", "driver.probe-*"), kernel="stock")
def bandwidth_latency_and_probe_time_of_mlx4(bench):
    """Measures times and the card's work, interleaved."""
    fabric = Fabric(bench)
    sides = fabric.sides()
    taken = {}

    def take(name, unit, which, value):
        taken.setdefault((name, unit), ([], []))[which].append(value)

    with bench.boot(*(side.guest for side in sides)):
        for side in sides:
            side.load()
        for _ in range(ROUNDS):
            for which, side in enumerate(sides):
                for name, value in side.measure("times").items():
                    take(name, UNITS.get(name, "MB/s"), which, value)
                asked, figures = fabric.counted(side, lambda side=side: side.measure("stream"))
                thousands = figures["driver.stream"] / 1000
                for kind in ("send", "cq", "eq"):
                    take(f"driver.stream-{kind}-doorbells", "1/1000", which, asked[f"{kind}_doorbells"] / thousands)
                take("driver.stream-interrupts", "1/1000", which, asked["interrupts"] / thousands)
        take_probes(fabric, sides, take)
    for (name, unit), (ours, theirs) in taken.items():
        if name != "driver.stream":
            bench.figure(name, unit, ours, theirs)
