# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests user MADs on weft's modules: Debian's unmodified diagnostics and OpenSM, and a program that misuses the interface on purpose."""
import contextlib
import re

from lab.fabric import PAIR, Fabric
from lab.testing import test

STACK = ("weft_kern", "weft_core", "weft_mad", "weft_sysfs", "weft_umad", "weft_mlx4")
PROBE = "/tmp/weft-uverbs-probe"
PORT = "/sys/class/infiniband/mlx4_0/ports/1"
# By default OpenSM writes its log when a buffer is full, and a standby manager polls its master four times in 40 s.
OPENSM = ("printf 'force_log_flush TRUE\\nsminfo_polling_timeout 1000\\npolling_retry_number 2\\n' > /tmp/opensm.conf; "
          "exec opensm -F /tmp/opensm.conf -f /tmp/opensm.log")
# The programs of infiniband-diags that are not written in Perl, and their expected output for two hosts, `one` and `two`, on a switch.
DIAGNOSTICS = (
    ("ibaddr", r"^GID fe80:.* LID start 0x{one:x} end 0x{one:x}$"),
    ("ibhosts", r"(?s)(^Ca\s.*){{2}}"),
    ("ibswitches", r"^Switch\s.* lid {switch} "),
    ("ibnodes", r"(?s)(^Ca\s.*){{2}}^Switch\s"),
    ("ibrouters", r""),
    ("ibroute {switch}", r"^0x{two:04x} \d+ : "),
    ("ibroute -M {switch}", r"^Multicast mlids "),
    ("dump_lfts", r"^0x{two:04x} \d+ : "),
    ("dump_mfts", r"^Multicast mlids "),
    ("dump_fts", r"^0x{two:04x} \d+ : "),
    ("ibtracert {one} {two}", r"^To ca .* lid {two}-{two} "),
    ("ibportstate {two} 1 query", r"^LinkState:\.+Active$"),
    ("ibportstate -D 0 1 query", r"^LinkState:\.+Active$"),
    ("ibqueryerrors", r" 3 nodes checked, 0 bad nodes found"),
    ("ibnetdiscover -p", r"^CA .* SW "),
    ("ibnetdiscover --cache /tmp/cache && ibcacheedit /tmp/cache /tmp/edited && ibnetdiscover --load-cache /tmp/edited", r"^Switch\s"),
    ("smpdump {two} 0x11", r"0101 0101"),
    ("smpquery nodedesc {two}", r"^Node Description:\.+"),
    ("smpquery portinfo {two}", r"^LinkState:\.+Active$"),
    ("smpquery switchinfo {switch}", r"^LinearFdbTop:\.+\d+$"),
    ("smpquery pkeys {two}", r"^ *0: 0xffff"),
    ("smpquery sl2vl {two}", r"in +0, out +0:"),
    ("smpquery vlarb {two}", r"VLArbitration tables: Lid {two} "),
    ("saquery PR --src-to-dst {one}:{two}", r"dlid\.+{two}\b"),
    ("saquery -g", r""),
    ("saquery CPI", r"ClassPortInfo:"),
    ("perfquery -x {two}", r"^PortXmitPkts:\.+\d+$"),
    ("perfquery -R {two}", r""),
    ("perfquery -a {switch}", r"^# Port counters: Lid {switch} port 255"),
)


@contextlib.contextmanager
def guests(lab, lab_file, count, **options):
    """Yields `count` guests with weft's modules, which can be unloaded at the end."""
    fabric = Fabric(lab, lab_file)
    with lab.boot(*(lab.guest(f"node{number}", vfio_user=[socket], **options)
                    for number, socket in enumerate(fabric.sockets[:count], 1))) as nodes:
        for node in nodes:
            node.insmod(*(f"/share/{name}.ko" for name in STACK))
        yield nodes
        for node in nodes:
            node.run("rmmod " + " ".join(reversed(STACK)))
            node.run("! ls -d /dev/infiniband/umad* /dev/infiniband/issm* /sys/class/infiniband_mad")


def active(*nodes):
    for node in nodes:
        node.wait_for(f"grep -q ACTIVE {PORT}/state", timeout=60, what="the port to be active")


def lid(node):
    return int(node.run(f"cat {PORT}/lid").out, 16)


def says(node, command, *patterns):
    """Runs a command, and checks that its output has a line for each pattern."""
    out = node.run(command, timeout=60).out
    for pattern in patterns:
        assert re.search(pattern, out, re.MULTILINE), f"{command}: no {pattern} in\n{out}"
    return out


@test(kernels=("stock",), also=("plain", "debug"), timeout=180)
def opensm_and_infiniband_diags_manage_and_query_the_fabric_through_weft_umad(lab):
    """OpenSM manages the fabric, all of infiniband-diags report it correctly, and a second OpenSM can take over."""
    with guests(lab, PAIR + "[sm]\nenabled = false\n", 2) as (node1, node2):
        for name, text in (("abi_version", "5"), ("umad0/ibdev", "mlx4_0"), ("umad0/port", "1"), ("issm0/port", "1")):
            assert node1.run(f"cat /sys/class/infiniband_mad/{name}").out == text + "\n", name
        assert node1.run("stat -c '%a %t:%T' /dev/infiniband/umad0 /dev/infiniband/issm0").out == "600 e7:0\n600 e7:40\n"

        # No subnet manager runs yet, so the port's neighbours are found only by directed routes.
        says(node1, "smpquery -D nodeinfo 0", r"NodeType:\.+Channel Adapter$")
        says(node1, "smpquery -D nodeinfo 0,1", r"NodeType:\.+Switch$")
        manager = node1.spawn(f"{OPENSM} -p 2")
        active(node1, node2)
        node1.wait_for("grep -q 'SUBNET UP' /tmp/opensm.log", what="SUBNET UP")
        assert node1.run("grep ' ERR ' /tmp/opensm.log || test $? = 1").out == ""    # 2: there is no log
        assert int(node1.run(f"cat {PORT}/cap_mask").out, 16) & 2, "the manager's port does not say IsSM"
        one, two = lid(node1), lid(node2)

        says(node1, "ibstat", r"CA type: MT26428", r"State: Active", rf"Base lid: {one}$", rf"SM lid: {one}$")
        says(node2, "ibstatus", r"state:\s+4: ACTIVE", rf"sm lid:\s+0x{one:x}$")
        says(node2, "sminfo", rf"sm lid {one} .*SMINFO_MASTER")
        says(node2, f"smpquery nodeinfo {one}", r"NodeType:\.+Channel Adapter$")
        out = says(node2, "ibnetdiscover", r'^Switch\s+36 "S-\w+"')
        assert len(re.findall(r"^Ca\s", out, re.MULTILINE)) == 2, out
        out = node2.run("iblinkinfo --switches-only").out
        assert len(re.findall(r"Active/  LinkUp", out)) == 2, out
        # Tables of several RMPP segments are read from the OpenSM on the same node and on the other one.
        for node in (node1, node2):
            assert node.run("saquery NR").out.count("NodeRecord dump") == 3
            assert node.run("saquery PIR").out.count("PortInfoRecord dump") >= 4
        says(node1, f"perfquery {two}", r"^PortXmitPkts:\.+\d+$")
        server = node2.spawn("ibping -S")
        node1.wait_for(f"ibping -c 1 {two} | grep -q ' 1 received'", what="ibping's server")
        says(node1, f"ibping -f -t 10000 -c 100 {two}", r"100 packets transmitted, 100 received")
        server.kill()
        server = node2.spawn("ibsysstat -S")
        node1.wait_for(f"ibsysstat {two} | grep -q 'sysstat ping succeeded'", what="ibsysstat's server")
        server.kill()
        switch = int(re.search(r"^Switch\s.* lid (\d+) ", node1.run("ibswitches").out, re.MULTILINE)[1])
        lids = {"one": one, "two": two, "switch": switch}
        commands = [(command.format(**lids), pattern.format(**lids)) for command, pattern in DIAGNOSTICS]
        results = [(command, pattern, node1.run(f"{command} 2>&1", check=False)) for command, pattern in commands]
        wrong = [f"{command}: status {said.status}, {pattern} sought in\n{said.out}" for command, pattern, said in results
                 if said.status != 0 or not re.search(pattern, said.out, re.MULTILINE)]
        assert not wrong, "\n".join(wrong)
        standby_opensm_takes_over(manager, node1, node2)


def standby_opensm_takes_over(manager, node1, node2):
    """When the OpenSM of node1 is killed, a second one on node2 becomes the master."""
    standby = node2.spawn(f"{OPENSM} -p 1")
    node2.wait_for(f"sminfo {lid(node2)} | grep -q STANDBY", timeout=60, what="the second manager to stand by")
    manager.kill()
    node2.wait_for(f"sminfo {lid(node2)} | grep -q MASTER", timeout=60, what="the take-over")
    active(node1, node2)
    # Its ports learn of their new manager after it says that it is.
    node1.wait_for(f"sminfo | grep -q 'sm lid {lid(node2)} '", timeout=60, what="node1's new manager")
    assert int(node2.run(f"cat {PORT}/cap_mask").out, 16) & 2, "the new manager's port does not say IsSM"
    standby.kill()
    for node in (node1, node2):
        node.wait_for(f"test $(( $(cat {PORT}/cap_mask) & 2 )) = 0", what="the end of IsSM")


@test(kernels=("stock",), also=("plain", "debug"), timeout=180)
def invalid_mad_requests_are_refused_without_a_leak(lab):
    """Invalid requests are refused, queues are bounded, everything that a program leaves behind is released, and removal of a port does not wait for
    programs."""
    with guests(lab, PAIR, 1) as (node,):
        active(node)
        node.put(PROBE, lab.program("weft-uverbs-probe").read_bytes())
        node.run(f"chmod +x {PROBE}")
        node.run(f"{PROBE} mads", timeout=120)

        node.run("mkfifo /tmp/go")
        outliving = node.spawn(f"exec 3<>/tmp/go; {PROBE} mads-outlive <&3")
        outliving.wait_output("ready")
        node.run("rmmod weft_mlx4")
        node.run("echo go > /tmp/go")
        outliving.wait(60)
        node.insmod("/share/weft_mlx4.ko")
        node.wait_for("test -c /dev/infiniband/umad0", what="the node of the device that has come back")
        active(node)
        # The port is not used afterwards, because random MADs may have changed its configuration.
        node.run(f"{PROBE} random-mads {lab.seed} 2000", timeout=60)
