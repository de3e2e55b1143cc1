# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that OpenSM in a guest manages the fabric in place of weft's subnet manager."""
import collections
import ipaddress
import re

from lab.fabric import PAIR
from lab.testing import test
from lab.waiting import wait_until

from stock import active, check, guests, interfaces_up, lid, load, ping

LOG = "/tmp/opensm.log"
# A standby OpenSM polls the master twice a second, and takes over after two missing responses. With the defaults this would take 40 seconds.
OPTIONS = r"force_log_flush TRUE\nsminfo_polling_timeout 500\npolling_retry_number 2\n"
OPENSM = f"printf '{OPTIONS}' >/tmp/opensm.conf; exec opensm -F /tmp/opensm.conf -f {LOG}"
UNMANAGED = "[sm]\nenabled = false\n"      # for the end of a lab file
BROADCAST = "ff12:401b:ffff::ffff:ffff"          # of the default partition, IPv4
TRAP = re.compile(r"Received Generic Notice type:1 num:(\d+).*TID:(0x\w+)")


def faults(node):
    """Returns the errors that OpenSM itself has logged. Fails if there is no log (grep's status 2)."""
    return node.run(f"grep -E ' ERR ' {LOG} || test $? = 1").out


def members(manager, group):
    """Returns the GIDs of the ports that have joined a group at the subnet manager that serves this node."""
    shown = manager.run("saquery --smkey 1 -m").out             # without the key, it shows the groups without their members
    records = re.findall(r"MGID\.*(\S+)\s+Mlid\S+\s+PortGid\.*(\S+)", shown)
    return {ipaddress.ip_address(port) for mgid, port in records if mgid == group}


def joined(manager, *nodes):
    """
    Returns when all nodes are in the broadcast group of the manager that serves this one. A manager that takes over knows no member and requests all
    ports to register again (ClientReregister, 14.2.5.6); ib_ipoib then flushes its paths and joins again. Before that, a flood ping would lose
    packets, because at most three packets wait for a path query.
    """
    gids = {ipaddress.ip_address(node.run("cat /sys/class/infiniband/*/ports/1/gids/0").out.strip()) for node in nodes}
    wait_until("all to be in the broadcast group", lambda: gids <= members(manager, BROADCAST), 30 * manager.slowness)


def manages(fabric, node1, node2):
    """OpenSM manages a lab without a manager whose guests have their drivers loaded: from node1 at first, then from node2."""
    for node in (node1, node2):
        node.wait_for("grep -q INIT /sys/class/infiniband/*/ports/1/state", what="a link without a subnet manager")
    manager = node1.spawn(f"{OPENSM} -p 2")
    with check("OpenSM discovers and activates the fabric, and logs no error"):
        active(node1, node2)
        node1.wait_for(f"grep -q 'SUBNET UP' {LOG}", what="SUBNET UP")
        assert f"sm lid {lid(node1)} " in node2.run("sminfo").out
        assert faults(node1) == "", faults(node1)
    with check("infiniband-diags in OpenSM's guest finds the fabric, by directed routes and by LIDs"):
        seen = node1.run("ibnetdiscover").out
        assert '"node1' in seen and '"node2' in seen and '"switch1' in seen and seen.count("\nCa\t") == 2, seen
        assert "ca port" in node1.run(f"ibtracert {lid(node1)} {lid(node2)}").out
    with check("IPoIB joins the groups that OpenSM has created, and pings pass"):
        interfaces_up(node1, node2)
        ping(node1, node2, "10.0.0.2", 500)
        ping(node2, node1, "10.0.0.1", 500)
        assert BROADCAST in node2.run("saquery -g").out
        assert node2.run("saquery NR").out.count("NodeRecord dump") == 3
    with check("OpenSM gets a trap 128 when a link goes down or up, represses each, and gets none twice"):
        for state in ("down", "up"):
            reported = node1.run(f"grep -c 'num:128' {LOG} || true").out
            fabric.weft("link", state, "node2")
            node1.wait_for(f"test $(grep -c 'num:128' {LOG}) -gt {int(reported)}", what="the trap")
            if state == "up":
                active(node2)
        ping(node2, node1, "10.0.0.1", 100)
        node1.run("sleep 1")        # twice the time after which a trap is repeated
        traps = collections.Counter(tid for number, tid in TRAP.findall(node1.run(f"cat {LOG}").out) if number == "128")
        assert len(traps) >= 2 and set(traps.values()) == {1}, traps
    with check("a second OpenSM in the other guest is a standby, and takes over when the first is killed"):
        standby = node2.spawn(f"{OPENSM} -p 1")
        node2.wait_for(f"sminfo {lid(node2)} | grep -q STANDBY", what="the second manager")
        manager.kill()
        node2.wait_for(f"sminfo {lid(node2)} | grep -q MASTER", timeout=90, what="the take-over")
        joined(node2, node1, node2)
        ping(node1, node2, "10.0.0.2", 100)
        standby.kill()


@test(kernels=("stock",), timeout=240)
def opensm_manages_the_fabric_and_a_standby_opensm_takes_over(lab):
    """Without weft's subnet manager, OpenSM brings ports up, serves IPoIB's joins and represses traps of link changes. A standby takes over."""
    with guests(lab, PAIR + UNMANAGED, log_level="debug") as (fabric, (node1, node2)):
        load(node1, node2)
        manages(fabric, node1, node2)


@test(kernels=("stock",), timeout=120)
def weft_sm_hands_over_to_opensm(lab):
    """weft's subnet manager, at priority 0, hands the fabric over to an OpenSM of higher priority, and is the master again when OpenSM is killed."""
    with guests(lab, PAIR + "[sm]\nsa_key = 1\n") as (fabric, (node1, node2)):
        load(node1, node2)
        active(node1, node2)
        interfaces_up(node1, node2)
        ping(node1, node2, "10.0.0.2", 20)
        lids = lid(node1), lid(node2)
        manager = node1.spawn(f"{OPENSM} -p 14")
        node2.wait_for(f"sminfo | grep -q 'sm lid {lids[0]} .*MASTER'", timeout=60, what="OpenSM to be the master")
        assert (lid(node1), lid(node2)) == lids, "the handover changed a LID"
        joined(node2, node1, node2)
        ping(node1, node2, "10.0.0.2", 500)
        manager.kill()
        # weft's subnet manager detects that the master is gone, and becomes the master again.
        node2.wait_for(f"sminfo | grep 'MASTER' | grep -vq 'sm lid {lids[0]} '", timeout=60, what="weft's manager to be the master again")
        joined(node2, node1, node2)
        ping(node2, node1, "10.0.0.1", 100)
