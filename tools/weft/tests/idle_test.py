#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that an idle weftd uses only limited CPU time, memory, threads and file descriptors, first with a thousand cards, and then with ten thousand
end nodes without guests. weftd needs no higher limit of descriptors than Linux systems have by default.

    idle_test.py WEFTD
"""
import json
import os
import pathlib
import re
import resource
import socket
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "session"), str(HERE.parents[2] / "scripts")]

import cases
import topology  # noqa: E402
from daemon import TIME_LIMIT, await_that, weftd  # noqa: E402

CARDS = 1000
ENDPOINTS = 10000
MOST_KIB_OF_ENDPOINTS = 30
SECONDS = 3
# Limits for each card; Documentation/performance.rst has the measured values.
MOST_DESCRIPTORS, MOST_KIB = 2.2, 90
MOST_THREADS = 8 + max(32, os.cpu_count())      # whatever the number of cards, which share threads
MOST_CPU = 0.03         # of one CPU, for all cards together


class Idle(unittest.TestCase):
    def test_weftd_with_1000_idle_cards_stays_within_cpu_memory_and_thread_limits(self):
        if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 6 * CARDS:
            self.skipTest("fewer descriptors than a host allows by default")
        with weftd(WEFTD, topology.dragonfly(CARDS).text()) as (process, directory):
            self.assertEqual(len(list(directory.glob("node*.sock"))), CARDS)
            proc = pathlib.Path("/proc", str(process.pid))
            said = dict(re.findall(r"^(\w+):\s+(\d+)", (proc / "status").read_text(), re.MULTILINE))
            descriptors = len(os.listdir(proc / "fd"))
            for _ in range(10):     # repeat until the work of the start is done
                began = self.cpu_seconds(proc)
                time.sleep(SECONDS)     # the time over which is measured
                spent = (self.cpu_seconds(proc) - began) / SECONDS
                if spent < MOST_CPU:
                    break
        print(f"{CARDS} cards: {descriptors} descriptors, {said['Threads']} threads, {int(said['VmRSS']) >> 10} MiB, {spent:.2%} of a CPU", file=sys.stderr)
        self.assertLess(descriptors, MOST_DESCRIPTORS * CARDS)
        self.assertLess(int(said["Threads"]), MOST_THREADS)
        self.assertLess(int(said["VmRSS"]), MOST_KIB * CARDS)
        self.assertLess(spent, MOST_CPU)

    def test_weftd_with_10000_idle_end_nodes_without_guests_stays_within_resource_limits(self):
        made = topology.fat_tree(ENDPOINTS, 36, each=40, spines=4)
        made.model = "endpoint"
        with weftd(WEFTD, made.text()) as (process, directory):
            self.assertEqual(list(directory.glob("node*.sock")), [])
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(TIME_LIMIT)
                client.connect(str(directory / "control.sock"))
                answers = client.makefile("r")

                def ask(command):
                    client.sendall(json.dumps({"command": command}).encode() + b"\n")
                    return json.loads(answers.readline())["result"]
                await_that("all links", lambda: not ask("fabric.sample")["down"])
                fabric = await_that("LIDs", lambda: (shown := ask("fabric.show")) and all(node["lid"] for node in shown["switches"]) and shown)
            self.assertEqual((len(fabric["hosts"]), len(fabric["switches"]), len(fabric["links"])), (ENDPOINTS, 254, ENDPOINTS + 4 * 250 + 1))
            self.assertTrue(all(link["up"] for link in fabric["links"]))
            proc = pathlib.Path("/proc", str(process.pid))
            said = dict(re.findall(r"^(\w+):\s+(\d+)", (proc / "status").read_text(), re.MULTILINE))
            descriptors = len(os.listdir(proc / "fd"))
        print(f"{ENDPOINTS} endpoints: {descriptors} descriptors, {said['Threads']} threads, {int(said['VmRSS']) >> 10} MiB", file=sys.stderr)
        self.assertLess(descriptors, MOST_THREADS)
        self.assertLess(int(said["Threads"]), MOST_THREADS)
        self.assertLess(int(said["VmRSS"]), MOST_KIB_OF_ENDPOINTS * ENDPOINTS)

    @staticmethod
    def cpu_seconds(proc):
        fields = (proc / "stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    WEFTD = sys.argv.pop()
    cases.main(sys.argv)
