#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests a trunk over a network with faults. Each weftd is in a network namespace of its own (cluster.py).

    network_test.py WEFT WEFTD LIBRARY [TEST...]

LIBRARY is the library that replaces libibumad in programs of infiniband-diags. weft finds it without this argument.
"""
import contextlib
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
import cases
import cluster
from daemon import TIME_LIMIT, await_that

WEFT, WEFTD = (os.path.abspath(program) for program in sys.argv[1:3])
assert os.path.exists(sys.argv[3])
LAB = """
name = "network"
trunk-key-file = "trunk.key"
[[place]]
name = "p1"
address = "10.77.0.1:7470"
[[place]]
name = "p2"
address = "10.77.0.2:7470"
[[switch]]
name = "s1"
place = "p1"
[[switch]]
name = "s2"
place = "p2"
[[host]]
name = "h1"
model = "endpoint"
[[host]]
name = "h2"
model = "endpoint"
[[link]]
ends = ["h1", "s1"]
[[link]]
ends = ["h2", "s2"]
[[link]]
ends = ["s1/8", "s2/8"]
"""
NODES = {"weft SM", "s1", "s2", "h1", "h2"}
SILENCE = 10        # seconds after which a trunk whose peer sends nothing is down


class Fabric:
    """Two daemons, of which the first one runs the subnet manager."""

    def __init__(self, stack, wire=None):
        """wire: the arguments of a cluster.Wire."""
        self.cluster = cluster.Cluster(stack, 2)
        self.nodes = self.cluster.nodes
        self.wire = cluster.Wire(stack, self.nodes, **wire) if wire else None
        folder = self.cluster.folder
        (folder / "lab.toml").write_text(LAB)
        (folder / "trunk.key").write_bytes(secrets.token_bytes(32))
        (folder / "trunk.key").chmod(0o600)
        self.directories = [folder / place for place in ("p1", "p2")]
        self.daemons = []
        for node, directory in zip(self.nodes, self.directories):
            directory.mkdir(mode=0o700)
            # nsenter becomes weftd, so a signal reaches weftd.
            self.daemons.append(self.cluster.start(*node.words(WEFTD, "--socket-dir", directory, "--lab", folder / "lab.toml", "--place", directory.name), log=folder / "weftd.log"))
        for directory in self.directories:
            await_that("weftd to serve", (directory / "control.sock").is_socket)

    def weft(self, number, *words):
        return subprocess.run([WEFT, "--socket-dir", str(self.directories[number]), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=TIME_LIMIT).stdout

    def shown(self, number):
        return json.loads(self.weft(number, "--json", "fabric", "show"))

    def trunk(self, number):
        return self.shown(number)["trunks"][0]

    def is_up(self, number):
        """Returns whether all links of a place are up, and have LIDs at their switches."""
        shown = self.shown(number)
        return all(link["up"] for link in shown["links"]) and all(switch["lid"] for switch in shown["switches"])

    def await_up(self):
        await_that("the subnet", lambda: self.is_up(0) and self.is_up(1) and not time.sleep(0.05))

    def lids(self, number):
        """Returns {node: LID} as ibnetdiscover finds them from a host."""
        text = self.weft(number, "attach", f"h{number + 1}", "--", "ibnetdiscover")
        found = {name: int(lid) for name, lid in re.findall(r'^Switch\s.*# "([^"]*)".* lid (\d+)', text, re.MULTILINE)}
        return found | {name: int(lid) for name, lid in re.findall(r'^Ca\s.*# "([^"]*)"\n\[1\].*?# lid (\d+)', text, re.MULTILINE)}

    def counters(self):
        """Returns the counters of errors of the trunk's ports, and the connections that the trunks have lost."""
        found = {}
        for number, port in enumerate(("s1/8", "s2/8")):
            values = json.loads(self.weft(number, "--json", "counters", port))[port]
            found[port] = {name: value for name, value in values.items() if value and re.search("error|down|drop|discard|violation", name, re.IGNORECASE)}
            found[port]["violations"] = self.trunk(number)["violations"]
        return found


class KilledTest(unittest.TestCase):
    def test_temporary_files_of_a_test_killed_by_sigkill_are_removed(self):
        if reason := cluster.missing():
            self.skipTest(reason)
        reading, writing = os.pipe()

        def within():
            with contextlib.ExitStack() as stack:
                folder = cluster.Cluster(stack, 1).folder
                (folder / "trunk.key").write_bytes(bytes(32))
                os.write(writing, str(folder).encode())
                os.kill(os.getpid(), signal.SIGKILL)

        self.assertNotEqual(cluster.inside(within), 0)
        folder = pathlib.Path(os.read(reading, 4096).decode())
        os.close(reading)
        os.close(writing)
        self.addCleanup(shutil.rmtree, folder)
        self.assertEqual(list(folder.iterdir()), [])


class TrunkOverFaultyNetwork(unittest.TestCase):
    def with_fabric(self, work, **wire):
        if reason := cluster.missing():
            self.skipTest(reason)
        if not shutil.which("ibnetdiscover", path=cluster.SYSTEM):
            self.skipTest("not installed: ibnetdiscover")

        def within():
            with contextlib.ExitStack() as stack:
                fabric = Fabric(stack, wire)
                fabric.await_up()
                work(fabric)

        self.assertEqual(cluster.inside(within), 0)

    def test_network_loss_and_reordering_only_delay_packets_of_the_fabric(self):
        def work(fabric):
            before = fabric.counters()
            for number in (0, 1) * (20 if cases.FULL else 2):
                self.assertEqual(set(fabric.lids(number)), NODES)
            # Each side sends enough that frames have been lost and reordered.
            await_that("lost and reordered frames", lambda: fabric.lids(1) and fabric.wire.lost > 5 and fabric.wire.reordered > 5)
            self.assertEqual(fabric.counters(), before)
            self.assertEqual({name: count for port in before.values() for name, count in port.items() if count}, {})
        self.with_fabric(work, delay=0.002, loss=0.03, reorder=0.1)

    @cases.in_full_run
    def test_trunk_is_down_while_the_network_cable_is_unplugged(self):
        def work(fabric):
            lids = fabric.lids(0)
            fabric.nodes[1].cable("down")
            begin = time.monotonic()
            for number in (0, 1):
                await_that("the trunk to go down", lambda number=number: not fabric.trunk(number)["connected"] and not fabric.is_up(number))
            self.assertGreater(time.monotonic() - begin, 1)
            fabric.nodes[1].cable("up")
            fabric.await_up()
            self.assertEqual(fabric.lids(1), lids)
        self.with_fabric(work)

    @cases.in_full_run
    def test_trunk_disconnects_only_if_a_daemon_is_suspended_past_the_silence_timeout(self):
        def work(fabric):
            lids, before = fabric.lids(0), fabric.counters()
            for seconds in (SILENCE / 2, SILENCE * 1.5):
                fabric.daemons[1].send_signal(signal.SIGSTOP)
                time.sleep(seconds)
                connected = fabric.trunk(0)["connected"]
                fabric.daemons[1].send_signal(signal.SIGCONT)
                self.assertEqual(connected, seconds < SILENCE)
                fabric.await_up()
                self.assertEqual(fabric.lids(1), lids)
                if connected:
                    self.assertEqual(fabric.counters(), before)
        self.with_fabric(work)


if __name__ == "__main__":
    cases.main([sys.argv[0], *sys.argv[4:]])
