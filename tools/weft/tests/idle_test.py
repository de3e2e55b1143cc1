#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""What a weftd with a thousand cards takes of its host while nobody uses them, under the limits that a host has by default.

    idle_test.py WEFTD
"""
import os
import pathlib
import re
import resource
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "session"), str(HERE.parents[2] / "scripts")]

import topology  # noqa: E402
from daemon import weftd  # noqa: E402

CARDS = 1000
SECONDS = 3
# Of each card; Documentation/performance.rst has what was measured.
MOST_DESCRIPTORS, MOST_THREADS, MOST_KIB = 5, 1.1, 200
MOST_CPU = 0.03         # of one processor, by all of them


class Idle(unittest.TestCase):
    def test_thousand_cards(self):
        if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 6 * CARDS:
            self.skipTest("fewer descriptors than a host allows by default")
        with weftd(WEFTD, topology.dragonfly(CARDS).text()) as (process, directory):
            self.assertEqual(len(list(directory.glob("node*.sock"))), CARDS)
            proc = pathlib.Path("/proc", str(process.pid))
            said = dict(re.findall(r"^(\w+):\s+(\d+)", (proc / "status").read_text(), re.MULTILINE))
            descriptors = len(os.listdir(proc / "fd"))
            for _ in range(10):     # until what starting left to do is done
                began = self.cpu_seconds(proc)
                time.sleep(SECONDS)     # the time over which is measured
                spent = (self.cpu_seconds(proc) - began) / SECONDS
                if spent < MOST_CPU:
                    break
        print(f"{CARDS} cards: {descriptors} descriptors, {said['Threads']} threads, {int(said['VmRSS']) >> 10} MiB, {spent:.2%} of a CPU", file=sys.stderr)
        self.assertLess(descriptors, MOST_DESCRIPTORS * CARDS)
        self.assertLess(int(said["Threads"]), MOST_THREADS * CARDS)
        self.assertLess(int(said["VmRSS"]), MOST_KIB * CARDS)
        self.assertLess(spent, MOST_CPU)

    @staticmethod
    def cpu_seconds(proc):
        fields = (proc / "stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    WEFTD = sys.argv.pop()
    unittest.main()
