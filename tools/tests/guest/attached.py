# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that programs on the host (weft attach) and programs in guests work together on one fabric: OpenSM on the host manages guests, and diagnostic
programs print the same on the host and in a guest. A program on the host may also use the port of a guest's card while the guest uses it."""
import contextlib
import os
import re
import shlex
import shutil
import subprocess

from lab import cache
from lab.fabric import PAIR, Fabric
from lab.testing import Skip, test
from lab.waiting import wait_until

from stock import active, check, install, interfaces_up, lid, ping, programs

# node3 and node4 have no guest: programs of the host run there.
LAB = PAIR + "".join(f'[[host]]\nname = "{name}"\nmodel = "endpoint"\n[[link]]\nends = ["{name}", "switch1"]\n' for name in ("node3", "node4")) + """
[sm]
enabled = false
"""
OTHER_MODELS = {"node1": "mthca", "node2": "mlx5"}
CLIENTS = ("ib_uverbs", "ib_umad", "ib_ipoib")
DRIVERS = {"mlx4": "mlx4_ib", "mlx5": "mlx5_ib", "mthca": "ib_mthca"}
PATH = os.pathsep.join(("/usr/sbin", "/sbin", os.environ.get("PATH", os.defpath)))
NEEDED = ("cc", "ibdiagnet", "ibnetdiscover", "opensm")
# Debian's packages of ibdiagnet, which are not in the guests.
IBDIAGNET = ("ibutils", "libibdm1", "libtcl8.6")
GUEST_FOLDER = "/tmp/programs"
UNUSED = 999        # no port has this LID
# libibmad gives a request and the wait for its outcome the same time. It depends on the timers which of the two is reported first.
LATE = r"^ibwarn: \[\d+\] _do_madrpc: recv failed: Connection timed out$|\[\d+\]"

# Programs that must print the same and exit with the same status on every node. The pattern matches the parts of the output that depend on the time, the
# process or the program's own node; they are omitted.
COMPARED = {
    "sminfo": r"activity count \d+",
    "smpquery nodedesc {two}": "",
    "smpquery nodeinfo {two}": "",
    "smpquery nodedesc -D 0,1": "",
    "smpquery portinfo {two} 1": "",
    "smpquery portinfo {switch} 1": r"LocalPort:\.*\d+",
    "smpquery switchinfo {switch}": "",
    "smpquery pkeys {two}": "",
    "smpquery sl2vl {switch} 1": "",
    "smpquery vlarb {switch} 1": "",
    "smpquery guids {two}": "",
    "smpquery -t 50 nodeinfo {unused}": LATE,
    "ibnetdiscover": r"# Topology file: .*|# Initiated from .*|# Max of .*",
    "iblinkinfo": "",
    "ibqueryerrors": r"== \d+",
    "perfquery {two} 1": r"\d+$",
    "perfquery -x {switch} 1": r"\d+$",
    "ibtracert {one} {two}": "",
    "ibtracert {two} {unused}": LATE,
    "ibroute {switch}": "",
    "saquery NR": "",
    "saquery PIR {two}": "",
    "saquery -g": "",
    "saquery -p --src-to-dst {one}:{two}": "",
    "saquery -p --src-to-dst {one}:{unused}": r"\[\d+\]",
    "vendstat -N {two}": "",
    "ibping -c 2 {two}": r"time [\d.]+ ms|= [\d./]+ ms",
    "ibsysstat {two}": "",
    "ibsysstat {two} host": "",
    "ibdiagnet -o {folder}": r"see \S+/ibdiagnet\.log|Run time was \d+",
    # Programs that use libibmad and libibumad.
    "{folder}/attach_mad_program {two} {guid}": rf"own LID \d+|{LATE}",
    "{folder}/attach_program threads": "",
    "{folder}/attach_program children ibstat -p": "^0x[0-9a-f]{16}$",
    "bash {folder}/at_once '{folder}/attach_program agents'": "",
    "bash {folder}/at_once '{folder}/attach_program register 0x09 1' '{folder}/attach_program register 0x09 1'": "",
}
# The programs, with the libraries that they are linked with.
OWN_PROGRAMS = {"attach_program": ["-libumad"], "attach_mad_program": ["-libmad", "-libumad"]}
# Runs commands at the same time, and prints the first line of each before it starts the next one. A command may wait until it is killed.
AT_ONCE = """
for command; do
	exec {output}< <(exec $command)
	processes+=" $!"
	read -r line <&$output
	echo "$line"
done
kill $processes 2>/dev/null
exit 0
"""
# Files of ibdiagnet that do not depend on the time: links, forwarding tables, and members of partitions.
DIAGNET_FILES = ("ibdiagnet.lst", "ibdiagnet.fdbs", "ibdiagnet.pkey")
# Runs once, and dumps the nodes and the forwarding tables.
OPENSM = "env OSM_TMP_DIR={folder} OSM_CACHE_DIR={folder} opensm -o -D 0x43 -f {folder}/log --dump_files_dir {folder}"
DUMPS = ("opensm-subnet.lst", "opensm.fdbs")
# The port of the program, in its output and in what it has dumped.
OWN_PORT = r"(?<=default GUID )0x[0-9a-f]+|(?<=CA)-SM"
# Programs that are compared on the guest's own node.
ON_ONE_NODE = ("sminfo", "smpquery nodeinfo -D 0", "smpquery portinfo -D 0 1", "smpquery nodeinfo {one}", "smpquery nodedesc {two}", "smpquery pkeys -D 0 1",
               "ibnetdiscover", "ibtracert {one} {two}", "saquery NR", "saquery -p --src-to-dst {one}:{two}", "perfquery {two} 1", "perfquery {one} 1")
PINGS = "ping -q -i 0.01"
# The values in the output of ibstat, which differ between two nodes.
VALUES = r":.*$|'.*'"


def run_on(lab, fabric, node, command):
    """Runs a program of the host on a node. Returns its status and its output."""
    done = subprocess.run([lab.program("weft"), "--socket-dir", fabric.directory, "attach", node, "--", *shlex.split(command)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=60 * lab.slowness, env={**os.environ, "PATH": PATH})
    return done.returncode, done.stdout


def run_in(guest, command):
    """Runs a program in a guest. Returns its status and its output."""
    done = guest.run(command, check=False)
    return done.status, done.out + done.err


def compared(result, without=""):
    """Returns a result without the parts that may differ. The lines are sorted, because each node discovers the other nodes in another order."""
    status, text = result
    lines = re.sub(without, "", text, flags=re.MULTILINE).splitlines() if without else text.splitlines()
    return status, sorted(line.rstrip() for line in lines if line.strip())


@contextlib.contextmanager
def managed(lab, node="node3", packages=(), needed=("opensm",), before=lambda fabric, guest: None, models=None):
    """Yields the fabric and two guests with their drivers loaded. OpenSM runs on a node, on the host. packages: those that the guests get in addition.
    needed: programs of the host without which the test is skipped. before(fabric, node1): called when the links are up and there is no subnet manager.
    models: {guest: card model}, if the model is not mlx4."""
    if missing := [name for name in needed if not shutil.which(name, path=PATH)]:
        raise Skip(f"not installed: {', '.join(missing)}")
    share = programs(*packages) if packages else None
    models = models or {}
    text = LAB
    for name, model in models.items():
        assert f'name = "{name}"\n' in text
        text = text.replace(f'name = "{name}"\n', f'name = "{name}"\nmodel = "{model}"\n')
    fabric = Fabric(lab, text)
    folder = lab.directory / "opensm"
    folder.mkdir()
    guests = [lab.guest(name, kernel="stock", vfio_user=[fabric.directory / f"{name}.sock"], share=share) for name in ("node1", "node2")]
    with lab.boot(*guests) as nodes:
        for guest in nodes:
            guest.run(f"modprobe {DRIVERS[models.get(guest.name, 'mlx4')]} && modprobe -a {' '.join(CLIENTS)}", timeout=90)
        # If a link comes up during OpenSM's first sweep, OpenSM may miss it: the switch does not know yet where to send its trap, and OpenSM clears
        # PortStateChange after the sweep.
        for guest in nodes:
            guest.wait_for("grep -q INIT /sys/class/infiniband/*/ports/1/state", what="a link without a subnet manager")
        # OpenSM selects a port that is not down, and waits for input if there is none.
        wait_until(f"the port of {node}", lambda: "State: Down" not in run_on(lab, fabric, node, "ibstat weft0 1")[1], 60 * lab.slowness)
        before(fabric, nodes[0])
        lab.start(lab.program("weft"), "--socket-dir", fabric.directory, "attach", node, "--", "env", f"OSM_TMP_DIR={folder}", f"OSM_CACHE_DIR={folder}",
                  shutil.which("opensm", path=PATH), "-f", folder / "log", "--dump_files_dir", folder)
        active(*nodes)
        yield fabric, nodes


@test(kernels=("stock",), timeout=240)
def opensm_on_the_host_manages_guests(lab):
    """OpenSM, which `weft attach` runs on a node without a guest, activates the ports of two guests, and they ping each other. OpenSM, ibdiagnet,
    the programs of infiniband-diags, and programs that use libibmad and libibumad print the same on the host and in a guest, and exit with the same status."""
    with managed(lab, packages=IBDIAGNET, needed=NEEDED, before=lambda fabric, guest: compare_opensm(lab, fabric, guest)) as (fabric, (node1, node2)):
        with check("OpenSM on the host is the subnet manager of the guests, and they reach each other"):
            master = re.search(r"Base lid: (\d+)", run_on(lab, fabric, "node3", "ibstat")[1])[1]
            assert f"sm lid {master} " in node1.run("sminfo").out
            interfaces_up(node1, node2)
            ping(node1, node2, "10.0.0.2", 100)
            ping(node2, node1, "10.0.0.1", 100)
        with check("programs print the same on the host and in a guest"):
            servers = [node2.spawn("ibping -S"), node2.spawn("ibsysstat -S")]
            wait_until("ibping's server", lambda: " 1 received" in run_on(lab, fabric, "node4", f"ibping -c 1 {lid(node2)}")[1], 30 * lab.slowness)
            wait_until("ibsysstat's server", lambda: run_on(lab, fabric, "node4", f"ibsysstat {lid(node2)} host")[1].strip(), 30 * lab.slowness)
            folder = own_programs(lab, node1)
            compare(lab, fabric, folder, node1, node2)
            for server in servers:
                server.kill()


@test(kernels=("stock",), timeout=180)
def host_programs_send_and_receive_mads_on_the_port_of_a_guest(lab):
    """OpenSM, which `weft attach` runs on the node of a guest, activates the ports of that guest and of another one, and they ping each other meanwhile.
    The programs of infiniband-diags print the same on the host, on the guest's node, as in the guest, and a server on the host answers the other guest."""
    with managed(lab, "node1", needed=("ibnetdiscover", "opensm")) as (fabric, (node1, node2)):
        check_port_of_guest(lab, fabric, node1, node2)


@test(kernels=(), also=("stock",), timeout=360)
def host_programs_send_and_receive_mads_on_the_ports_of_mthca_and_mlx5_guests(lab):
    """The same as the previous test, with 100 pings a second, on the nodes of a guest with an mthca card and of a guest with an mlx5 card. OpenSM runs on the
    former."""
    with managed(lab, "node1", needed=("ibnetdiscover", "opensm"), models=OTHER_MODELS) as (fabric, (node1, node2)):
        # Programs in a guest with ib_mthca or mlx5_ib take many times longer during a flood of pings.
        check_port_of_guest(lab, fabric, node1, node2, PINGS)
        check_programs_on_port(lab, fabric, node2, node1, f"{PINGS} 10.0.0.1")


def check_port_of_guest(lab, fabric, node1, node2, pings="ping -f -q"):
    """Checks that OpenSM, which runs on the host on node1's port, manages both guests, and that other programs work on this port. pings: node1's command line,
    without the address, that uses the port meanwhile."""
    with check("OpenSM on a guest's node manages the subnet"):
        own = re.search(r"Base lid: (\d+)", run_on(lab, fabric, "node1", "ibstat weft0 1")[1])[1]
        assert own == str(lid(node1))
        assert f"sm lid {own} " in node2.run("sminfo").out
        interfaces_up(node1, node2)
        ping(node1, node2, "10.0.0.2", 100)
    check_programs_on_port(lab, fabric, node1, node2, f"{pings} 10.0.0.2")


def check_programs_on_port(lab, fabric, guest, other, pings):
    """Checks that programs of the host work on the port of a guest. pings: the guest's command line that uses the port meanwhile."""
    with check(f"programs on {guest.name} print the same as in its guest, which uses the port meanwhile"):
        pinging = guest.spawn(pings)
        values = {"one": lid(guest), "two": lid(other)}
        different = []
        for command in ON_ONE_NODE:
            words = command.format(**values)
            for _ in range(3):
                on_host, in_guest = (compared(result, COMPARED.get(command, r"\d+$" if "perfquery" in command else ""))
                                     for result in (run_on(lab, fabric, guest.name, words), run_in(guest, words)))
                if on_host == in_guest:
                    break
            if on_host != in_guest or on_host[0] != 0:
                different.append(f"{words}: on the host {on_host}, in the guest {in_guest}")
        assert not different, "\n".join(different)
        assert pinging.status is None, "the pings ended before the programs"
        pinging.kill()
    with check(f"a server on {guest.name} answers another guest"):
        lab.start(lab.program("weft"), "--socket-dir", fabric.directory, "attach", guest.name, "--", shutil.which("ibping", path=PATH), "-S")
        wait_until("ibping's server", lambda: " 1 received" in run_in(other, f"ibping -c 1 {lid(guest)}")[1], 60 * lab.slowness)


def compare_opensm(lab, fabric, guest):
    """Compares a run of OpenSM on node4 with one in a guest: the status, the output, and what it has dumped. The first run assigns the LIDs."""
    folder = lab.directory / "once"
    folder.mkdir()
    guest.run("mkdir /tmp/once")
    status, said = run_on(lab, fabric, "node4", OPENSM.format(folder=folder))
    assert status == 0 and "SUBNET UP" in (folder / "log").read_text(), said
    on_host = [said.replace(str(folder), "/tmp/once"), *((folder / name).read_text() for name in DUMPS)]
    in_guest = [run_in(guest, OPENSM.format(folder="/tmp/once")), *(guest.get(f"/tmp/once/{name}").decode() for name in DUMPS)]
    for name, host_text, guest_text in zip(("output", *DUMPS), on_host, (in_guest[0][1], *in_guest[1:]), strict=True):
        assert compared((status, host_text), OWN_PORT) == compared((in_guest[0][0], guest_text), OWN_PORT), f"{name} on the host: {host_text}\nin the guest: {guest_text}"


def own_programs(lab, guest):
    """Puts this project's programs that use libibumad and libibmad into a folder of the host, and into GUEST_FOLDER of a guest. Returns the host's folder."""
    folder = lab.directory / "programs"
    folder.mkdir()
    guest.run(f"mkdir {GUEST_FOLDER}")
    for name, libraries in OWN_PROGRAMS.items():
        subprocess.run(["cc", "-D_GNU_SOURCE", "-O1", "-o", folder / name, cache.TREE / f"tools/weft/tests/{name}.c", *libraries], stdin=subprocess.DEVNULL, check=True)
    (folder / "at_once").write_text(AT_ONCE)
    for path in folder.iterdir():
        guest.put(f"{GUEST_FOLDER}/{path.name}", path.read_bytes())
    guest.run(f"chmod +x {GUEST_FOLDER}/*")
    install(guest)
    return folder


def compare(lab, fabric, folder, guest, other):
    """Compares the programs in a guest with those on node4, which is on the same switch. other: the guest that they query."""
    assert compared(run_on(lab, fabric, "node4", "ibstat"), VALUES) == compared(run_in(guest, "ibstat"), VALUES)
    switch = int(re.search(r'# "switch1" .* lid (\d+)', run_on(lab, fabric, "node4", "ibnetdiscover")[1])[1])
    values = {"one": lid(guest), "two": lid(other), "guid": other.run("ibstat -p").out.strip(), "switch": switch, "unused": UNUSED}
    statuses = set()
    different = []
    for command, without in COMPARED.items():
        # IPv6 in the guests joins and leaves groups at any time, so a different result may be a later one.
        for _ in range(3):
            on_host, in_guest = (compared(result, without) for result in (run_on(lab, fabric, "node4", command.format(**values, folder=folder)),
                                                                          run_in(guest, command.format(**values, folder=GUEST_FOLDER))))
            if on_host == in_guest:
                break
        statuses.add(on_host[0])
        if on_host != in_guest:
            different.append(f"{command.format(**values, folder='')}: on the host {on_host}, in the guest {in_guest}")
    different += different_files(folder, guest)
    assert not different, "\n".join(different)
    assert len(statuses) > 1, "no program failed"


def different_files(folder, guest):
    """Compares what ibdiagnet has written in its last runs. Each run begins at its own node, so it finds a link from its other end, and nodes in another
    order. Returns the differences."""
    def sorted_ends(line):
        ends = re.findall(r"\{ .*? PN:\d+ \}", line)
        return str([*sorted(ends), line[line.rindex("}"):]]) if ends else line

    different = []
    for name in DIAGNET_FILES:
        on_host, in_guest = (sorted(map(sorted_ends, text.splitlines())) for text in ((folder / name).read_text(), guest.get(f"{GUEST_FOLDER}/{name}").decode()))
        if not on_host or on_host != in_guest:
            different.append(f"{name} on the host: {on_host}, in the guest: {in_guest}")
    return different
