# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that the times of the demonstration's steps add up to the time until its first ping."""
import pathlib
import sys
import unittest

from lab import cache

sys.path.insert(0, str(pathlib.Path(cache.TREE) / "scripts/tests/bench"))

import demo  # noqa: E402


class Parts(unittest.TestCase):
    def test_time_to_first_demo_ping_is_split_into_sequential_steps_and_a_remainder(self):
        times = {"first ping": 10.0, "parts": {"image (concurrent)": 7.0, "programs": 5.0, "modules (concurrent)": 4.0, "boot": 3.0}}
        self.assertEqual(demo.consecutive(times), {"programs": 5.0, "boot": 3.0, "rest": 2.0})


if __name__ == "__main__":
    unittest.main()
