# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests the measurement of the host's time-stamp counter with a simulated clock, whose readings may be delayed."""
import unittest
import unittest.mock

from lab import tsc

KHZ = 2_596_120


class Host:
    """A clock in nanoseconds and a counter that advances with it. Each reading takes 50 ns, and the delays of the list are added to the first ones."""

    def __init__(self, delays=()):
        self._now = 1_000_000
        self._delays = list(delays)

    def clock(self, _):
        self._now += 50 + (self._delays.pop(0) if self._delays else 0)
        return self._now

    def counter(self):
        self._now += 50 + (self._delays.pop(0) if self._delays else 0)
        return self._now * KHZ // 1_000_000

    def sleep(self, seconds):
        self._now += round(seconds * 1e9)


class Measurement(unittest.TestCase):
    def measured(self, host):
        with unittest.mock.patch.object(tsc.time, "clock_gettime_ns", host.clock), unittest.mock.patch.object(tsc.time, "sleep", host.sleep):
            return tsc.measured_khz(host.counter)

    def test_tsc_frequency_of_an_idle_host_is_measured(self):
        self.assertAlmostEqual(self.measured(Host()), KHZ, delta=KHZ * tsc.PRECISION)

    def test_tsc_readings_interrupted_by_preemption_are_discarded(self):
        # Each of the first readings is preempted for 5 ms, half of the interval.
        for preempted in (1, 2, 3, 27):
            self.assertAlmostEqual(self.measured(Host([5_000_000] * preempted)), KHZ, delta=KHZ * tsc.PRECISION)

    def test_imprecise_tsc_measurement_is_repeated(self):
        self.assertAlmostEqual(self.measured(Host([5_000_000] * 3 * tsc.ATTEMPTS)), KHZ, delta=KHZ * tsc.PRECISION)

    def test_no_tsc_frequency_is_returned_if_each_reading_is_preempted(self):
        self.assertIsNone(self.measured(Host([5_000_000] * 6 * tsc.ATTEMPTS * tsc.ATTEMPTS)))

    def test_two_tsc_measurements_of_this_host_agree(self):
        first = tsc.frequency_khz()
        if first is None:
            self.skipTest("the counter of this host cannot be read")
        tsc.frequency_khz.cache_clear()
        self.assertAlmostEqual(tsc.frequency_khz(), first, delta=first * 2 * tsc.PRECISION)
