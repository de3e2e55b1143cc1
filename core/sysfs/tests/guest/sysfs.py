# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests the files of a card that programs read in /sys/class/infiniband."""
import re

from lab.fabric import PAIR, Fabric
from lab.testing import test

DEVICE = "/sys/class/infiniband/mlx4_0"
MODULES = ("weft_kern", "weft_core", "weft_mad", "weft_sysfs", "weft_mlx4")

# The format of each file that libibverbs, libibumad, ibstat and udev's rules accept.
FORMATS = {
    "node_type": r"1: CA",
    "node_guid": r"([0-9a-f]{4}:){3}[0-9a-f]{4}",
    "sys_image_guid": r"([0-9a-f]{4}:){3}[0-9a-f]{4}",
    "fw_ver": r"\d+\.\d+\.\d+",
    "node_desc": r".+",
    "hca_type": r"MT26428",
    "hw_rev": r"[0-9a-f]+",
    "device/modalias": r"pci:v000015B3d0000673C.*",
    "ports/1/state": r"4: ACTIVE",
    "ports/1/phys_state": r"5: LinkUp",
    "ports/1/lid": r"0x[1-9a-f][0-9a-f]*",
    "ports/1/sm_lid": r"0x[1-9a-f][0-9a-f]*",
    "ports/1/lid_mask_count": r"\d",
    "ports/1/sm_sl": r"\d+",
    "ports/1/cap_mask": r"0x[0-9a-f]{8}",
    "ports/1/rate": r"\d+(\.5)? Gb/sec \(4X [SDQ]DR\)",
    "ports/1/link_layer": r"InfiniBand",
    "ports/1/gids/0": r"fe80:0000:0000:0000(:[0-9a-f]{4}){4}",
    "ports/1/pkeys/0": r"0xffff",
}
# The card's agent has 64-bit counters, and separate ones for unicast and multicast.
MESSAGES = "req mra rej rep rtu dreq drep sidr_req sidr_rep lap apr".split()
COUNTERS = """symbol_error link_error_recovery link_downed port_rcv_errors port_rcv_remote_physical_errors port_rcv_switch_relay_errors
    port_xmit_discards port_xmit_constraint_errors port_rcv_constraint_errors local_link_integrity_errors excessive_buffer_overrun_errors VL15_dropped
    port_xmit_wait port_xmit_data port_rcv_data port_xmit_packets port_rcv_packets unicast_xmit_packets unicast_rcv_packets multicast_xmit_packets
    multicast_rcv_packets""".split()

# The card's counters of its queues, by their names in mlx4.
HARDWARE = """rq_num_lle sq_num_lle rq_num_lqpoe sq_num_lqpoe rq_num_lpe sq_num_lpe rq_num_wrfe sq_num_wrfe sq_num_mwbe sq_num_bre sq_num_rire rq_num_rire
    sq_num_rae rq_num_rae sq_num_roe sq_num_tree sq_num_rree rq_num_rnr sq_num_rnr rq_num_oos sq_num_oos""".split()
CARD_ALONE = ["num_cqovf", "rq_num_udsdprd"]


@test(kernels=("stock",), also=("plain", "debug"), timeout=120)
def rdma_sysfs_files_have_the_format_that_programs_read(lab):
    """Every file exists in the format that programs read, the tables have the length of the card's, and all files disappear with the device."""
    fabric = Fabric(lab, PAIR)
    with lab.boot(lab.guest("node1", vfio_user=[fabric.sockets[0]])) as (node,):
        node.insmod(*(f"/share/{name}.ko" for name in MODULES))
        node.wait_for(f"grep -q ACTIVE {DEVICE}/ports/1/state", what="the port to be active")
        for name, expected in FORMATS.items():
            text = node.run(f"cat {DEVICE}/{name}").out
            assert re.fullmatch(expected + "\n", text), f"{name}: {text!r} is not {expected}"
        # ibv_get_pkey_index() counts up until there is no file.
        for table, least in (("pkeys", 2), ("gids", 2)):
            entries = sorted(map(int, node.run(f"ls {DEVICE}/ports/1/{table}").out.split()))
            assert len(entries) >= least and entries == list(range(len(entries))), (table, entries)
        assert node.run(f"ls {DEVICE}/ports").out == "1\n"

        counters = f"{DEVICE}/ports/1/counters"
        assert sorted(node.run(f"ls {counters}").out.split()) == sorted(COUNTERS)
        counted = {name: int(value) for name, value in (line.split(":") for line in node.run(f"cd {counters} && grep . *").out.splitlines())}
        # Words of four bytes: no packet is shorter than a header.
        assert counted["port_xmit_data"] >= counted["port_xmit_packets"] and counted["port_rcv_data"] >= counted["port_rcv_packets"], counted

        # The card's counters; its only port has the same, except those that belong to no queue pair.
        for directory, names in (("hw_counters", HARDWARE + CARD_ALONE), ("ports/1/hw_counters", HARDWARE)):
            assert sorted(node.run(f"ls {DEVICE}/{directory}").out.split()) == sorted(names + ["lifespan"]), directory
            assert all(text.isdigit() for text in node.run(f"cat {DEVICE}/{directory}/*").out.split()), directory
        lifespan = f"{DEVICE}/hw_counters/lifespan"
        assert node.run(f"cat {lifespan}").out == "10\n"
        for right in ("10000", "0"):
            assert node.run(f"echo {right} > {lifespan} && cat {lifespan} {DEVICE}/hw_counters/sq_num_rae").out == f"{right}\n0\n"
        for wrong in ("10001", "-1", "", "ten", "10 ", "4294967297"):
            assert node.run(f"printf '{wrong}\\n' > {lifespan}", check=False).status != 0, wrong
        assert node.run(f"cat {lifespan}").out == "0\n"

        node.run(f"echo -n 'a node of the lab' > {DEVICE}/node_desc")
        assert node.run(f"cat {DEVICE}/node_desc").out == "a node of the lab\n"

        # The communication manager's counters exist as long as it is loaded, in either order of loading.
        for again in (False, True):
            node.insmod("/share/weft_cm.ko")
            assert node.run(f"cd {DEVICE}/ports/1 && ls -d cm_*").out.split() == ["cm_rx_duplicates", "cm_rx_msgs", "cm_tx_msgs", "cm_tx_retries"]
            assert node.run(f"ls {DEVICE}/ports/1/cm_tx_msgs").out.split() == sorted(MESSAGES), again
            assert node.run(f"cat {DEVICE}/ports/1/cm_*/*").out.split() == ["0"] * (4 * len(MESSAGES))
            if again:
                node.run("rmmod weft_sysfs")
                node.insmod("/share/weft_sysfs.ko")
                node.run(f"test -e {DEVICE}/ports/1/cm_rx_msgs/req")
            node.run(f"exec 3< {DEVICE}/ports/1/cm_tx_msgs/req && rmmod weft_cm && ! cat <&3 && ! ls -d {DEVICE}/ports/1/cm_*")

        # A reader that keeps a file open does not keep the device, and gets an error after the removal.
        node.run(f"exec 3< {DEVICE}/ports/1/state && rmmod weft_mlx4 && ! cat <&3 && ! ls -d /sys/class/infiniband/*")
        # In either order, in addition to the files of the driver itself.
        node.insmod("/share/weft_mlx4.ko")
        node.run(f"test -e {DEVICE}/node_guid && rmmod weft_sysfs && ! test -e {DEVICE}")
        node.insmod("/share/weft_sysfs.ko")
        node.run(f"test -e {DEVICE}/ports/1/counters/port_xmit_packets")
        node.run("! dmesg | grep -E 'duplicate filename|kobject_add'")
        node.run(f"test -e {DEVICE}/node_guid && rmmod weft_mlx4 weft_sysfs weft_mad weft_core weft_kern && ! ls -d /sys/class/infiniband")
