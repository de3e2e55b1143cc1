# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that a lost ping is distinguished from an answer that the kernel never sent."""
import types
import unittest

from lab.echo import Echoes, ping

NAMES = "InEchos", "InEchoReps", "OutErrors", "OutEchoReps"


class Node:
    """A node whose ICMP counters in /proc/net/snmp are set by the test."""
    slowness = 0    # no waits

    def __init__(self, name):
        self.name, self.counters = name, dict.fromkeys(NAMES, 7)

    def add(self, **counters):
        for name, value in counters.items():
            self.counters[name] += value

    def run(self, command, *_, **__):
        if command.startswith("ping "):
            return types.SimpleNamespace(out="3 packets transmitted, 2 received")
        return types.SimpleNamespace(out=f"Icmp: {' '.join(self.counters)}\nIcmp: {' '.join(map(str, self.counters.values()))}\n")


class Pings(unittest.TestCase):
    def setUp(self):
        self.near, self.far = Node("near"), Node("far")
        self.echoes = Echoes(self.near, self.far)

    def test_ping_check_passes_if_each_echo_request_has_a_reply(self):
        self.far.add(InEchos=3, OutEchoReps=3)
        self.near.add(InEchoReps=3)
        self.echoes.check(3)

    def test_echo_reply_dropped_by_the_kernel_is_not_counted_as_loss(self):
        self.far.add(InEchos=3, OutEchoReps=2, OutErrors=1)
        self.near.add(InEchoReps=2)
        self.echoes.check(3)

    def test_lost_echo_request_is_reported(self):
        self.far.add(InEchos=2, OutEchoReps=2)
        self.near.add(InEchoReps=2)
        with self.assertRaisesRegex(AssertionError, "3 pings sent, 2 arrived"):
            self.echoes.check(3)

    def test_lost_echo_reply_is_reported(self):
        self.far.add(InEchos=3, OutEchoReps=2, OutErrors=1)
        self.near.add(InEchoReps=1)
        with self.assertRaisesRegex(AssertionError, "2 answers sent .* 1 arrived"):
            self.echoes.check(3)

    def test_echo_request_is_reported_if_icmp_counters_show_neither_a_reply_nor_an_error(self):
        self.far.add(InEchos=3, OutEchoReps=2)
        self.near.add(InEchoReps=2)
        with self.assertRaises(AssertionError):
            self.echoes.check(3)

    def test_unanswered_pings_are_reported(self):
        self.far.add(InEchos=3, OutErrors=3)
        with self.assertRaisesRegex(AssertionError, "no ping was answered"):
            self.echoes.check(3)

    def test_unsent_pings_are_reported(self):
        with self.assertRaisesRegex(AssertionError, "3 packets transmitted"):
            ping(self.near, self.far, "10.0.0.2", 4)


if __name__ == "__main__":
    unittest.main()
