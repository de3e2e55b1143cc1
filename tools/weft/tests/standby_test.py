#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that a subnet manager on standby takes over when the daemon of the master is killed.

    standby_test.py WEFT WEFTD LIBRARY [TEST...]
"""
import json
import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

sys.dont_write_bytecode = True
import daemon
from places_test import HOSTS, LAB, SWITCHES, SYSTEM, WEFT, Daemons, free_port

# The managers are at opposite switches of the ring.
MANAGED = LAB + '[sm]\nswitch = "s1"\nstandby = "s3"\n'
PLACES = "".join(f'[[place]]\nname = "p{number}"\n' for number in range(1, SWITCHES + 1))
FIRST, STANDBY = "p1", "p3"


class StandbySubnetManager(unittest.TestCase):
    maxDiff = None

    def start(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-standby-")))
        (folder / "trunk.key").write_bytes(secrets.token_bytes(32))
        (folder / "trunk.key").chmod(0o600)
        lab = MANAGED
        for number in range(1, SWITCHES + 1):
            lab = lab.replace(f'[[switch]]\nname = "s{number}"\n', f'[[switch]]\nname = "s{number}"\nplace = "p{number}"\n')
        (folder / "lab.toml").write_text(lab + PLACES)
        self.plan = json.loads(subprocess.run([WEFT, "--json", "lab", "plan", str(folder / "lab.toml")], capture_output=True, text=True, check=True).stdout)["places"]
        peers = []
        for place in self.plan:
            if count := sum(trunk["role"] == "listens" for trunk in place["trunks"]):
                peers += ["--peer", f"{place['name']}=localhost:{free_port(count)}"]
        self.labs = Daemons(self, folder / "lab.toml", [place["name"] for place in self.plan], lambda name: peers)

    def manager(self, name):
        """Returns the state of the manager of a place."""
        (manager,) = self.labs.fabric(name)["subnet_managers"]
        return manager

    def states(self):
        return self.manager(FIRST)["state"], self.manager(STANDBY)["state"]

    def lids(self, name):
        """Returns the LIDs of the ports by the nodes' GUIDs, as the manager of a place knows them."""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.labs.directories[name] / "control.sock"))
            client.sendall(json.dumps({"command": "fabric.show", "lids": True}).encode() + b"\n")
            return json.loads(client.makefile("rb").readline())["result"]["lids"]

    def await_complete(self, name, nodes):
        return daemon.await_that("a complete sweep", lambda: self.manager(name)["complete"] and len(lids := self.lids(name)) == nodes and all(map(any, lids.values())) and lids)

    def reaches(self, host, lid):
        """Returns whether a port answers a packet that follows the switches' tables."""
        return "PortXmitPkts" in self.labs.attached(host, "perfquery", "--timeout", "300", str(lid))

    def test_standby_subnet_manager_takes_over_and_hands_the_subnet_back(self):
        self.start()
        self.assertEqual([(place["name"], place["subnet_manager"], place["standby"]) for place in self.plan if place["subnet_manager"] or place["standby"]],
                         [(FIRST, True, False), (STANDBY, False, True)])
        daemon.await_that("one master and one on standby", lambda: self.states() == ("master", "standby"))
        lids = self.await_complete(FIRST, SWITCHES + HOSTS + 2)
        of_host = {host["name"]: lids[host["guid"]][1] for name in self.labs.directories for host in self.labs.fabric(name)["hosts"]}

        # h3 is at s2 and h5 is at s3, which is its neighbour.
        if have_perfquery := shutil.which("perfquery", path=SYSTEM) is not None:
            self.assertTrue(self.reaches("h3", of_host["h5"]))
        failed, ended = [], threading.Event()

        def traffic():
            while not ended.is_set():
                if not self.reaches("h3", of_host["h5"]):
                    failed.append("no answer")

        sender = threading.Thread(target=traffic)
        if have_perfquery:
            sender.start()
        try:
            self.labs.kill(FIRST)
            daemon.await_that("the other manager to take over", lambda: self.manager(STANDBY)["state"] == "master")
            # Without the first place: its switch, two hosts and its manager.
            after = self.await_complete(STANDBY, SWITCHES + HOSTS + 2 - 4)
        finally:
            ended.set()
            if have_perfquery:
                sender.join()
        self.assertEqual(failed, [], "traffic does not go on")
        self.assertEqual(after, {guid: lids[guid] for guid in after}, "LIDs have changed")

        # A link to s4, for which there is another one. The new manager changes the routes.
        sweeps = self.manager(STANDBY)["sweeps"]
        links = sorted(link["name"] for link in self.labs.fabric("p4")["links"] if {end.split("/")[0] for end in link["ends"]} == {"s3", "s4"})
        self.assertEqual(len(links), 2)
        for down, up in (links, links[::-1]):
            self.labs.weft(self.labs.directories["p4"], "link", "down", down)
            self.labs.weft(self.labs.directories["p4"], "link", "up", up)
            daemon.await_that("a sweep after the change", lambda of=sweeps: self.manager(STANDBY)["sweeps"] > of)
            sweeps = self.manager(STANDBY)["sweeps"]
            if have_perfquery:
                daemon.await_that("routes over the other link", lambda: all(self.reaches(source, of_host[to]) for source, to in (("h5", "h7"), ("h6", "h8"), ("h3", "h7"))))

        self.labs.start(FIRST)
        daemon.await_that("one master and one on standby", lambda: self.states() == ("master", "standby"))
        self.assertEqual(self.await_complete(FIRST, SWITCHES + HOSTS + 2), lids, "LIDs have changed")
        self.assertEqual(self.states(), ("master", "standby"))

    def test_one_weftd_can_run_a_master_and_a_standby_subnet_manager(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-standby-")))
        (folder / "lab.toml").write_text(MANAGED)
        self.labs = Daemons(self, folder / "lab.toml")
        daemon.await_that("one master", lambda: [(each["node"], each["state"]) for each in self.labs.fabric("all")["subnet_managers"]] == [("sm", "master"), ("sm-standby", "standby")])
        directory = self.labs.directories["all"]
        text = self.labs.weft(directory, "fabric", "show")
        self.assertIn("subnet manager on sm: master", text)
        self.assertIn("subnet manager on sm-standby: standby", text)
        # Both leave the subnet to another manager.
        self.labs.weft(directory, "sm", "disable")
        daemon.await_that("no master", lambda: {each["state"] for each in self.labs.fabric("all")["subnet_managers"]} == {"not active"})
        self.labs.weft(directory, "sm", "enable")
        daemon.await_that("one master", lambda: [each["state"] for each in self.labs.fabric("all")["subnet_managers"]] == ["master", "standby"])
        # A changed lab file starts and stops the one on standby.
        for text, states in ((MANAGED.replace('standby = "s3"\n', ""), ["master"]), (MANAGED, ["master", "standby"])):
            (folder / "lab.toml").write_text(text)
            self.assertIn("subnet manager on standby", self.labs.weft(directory, "lab", "apply", str(folder / "lab.toml")))
            daemon.await_that("the changed lab", lambda of=states: [each["state"] for each in self.labs.fabric("all")["subnet_managers"]] == of)

    def test_invalid_standby_settings_are_refused(self):
        with tempfile.TemporaryDirectory(prefix="weft-standby-") as folder:
            file = pathlib.Path(folder, "lab.toml")
            for text, said in ((LAB + '[sm]\nstandby = "s9"\n', "there is no switch 's9'"), (LAB + '[sm]\nenabled = false\nstandby = "s3"\n', "this lab has no subnet manager"),
                               (LAB + '[sm]\nstandby = "s3"\npriority = 0\n', "priority"), (LAB.replace('"h1"', '"sm-standby"') + '[sm]\nstandby = "s3"\n', "the name 'sm-standby' is given twice"),
                               (MANAGED.replace("ports = 8", "ports = 6"), "has no free port for the subnet manager")):
                file.write_text(text)
                done = subprocess.run([sys.argv[2], "--check", "--lab", str(file)], capture_output=True, text=True, check=False, timeout=daemon.TIME_LIMIT)
                self.assertEqual(done.returncode, 1)
                self.assertIn(said, done.stderr)


if __name__ == "__main__":
    assert os.path.exists(sys.argv[3])
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
