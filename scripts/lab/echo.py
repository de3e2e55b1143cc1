# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Sends pings whose requests and answers both kernels count, so that packets lost on the link can be distinguished from packets that were never sent.

A target can drop answers itself although the link loses nothing. Each CPU of a target sends its answers through one socket with a buffer of 129 kB
(net/ipv4/icmp.c), which is enough for 57 answers of 1400 bytes or 172 of 56. Further answers are dropped and counted (OutErrors). `ping -f`
sends a hundred requests a second even if none is answered, so a target that gets no CPU for half a second can overflow this buffer. ping
itself waits for its last answers only twice as long as the slowest answer so far has taken.
"""
from lab.waiting import DeadlineExceeded, wait_until


def icmp(node):
    """Returns the kernel's ICMP counters by name."""
    names, values = (line.split()[1:] for line in node.run("grep ^Icmp: /proc/net/snmp").out.splitlines())
    return dict(zip(names, map(int, values)))


class Echoes:
    """Counts the pings from source to target since the creation of this object. Meanwhile no other program may ping either of the two, or be pinged
    by them."""

    def __init__(self, source, target):
        self._source, self._target = source, target
        self._before = icmp(source), icmp(target)

    def _since(self):
        # The source is read last, because an answer is counted as sent before it is counted as received.
        target = icmp(self._target)
        source = icmp(self._source)
        before_source, before_target = self._before
        asked, answered, given_up = (target[name] - before_target[name] for name in ("InEchos", "OutEchoReps", "OutErrors"))
        return asked, answered, given_up, source["InEchoReps"] - before_source["InEchoReps"]

    def check(self, sent):
        """Checks that all `sent` requests have arrived, that the target's kernel has answered or dropped each, and that every answer has arrived."""
        def complete():
            asked, answered, given_up, arrived = self._since()
            # The answer to an earlier ping, for which the wait has timed out, may arrive in this period.
            return asked >= sent and answered + given_up >= asked and arrived >= answered
        try:
            wait_until("the last answers", complete, 10 * max(self._source.slowness, self._target.slowness))
        except DeadlineExceeded:
            asked, answered, given_up, arrived = self._since()
            raise AssertionError(f"{self._source.name} to {self._target.name}: {sent} pings sent, {asked} arrived; {answered} answers sent ({given_up} given "
                                 f"up by the kernel), {arrived} arrived") from None
        assert self._since()[1], "no ping was answered"


def ping(source, target, address, count, options="-f", timeout=120, on=""):
    """Sends count pings from one guest to an address of another; fails if the link loses a request or an answer. on: a command that runs ping
    (`taskset`)."""
    echoes = Echoes(source, target)
    out = source.run(f"{on} ping -q -c {count} {options} {address}".lstrip(), timeout, check=False).out
    assert f"{count} packets transmitted" in out, out
    echoes.check(count)
