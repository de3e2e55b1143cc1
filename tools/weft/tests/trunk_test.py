#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests a trunk between two daemons: one subnet, seen from both by the unmodified programs of infiniband-diags.

    trunk_test.py WEFT WEFTD LIBRARY [TEST...]

LIBRARY is the library that replaces libibumad in these programs. weft finds it without this argument.
"""
import contextlib
import json
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import daemon

WEFT, WEFTD, LIBRARY = sys.argv[1:4]
assert os.path.exists(LIBRARY)
SYSTEM = os.pathsep.join(("/usr/sbin", "/sbin", os.environ.get("PATH", os.defpath)))
NEEDED = ("ibnetdiscover", "perfquery")
LAB = """
name = "{name}"

[[switch]]
name = "leaf-{name}"
ports = 4

[[host]]
name = "node-{name}"
model = "endpoint"

[[link]]
ends = ["node-{name}", "leaf-{name}"]

[[trunk]]
name = "west"
end = "leaf-{name}/4"
{address}
key-file = "{key}"
{settings}
[sm]
enabled = {manages}
"""


class Daemon:
    """One weftd with its half of the fabric, which runs within start()."""

    def __init__(self, folder, name, key, address, manages, settings=""):
        self.directory = folder / name
        self.node = f"node-{name}"
        self.lab = LAB.format(name=name, key=key, address=address, manages=str(manages).lower(), settings=settings)
        self.process = None

    @contextlib.contextmanager
    def start(self):
        self.directory.mkdir(exist_ok=True)
        (self.directory / "control.sock").unlink(missing_ok=True)       # of one that was killed
        with daemon.weftd(WEFTD, self.lab, self.directory) as (self.process, _):
            yield self

    def weft(self, *words):
        done = subprocess.run([WEFT, "--socket-dir", str(self.directory), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              env={**os.environ, "PATH": SYSTEM}, timeout=daemon.PATIENCE)
        return done.stdout if done.returncode == 0 else ""

    def attached(self, *words):
        """Standard output of a program on this half's node; empty if it fails."""
        return self.weft("attach", self.node, "--", *words)

    def fabric(self):
        return json.loads(self.weft("--json", "fabric", "show"))

    def trunk(self):
        return self.fabric()["trunks"][0]

    def link_is_up(self):
        return any(link["up"] for link in self.fabric()["links"] if "west/1" in link["ends"])

    def counter(self, name):
        port = f"leaf-{self.directory.name}/4"
        return json.loads(self.weft("--json", "counters", port))[port][name]

    def lids(self):
        """{node: LID} of all that ibnetdiscover finds from here."""
        text = self.attached("ibnetdiscover")
        found = {name: int(lid) for name, lid in re.findall(r'^Switch\s.*# "([^"]*)".* lid (\d+)', text, re.MULTILINE)}
        return found | {name: int(lid) for name, lid in re.findall(r'^Ca\s.*# "([^"]*)"\n\[1\].*?# lid (\d+)', text, re.MULTILINE)}


class Trunk(unittest.TestCase):
    def setUp(self):
        if missing := [name for name in NEEDED if not shutil.which(name, path=SYSTEM)]:
            self.skipTest(f"not installed: {', '.join(missing)}")
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-trunk-")))
        self.key = self.write_key("key")

    def write_key(self, name):
        path = self.folder / name
        path.write_bytes(secrets.token_bytes(32))
        path.chmod(0o600)
        return path

    def first(self):
        return self.enterContext(Daemon(self.folder, "first", self.key, 'listen = "127.0.0.1:0"', True).start())

    def second(self, first, key=None, settings=""):
        return Daemon(self.folder, "second", key or self.key, f'connect = "{first.trunk()["address"]}"', False, settings)

    def await_subnet(self, *daemons):
        """Waits until all nodes of both halves have LIDs and each half reaches the other by them."""
        names = {"node-first", "node-second", "leaf-first", "leaf-second"}
        for each in daemons:
            def is_complete(of=each):
                lids = of.lids()
                return names <= set(lids) and all(lids[name] for name in names) and lids
            lids = daemon.await_that(f"the subnet to be complete at {each.node}", is_complete)
            for name in names:
                daemon.await_that(f"{each.node} to reach {name}", lambda of=each, lid=lids[name]: of.attached("perfquery", str(lid), "1"))
        return lids

    def test_two_daemons_are_one_subnet(self):
        first = self.first()
        with self.second(first).start() as second:
            lids = self.await_subnet(first, second)
            self.assertEqual(first.lids(), second.lids())
            # The manager of the first half has numbered the second.
            self.assertEqual([node["lid"] for node in second.fabric()["switches"]], [lids["leaf-second"]])
            self.assertIn(f"connected to {first.trunk()['address']}", second.weft("fabric", "show"))
            route = first.attached("ibtracert", str(lids["node-first"]), str(lids["node-second"]))
            self.assertEqual(re.findall(r'"(.*)"', route), ["node-first", "leaf-first", "leaf-second", "node-second", "node-second"])
            if shutil.which("ibping", path=SYSTEM):
                with daemon.process(WEFT, "--socket-dir", str(second.directory), "attach", second.node, "--", "ibping", "-S", env={**os.environ, "PATH": SYSTEM}):
                    # The first ones may find no server yet.
                    daemon.await_that("ibping across the trunk",
                                      lambda: "3 received, 0% packet loss" in first.attached("ibping", "-c", "3", str(lids["node-second"])))

    def test_killed_daemon_is_a_pulled_cable_and_comes_back(self):
        first = self.first()
        with self.second(first).start() as second:
            self.await_subnet(first, second)
            for times in (1, 2):
                second.process.kill()
                second.process.wait()
                daemon.await_that("the link to go down", lambda: not first.link_is_up())
                self.assertFalse(first.trunk()["connected"])
                daemon.await_that("the manager to miss the other half", lambda: first.lids() and "node-second" not in first.lids())
                self.assertEqual(first.counter("link_downed"), times)
                again = self.second(first)
                self.enterContext(again.start())
                second.process = again.process
                self.await_subnet(first, again)
                self.assertEqual(first.counter("link_downed"), times)
                self.assertEqual(again.counter("link_downed"), 0)
            self.assertEqual(first.trunk()["violations"], 0)
            self.assertEqual(first.trunk()["connections"], 3)

    def test_other_key_is_refused(self):
        first = self.first()
        with self.second(first, key=self.write_key("other")).start() as second:
            daemon.await_that("a refusal", lambda: second.trunk()["refused"])
            self.assertIn("the two ends have different keys", second.weft("fabric", "show"))
            self.assertFalse(first.link_is_up())
            self.assertEqual(first.trunk()["connections"], 0)

    def test_settings_of_one_half_hold_for_the_link(self):
        first = self.first()
        with self.second(first, settings='width = "1x"\nmtu = 2048').start() as second:
            lids = self.await_subnet(first, second)
            info = first.attached("smpquery", "portinfo", str(lids["leaf-first"]), "4")
            self.assertRegex(info, r"LinkWidthActive:\.*1X")
            self.assertRegex(info, r"NeighborMTU:\.*2048")
            second.weft("link", "down", "west")
            daemon.await_that("the link to go down", lambda: not first.link_is_up())
            second.weft("link", "up", "west")
            daemon.await_that("the link to come up", first.link_is_up)
            self.await_subnet(first, second)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
