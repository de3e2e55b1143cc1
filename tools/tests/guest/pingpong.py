# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that the example programs of rdma-core, such as ibv_rc_pingpong, transfer correct data between two guests, with each transport service and
each type of receive queue."""
from lab.testing import test

from stock import check, interfaces_up, pair, served

EXCHANGES = 1000


@test(kernels=("stock",), timeout=240)
def pingpong_examples_validate_received_data(lab):
    """ibv_{rc,uc,ud,srq,xsrq}_pingpong run between two stock guests, polled and by events, with received data validated."""
    with pair(lab) as (_, (node1, node2)):
        interfaces_up(node1, node2)     # they exchange their addresses over TCP
        for transport in ("rc", "uc", "ud", "srq"):
            for options in ("-c", "-c -e") if transport != "ud" else ("-c -s 2048", "-c -e -s 1024"):
                with check(f"ibv_{transport}_pingpong {options} passes"):
                    for out in served(node1, node2, f"ibv_{transport}_pingpong {options} -n {EXCHANGES}"):
                        assert f"{EXCHANGES} iters in" in out and "invalid data" not in out, out
        for options in ("", "-e"):
            with check(f"ibv_xsrq_pingpong {options} passes"):
                for out in served(node1, node2, f"ibv_xsrq_pingpong {options} -n 100"):
                    assert "success" in out, out
