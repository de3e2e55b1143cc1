#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests `weft lab --hosts` with OpenSSH: an sshd on each node of a cluster (cluster.py), and one at a loopback address. The hosts of the labs are
endpoints, which need no guests.

    ssh_test.py WEFT WEFTD [TEST...]
"""
import contextlib
import json
import os
import pathlib
import shlex
import signal
import sys
import time
import unittest

sys.dont_write_bytecode = True
import cases
import cluster
from daemon import await_that

WEFT, WEFTD = (pathlib.Path(program).resolve() for program in sys.argv[1:3])
LAB = """
name = "two"
[[switch]]
name = "s1"
[[switch]]
name = "s2"
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
ends = ["s1", "s2"]
"""


@cases.in_full_run
class Ssh(unittest.TestCase):
    def with_hosts(self, work, loopback=False):
        """Calls work() with the hosts a1 and a2: nodes, or two names of a loopback address."""
        if reason := cluster.missing("ssh", "sshd", "ssh-keygen"):
            self.skipTest(reason)

        def within():
            with contextlib.ExitStack() as stack:
                nodes = cluster.Cluster(stack, 2)
                file, hosts = nodes.folder / "lab.toml", nodes.folder / "hosts.txt"
                file.write_text(LAB)
                if loopback:
                    self.ssh = cluster.Ssh(nodes, [("here", "127.0.0.1", lambda *words: words)])
                    hosts.write_text("here 127.0.0.1\np2=here 127.0.0.1\n")
                else:
                    self.ssh = cluster.Ssh(nodes, [(node.name, node.address, node.words) for node in nodes.nodes])
                    hosts.write_text("a1\nroot@a2\n")
                self.user = cluster.User(nodes, cluster.tree(nodes.folder, WEFT, WEFTD), ("--lab", file, "--ssh", shlex.join(self.ssh.words)), start=f"--hosts={hosts}")
                work()

        self.assertEqual(cluster.inside(within), 0)

    def up(self):
        done = self.user.call(*self.user.words("lab", "up"))
        self.assertEqual(done.returncode, 0, done.stderr)
        for place in ("p1", "p2"):
            await_that("the subnet", lambda place=place: all(switch["lid"] for switch in self.fabric(place)["switches"]))

    def fabric(self, place):
        return json.loads(self.user.succeeds(self.user.weft, "--json", "--socket-dir", self.user.directory / place, "fabric", "show"))

    def assert_ended(self, *said):
        await_that("the end of the lab", lambda: not (self.user.directory / "lab.sock").exists())
        reason = self.user.call(self.user.weft, "--socket-dir", self.user.directory, "lab", "check").stderr
        for text in said:
            self.assertIn(text, reason)
        self.user.assert_nothing_is_left()

    def test_trunk_listens_at_the_address_by_which_ssh_reached_the_host(self):
        """The trunk listens at the address by which ssh has reached the host."""
        def work():
            self.up()
            self.assertEqual(self.fabric("p2")["trunks"][0]["address"].rpartition(":")[0], "10.77.0.1")
            self.user.of_lab("lab", "down")
            self.user.assert_nothing_is_left()
        self.with_hosts(work)

    def test_lab_on_one_host_starts_and_stops_over_the_loopback_address(self):
        def work():
            self.up()
            self.user.of_lab("lab", "down")
            self.user.assert_nothing_is_left()
        self.with_hosts(work, loopback=True)

    def test_lab_ends_if_its_ssh_connections_are_killed(self):
        def work():
            for at, find in (("this side", lambda: [number for number, line in cluster.processes(self.user.mark).items() if line.startswith("ssh ") and "root@a2" in line]),
                             ("the host", lambda: [number for number, line in cluster.processes("sshd: root@notty").items()][-1:])):
                self.up()
                numbers = find()
                self.assertTrue(numbers, at)
                for number in numbers:
                    os.kill(number, signal.SIGKILL)
                self.assert_ended("(place p")
        self.with_hosts(work)

    def test_ssh_errors_are_reported(self):
        """The reason contains what ssh has said: an unknown key of the host, a key of the user that is not accepted, an absent program."""
        def work():
            known, user, hosts = self.ssh.folder / "known", self.ssh.folder / "user.pub", self.ssh.folder / "hosts.txt"
            for file, said in ((known, "Host key verification failed"), (user, "Permission denied (publickey")):
                before = file.read_text()
                file.write_text("")
                done = self.user.call(*self.user.words("lab", "up"))
                self.assertEqual(done.returncode, 1)
                self.assertIn(said, done.stderr)
                file.write_text(before)
            done = self.user.call(*[word.replace(self.user.weft, "/none/weft") if position else word for position, word in enumerate(self.user.words("lab", "up"))])
            self.assertEqual(done.returncode, 1)
            self.assertIn("--remote-weft sets the path of weft there", done.stderr)
            # Port 2222 of the bridge has no sshd.
            hosts.write_text("a1\n10.77.0.254\n")
            done = self.user.call(*self.user.words("lab", "up"))
            self.assertEqual(done.returncode, 1)
            self.assertIn("Connection refused", done.stderr)
            self.user.assert_nothing_is_left()
        self.with_hosts(work)

    def test_sigint_during_lab_up_terminates_all_processes(self):
        """A host does not answer, because its cable was pulled."""
        def work():
            self.user.nodes[1].cable("down")
            with self.user.running(*self.user.words("lab", "up")) as starting:
                await_that("the session of the first host", lambda: self.user.on(self.user.nodes[0], " place weftd=") or time.sleep(0.1))
                os.killpg(starting.pid, signal.SIGINT)
                self.assertEqual(self.user.ends(starting), 130)
            self.user.assert_nothing_is_left()
        self.with_hosts(work)


if __name__ == "__main__":
    cases.main([sys.argv[0], *sys.argv[3:]])
