# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that all benchmarks of perftest complete between two guests, over every transport service that supports the operation."""
import re

from lab.testing import test

from stock import check, interfaces_up, pair, served

FILE = "/tmp/buffer"    # in memory: the root's writable layer is a tmpfs


def result(out, size):
    """Returns the line of the table for a message size. The measured value must be a number above 0."""
    row = re.search(rf"^ {size} +(\d+) +([\d.]+)", out, re.MULTILINE)
    assert row and float(row[2]) > 0, out
    return row


@test(kernels=("stock",), timeout=240)
def every_perftest_operation_completes(lab):
    """ib_{send,write,read,atomic}_{bw,lat} complete over each of RC, UC and UD that supports the operation."""
    with pair(lab) as (_, (node1, node2)):
        interfaces_up(node1, node2)
        for operation, transports in (("send", "RC UC UD"), ("write", "RC UC"), ("read", "RC"), ("atomic", "RC")):
            for transport in transports.split():
                bulk = {"atomic": 8}.get(operation, 4096 if transport == "UD" else 65536)
                small = {"atomic": 8}.get(operation, 2)
                for kind, size in (("bw", bulk), ("lat", small)):
                    length = "" if operation == "atomic" else f"-s {size}"
                    with check(f"ib_{operation}_{kind} over {transport} completes"):
                        _, out = served(node1, node2, f"ib_{operation}_{kind} -F -c {transport} -n 300 {length}")
                        result(out, size)
        with check("ib_send_bw with a shared receive queue, several queue pairs and events completes"):
            result(served(node1, node2, "ib_send_bw -F --use-srq -q 4 -e -n 300 -s 8192")[1], 8192)
        for program, size in (("send_lat -s 2", 2), ("read_lat -s 64", 64), ("atomic_lat", 8)):
            with check(f"ib_{program} with events, which expects a completion for each event, completes"):
                result(served(node1, node2, f"ib_{program} -F -e -n 300")[1], size)
        with check("ib_send_bw over XRC completes"):
            result(served(node1, node2, "ib_send_bw -F -c XRC --use-srq -n 300 -s 8192")[1], 8192)
        with check("ib_atomic_bw by compare-and-swap completes"):
            result(served(node1, node2, "ib_atomic_bw -F -A CMP_AND_SWAP -n 300")[1], 8)


@test(kernels=(), also=("stock",), timeout=120)
def perftest_transfers_data_intact(lab):
    """Data that ib_{send,write,read}_bw transferred is equal at its destination; the buffers are files that the test compares."""
    with pair(lab) as (_, (node1, node2)):
        interfaces_up(node1, node2)
        for operation, transport, size in (("send", "RC", 65536), ("send", "UC", 65536), ("write", "RC", 65536), ("write", "UC", 65536),
                                           ("write", "RC", 1 << 20), ("read", "RC", 65536), ("read", "RC", 1 << 20)):
            with check(f"ib_{operation}_bw over {transport} moves {size} bytes intact"):
                # Each side fills its file with random bytes. It sends from the first half and receives into the second half.
                for node in (node1, node2):
                    node.run(f"head -c {2 * size} /dev/zero >{FILE}")
                served(node1, node2, f"ib_{operation}_bw -F -c {transport} -s {size} -n 5 --mmap={FILE}")
                server, client = node1.get(FILE), node2.get(FILE)
                if operation == "read":
                    assert client[:size] == server[size:] and any(client[:size])
                else:
                    assert server[size:] == client[:size] and any(client[:size])
