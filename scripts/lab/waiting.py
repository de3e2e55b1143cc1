# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Waits until a condition is observed. If the deadline passes first, the error names the condition."""
import time


class DeadlineExceeded(Exception):
    """The state was not reached in time; the message contains the state."""


def wait_until(what, condition, timeout, interval=0.05):
    """Calls condition() until it returns a true value, which is returned. what: the state in words ("node1 has an address on ib0"), for the error
    message. timeout, interval: seconds."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise DeadlineExceeded(f"waited {timeout:g} s for: {what}")
        time.sleep(interval)
