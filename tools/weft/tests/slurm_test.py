#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests `weft lab` in jobs of a real Slurm, whose nodes are network namespaces of this host (cluster.py). The hosts of the labs are endpoints, which
need no guests: each link that is up between switches proves that the places reach each other.

    slurm_test.py WEFT WEFTD [TEST...]
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import sys
import time
import unittest

sys.dont_write_bytecode = True
import cases
import cluster
from daemon import await_that

WEFT, WEFTD = (pathlib.Path(program).resolve() for program in sys.argv[1:3])
LOST = 150      # seconds until a host that does not answer has been found lost, and the lab has ended: longer than all time-outs together


def lab_file(count):
    """Returns a lab of some places with one switch and one endpoint each. The switches form a chain."""
    parts = ['name = "chain"']
    for number in range(1, count + 1):
        parts += [f'[[place]]\nname = "p{number}"', f'[[switch]]\nname = "s{number}"\nplace = "p{number}"', f'[[host]]\nname = "h{number}"\nmodel = "endpoint"',
                  f'[[link]]\nends = ["h{number}", "s{number}"]']
        if number > 1:
            parts.append(f'[[link]]\nends = ["s{number - 1}", "s{number}"]')
    return "\n".join([*parts, ""])


@cases.in_full_run
class Slurm(unittest.TestCase):
    def with_nodes(self, work, count=2, **more):
        """Calls work() with a Slurm of some nodes; self.user has its commands."""
        if reason := cluster.missing(*cluster.SLURM_PROGRAMS):
            self.skipTest(reason)

        def within():
            with contextlib.ExitStack() as stack:
                nodes = cluster.Cluster(stack, count)
                file = nodes.folder / "lab.toml"
                file.write_text(lab_file(count))
                self.user = cluster.User(nodes, cluster.tree(nodes.folder, WEFT, WEFTD), ("--lab", file))
                nodes.start_slurm(**more)
                work()

        self.assertEqual(cluster.inside(within), 0)

    def up(self, count=2, job=()):
        """Starts a lab; job: the command that makes the allocation, or srun does."""
        done = self.user.call(*job, *self.user.words("lab", "up", count=None if job else count))
        self.assertEqual(done.returncode, 0, done.stderr)

    def fabric(self, place):
        return json.loads(self.user.succeeds(self.user.weft, "--json", "--socket-dir", self.user.directory / place, "fabric", "show"))

    def await_subnet(self, count=2):
        """Waits until the subnet manager has given LIDs to all switches."""
        await_that("a subnet over all hosts", lambda: all(switch["lid"] for number in range(count) for switch in self.fabric(f"p{number + 1}")["switches"]))

    def down(self):
        self.user.of_lab("lab", "down")
        self.user.assert_nothing_is_left()

    def assert_ended(self, *said, seconds=0):
        """Waits for the end of the lab, whose reason contains one of some texts."""
        deadline = time.monotonic() + seconds
        while (self.user.directory / "lab.sock").exists() and time.monotonic() < deadline:
            time.sleep(0.2)
        await_that("the end of the lab", lambda: not (self.user.directory / "lab.sock").exists())
        reason = self.user.call(self.user.weft, "--socket-dir", self.user.directory, "lab", "check").stderr
        self.assertTrue(any(text in reason for text in said), reason)

    def job(self):
        (job,) = self.user.cluster.jobs()
        return job.split()[0]

    def test_srun_allocates_the_nodes(self):
        def work():
            self.up()
            self.await_subnet()
            self.assertEqual(len(self.user.cluster.jobs()), 1)
            self.down()
        self.with_nodes(work)

    def test_lab_continues_after_weftd_was_killed(self):
        def work():
            self.up()
            self.await_subnet()
            (weftd,) = self.user.on(self.user.nodes[1], "weftd --socket")
            os.kill(weftd, signal.SIGKILL)
            await_that("another weftd", lambda: self.user.on(self.user.nodes[1], "weftd --socket") not in ([], [weftd]))
            await_that("its report", lambda: "weftd" in self.user.call(self.user.weft, "--socket-dir", self.user.directory, "lab", "check").stderr)
            self.await_subnet()
            self.down()
        self.with_nodes(work)

    def test_lab_continues_during_a_restart_of_slurmd(self):
        def work():
            self.up()
            self.user.cluster.kill_slurmd(self.user.nodes[1])
            self.await_subnet()
            self.user.cluster.start_slurmd(self.user.nodes[1])
            self.await_subnet()
            self.down()
            await_that("idle nodes", lambda: self.user.cluster.states() == {"idle"} or time.sleep(0.2))
        self.with_nodes(work)

    def test_node_failure_ends_the_lab(self):
        """A node without slurmd is down after a time, and Slurm ends its jobs. What runs on the node is ended by the program there."""
        def work():
            self.up()
            self.user.cluster.kill_slurmd(self.user.nodes[1])
            self.assert_ended("Node failure on a2", seconds=LOST)
            await_that("the end of all processes", lambda: not cluster.processes(self.user.mark) or time.sleep(0.2))
            self.user.cluster.start_slurmd(self.user.nodes[1])
            self.user.assert_nothing_is_left()
        self.with_nodes(work, timeout=5)

    def test_cancelled_job_ends_the_lab(self):
        def work():
            self.up()
            self.user.cluster.ask("scancel", self.job())
            self.assert_ended("CANCELLED", "Job step aborted")
            self.user.assert_nothing_is_left()
        self.with_nodes(work)

    def test_end_of_the_allocation_ends_the_lab(self):
        """`weft lab up` in a script of salloc leaves the lab in the background, and the allocation ends with the script."""
        def work():
            self.up(job=("salloc", "--quiet", "--nodes=2"))
            self.assert_ended("CANCELLED", "Job step aborted")
            self.user.assert_nothing_is_left()
        self.with_nodes(work)

    def test_sigkill_of_srun_slurmstepd_weft_up_or_a_remote_weft_process_ends_the_lab(self):
        """The parent of a session removes its directory, so it is not killed here."""
        def work():
            node = self.user.nodes[1]

            def of_launcher(text):
                return [number for number, line in cluster.processes(self.user.mark).items() if text in line]

            for what, find in (("session", lambda: sorted(self.user.on(node, " place weftd="))[-1:]), ("launcher", lambda: of_launcher(" up weftd=")),
                               ("srun", lambda: of_launcher("srun --nodes")),
                               ("slurmstepd", lambda: [number for number, line in cluster.processes("slurmstepd").items() if line.startswith("slurmstepd: [")])):
                self.up()
                numbers = find()
                self.assertTrue(numbers, what)
                for number in numbers:
                    os.kill(number, signal.SIGKILL)
                if what == "launcher":
                    await_that("the end of all processes", lambda: not cluster.processes(self.user.mark) or time.sleep(0.2))
                    shutil.rmtree(self.user.directory)      # the sockets of the launcher remain
                else:
                    # srun does not notice a killed slurmstepd, but the places send nothing more.
                    self.assert_ended("srun ", "(place p", seconds=LOST)
                if what == "srun":
                    # Slurm keeps the input of the tasks open, which end when nothing has arrived for a minute, and its allocation until InactiveLimit.
                    deadline = time.monotonic() + LOST
                    while cluster.processes(self.user.mark) and time.monotonic() < deadline:
                        time.sleep(0.5)
                    self.user.cluster.ask("scancel", self.job())
                self.user.assert_nothing_is_left()
        self.with_nodes(work)

    def test_unplugged_network_cable_ends_the_lab(self):
        """A host that does not answer is lost after a minute. It ends its place by itself."""
        def work():
            self.up()
            node = self.user.nodes[1]
            node.cable("down")
            self.assert_ended("a2 (place p2): nothing has arrived", seconds=LOST)
            deadline = time.monotonic() + LOST
            while self.user.on(node, "weftd --socket") and time.monotonic() < deadline:
                time.sleep(0.5)
            self.assertEqual(self.user.on(node, "weftd --socket"), [])
            node.cable("up")
            self.user.assert_nothing_is_left()
        self.with_nodes(work, timeout=300)

    def test_four_hosts_form_one_subnet(self):
        def work():
            self.up(4)
            self.await_subnet(4)
            self.down()
        self.with_nodes(work, count=4)

    def test_interrupted_wait_cancels_the_queued_job(self):
        def work():
            with self.user.running("srun", "--nodes=1", "sleep", "1000"):
                await_that("a job", lambda: any("RUNNING" in job for job in self.user.cluster.jobs()))
                with self.user.running(*self.user.words("lab", "up", count=2)) as starting:
                    await_that("a job that waits", lambda: any("PENDING" in job for job in self.user.cluster.jobs()))
                    os.killpg(starting.pid, signal.SIGINT)
                    self.assertEqual(self.user.ends(starting), 130)
                    await_that("the end of the job", lambda: not any("PENDING" in job for job in self.user.cluster.jobs()))
            self.user.assert_nothing_is_left()
        self.with_nodes(work)

    def test_lab_starts_when_nodes_become_free(self):
        """The job waits for nodes. The lab starts when they are free."""
        def work():
            with self.user.running("srun", "--nodes=1", "sleep", "5"):
                await_that("a job", lambda: any("RUNNING" in job for job in self.user.cluster.jobs()))
                self.up()
            self.await_subnet()
            self.down()
        self.with_nodes(work)


if __name__ == "__main__":
    cases.main([sys.argv[0], *sys.argv[3:]])
