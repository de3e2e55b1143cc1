# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The driver beside the kernel's own on the same emulated card: instructions a call, doorbells, bandwidth, latency, probe.

Both run on the stock kernel, each in a guest with a card of its own on one fabric; the measuring code is the same source. What is
measured by the clock is measured in turns, so that what else the host does falls on both alike.
"""
import json
import re
import subprocess

from lab import kernels, modules, reference
from lab.benchmarks import benchmark

ROUNDS = 5
UNITS = {"driver.write-latency": "ns", "driver.doorbell-to-interrupt": "ns", "driver.message-rate": "1/s"}    # the others are bytes a microsecond


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
    """Two cards on a weftd, and what their drivers ask of them."""

    def __init__(self, bench):
        self._bench = bench
        self._directory = bench.socket_path("fabric")
        bench.start(bench.program("weftd"), "--socket-dir", self._directory, until=(self._directory / "node2.sock").is_socket)
        kernel = kernels.find("stock")
        modules.build(kernel.kdir)
        self._reference = reference.build(kernel, bench.directory, "hw/connectx/tests/bench")

    def sides(self, **options):
        """Ours and theirs, not started."""
        ours, theirs = (self._bench.guest(name, vfio_user=[self._directory / f"{card}.sock"], **share, **options)
                        for name, card, share in (("ours", "node1", {}), ("theirs", "node2", {"share": self._reference})))
        return (Side(ours, "node1", [f"insmod /share/{name}.ko" for name in ("weft_kern", "weft_core", "weft_connectx")],
                     "weft_card_figures", "weft_connectx"),
                Side(theirs, "node2", ["modprobe mlx4_ib"], "card_reference", "mlx4_core"))

    def counters(self, side):
        done = subprocess.run([self._bench.program("weft"), "--socket-dir", self._directory, "--json", "counters", "--cards"],
                              capture_output=True, check=True, timeout=20)
        return json.loads(done.stdout)[side.card]

    def counted(self, side, action):
        """What an action asks of a side's card, and what it returns."""
        before = self.counters(side)
        result = action()
        after = self.counters(side)
        return {name: after[name] - before[name] for name in after}, result


@benchmark(figures=("driver.post-*", "driver.poll-*", "driver.req-notify", "driver.interrupt*"), kernel="stock")
def instructions(bench):
    """Counted, one guest after the other."""
    counts = []
    for side in Fabric(bench).sides(icount=True):
        with side.guest:
            side.load()
            counts.append(side.measure("counts"))
    ours, theirs = counts
    for name, count in ours.items():
        bench.figure(name, "insn", [count], [theirs[name]])


@benchmark(figures=("driver.write-*", "driver.message-rate", "driver.doorbell-*", "driver.stream-*", "driver.probe-*"), kernel="stock")
def by_the_clock(bench):
    """What the clock and the card say, in turns."""
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
        for _ in range(ROUNDS):
            for which, side in enumerate(sides):
                asked, seconds = fabric.counted(side, side.probe)
                take("driver.probe-time", "s", which, seconds)
                take("driver.probe-commands", "1", which, asked["commands"])
    for (name, unit), (ours, theirs) in taken.items():
        if name != "driver.stream":
            bench.figure(name, unit, ours, theirs)
