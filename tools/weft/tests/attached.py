# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Provides a fabric without guests, and runs programs of this machine, such as OpenSM, attached to its nodes (`weft attach`).

Tests that import this module get the paths of weft and weftd as their first two arguments.
"""
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import daemon

WEFT, WEFTD = sys.argv[1:3]
SYSTEM = os.pathsep.join(("/usr/sbin", "/sbin", os.environ.get("PATH", os.defpath)))
NEEDED = ("ibnetdiscover", "opensm")
NODES = ("node1", "node2", "node3", "node4", "switch1", "switch2", "switch3")

NODE1 = """
[[host]]
name = "node1"
model = "endpoint"

[[link]]
ends = ["node1", "switch1"]
"""
FABRIC = NODE1 + """
[[switch]]
name = "switch1"
ports = 8

[[switch]]
name = "switch2"
ports = 8

[[switch]]
name = "switch3"
ports = 8

[[host]]
name = "node2"
model = "endpoint"

[[host]]
name = "node3"
model = "endpoint"

[[host]]
name = "node4"
model = "endpoint"
trusted = false

[[link]]
ends = ["node2", "switch2"]

[[link]]
ends = ["node3", "switch3"]

[[link]]
ends = ["node4", "switch3"]

[[link]]
ends = ["switch1", "switch2"]

[[link]]
ends = ["switch2", "switch3"]

[[link]]
ends = ["switch3", "switch1"]
"""
OWN_MANAGER = FABRIC + """
[sm]
switch = "switch1"
"""
NO_MANAGER = FABRIC + """
[sm]
enabled = false
"""


class Attached(unittest.TestCase):
    LAB = OWN_MANAGER
    EVENTS = ()     # scheduled requests

    def setUp(self):
        if missing := [name for name in NEEDED if not shutil.which(name, path=SYSTEM)]:
            self.skipTest(f"not installed: {', '.join(missing)}")
        self.weftd, self.directory = self.enterContext(daemon.weftd(WEFTD, self.LAB, events=self.EVENTS))

    @staticmethod
    def environment():
        return {**os.environ, "PATH": SYSTEM}

    def command(self, node, *words):
        return [WEFT, "--socket-dir", str(self.directory), "attach", node, "--", *words]

    def run_on(self, node, *words, status=0):
        """Returns the standard output of a program on a node, which must exit with that status."""
        done = subprocess.run(self.command(node, *words), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              env=self.environment(), timeout=daemon.TIME_LIMIT)
        self.assertEqual(done.returncode, status, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    @contextlib.contextmanager
    def running_on(self, node, *words, **options):
        with daemon.process(*self.command(node, *words), env=self.environment(), **options) as running:
            yield running

    def fabric(self):
        """Returns weftd's own view of the fabric."""
        done = subprocess.run([WEFT, "--socket-dir", str(self.directory), "--json", "fabric", "show"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)

    def lids(self):
        """Returns {node: LID} of hosts and switches, as they are discovered; 0 before a subnet manager has assigned it."""
        text = self.run_on("node1", "ibnetdiscover")
        found = {name: int(lid) for name, lid in re.findall(r'^Switch\s.*# "([^"]*)".* lid (\d+)', text, re.MULTILINE)}
        return found | {name: int(lid) for name, lid in re.findall(r'^Ca\s.*# "([^"]*)"\n\[1\].*?# lid (\d+)', text, re.MULTILINE) if name in NODES}

    def guid_of(self, node):
        return re.search(r"Port GUID: (\w+)", self.run_on(node, "ibstat"))[1]

    def await_subnet(self):
        """Waits until all links are active at both ends, and therefore all nodes have LIDs and routes. A link that is still training is not up."""
        ends = 2 * sum(link["settings"]["state"] == "up" for link in self.fabric()["links"])

        def is_up():
            links = subprocess.run(self.command("node1", "iblinkinfo"), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                                   env=self.environment()).stdout
            return links.count("LinkUp") == links.count("Active/") == ends
        daemon.await_that("all links to become active", is_up)

    def opensm(self, node, *words):
        """Starts an OpenSM on the node, which runs until the test ends."""
        room = self.enterContext(tempfile.TemporaryDirectory(prefix="weft-opensm-"))
        return self.enterContext(self.running_on(node, "env", f"OSM_TMP_DIR={room}", f"OSM_CACHE_DIR={room}", "opensm", "-f", f"{room}/log",
                                                 "--dump_files_dir", room, *words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
