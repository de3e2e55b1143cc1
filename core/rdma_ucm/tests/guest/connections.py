# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests unmodified programs of Debian's rdma-core and perftest that connect by IP address."""
import contextlib
import json
import re

from lab.fabric import PAIR, Fabric
from lab.testing import test

from connecting import ALL, FEW, LISTENS, WAITS_FOR_EVENT, check_programs

STACK = ("weft_kern", "weft_core", "weft_mad", "weft_cm", "weft_sysfs", "weft_uverbs", "weft_netlink", "weft_mlx4", "weft_ipoib", "weft_iw_cm", "weft_rdma_cm", "weft_rdma_ucm")

# node1 is a full member of the second partition, and node2 a limited one.
PARTITIONS = PAIR + """
[[sm.partition]]
name = "default"
pkey = 0xffff
[[sm.partition]]
name = "second"
pkey = 0x8001
others = "limited"
[sm.partition.members]
node1 = "full"
"""


@contextlib.contextmanager
def pair(lab, ipv6=False):
    """Yields two guests with weft's modules, each at 10.0.0.N on ib0. With ipv6 each also has fd00::N; without it, the second has no IPv6."""
    fabric = Fabric(lab, PARTITIONS)
    guests = [lab.guest(f"node{number}", vfio_user=[socket], memory="768M", append=append)
              for number, (socket, append) in enumerate(zip(fabric.sockets, ("", "" if ipv6 else "ipv6.disable=1")), 1)]
    with lab.boot(*guests) as nodes:
        for number, node in enumerate(nodes, 1):
            node.insmod(*(f"/share/{name}.ko" for name in STACK))
            node.run(f"ip link set ib0 up && ip addr add 10.0.0.{number}/24 dev ib0")
            if ipv6:
                node.run(f"ip addr add fd00::{number}/64 dev ib0 nodad")
        for node in nodes:
            node.wait_for("ip link show dev ib0 | grep -q LOWER_UP", timeout=60, what=f"carrier of ib0 on {node.name}")
        nodes[0].wait_for("ping -c 1 -W 1 -q 10.0.0.2", timeout=60, what="an answer of node2")
        yield nodes
        for node in nodes:
            node.run("rmmod " + " ".join(reversed(STACK)))
            node.run("! ls -d /dev/infiniband/rdma_cm /sys/class/misc/rdma_cm")


def cm_counter(node, name):
    return int(node.run(f"cat /sys/class/infiniband/*/ports/1/{name}").out)


# Tries to connect to a port without a listener, with the given QP number, and prints the outcome. It writes the commands itself, because librdmacm
# would create its own QP.
UNRELATED_PROCESS = """
import ctypes, os, socket, struct, sys
node, answer = os.open("/dev/infiniband/rdma_cm", os.O_RDWR), ctypes.create_string_buffer(1024)
def command(number, body, room=0):
    os.write(node, struct.pack("=IHH", number, len(body), room) + body)
    return answer.raw
where = ctypes.addressof(answer)
number = command(0, struct.pack("=QQHB5x", 1, where, 0x106, 2), 4)[:4]
command(3, struct.pack("=28xH2s4s20x4sI", socket.AF_INET, struct.pack(">H", 7175), socket.inet_aton(sys.argv[1]), number, 5000))
assert command(12, struct.pack("=Q", where), 1024)[12:16] == struct.pack("=I", 0)
command(4, number + struct.pack("=I", 5000))
assert command(12, struct.pack("=Q", where), 1024)[12:16] == struct.pack("=I", 2)
try:
    command(6, struct.pack("=I260x8B4s12x", int(sys.argv[2]), 0, 0, 1, 1, 0, 7, 7, 1, number))
    print("asked")
except PermissionError:
    print("refused")
"""


def connecting_with_the_qp_of_another_program_is_refused(client, to):
    """A program cannot connect with a QP number that it does not own, because the peer would then treat the owner's connection as stale (RCM-16)."""
    connected, = (one for one in json.loads(client.run("rdma -j resource show cm_id").out) if one["state"] == "CONNECT")
    client.put("/tmp/unrelated_process.py", UNRELATED_PROCESS)
    for number in connected["lqpn"], 0xfffff0:  # no program has the last one yet
        assert client.run(f"python3 /tmp/unrelated_process.py {to} {number}", timeout=60).out == "refused\n", number
    assert len([one for one in json.loads(client.run("rdma -j resource show cm_id").out) if one == connected]) == 1


def connections_are_listed_with_their_process(server, client):
    """`rdma` lists the connection and its process at either end, and the counters count the messages that set it up."""
    before, doubled = cm_counter(server, "cm_rx_msgs/req"), cm_counter(server, "cm_rx_duplicates/req")
    listening = server.spawn("rping -s -a 10.0.0.1")
    server.wait_for(LISTENS, timeout=20, what="rping to listen")
    asking = client.spawn("rping -c -a 10.0.0.1")
    server.wait_for("rdma resource show cm_id | grep -q 'state CONNECT '", timeout=20, what="a connection to be shown")
    ids = json.loads(server.run("rdma -j resource show cm_id").out)
    assert sorted(one["state"] for one in ids) == ["CONNECT", "LISTEN"], ids
    for one in ids:
        assert (one["comm"], one["ps"], one["src-addr"]) == ("rping", "TCP", "10.0.0.1:7174"), one
    connected, = (one for one in ids if one["state"] == "CONNECT")
    assert connected["dst-addr"].startswith("10.0.0.2:") and connected["qp-type"] == "RC", connected
    queue, = json.loads(server.run(f"rdma -j resource show qp lqpn {connected['lqpn']}").out)
    assert queue["pid"] == connected["pid"], (queue, connected)
    summary, = json.loads(server.run("rdma -j resource").out)
    assert summary["cm_id"] == 2, summary
    # The client repeats its REQ if the server is slow.
    again = cm_counter(server, "cm_rx_duplicates/req") - doubled
    assert cm_counter(server, "cm_rx_msgs/req") == before + 1 + again and cm_counter(client, "cm_tx_msgs/req") > 0
    connecting_with_the_qp_of_another_program_is_refused(client, "10.0.0.1")
    asking.kill(2)
    asking.wait(20, check=False)
    listening.kill(2)
    listening.wait(20, check=False)
    server.wait_for("rdma resource show cm_id >/tmp/ids && ! test -s /tmp/ids", timeout=20, what="the end of all ids")


def module_is_unloaded_while_ids_are_listed(node):
    """IDs of a killed program that are still being listed do not block unloading of weft_rdma_ucm."""
    looking = node.spawn("until test -e /tmp/seen_enough; do rdma -j resource show cm_id > /dev/null || exit 1; done")
    node.run("for round in 1 2 3 4 5 6 7 8; do\n"
             "    rping -s -a 10.0.0.1 & listening=$!\n"
             f"    until {LISTENS}; do :; done\n"
             "    kill -9 $listening; wait $listening\n"
             "    until rmmod weft_rdma_ucm; do :; done\n"
             "    insmod /share/weft_rdma_ucm.ko\n"
             "done 2> /dev/null", timeout=180)
    node.run("touch /tmp/seen_enough")
    looking.wait(20)


def rping_between(server, client, address, server_in="", client_in=""):
    """Three rounds of rping; `server_in` and `client_in` enter the namespaces of the two ends."""
    listening = server.spawn(f"{server_in}rping -s -v -C 3 -a {address}")
    # Not LISTENS: another program may listen outside of the namespace.
    server.wait_for(f"{server_in}rdma resource show cm_id | grep -q 'state LISTEN .*src-addr {address}:7174'", timeout=20, what="rping to listen")
    out = client.run(f"{client_in}rping -c -v -C 3 -a {address}", timeout=60).out
    assert len(re.findall("^ping data: rdma-ping", out, re.MULTILINE)) == 3, out
    listening.wait(60)


def limited_members_connect_to_full_ones(full, limited):
    """The members of a partition connect to each other, whichever of them has the limited P_Key."""
    for number, node in enumerate((full, limited), 1):
        node.run(f"ip link add link ib0 name ib0.8001 type ipoib pkey 0x8001 && ip addr add 10.0.1.{number}/24 dev ib0.8001 && ip link set ib0.8001 up")
    limited.wait_for("ping -c 1 -W 1 -q 10.0.1.1", timeout=60, what="an answer of the full member")
    rping_between(full, limited, "10.0.1.1")
    rping_between(limited, full, "10.0.1.2")
    for node in (full, limited):
        node.run("ip link del ib0.8001")


def namespaces_have_their_own_addresses_and_ports(node, peer):
    """A program connects and listens with the addresses of its network namespace only, on the namespace's own ports (RCM-17)."""
    pod = "ip netns exec pod "
    node.run("ip netns add pod && ip -n pod link set lo up")
    refused = node.run(f"{pod}rping -s -a 10.0.0.1 2>&1 || true", timeout=20).out
    assert "Cannot assign requested address" in refused, refused
    refused = node.run(f"{pod}rping -c -a 10.0.0.2 2>&1 || true", timeout=20).out
    assert "Network is unreachable" in refused, refused

    node.run("ip link set ib0 netns pod && ip -n pod link set ib0 up && ip -n pod addr add 10.0.0.1/24 dev ib0")
    peer.wait_for("ping -c 1 -W 1 -q 10.0.0.1", timeout=60, what="an answer from the namespace")
    # The same port number is a separate port in the first namespace, which no longer has the address.
    outside = node.spawn("rping -s")
    node.wait_for(LISTENS, timeout=20, what="rping to listen outside of the namespace")
    refused = node.run("rping -s -a 10.0.0.1 2>&1 || true", timeout=20).out
    assert "Cannot assign requested address" in refused, refused
    refused = peer.run("rping -c -a 10.0.0.1 2>&1 || true", timeout=60).out
    assert "RDMA_CM_EVENT_REJECTED" in refused, refused
    rping_between(node, peer, "10.0.0.1", server_in=pod)
    rping_between(peer, node, "10.0.0.2", client_in=pod)
    outside.kill(2)
    outside.wait(20, check=False)

    leave_namespace(node, peer)


def leave_namespace(node, peer):
    node.run("ip netns del pod")
    node.wait_for("ip link show dev ib0", what="ib0 back in the first namespace")
    node.run("ip link set ib0 up && ip addr add 10.0.0.1/24 dev ib0")
    peer.wait_for("ping -c 1 -W 1 -q 10.0.0.1", timeout=60, what="an answer from the first namespace")


def devices_connect_in_their_own_namespace(node, peer):
    """When devices belong to network namespaces, a program connects by its own namespace's device only, wherever the interface is (RCM-17)."""
    pod = "ip netns exec pod "
    into_pod = "ip link set ib0 netns pod && ip -n pod link set ib0 up && ip -n pod addr add 10.0.0.1/24 dev ib0"
    node.run(f"rdma system set netns exclusive && ip netns add pod && {into_pod}")
    peer.wait_for("ping -c 1 -W 1 -q 10.0.0.1", timeout=60, what="an answer from the namespace")
    for program in ("rping -s -a 10.0.0.1", "rping -c -a 10.0.0.2"):
        refused = node.run(f"{pod}{program} 2>&1 || true", timeout=20).out
        assert "No RDMA devices" in refused, (program, refused)

    # The interface is created again in the initial network namespace, and is moved from there.
    node.run(f"rdma dev set mlx4_0 netns pod && {into_pod}")
    peer.wait_for("ping -c 1 -W 1 -q 10.0.0.1", timeout=60, what="an answer by the new interface")
    rping_between(node, peer, "10.0.0.1", server_in=pod)
    rping_between(peer, node, "10.0.0.2", client_in=pod)

    leave_namespace(node, peer)
    node.wait_for("rdma dev show mlx4_0 && rdma system set netns shared", what="the device back in the first namespace")
    rping_between(node, peer, "10.0.0.1")


@test(kernels=("stock",), also=("plain", "debug"), timeout=240)
def librdmacm_programs_connect_two_weft_guests(lab):
    """rping, ucmatose, udaddy, perftest with -R, cmtime, rstream and mckey connect two guests. They compare the data, and leave nothing behind."""
    with pair(lab) as (node1, node2):
        assert node1.run("stat -c %a /dev/infiniband/rdma_cm; cat /sys/class/misc/rdma_cm/abi_version").out == "666\n4\n"
        # A guest without IPv6 has no such address.
        refused = node2.run("ucmatose -f ip -b 2001:db8::1 2>&1 || true").out
        assert "Cannot assign requested address" in refused, refused
        listening = node1.spawn("rping -s -v -C 20 -a 10.0.0.1")
        node1.wait_for(LISTENS, timeout=20, what="rping to listen")
        out = node2.run("rping -c -v -C 20 -a 10.0.0.1", timeout=60).out
        assert len(re.findall("^ping data: rdma-ping", out, re.MULTILINE)) == 20, out
        listening.wait(60)
        for command in ("ucmatose -c 10", "ucmatose -c 10 -m", "udaddy -c 10"):
            listening = node1.spawn(command)
            node1.wait_for(LISTENS, timeout=20, what=f"{command} to listen")
            assert "return status 0" in node2.run(f"{command} -s 10.0.0.1", timeout=60).out, command
            assert "return status 0" in listening.wait(60).out, command
        listening = node1.spawn("ib_send_bw -R -F -n 100")
        node1.wait_for(WAITS_FOR_EVENT, timeout=20, what="ib_send_bw to listen")
        out = node2.run("ib_send_bw -R -F -n 100 10.0.0.1", timeout=60).out
        assert re.search(r"^\s*\d+\s+\d+\s+\d+\.\d+", out, re.MULTILINE), out
        listening.wait(60)
        # Connections by GID, which librdmacm supports only if it found at its start that the kernel knows such addresses.
        gids = [node.run("cat /sys/class/infiniband/*/ports/1/gids/0").out.strip() for node in (node1, node2)]
        listening = node1.spawn(f"ucmatose -c 10 -f gid -b {gids[0]}")
        node1.wait_for(LISTENS, timeout=20, what="ucmatose to listen at its GID")
        out = node2.run(f"ucmatose -c 10 -f gid -b {gids[1]} -s {gids[0]}", timeout=60).out
        assert "return status 0" in out and "return status 0" in listening.wait(60).out, out
        check_programs((node1, node2), FEW, roles=(1,))
        connections_are_listed_with_their_process(node1, node2)
        limited_members_connect_to_full_ones(node1, node2)
        namespaces_have_their_own_addresses_and_ports(node1, node2)
        devices_connect_in_their_own_namespace(node1, node2)
        module_is_unloaded_while_ids_are_listed(node1)


@test(kernels=(), also=("stock", "plain", "debug"), timeout=600)
def librdmacm_programs_connect_two_weft_guests_with_either_guest_as_the_server(lab):
    """All programs that the tests of two stacks run also connect two guests with weft's stack, with either guest as the server."""
    with pair(lab, ipv6=True) as nodes:
        check_programs(nodes, ALL)
