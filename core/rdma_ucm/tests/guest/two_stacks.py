# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests stock programs that connect by IP address, with one end on weft's modules and the other on Debian's in-tree stack, in both directions."""
import re

from lab.testing import full, test

from connecting import ALL, LISTENS, MEASURED, End, check_programs, two_guests

OURS_AND_DEBIANS = (End(stack="weft"), End(stack="linux"))


@test(kernels=(), also=("stock", "plain"), timeout=600)
def librdmacm_programs_on_weft_and_debian_stacks_connect_as_client_and_server(lab):
    """Programs on weft's stack and on Debian's connect to each other by IPv4 and IPv6, with either end as the server."""
    with two_guests(lab, *OURS_AND_DEBIANS) as (_fabric, nodes):
        check_programs(nodes, ALL)


def bandwidth(server, client, address, meanwhile, count):
    """ib_send_bw -R through what a link does meanwhile."""
    command = f"ib_send_bw -R -F -s 65536 -n {count}"
    serving = server.spawn(command)
    server.wait_for(LISTENS, timeout=20, what=f"`{command}` to listen")
    # Its output arrives line by line, not only at its end.
    asking = client.spawn(f"stdbuf -oL {command} {address}")
    meanwhile(asking)
    # If a retransmitted packet, or the NAK that requests it, is lost, the sender waits for the acknowledgement's time-out, two seconds with the RDMA CM's values.
    asking.wait(480)
    serving.wait(60)
    assert re.search(MEASURED, asking.out, re.MULTILINE), asking.out


@test(kernels=(), also=("stock", "plain"), timeout=2400)
def ib_send_bw_completes_over_lossy_and_flapping_links(lab):
    """ib_send_bw -R between weft's stack and Debian's, with either end as the server, completes while a link loses 1 %, reorders packets, and goes
    down and up."""
    with two_guests(lab, *OURS_AND_DEBIANS) as (fabric, nodes):
        def flap(asking):
            asking.wait_output("local address", 60)
            for _ in range(3):
                assert asking.status is None, "the transfer was over before the link went down"
                fabric.weft("link", "down", "node1")
                fabric.weft("link", "up", "node1")

        for number, (server, client) in enumerate((nodes, nodes[::-1]), 1):
            address = f"10.0.0.{number}"
            for settings in (("loss=1%",), ("reordering=5%", "jitter=20us"), ("loss=1%", "reordering=5%", "jitter=20us")):
                fabric.weft("link", "set", "node1", *settings)
                bandwidth(server, client, address, lambda asking: None, 2000 if full() else 500)
                fabric.weft("link", "set", "node1", "loss=0", "reordering=0", "jitter=0us")
            bandwidth(server, client, address, flap, 20000)
