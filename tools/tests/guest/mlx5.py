# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests the ConnectX-5 with Debian's drivers and programs, connected to another ConnectX-5 and to a ConnectX-2."""
import contextlib
import json
import pathlib
import re
import signal
import subprocess
import time

from lab import kernels, rdma_core, vm
from lab.testing import full, test

import interface
import opensm
import perftest
import storage
import two_ports
from lab.fabric import TWO_PORTS, Fabric
from stock import KILLED, check, complaints, guests, install, ping, programs, served
from stock import interfaces_up as ipoib_up

# node2 has the card of the other model.
MIXED = """
[[switch]]
name = "switch1"
[[host]]
name = "node1"
model = "mlx5"
[[host]]
name = "node2"
model = "{peer}"
[[link]]
ends = ["node1", "switch1"]
[[link]]
ends = ["node2", "switch1"]
"""
TWO_PORTS_EACH = TWO_PORTS.replace("ports = 2", 'model = "mlx5"\nports = 2')
CLIENTS = "ib_uverbs ib_umad ib_ipoib rdma_ucm"
DRIVERS = {"mlx5": "mlx5_ib", "mlx4": "mlx4_ib"}
EXCHANGES = 300
SUITE = "/usr/share/rdma-core/tests"
SUITE_PASSES = 122
# One test resizes a completion queue to fewer entries than it contains.
SUITE_PROVOKES = re.compile(r"MODIFY_CQ.*too many outstanding CQEs")
# The message of mlx5_core about a card without a clock, which a real card of the model has.
EXPECTED = re.compile(r"invalid device_frequency_khz")


def unexpected(node):
    return "\n".join(line for line in complaints(node).splitlines() if not EXPECTED.search(line))


def load_drivers(node, model):
    node.run(f"modprobe {DRIVERS[model]} && modprobe -a {CLIENTS}", timeout=90)


def load(node, model):
    load_drivers(node, model)
    node.wait_for(f"grep -q ACTIVE /sys/class/infiniband/{model}_0/ports/1/state", timeout=60, what=f"an active port of {model}_0")


def works(node1, node2, fabric, peer):
    node1.run("dmesg -C")
    load(node1, "mlx5")
    load(node2, peer)
    with check("ibv_devinfo shows the attributes of the card"):
        said = node1.run("ibv_devinfo -v").out
        for what in ("hca_id:\tmlx5_0", "vendor_part_id:\t\t\t4119", "fw_ver:\t\t\t\t16.35.2000", "active_mtu:\t\t4096", "link_layer:\t\tInfiniBand"):
            assert what in said, said
    ipoib_up(node1, node2)
    with check("pings pass in both directions, also with fragments"):
        ping(node1, node2, "10.0.0.2", 100)
        ping(node2, node1, "10.0.0.1", 100)
        ping(node1, node2, "10.0.0.2", 20, "-f -s 5000")
    for transport in ("rc", "uc", "ud", "srq"):
        size = "-m 2048 -s 4096" if transport != "ud" else "-s 1024"
        for events in ("", "-e"):
            with check(f"ibv_{transport}_pingpong {events} passes between the two cards"):
                for out in served(node1, node2, f"ibv_{transport}_pingpong -c {events} -n {EXCHANGES} {size}"):
                    assert f"{EXCHANGES} iters in" in out and "invalid data" not in out, out
    with check("ibv_xsrq_pingpong passes between the two cards"):
        for out in served(node1, node2, "ibv_xsrq_pingpong -n 20"):
            assert "invalid" not in out, out
    with check("rping connects through the connection manager, both ways"):
        for server, client, address in ((node1, node2, "10.0.0.1"), (node2, node1, "10.0.0.2")):
            serving = server.spawn(f"rping -s -C 20 -a {address}")
            server.wait_for("rdma resource show cm_id | grep -q LISTEN", timeout=30, what="rping to listen")
            client.run(f"rping -c -v -C 20 -a {address}", timeout=60)
            serving.wait(60)
    with check("infiniband-diags finds the fabric through the card's port"):
        seen = node1.run("ibnetdiscover").out
        assert '"node1' in seen and '"node2' in seen and '"switch1' in seen, seen
        assert "SMINFO_MASTER" in node1.run("sminfo").out
        assert node1.run("saquery NR").out.count("NodeRecord dump") >= 3
    with check("programs that are killed leave nothing behind"):
        assert node1.run("timeout -s KILL 1 ibv_rc_pingpong", check=False).status == KILLED
        for out in served(node1, node2, "ibv_rc_pingpong -c -n 100"):
            assert "100 iters in" in out, out
    with check("the driver used no command that the card lacks, and logged no warning"):
        assert unexpected(node1) == "", unexpected(node1)
        counted = json.loads(fabric.weft("--json", "counters", "--cards"))["node1"]
        assert counted["unsupported"] == 0, counted
    with check("the driver unloads, and loads again"):
        node1.run("modprobe -r ib_ipoib rdma_ucm ib_umad mlx5_ib; modprobe -r mlx5_core", timeout=90)
        load(node1, "mlx5")
        assert unexpected(node1) == "", unexpected(node1)


@test(kernels=("stock",), timeout=240)
def connectx_5_interoperates_with_a_connectx_2(lab):
    """mlx5_core and mlx5_ib probe the card, IPoIB and every kind of queue pair work with a ConnectX-2, and the drivers reload."""
    with guests(lab, MIXED.format(peer="mlx4")) as (fabric, (node1, node2)):
        works(node1, node2, fabric, "mlx4")


def recovered(node, kind, act):
    """Waits until the driver has found the fault by polling the card's health, has reset the card, and the port is active again."""
    node.run("dmesg -C")
    with check(f"the driver recovers from {kind}"):
        act()
        node.wait_for("dmesg | grep -q 'health recovery succeeded'", timeout=60, what="the driver's recovery")
        node.wait_for("grep -q ACTIVE /sys/class/infiniband/mlx5_0/ports/1/state", timeout=60, what="an active port")


def flood(node, address, seconds):
    """Starts a flood of pings, and returns it after the first replies, so that the following steps run under traffic."""
    received = int(node.run("cat /sys/class/net/ib0/statistics/rx_packets").out)
    pinging = node.spawn(f"ping -q -f -w {seconds} {address}")
    node.wait_for(f"test $(cat /sys/class/net/ib0/statistics/rx_packets) -gt {received + 20}", what="replies to the flood of pings")
    return pinging


def replies(pinging):
    """Stops a flood of pings, and returns the number of its replies."""
    return int(re.search(r" (\d+) received", pinging.kill(signal.SIGINT).wait(30, check=False).out)[1])


@test(kernels=("stock",), timeout=240)
def mlx5_core_recovers_from_failure_flr_and_rebind(lab):
    """mlx5_core recovers from a fatal error, from a function-level reset, and, under pings, from unbind and bind and from removal and rescan."""
    with guests(lab, MIXED.format(peer="mlx5"), cpus=2) as (fabric, (node1, node2)):
        for node in (node1, node2):
            load(node, "mlx5")
        ipoib_up(node1, node2)
        device = node1.run("basename $(readlink -f /sys/class/infiniband/mlx5_0/device)").out.strip()
        recovered(node1, "a fatal error", lambda: fabric.weft("card", "fault", "node1", "catastrophic"))
        # Use the other card, because Linux recovers the same card again only after 20 minutes.
        recovered(node2, "a function-level reset", lambda: node2.run(f"echo 1 > /sys/bus/pci/devices/{device}/reset", timeout=60))
        ipoib_up(node1, node2)
        pinging = flood(node2, "10.0.0.1", 120)
        try:
            for what, command in (("unbound and bound", f"cd /sys/bus/pci/drivers/mlx5_core; echo {device} > unbind; echo {device} > bind"),
                                  ("removed and rescanned", f"echo 1 > /sys/bus/pci/devices/{device}/remove; echo 1 > /sys/bus/pci/rescan")):
                with check(f"the card works after it was {what}"):
                    node1.run(command, timeout=90)
                    node1.wait_for("grep -q ACTIVE /sys/class/infiniband/mlx5_0/ports/1/state", timeout=60, what="an active port")
                    ipoib_up(node1)
                    node1.run("ip neigh flush dev ib0")
                    ping(node1, node2, "10.0.0.2", 20)
            assert replies(pinging) > 0
        finally:
            pinging.kill()
            pinging.wait(30, check=False)


@contextlib.contextmanager
def under_traffic(victim, peer, address):
    """A flood of pings and RDMA writes from the peer to the victim, both of which have begun. They need not survive."""
    serving, writing = victim.spawn(WRITES), None
    pinging = flood(peer, address, 300)
    try:
        victim.wait_for("ss -ltn | grep -q :18515", what="ib_write_bw to listen")
        writing = peer.spawn(f"{WRITES} {address}")
        written = int(peer.run(f"cat {SENT}").out)
        peer.wait_for(f"test $(cat {SENT}) -gt {written + WRITTEN}", timeout=60, what="RDMA writes to be sent")
        yield
        assert replies(pinging) > 0
    finally:
        for each in (pinging, writing, serving):
            if each:
                each.kill()
                each.wait(60, check=False)


def carries_traffic_again(victim, peer, address, new_interfaces):
    """Pings and RDMA writes pass. new_interfaces: nodes whose ib0 is a new interface, without an address."""
    for node in new_interfaces:
        node.wait_for("grep -q ACTIVE /sys/class/infiniband/mlx5_0/ports/1/state", timeout=90, what="an active port")
        node.wait_for("test -e /sys/class/net/ib0", timeout=60, what="ib0")
        node.run(f"ip addr add {ADDRESSES[node.name]}/24 dev ib0 && ip link set ib0 up")
        node.wait_for_carrier()
        node.run("ip neigh flush dev ib0")
    ping(victim, peer, ADDRESSES[peer.name], 20)
    ping(peer, victim, address, 20)
    perftest.result(served(victim, peer, "ib_write_bw -F -n 100 -s 65536", address=address)[1], 65536)


ADDRESSES = {"node1": "10.0.0.1", "node2": "10.0.0.2"}
WRITES = "exec nice ib_write_bw -F -D 300 -s 65536"
SENT = "/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data"    # in words of 4 bytes
WRITTEN = 1 << 20


@test(kernels=(), also=("stock",), timeout=900)
def connectx_5_recovers_from_errors_resets_and_removal_under_traffic(lab):
    """Cards are hot-plugged. Under pings and RDMA writes, mlx5_core recovers from a fatal error, a function-level reset, PCI errors of the root port, unbind and
    bind, and removal and rescan. A health counter that stops interrupts nothing. QEMU cannot unplug vfio-user devices (Documentation/limits.rst)."""
    fabric = Fabric(lab, MIXED.format(peer="mlx5"))
    described = [lab.guest(f"node{number}", share=None, cpus=2, spare_ports=1) for number in (1, 2)]
    with lab.boot(*described) as (node1, node2):
        for node, socket in zip((node1, node2), fabric.sockets):
            node.plug(socket)
            load(node, "mlx5")
        ipoib_up(node1, node2)
        device = node1.run("basename $(readlink -f /sys/class/infiniband/mlx5_0/device)").out.strip()
        driver, port = "/sys/bus/pci/drivers/mlx5_core", f"{vm.EMPTY_PORT_ID}0"

        def pci_errors():
            node1.run("dmesg -C")
            for rounds, kind in enumerate(("COMP_TIME", "UNX_COMP"), 1):
                node1.qmp("human-monitor-command", **{"command-line": f"pcie_aer_inject_error {port} {kind}"})
                node1.wait_for(f'test "$(dmesg | grep -c "device recovery successful")" -ge {rounds}', timeout=60, what=f"the end of the recovery from {kind}")

        def stuck():
            node1.run("dmesg -C")
            fabric.weft("card", "fault", "node1", "health-stuck")
            node1.wait_for("dmesg | grep -q 'health compromised'", timeout=90, what="the driver to find that the health counter has stopped")

        # Linux recovers the same card only once in 20 minutes, so the reset is that of the other card.
        for what, victim, act, ends in (
                ("a fatal error", node1, lambda: recovered(node1, "a fatal error", lambda: fabric.weft("card", "fault", "node1", "catastrophic")), True),
                ("a function-level reset", node2, lambda: recovered(node2, "a reset", lambda: node2.run(f"echo 1 > /sys/bus/pci/devices/{device}/reset", timeout=90)), True),
                ("PCI errors", node1, pci_errors, True),
                ("unbind and bind", node1, lambda: node1.run(f"echo {device} > {driver}/unbind; echo {device} > {driver}/bind", timeout=90), True),
                ("removal and rescan", node1, lambda: node1.run(f"echo 1 > /sys/bus/pci/devices/{device}/remove; echo 1 > /sys/bus/pci/rescan", timeout=90), True),
                ("a health counter that stops", node1, stuck, False)):
            peer = node2 if victim is node1 else node1
            address = ADDRESSES[victim.name]
            started = time.monotonic()
            with check(f"the card carries traffic again after {what}"):
                with under_traffic(victim, peer, address):
                    act()
                carries_traffic_again(victim, peer, address, (victim,) if ends else ())
            print(f"{what}: {time.monotonic() - started:.1f} s", flush=True)


CYCLES = 300 if full() else 10     # a cycle of both cards takes 12 s on a busy host
CYCLES_BETWEEN_CHECKS = 5


def resources(process):
    """Returns the numbers of a process's descriptors and memory mappings, and its resident memory in KiB without the guests' memory."""
    folder = pathlib.Path("/proc", str(process.pid))
    resident = re.search(r"RssAnon:\s+(\d+)", (folder / "status").read_text())
    return len(list((folder / "fd").iterdir())), len((folder / "maps").read_text().splitlines()), int(resident[1])


@test(kernels=(), also=("stock",), timeout=1200, full_timeout=14400)
def hot_plug_cycles_leave_the_card_usable(lab):
    """A ConnectX-5 and a ConnectX-2 in one guest are removed and found again, 300 times with --full. In most cycles this interrupts the link's training. The cards
    exchange messages afterwards, and weftd needs no more descriptors, mappings and memory."""
    fabric = Fabric(lab, MIXED.format(peer="mlx4"))
    with lab.boot(lab.guest("node1", share=None, cpus=2, cards=fabric.sockets)) as (node,):
        node.run("dmesg -C")
        # By default, mlx5_ib creates 6,500 memory keys in each cycle, and destroys them, which takes most of the time.
        node.run("modprobe mlx5_core prof_sel=0", timeout=60)
        for model in ("mlx5", "mlx4"):
            load(node, model)
        devices = [(model, node.run(f"basename $(readlink -f /sys/class/infiniband/{model}_0/device)").out.strip()) for model in ("mlx5", "mlx4")]

        def usable():
            for model, _ in devices:
                node.wait_for(f"grep -q ACTIVE /sys/class/infiniband/{model}_0/ports/1/state", timeout=60, what=f"an active port of {model}_0")
            for out in served(node, node, "ibv_rc_pingpong -d mlx4_0 -c -n 100", "ibv_rc_pingpong -d mlx5_0 -c -n 100", "127.0.0.1"):
                assert "100 iters in" in out and "invalid data" not in out, out

        took, before, free = {model: 0.0 for model, _ in devices}, None, None
        for cycle in range(1, CYCLES + 1):
            for model, device in devices:
                started = time.monotonic()
                node.run(f"echo 1 > /sys/bus/pci/devices/{device}/remove && ! test -e /sys/class/infiniband/{model}_0 && echo 1 > /sys/bus/pci/rescan", timeout=60)
                node.wait_for(f"test -e /sys/class/infiniband/{model}_0", timeout=60, what=f"{model}_0")
                took[model] += time.monotonic() - started
            if cycle % CYCLES_BETWEEN_CHECKS == 0:
                usable()
                available = int(node.run("awk '/MemAvailable/ {print $2}' /proc/meminfo").out)
                # The first cycles fill caches.
                before, free = before or resources(fabric.process), free or available
                print(f"{cycle} cycles: {', '.join(f'{model} {1000 * spent / cycle:.0f} ms' for model, spent in took.items())}; weftd's descriptors, mappings and KiB "
                      f"{resources(fabric.process)}; {available} KiB available in the guest", flush=True)
        descriptors, mappings, resident = resources(fabric.process)
        assert descriptors == before[0] and mappings <= before[1] + 16 and resident < before[2] + 5_000, (before, resources(fabric.process))
        assert available > free - 30_000, (free, available)
        assert unexpected(node) == "", unexpected(node)


@test(kernels=(), also=("stock",), timeout=400)
def srp_rds_and_nvme_over_rdma_transfer_data_between_two_connectx_5(lab):
    """NVMe over RDMA, SRP and RDS transfer data between two ConnectX-5, as in storage.srp_rds_and_nvme_over_rdma_transfer_data."""
    with guests(lab, MIXED.format(peer="mlx5")) as (fabric, (target, host)):
        for node in (target, host):
            load(node, "mlx5")
        ipoib_up(target, host)
        with check("NVMe over RDMA transfers a disk's data unchanged"):
            storage.nvme_over_rdma(fabric, target, host)
        with check("SRP transfers a disk's data unchanged"):
            storage.srp(target, host)
        with check("RDS returns every datagram"):
            storage.reliable_datagrams(lab, fabric, target, host)


# node1 has enhanced IPoIB. The MTU is the largest that both cards support, and there is a second partition.
ENHANCED = MIXED.replace('model = "mlx5"', 'model = "mlx5"\nenhanced_ipoib = true') + '''
[[sm.partition]]
name = "default"
mtu = {mtu}
[[sm.partition]]
name = "second"
pkey = 1
'''
ENCAPSULATION, HEADERS = 4, 28    # of IPoIB; of IPv4 and ICMP
CHECKSUM_ERRORS = ("TcpInCsumErrors", "UdpInCsumErrors", "IcmpInCsumErrors", "IpExtInCsumErrors")


def enhanced(node):
    """The counters of `ethtool -S ib0`; fails if ib0 is not a device of mlx5_core."""
    assert "driver: mlx5_core[ib_ipoib]" in node.run("ethtool -i ib0").out, "ib0 is no device of mlx5_core"
    return {name.strip(): int(value) for name, value in re.findall(r"^(.*): (\d+)$", node.run("ethtool -S ib0").out, re.MULTILINE)}


def streams(server, client, address, devices):
    """TCP over one connection and over four, both ways. `devices`: the nodes whose ib0 is a device of mlx5_core."""
    for options in ("-n 8M", "-n 8M -R", "-n 8M -P 4"):
        end = interface.iperf3(server, client, options, address)
        assert end["sum_received"]["bytes"] > 1_000_000, end
    for node in (server, client):
        counters = dict(line.split()[:2] for line in node.run("nstat -asz").out.splitlines() if not line.startswith("#"))
        assert all(counters[name] == "0" for name in CHECKSUM_ERRORS), counters
    for node in devices:
        counted = enhanced(node)
        for name in ("tx_tso_packets", "tx_csum_partial", "rx_csum_complete"):
            assert counted[name] > 0, counted
        assert counted["rx_wqe_err"] == counted["tx_cqe_err"] == 0, counted


def rules_of_ethtool(node1, node2):
    """Rules in flow tables: one selects a queue for a port, one drops packets."""
    node1.run("ethtool -N ib0 flow-type tcp4 dst-port 5201 action 1 loc 0")
    before = enhanced(node1)
    interface.iperf3(node1, node2, "-n 4M")
    after = enhanced(node1)
    assert after["rx1_packets"] - before["rx1_packets"] > 100 > after["rx0_packets"] - before["rx0_packets"], (before, after)
    node1.run("ethtool -N ib0 flow-type ip4 src-ip 10.0.0.2 action -1 loc 1")
    assert node2.run("ping -q -c 3 -i 0.1 -W 1 10.0.0.1", check=False).status == 1, "a rule drops them"
    node1.run("ethtool -N ib0 delete 1 && ethtool -N ib0 delete 0")
    ping(node2, node1, "10.0.0.1", 20)


def second_partition(node1, node2, devices):
    for node in (node1, node2):
        node.run("ip link add link ib0 name ib0.8001 type ipoib pkey 0x8001")
    ipoib_up(node1, node2, dev="ib0.8001", network="10.1.0")
    for node in devices:
        assert "mlx5_core[ib_ipoib]" in node.run("ethtool -i ib0.8001").out
    ping(node1, node2, "10.1.0.2", 20)
    ping(node2, node1, "10.1.0.1", 20, "-f -s 5000")
    assert interface.iperf3(node1, node2, "-n 4M", "10.1.0.1")["sum_received"]["bytes"] > 1_000_000


def carries_ipoib(fabric, node1, node2, peer, devices, mtu):
    whole = mtu - ENCAPSULATION
    fits = whole - HEADERS
    for node, model in ((node1, "mlx5"), (node2, peer)):
        load(node, model)
        node.run("dmesg -C")
    ipoib_up(node1, node2)
    with check("pings of every size pass either way, in fragments too, and over IPv6"):
        for size in (0, 56, 1500, fits - 1, fits, fits + 1, 8000, 20000):
            ping(node1, node2, "10.0.0.2", 20, f"-i 0.01 -s {size} -p a55a")
            ping(node2, node1, "10.0.0.1", 20, f"-i 0.01 -s {size} -p a55a")
        scoped = node2.run("ip -6 -br addr show dev ib0 scope link").out.split()[2].split("/")[0] + "%ib0"
        node1.wait_for(f"ping -q -c 1 -W 1 {scoped}", what="a first answer")
        assert " 0% packet loss" in node1.run(f"ping -q -c 20 -i 0.01 -s 1000 {scoped}").out
    with check("TCP streams either way, with checksums and segmentation by the card"):
        streams(node1, node2, "10.0.0.1", devices)
        streams(node2, node1, "10.0.0.2", devices)
    with check("UDP streams"):
        end = interface.iperf3(node1, node2, "-n 1M -u -b 5M -l 1400")
        assert end["sum"]["packets"] - end["sum"]["lost_packets"] > 500, end
    with check("connections are spread over the queues by their hash"):
        for node in devices:
            interface.iperf3(node, node2 if node is node1 else node1, "-n 4M -P 8", "10.0.0.1" if node is node1 else "10.0.0.2")
            counted = enhanced(node)
            assert counted["rx0_packets"] > 100 and counted["rx1_packets"] > 100, counted
    with check("the MTU changes under traffic"):
        pinging = node2.spawn("ping -q -i 0.01 -c 400 -s 1000 10.0.0.1")
        for size in (1280, 1500, whole):
            for node in devices:
                node.run(f"ip link set ib0 mtu {size}")
        received = int(re.search(r" (\d+) received", pinging.wait(60, check=False).out)[1])
        assert received > 0, "no traffic"
        ping(node1, node2, "10.0.0.2", 20, f"-i 0.01 -s {fits} -M do")
        streams(node1, node2, "10.0.0.1", devices)
    with check("rules of ethtool steer and drop packets"):
        rules_of_ethtool(node1, node2)
    with check("the number of queues changes"):
        node1.run("ethtool -L ib0 combined 1")
        ping(node2, node1, "10.0.0.1", 20)
        node1.run("ethtool -L ib0 combined 2")
        streams(node1, node2, "10.0.0.1", devices)
    with check("an interface of another partition shares the queues"):
        second_partition(node1, node2, devices)
    with check("the link goes down and comes up"):
        fabric.weft("link", "down", "node1/1")
        node1.wait_for_carrier(there=False)
        fabric.weft("link", "up", "node1/1")
        node1.wait_for_carrier()
        ping(node1, node2, "10.0.0.2", 20)
        ping(node2, node1, "10.0.0.1", 20)
    with check("the device goes down and up"):
        node1.run("ip link set ib0 down && ip link set ib0 up")
        node1.wait_for_carrier()
        ping(node2, node1, "10.0.0.1", 20)
    with check("the driver has nothing to complain of, and asked for nothing that the card does not have"):
        for number, node in enumerate((node1, node2), 1):
            assert unexpected(node) == "", unexpected(node)
            if node in devices:
                counted = json.loads(fabric.weft("--json", "counters", "--cards"))[f"node{number}"]
                assert counted["unsupported"] == 0, counted
    with check("the modules unload under traffic, and load again"):
        pinging = flood(node2, "10.0.0.1", 60)
        try:
            node1.run("modprobe -r ib_ipoib rdma_ucm ib_umad mlx5_ib; modprobe -r mlx5_core", timeout=90)
            load(node1, "mlx5")
            ipoib_up(node1)
            node1.run("ip neigh flush dev ib0")
            ping(node1, node2, "10.0.0.2", 20)
            assert replies(pinging) > 0
        finally:
            pinging.kill()
            pinging.wait(30, check=False)
        assert unexpected(node1) == "", unexpected(node1)


@test(kernels=(), also=("stock",), timeout=600)
def enhanced_ipoib_on_connectx_5_exchanges_traffic_with_a_connectx_2(lab):
    """IPoIB over mlx5_core's own network device, with several queues and offloads by the card, to a ConnectX-2."""
    with guests(lab, ENHANCED.format(peer="mlx4", mtu=2048), cpus=2) as (fabric, (node1, node2)):
        carries_ipoib(fabric, node1, node2, "mlx4", (node1,), 2048)


@test(kernels=(), also=("stock",), timeout=600)
def two_enhanced_ipoib_devices_interoperate(lab):
    """The same between two such devices."""
    lab_file = ENHANCED.replace('model = "{peer}"', 'model = "mlx5"\nenhanced_ipoib = true').format(mtu=4096)
    with guests(lab, lab_file, cpus=2) as (fabric, (node1, node2)):
        carries_ipoib(fabric, node1, node2, "mlx5", (node1, node2), 4096)


# Debian 13's kernel, and the newest one that is packaged for it.
NEWER_KERNELS = (("trixie", r"linux-image-(6\.12\.\d[^-]*-amd64)"), ("trixie-backports", r"linux-image-(\d+\.\d+\.\d[^-]*-amd64)"))
# `weft run` has loaded the drivers, and ib0 has its address. A client that connects before its server listens tries again.
USED_BY_WEFT_RUN = f"""
set -e
dmesg -l emerg,alert,crit,err,warn > /run/dmesg; grep mlx5 /run/dmesg > /run/complaints || test $? = 1
again() {{ for i in $(seq 100); do if "$@" > /run/out 2>&1; then cat /run/out; return; fi; sleep 0.2; done; cat /run/out >&2; return 1; }}
#@ node1
for type in rc uc ud srq; do ibv_${{type}}_pingpong -c -n {EXCHANGES} -s 1024 > /dev/null; done
ib_write_bw -F -n 100 > /dev/null
rping -s -C 10
#@ node2
echo "$(uname -r) $(nproc)"
again ping -q -c 1 -W 1 10.1.0.1 > /dev/null    # ib_ipoib queues at most three packets until it has resolved the address
ping -c 20 -i 0.05 10.1.0.1 | grep ' 0% packet loss'
for type in rc uc ud srq; do again ibv_${{type}}_pingpong -c -n {EXCHANGES} -s 1024 10.1.0.1 | grep iters; done
again ib_write_bw -F -n 100 10.1.0.1 | grep '^ 65536'
again rping -c -v -C 10 -a 10.1.0.1 | grep -c ping
cat /run/complaints
"""


def carry_traffic(lab, release, *kernel):
    """Checks the drivers of a kernel, which the options `kernel` of weft run select, with 1, 2 and 4 CPUs."""
    script = lab.directory / "script"
    script.write_text(USED_BY_WEFT_RUN)
    for cpus in (1, 2, 4):
        with check(f"{release} with {cpus} CPUs: ping, ping-pongs, writes and connections"):
            done = subprocess.run([lab.program("weft"), "run", "--card", "mlx5", *kernel, "--cpus", str(cpus), "--timeout", "200", "--logs", lab.directory / f"{release}-{cpus}",
                                   "--script", script], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300 * lab.slowness)
            assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
            said = done.stdout
            assert f"node2: {release} {cpus}\n" in said and said.count(f"{EXCHANGES} iters in") == 4 and "node2: 10\n" in said, said
            complaints_of_mlx5 = [line for line in said.splitlines() if "mlx5" in line and release not in line and not EXPECTED.search(line)]
            assert complaints_of_mlx5 == [], complaints_of_mlx5


@test(kernels=(), also=("stock",), timeout=900)
def drivers_of_linux_6_1_carry_traffic_with_1_2_and_4_cpus(lab):
    """mlx5_core, mlx5_ib and ib_ipoib of Debian 12's kernel drive the card with 1, 2 and 4 CPUs."""
    carry_traffic(lab, kernels.find("stock").release)


@test(kernels=(), also=("stock",), timeout=900)
def drivers_of_linux_6_12_and_newest_debian_kernel_carry_traffic(lab):
    """mlx5_core, mlx5_ib and ib_ipoib of Linux 6.12 and of the newest kernel in Debian drive the card with 1, 2 and 4 CPUs."""
    for bzimage, modules in (kernels.packaged(*each) for each in NEWER_KERNELS):
        carry_traffic(lab, modules.name, "--kernel", bzimage, "--modules", modules)


POLLED = MIXED.format(peer="mlx5").replace('model = "mlx5"', 'model = "mlx5"\ndoorbells = "polled"')


def doorbells(fabric, node):
    """Returns the numbers of doorbells of node that were trapped and that were polled."""
    counted = json.loads(fabric.weft("--json", "counters", "--cards"))[node]
    return counted["send_doorbells"] + counted["cq_doorbells"], counted["polled_doorbells"]


@test(kernels=(), also=("stock",), timeout=300)
def guests_exchange_traffic_when_weftd_polls_their_doorbells_in_memory(lab):
    """With doorbells that the guest stores to memory: IPoIB, ping-pongs with and without events, and perftest, whose data is compared."""
    with guests(lab, POLLED) as (fabric, (node1, node2)):
        for node in (node1, node2):
            node.run("dmesg -C")
            load(node, "mlx5")
        ipoib_up(node1, node2)
        ping(node1, node2, "10.0.0.2", 100, "-f -s 1000")
        trapped, polled = doorbells(fabric, "node1")
        assert trapped > 100 and polled == 0, "the kernel's queues share the page of the event queues, which is not mapped"
        for transport in ("rc", "uc", "ud", "srq"):
            for events in ("", "-e"):
                with check(f"ibv_{transport}_pingpong {events} passes"):
                    for out in served(node1, node2, f"ibv_{transport}_pingpong -c {events} -n {EXCHANGES} -s 1024"):
                        assert f"{EXCHANGES} iters in" in out and "invalid data" not in out, out
        for command, size in (("ib_write_lat -s 8 -n 1000", 8), ("ib_send_bw -s 8 -n 5000", 8), ("ib_send_lat -s 8 -e -n 300", 8), ("ib_send_bw -e -q 4 -n 300 -s 8192", 8192),
                              ("ib_read_lat -e -s 64 -n 300", 64), ("ib_send_lat -c UD -s 64 -n 300", 64)):
            with check(f"{command} completes"):
                perftest.result(served(node1, node2, f"{command} -F")[1], size)
        for operation, size in (("send", 65536), ("write", 1 << 20)):
            with check(f"ib_{operation}_bw moves {size} bytes intact"):
                for node in (node1, node2):
                    node.run(f"head -c {2 * size} /dev/zero >{perftest.FILE}")
                served(node1, node2, f"ib_{operation}_bw -F -s {size} -n 5 --mmap={perftest.FILE}")
                server, client = node1.get(perftest.FILE), node2.get(perftest.FILE)
                assert server[size:] == client[:size] and any(client[:size])
        with check("the doorbells of programs cause no exit of the guest"):
            before = doorbells(fabric, "node2")
            served(node1, node2, "ib_send_bw -F -s 8 -n 5000")
            after = doorbells(fabric, "node2")
            assert after[0] - before[0] < 100 and after[1] > before[1], (before, after)
        with check("a program that was killed leaves nothing behind, and the drivers log no warning"):
            assert node1.run("timeout -s KILL 1 ibv_rc_pingpong", check=False).status == KILLED
            served(node1, node2, "ibv_rc_pingpong -c -e -n 100")
            for node in (node1, node2):
                assert unexpected(node) == "", unexpected(node)


@test(kernels=(), also=("stock",), timeout=240)
def mstflint_queries_the_card(lab):
    """mstvpd, mstmread and mstflint read the card's product data, device ID and firmware version."""
    with guests(lab, MIXED.format(peer="mlx5"), share=programs("mstflint")) as (_, (node1, _)):
        install(node1)
        load(node1, "mlx5")
        device = node1.run("lspci -D -d 15b3: | cut -d' ' -f1").out.strip()
        serial = "".join(node1.run(f"lspci -vv -s {device} | grep 'Device Serial Number'").out.split()[-1].split("-"))
        shown = node1.run(f"mstvpd {device}").out
        assert "Emulated ConnectX-5" in shown and "WFT_0000000005" in shown and serial in shown, shown
        assert "0x0000020d" in node1.run(f"mstmread {device} 0xf0014", check=False).out     # its status is the number of bytes
        shown = node1.run(f"mstflint -d {device} query", timeout=60).out
        assert "16.35.2000" in shown and "WFT_0000000005" in shown, shown
        assert unexpected(node1) == "", unexpected(node1)


@test(kernels=(), also=("stock",), timeout=300)
def iser_transfers_data(lab):
    """open-iscsi with ib_iser and Linux's target with ib_isert transfer a disk's data unchanged."""
    with guests(lab, MIXED.format(peer="mlx5"), share=programs(*storage.ISCSI_PROGRAMS)) as (_, (target, host)):
        for node in (target, host):
            load(node, "mlx5")
        ipoib_up(target, host)
        install(host)
        storage.iser(target, host)
        for node in (target, host):
            assert complaints(node, "mlx5_ib|infiniband|iser") == "", complaints(node)


@test(kernels=(), also=("stock",), timeout=300)
def opensm_on_connectx_5_manages_the_fabric_and_a_standby_opensm_takes_over(lab):
    """OpenSM on a ConnectX-5 manages the fabric, and one on another takes over, as in opensm.opensm_manages_the_fabric_and_a_standby_opensm_takes_over."""
    with guests(lab, MIXED.format(peer="mlx5") + opensm.UNMANAGED, log_level="debug") as (fabric, (node1, node2)):
        for node in (node1, node2):
            load_drivers(node, "mlx5")
        opensm.manages(fabric, node1, node2)


@test(kernels=(), also=("stock",), timeout=300)
def both_ports_of_a_connectx_5_carry_traffic(lab):
    """Two ports of one PCI function carry traffic, as in two_ports.both_ports_carry_traffic_independently."""
    with guests(lab, TWO_PORTS_EACH) as (fabric, (node1, node2)):
        for node in (node1, node2):
            load(node, "mlx5")
        two_ports.works(fabric, node1, node2)


# UCX's name of each transport, the options that select it, and the options at both ends: small and long messages, one-sided operations, atomics.
UCX_TRANSPORTS = {"rc_v": "rc_verbs", "ud_v": "ud_verbs", "rc_x": "rc_mlx5", "ud_x": "ud_mlx5"}
UCX_TESTS = ("tag_lat -s 8 -n 500", "tag_bw -s 1000000 -n 50", "ucp_put_bw -s 4096 -n 200", "ucp_get -s 4096 -n 200", "ucp_fadd -s 8 -n 200", "stream_bw -s 4096 -n 200")
UCX_PORT = 13337


@test(kernels=(), also=("stock",), timeout=400)
def ucx_perftest_completes(lab):
    """ucx_perftest completes messages, one-sided operations and atomics over verbs and over the card's own interface (mlx5dv)."""
    with guests(lab, MIXED.format(peer="mlx5")) as (fabric, (node1, node2)):
        for node in (node1, node2):
            load(node, "mlx5")
        ipoib_up(node1, node2)
        for option, transport in UCX_TRANSPORTS.items():
            command = f"UCX_TLS={option},self UCX_NET_DEVICES=mlx5_0:1 UCX_LOG_LEVEL=info ucx_perftest -p {UCX_PORT}"
            for operation in UCX_TESTS:
                with check(f"ucx_perftest -t {operation} over {transport} completes"):
                    serving = node1.spawn(command)
                    node1.wait_for(f"ss -ltn | grep -q :{UCX_PORT}", what="ucx_perftest to listen")
                    asked = node2.run(f"{command} 10.0.0.1 -f -t {operation}", timeout=60)
                    serving.wait(60)
                    count = operation.split()[-1]
                    assert re.search(rf"^ +{count} +[\d.]+ ", asked.out, re.MULTILINE), asked.out
                    assert f"{transport}/mlx5_0:1" in asked.out + asked.err, asked.out + asked.err
        for node in ("node1", "node2"):
            counted = json.loads(fabric.weft("--json", "counters", "--cards"))[node]
            assert counted["unsupported"] == 0, counted


@test(kernels=(), also=("stock",), timeout=240)
def two_connectx_5_interoperate(lab):
    """IPoIB and every kind of queue pair work between two ConnectX-5, and the drivers reload."""
    with guests(lab, MIXED.format(peer="mlx5")) as (fabric, (node1, node2)):
        works(node1, node2, fabric, "mlx5")


@test(kernels=(), also=("stock",), timeout=400)
def perftest_completes_with_a_connectx_2(lab):
    """perftest's operations over RC, UC, UD and XRC complete in both directions between a ConnectX-5 and a ConnectX-2."""
    with guests(lab, MIXED.format(peer="mlx4")) as (_, (node1, node2)):
        load(node1, "mlx5")
        load(node2, "mlx4")
        ipoib_up(node1, node2)
        for server, client, address in ((node1, node2, "10.0.0.1"), (node2, node1, "10.0.0.2")):
            for operation, transports in (("send", "RC UC UD XRC"), ("write", "RC UC XRC"), ("read", "RC XRC"), ("atomic", "RC XRC")):
                for transport in transports.split():
                    for kind in ("bw", "lat"):
                        length = "" if operation == "atomic" else "-s 1024"
                        with check(f"ib_{operation}_{kind} over {transport} completes"):
                            served(server, client, f"ib_{operation}_{kind} -F -c {transport} -n 300 {length}", address=address)


@test(kernels=(), also=("stock",), timeout=700)
def rdma_core_tests_pass(lab):
    """Only the known ones of rdma-core's own tests for all providers and for mlx5 fail."""
    with guests(lab, MIXED.format(peer="mlx4")) as (_, (node1, node2)):
        node1.run("dmesg -C")
        load(node1, "mlx5")
        load(node2, "mlx4")
        # The tests of rdmacm are skipped if ib0 has no address.
        ipoib_up(node1, node2)
        said = node1.run(f"ulimit -l unlimited && cd {SUITE} && python3 -B run_tests.py -v --dev mlx5_0", check=False, timeout=600).err
        print(said)
        failed, passed = rdma_core.outcome(said)
        assert failed == rdma_core.FAIL_ON_MLX5, said
        assert passed >= SUITE_PASSES, f"{passed} passed; skipped:\n" + "\n".join(re.findall(r"^.*skipped .*", said, re.MULTILINE))
        logged = [line for line in unexpected(node1).splitlines() if not SUITE_PROVOKES.search(line)]
        assert logged == [], logged
