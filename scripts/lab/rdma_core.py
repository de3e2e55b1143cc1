# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Parses the output of rdma-core's own tests (pyverbs)."""
import re

# These tests use a clock or on-demand paging without checking whether the card has them.
FAIL_ON_MLX5 = {"test_query_rt_values", "test_timestamp_free_running_rc_traffic", "test_odp_dc_traffic"}


def outcome(said):
    """Returns (names of the tests that failed, number of the tests that passed)."""
    failed = set(re.findall(r"^(?:ERROR|FAIL): (\w+)", said, re.MULTILINE))
    # Do not count "ok": tests that fork may print between the name of a test and its outcome.
    ran = int(re.search(r"^Ran (\d+) tests", said, re.MULTILINE)[1])
    return failed, ran - sum(map(int, re.findall(r"(?:failures|errors|skipped)=(\d+)", said)))
