# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs the basic test: ib0 up in two guests, and a ping between them."""
from lab.testing import test

from pair import interfaces_up, lost_sizes, weft_pair


@test(kernels=("um-debug",), also=("stock", "debug", "plain", "um"), timeout=240)
def weft_guests_ping_each_other_over_ib0(lab):
    """Two guests with weft's stack bring ib0 up and ping each other with IPv4 and IPv6, also with fragmented packets."""
    with weft_pair(lab) as (node1, node2):
        interfaces_up(node1, node2)
        for source, target in ((node1, "10.0.0.2"), (node2, "10.0.0.1")):
            assert not (lost := lost_sizes(source, target, 3 * (0, 56, 1000, 2016, 2017, 8000, 40000))), (source.name, lost)
        for node in (node1, node2):
            node.wait_for("! ip -6 addr show dev ib0 tentative | grep -q inet6", timeout=30, what="the end of duplicate address detection")
        link_local = node2.run("ip -6 -o addr show dev ib0 scope link").out.split()[3].split("/")[0]
        assert not lost_sizes(node1, f"{link_local}%ib0", 3 * (56,))
