#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests the model of virtual time over several hosts: results that are computed by hand, the order of events, and the traces."""
import contextlib
import io
import pathlib
import random
import struct
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "model"))

import record_traces  # noqa: E402
import virtual_hosts  # noqa: E402
from virtual_hosts import LIMITS, PROMISES, PROTOCOLS, WINDOWS, Costs, Trace, simulate  # noqa: E402

COSTS = Costs(latency=40, cpu=1)


def trace(slices, packets=(), *, places=2, delay=1000, end=10_000):
    return Trace("test", delay, places, 0, end, tuple(slices), tuple(packets))


def random_trace(seed, places=4, delay=700):
    """Returns a trace in which each packet causes an event at its arrival, and each event may send packets. Many events have equal times."""
    chance = random.Random(seed)
    slices, packets, pending = [], [], [(chance.randrange(20) * 100, chance.randrange(places)) for _ in range(60)]
    while pending:
        time, place = pending.pop()
        slices.append((time, place, chance.randrange(1, 500)))
        if chance.random() < 0.4 and time < 20_000:
            # a star of places, as in record_traces.py
            target = chance.randrange(1, places) if place == 0 else 0
            packets.append((time, place, target))
            pending.append((time + delay, target))
    return trace(slices, packets, places=places, delay=delay, end=40_000)


class Arithmetic(unittest.TestCase):
    def test_one_host_takes_the_sum_of_all_costs(self):
        for seed in range(10):
            each = random_trace(seed)
            for protocol in PROTOCOLS:
                result = simulate(each, 1, COSTS, protocol)
                self.assertEqual((result.real, result.busy, result.messages), (each.cost, each.cost, 0))

    def test_window_takes_the_slowest_host_and_one_message(self):
        # Host 0: 150 and 1 for sending; host 1: 300 and 1, so its message arrives at 300 + 40 at host 0.
        result = simulate(trace(((0, 0, 100), (500, 0, 50), (200, 1, 300))), 2, COSTS, WINDOWS)
        self.assertEqual((result.real, result.busy, result.messages), (340, 300, 2))

    def test_events_a_lookahead_apart_are_in_different_windows(self):
        # First window: host 0 ends at 101, and its message arrives at 140. Second one: host 1 works from 140 to 170, sends until 171; host 0 gets this at 210.
        result = simulate(trace(((0, 0, 100), (1000, 1, 30))), 2, COSTS, WINDOWS)
        self.assertEqual((result.real, result.messages), (210, 4))
        # The same window, because the second event is earlier by a nanosecond.
        self.assertEqual(simulate(trace(((0, 0, 100), (999, 1, 30))), 2, COSTS, WINDOWS).real, 140)

    def test_window_of_four_hosts_waits_for_messages_of_all(self):
        # Host 3 works until 400, and sends three messages until 403. The last one is complete at 402 + 40. The others receive two more.
        result = simulate(trace(((0, 0, 10), (0, 3, 400)), places=4), 4, COSTS, WINDOWS)
        self.assertEqual((result.real, result.messages), (444, 12))

    def test_limit_lets_the_only_active_host_run_without_rounds(self):
        slices = ((0, 0, 100), (1500, 0, 100), (3000, 0, 100), (9000, 1, 50))
        windows, limits = (simulate(trace(slices), 2, COSTS, protocol) for protocol in (WINDOWS, LIMITS))
        self.assertEqual((windows.messages, limits.messages), (8, 4))
        # 300 and 1; its message arrives at 340. Host 1 works until 390, and its message arrives at 430.
        self.assertEqual(limits.real, 430)

    def test_limit_ends_at_the_answer_to_the_first_packet(self):
        # Host 0 sends at 0, so an answer can arrive at 2000: its event at 1999 is in the first round, that at 2000 is not.
        for last, messages in ((1999, 4), (2000, 6)):
            result = simulate(trace(((0, 0, 100), (last, 0, 100), (9000, 1, 30)), ((0, 0, 1),)), 2, COSTS, LIMITS)
            self.assertEqual(result.messages, messages, last)

    def test_promises_of_two_hosts(self):
        # Both promise 1000, which the other has received at 40. Host 0 works until 140, sends the packet until 141 and the promise 2000 until 142. Host 1
        # receives the packet from 179 to 180, and the promise from 180 to 181. It works until 211, and promises 3000 until 212.
        result = simulate(trace(((0, 0, 100), (1000, 1, 30)), ((0, 0, 1),)), 2, COSTS, PROMISES)
        self.assertEqual((result.real, result.busy), (212, 100))

    def test_promises_of_idle_hosts_cost_a_message_for_each_lookahead(self):
        idle = trace(((0, 0, 1), (1_000_000, 1, 1)), delay=50, end=1_000_000)
        result = simulate(idle, 2, Costs(12_000, 2000), PROMISES, most_messages=2000)
        self.assertAlmostEqual(result.ratio, 12_000 / 50, delta=240 * 0.02)
        self.assertEqual(simulate(idle, 2, Costs(12_000, 2000), WINDOWS).messages, 4)


    def test_share_of_messages_is_that_of_the_latency(self):
        # A window with work of 150 and 300: 300 without messages, 340 with them.
        each = trace(((0, 0, 100), (500, 0, 50), (200, 1, 300)))
        self.assertAlmostEqual(virtual_hosts.share_of_messages(each, 2, COSTS, WINDOWS), 40 / 340)
        self.assertEqual(virtual_hosts.scaled(each, 0.5).cost, 225)


class Order(unittest.TestCase):
    def test_all_protocols_execute_each_host_in_the_order_of_the_trace(self):
        for seed in range(20):
            each = random_trace(seed)
            for count in (2, 4):
                expected = tuple(tuple(time for time, _, _ in host.events) for host in virtual_hosts.divide(each, count))
                for protocol in PROTOCOLS:
                    for costs in (COSTS, Costs(5000, 20)):
                        for lookahead in (100, 700):
                            self.assertEqual(simulate(each, count, costs, protocol, lookahead).order, expected)

    def test_order_of_equal_times_in_a_trace_changes_nothing(self):
        for seed in range(10):
            each = random_trace(seed)
            slices, packets = list(each.slices), list(each.packets)
            random.Random(seed).shuffle(slices)
            random.Random(seed).shuffle(packets)
            other = Trace(each.load, each.delay, each.places, each.begin, each.end, tuple(slices), tuple(packets))
            for protocol in PROTOCOLS:
                self.assertEqual(simulate(each, 4, COSTS, protocol), simulate(other, 4, COSTS, protocol))

    def test_lookahead_beyond_the_delay_violates_causality(self):
        each = trace(((0, 0, 1), (1000, 1, 1), (2000, 1, 1)), ((0, 0, 1),))
        with self.assertRaises(virtual_hosts.CausalityError):
            virtual_hosts.by_windows(virtual_hosts.divide(each, 2), each.delay, 3000, COSTS, WINDOWS)
        with self.assertRaises(virtual_hosts.CausalityError):
            virtual_hosts.Promises(virtual_hosts.divide(each, 2), each.delay, 3000, COSTS).run(1000)
        with self.assertRaises(ValueError):
            simulate(each, 2, COSTS, WINDOWS, 3000)

    def test_distances_add_up_along_the_star(self):
        far = virtual_hosts.distances(virtual_hosts.divide(random_trace(1), 4), 700)
        self.assertEqual((far[1][0], far[1][2], far[0][0], far[3][3]), (700, 1400, 1400, 1400))

    def test_places_are_divided_evenly_or_not_at_all(self):
        with self.assertRaises(ValueError):
            simulate(random_trace(1), 3, COSTS, WINDOWS)

    def test_real_time_is_at_least_that_of_the_busiest_host(self):
        for seed in range(10):
            for protocol in PROTOCOLS:
                result = simulate(random_trace(seed), 4, COSTS, protocol)
                self.assertGreaterEqual(result.real, result.busy)
                self.assertTrue(0 <= result.waiting < 1)


class Traces(unittest.TestCase):
    def test_written_traces_can_be_read(self):
        each = random_trace(3)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "trace"
            virtual_hosts.write(each, file)
            self.assertEqual(virtual_hosts.read(file), each)

    def test_break_even_is_the_shortest_lookahead_that_is_fast_enough(self):
        # An event in each microsecond at each of two hosts, of 1 us: one host takes 2 s for a second.
        each = trace([(time * 1000, place, 1000) for time in range(1000) for place in (0, 1)], delay=500_000, end=1_000_000)
        found = virtual_hosts.break_even(each, 2, Costs(10_000, 0), WINDOWS, 2)
        # n events in a window take n + 10 us, and 2n on one host.
        self.assertAlmostEqual(found, 10_000, delta=1500)
        self.assertIsNone(virtual_hosts.break_even(each, 2, Costs(10_000, 0), WINDOWS, 1))

    def test_longest_message_takes_the_time_that_two_hosts_save(self):
        # Two windows, each of 1 us on both hosts: 2 us are saved, one for each message.
        each = trace([(time, place, 1000) for time in (0, 5000) for place in (0, 1)])
        self.assertAlmostEqual(virtual_hosts.longest_message(each, 2, 0, WINDOWS), 1000, delta=51)
        # On one of the hosts, nothing is saved.
        self.assertEqual(virtual_hosts.longest_message(trace([(0, 0, 1000), (5000, 0, 1000)]), 2, 10, WINDOWS), 0)

    def test_commands_print_a_line_for_each_trace_and_latency(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "trace"
            virtual_hosts.write(random_trace(3), file)
            for words, lines in ((["--hosts", "4"], 4), (["--latency", "12", "--break-even"], 3)):
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    virtual_hosts.main([str(file), *words])
                self.assertEqual(len(out.getvalue().splitlines()), lines, out.getvalue())

    def test_cost_of_a_time_slice_includes_the_work_of_weftd_before_it(self):
        run, wait, start = record_traces.RUN, record_traces.WAIT, record_traces.START
        records = ((start, 7, 2, 0, 0), (start, 8, 1, 0, 0), (wait, 7, 0, 10, 5), (run, 8, 1000, 20, 9), (wait, 8, 0, 50, 30), (run, 7, 1000, 51, 31), (wait, 7, 0, 60, 36))
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "slices"
            file.write_bytes(b"".join(record_traces.RECORD.pack(*each) for each in records))
            found = record_traces.costs_of(file)
        self.assertEqual((found.shape, found.cpu, found.elapsed), ([(1000, 1), (1000, 2)], [25, 6], [40, 10]))

    def test_flood_ends_before_the_first_pause(self):
        self.assertEqual(record_traces.burst([10, 20, 30, 30 + record_traces.PAUSE + 1, 40 + record_traces.PAUSE]), (10, 31))
        self.assertEqual(record_traces.burst([10, 20]), (10, 21))

    def test_packets_between_places_are_read_from_a_capture(self):
        def block(kind, body):
            body += bytes(-len(body) % 4)
            return struct.pack("=II", kind, len(body) + 12) + body + struct.pack("=I", len(body) + 12)

        def interface(name):
            return block(1, struct.pack("=HHIHH", 197, 0, 0, 2, len(name)) + name.encode())

        def packet(number, time, source, method=0):
            stamp = record_traces.DATE + time
            return block(6, struct.pack("=IIIII", number, stamp >> 32, stamp & 0xffffffff, 60, 60) + bytes(16) + struct.pack("!HHHH", 0, 1, 0, source) + bytes(23)
                         + bytes([method]) + bytes(20))

        data = (block(0x0a0d0d0a, bytes(16)) + interface("node3/1-switch2/1") + interface("switch1/3-switch2/3") + packet(0, 500, 3) + packet(1, 1000, 3)
                + packet(1, 1500, 9) + packet(1, 2000, 0xffff) + packet(1, 2500, 0xffff, 0x81))
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "capture"
            file.write_bytes(data)
            found = record_traces.packets(file, {3: 1, 9: 2}, 50)
        self.assertEqual(found, [(950, 1, 0), (1450, 0, 1), (1950, 0, 1), (2450, 1, 0)])


if __name__ == "__main__":
    unittest.main()
