# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests user verbs on weft's modules: unmodified programs of Debian's rdma-core and perftest, and a program that misuses the interface on purpose."""
import contextlib
import pathlib
import re
import subprocess

from lab.fabric import PAIR, TWO_PORTS, Fabric
from lab.testing import test

STACK = ("weft_kern", "weft_core", "weft_mad", "weft_cm", "weft_sysfs", "weft_uverbs", "weft_mlx4", "weft_ipoib")
PROBE = "/tmp/weft-uverbs-probe"
CHANNELS = pathlib.Path(__file__).with_name("channels.c")
EXCHANGES = 200


def load(node, *, names=STACK):
    node.insmod(*(f"/share/{name}.ko" for name in names))
    # Announced, with everything behind it there.
    node.wait_for("grep -q ACTIVE /sys/class/infiniband/mlx4_0/ports/1/state", what="the port to be active")


def await_active_ports(node):
    """Waits for the ports, because programs receive port events until they are active."""
    node.wait_for("test $(grep -l ACTIVE /sys/class/infiniband/mlx4_0/ports/*/state | wc -l) = 2", timeout=60, what="both ports to be active")


def unload(node, *, names=STACK):
    """Unloads the modules, which works because no program has a device open."""
    node.run("rmmod " + " ".join(reversed(names)))
    node.run("! ls -d /dev/infiniband/uverbs* /sys/class/infiniband_verbs /sys/class/infiniband")


@contextlib.contextmanager
def pair(lab):
    """Yields two guests with weft's stack, each at 10.0.0.N on ib0, because the programs exchange their addresses over TCP."""
    fabric = Fabric(lab, PAIR)
    guests = [lab.guest(f"node{number}", vfio_user=[socket], memory="768M") for number, socket in enumerate(fabric.sockets, 1)]
    with lab.boot(*guests) as nodes:
        for number, node in enumerate(nodes, 1):
            load(node)
            node.run(f"ip link set ib0 up && ip addr add 10.0.0.{number}/24 dev ib0")
        for node in nodes:
            node.wait_for("ip link show dev ib0 | grep -q LOWER_UP", timeout=60, what=f"carrier of ib0 on {node.name}")
        nodes[0].wait_for("ping -c 1 -W 1 -q 10.0.0.2", timeout=60, what="an answer of node2")
        yield nodes
        for node in nodes:
            unload(node)


def served(server, client, command, port, timeout=60, address="10.0.0.1"):
    """Returns the output of a program's client and of the program: the same command runs at both ends, with the other's address on the client."""
    listening = server.spawn(command)
    server.wait_for(f"ss -ltn | grep -q :{port}", timeout=20, what=f"`{command}` to listen")
    return client.run(f"{command} {address}", timeout=timeout).out, listening.wait(timeout).out


TRACING = "/sys/kernel/tracing"
VERBS_IOCTL = 0xc0181b01
NO_ROOM = -28       # ENOSPC: libibverbs probes in this way whether commands can use ioctl()


@contextlib.contextmanager
def traced(node, program):
    """Yields the results of a program's verbs calls by ioctl() and the descriptors that it writes to, from the kernel's trace of system calls."""
    node.run(f"mountpoint -q {TRACING} || mount -t tracefs none {TRACING}")
    events = [f"events/syscalls/{event}/enable" for event in ("sys_enter_ioctl", "sys_exit_ioctl", "sys_enter_write")]
    node.run(f"cd {TRACING} && echo > trace && for event in {' '.join(events)}; do echo 1 > $event; done")
    answers, written = [], set()
    yield answers, written
    node.run(f"cd {TRACING} && for event in {' '.join(events)}; do echo 0 > $event; done")
    verbs = False
    for line in node.run(f"grep '{program[:15]}-' {TRACING}/trace").out.splitlines():
        if entered := re.search(r"sys_ioctl\(.*cmd: (\w+)", line):
            verbs = int(entered[1], 16) == VERBS_IOCTL
        elif left := re.search(r"sys_ioctl -> (\w+)", line):
            if verbs:
                answer = int(left[1], 16)
                answers.append(answer - (1 << 64) if answer >> 63 else answer)
        elif wrote := re.search(r"sys_write\(fd: (\w+)", line):
            written.add(int(wrote[1], 16))


@test(kernels=("stock",), also=("plain", "debug"), timeout=240)
def ibv_pingpong_programs_and_perftest_complete_between_weft_guests(lab):
    """ibv_devinfo, the ping-pong programs of all transports (polling and with events) and perftest run between two guests, with the data compared."""
    with pair(lab) as (node1, node2):
        with traced(node1, "ibv_devinfo") as (answers, written):
            node1.run("ibv_devinfo")
        # The first call only probes for ioctl() commands; the others open the context and its event file and query the device and the port.
        assert len(answers) >= 5 and answers.count(NO_ROOM) == 1 and set(answers) == {0, NO_ROOM}, f"answers by ioctl: {answers}"
        assert max(written) <= 2, f"ibv_devinfo wrote to the node: {written}"
        with traced(node1, "ibv_rc_pingpong") as (answers, _):
            served(node1, node2, f"ibv_rc_pingpong -c -e -n {EXCHANGES}", 18515)
        # In addition, PD, MR, channel, CQ and QP are created, modified and destroyed; the exchanges need no call.
        assert 15 <= len(answers) < 40 and answers.count(NO_ROOM) == 1 and set(answers) == {0, NO_ROOM}, f"answers by ioctl: {answers}"

        info = node1.run("ibv_devinfo -v").out
        for line in (r"hca_id:\s+mlx4_0", r"transport:\s+InfiniBand", r"vendor_part_id:\s+26428", r"phys_port_cnt:\s+1",
                     r"state:\s+PORT_ACTIVE", r"link_layer:\s+InfiniBand", r"GID\[\s*0\]:\s+fe80:"):
            assert re.search(line, info), f"{line} is not in:\n{info}"
        for command in ("ibv_rc_pingpong -c", "ibv_rc_pingpong -c -e", "ibv_uc_pingpong -c -e", "ibv_ud_pingpong -c -s 1024",
                        "ibv_ud_pingpong -c -e -s 1024", "ibv_srq_pingpong -c", "ibv_srq_pingpong -c -e"):
            for out in served(node1, node2, f"{command} -n {EXCHANGES}", 18515):
                assert f"{EXCHANGES} iters in" in out and "invalid data" not in out, f"{command}: {out}"
        for options in ("", "-e"):
            for out in served(node1, node2, f"ibv_xsrq_pingpong {options} -n 100", 18515):
                assert "success" in out, f"ibv_xsrq_pingpong {options}: {out}"
        for command in ("ib_write_bw -n 100 -s 65536", "ib_send_lat -n 100 -e", "ib_read_bw -n 50", "ib_write_bw -c XRC -n 100", "ib_send_bw -c XRC -n 100"):
            client, _ = served(node1, node2, f"{command} -F", 18515)
            assert re.search(r"^\s*\d+\s+\d+\s+\d+\.\d+", client, re.MULTILINE), f"{command}: {client}"


@test(kernels=("stock",), also=("plain", "debug"), timeout=180)
def invalid_verbs_commands_are_refused_without_a_leak(lab):
    """Invalid commands fail with their specific errors, random commands do no harm to the kernel, and everything that a program leaves behind is
    released."""
    names = STACK[:-1]
    with lab.boot(lab.guest("node1", vfio_user=Fabric(lab, TWO_PORTS).sockets[:1])) as (node,):
        load(node, names=names)
        await_active_ports(node)
        node.put(PROBE, lab.program("weft-uverbs-probe").read_bytes())
        node.run(f"chmod +x {PROBE}")
        node.run(f"{PROBE} refusals")
        node.run(f"{PROBE} methods")
        node.run(f"{PROBE} domains")
        node.run(f"{PROBE} random {lab.seed} 4000", timeout=60)
        node.run(f"{PROBE} deaths {lab.seed} {lab.rounds(1, 20)}", timeout=60 * lab.rounds(1, 10))
        node.run(f"{PROBE} ends")

        # The device is removed under open contexts, one of which has a thousand objects.
        outliving = []
        for what in ("outlive", "outlive-many"):
            node.run(f"mkfifo /tmp/{what}")
            outliving.append(node.spawn(f"exec 3<>/tmp/{what}; {PROBE} {what} <&3"))
        for one in outliving:
            one.wait_output("ready")
        node.run("rmmod weft_mlx4")
        node.run("for what in outlive outlive-many; do echo go > /tmp/$what; done")
        for one in outliving:
            one.wait(60)
        node.insmod("/share/weft_mlx4.ko")
        node.wait_for("test -e /dev/infiniband/uverbs0", what="the node of the device that has come back")
        await_active_ports(node)
        node.run(f"{PROBE} refusals")

        # The card fails under an open context, and is registered again as a new device.
        node.run("mkfifo /tmp/go")
        staying = node.spawn(f"exec 3<>/tmp/go; {PROBE} stay <&3")
        staying.wait_output("ready")
        node.run("ls -di /sys/class/infiniband/mlx4_0/device/infiniband_verbs/uverbs0 >/tmp/old; echo 1 > /sys/kernel/debug/weft_mlx4/0000:01:00.0/reset")
        node.wait_for("ls -di /sys/class/infiniband/mlx4_0/device/infiniband_verbs/uverbs0 >/tmp/new && ! cmp -s /tmp/old /tmp/new", timeout=60, what="the device's return")
        node.run("echo go > /tmp/go")
        staying.wait(60)
        await_active_ports(node)
        node.run(f"{PROBE} refusals")
        unload(node, names=names)


# With MADs, and without IPoIB.
WITH_MADS = (*STACK[:-2], "weft_umad", "weft_mlx4")
# dma-debug counts at most 7 mappings of a page, but a program may register a page any number of times.
OFTEN_MAPPED = ("DMA-API: exceeded 7 overlapping mappings", "WARNING: .* add_dma_entry")


def call_at_random(lab, node, calls, limit):
    """Runs four threads that call verbs with valid and invalid arguments on one open file after the other, and four that send MADs."""
    node.put(PROBE, lab.program("weft-uverbs-probe").read_bytes())
    node.run(f"chmod +x {PROBE}")
    calling = [node.spawn(f"{PROBE} {what} {lab.seed} {calls}") for what in ("random", "random-mads")]
    for one in calling:
        one.wait(limit)


@test(kernels=(), also=("um-debug", "debug", "stock"), timeout=4000)
def random_verbs_calls_and_mads_cause_no_kernel_warning_and_no_leak(lab):
    """Random calls of each kind, a million with --full, cause no kernel report and leak nothing. lockdep is still active at the end."""
    with lab.boot(lab.guest("node1", cards=Fabric(lab, PAIR).sockets[:1], allowed=OFTEN_MAPPED)) as (node,):
        load(node, names=WITH_MADS)
        call_at_random(lab, node, lab.rounds(20000, 1000000), lab.rounds(200, 3600))
        # lockdep switches itself off after any report.
        if lab.kernel != "stock":
            node.run("grep -q 'debug_locks: *1$' /proc/lockdep_stats")
        leaks = node.find_leaks()
        assert not leaks, leaks
        unload(node, names=WITH_MADS)


def completion_interrupts(node):
    """Returns the number of interrupts by vector, on all CPUs together."""
    lines = [line.split() for line in node.run("grep completion /proc/interrupts").out.splitlines()]
    return {line[0]: sum(int(word) for word in line[1:3]) for line in lines}


@test(kernels=("stock",), also=("plain", "debug"), timeout=120)
def cqs_on_two_completion_vectors_share_a_completion_channel(lab):
    """CQs of both vectors share a channel, which has several readers and is also used with poll() and SIGIO. Destroying a CQ waits for its
    unacknowledged events in the library only."""
    program = lab.directory / "channels"
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", CHANNELS, "-o", program, "-libverbs"], check=True)
    names = STACK[:-1]
    with lab.boot(lab.guest("node1", vfio_user=Fabric(lab, PAIR).sockets[:1], memory="512M", cpus=2)) as (node,):
        load(node, names=names)
        node.put("/tmp/channels", program.read_bytes())
        before = completion_interrupts(node)
        node.run("chmod +x /tmp/channels && /tmp/channels", timeout=60)
        after = completion_interrupts(node)
        assert len(after) == 2 and all(after[vector] > before[vector] for vector in after), (before, after)
        unload(node, names=names)


@test(kernels=("stock",), also=("plain", "debug"), timeout=120)
def user_cannot_exhaust_the_resources_of_a_device(lab):
    """A user, including all UIDs of its user namespaces, leaves a part of a device's resources to other users and to root, who can create as many
    objects as are reported. A resource that the card does not release is lost, and the module that the card may still call stays loaded."""
    fabric = Fabric(lab, PAIR)
    names = STACK[:-1]
    with lab.boot(lab.guest("node1", vfio_user=[fabric.sockets[0]], allowed=["which is lost$"])) as (node,):
        load(node, names=names)
        node.put(PROBE, lab.program("weft-uverbs-probe").read_bytes())
        node.run(f"chmod +x {PROBE} && {PROBE} bounds", timeout=60)
        if lab.rounds(0, 1):
            node.run(f"{PROBE} limits", timeout=300)

        node.run("mkfifo /tmp/go")
        losing = node.spawn(f"exec 3<>/tmp/go; {PROBE} stay-in-group <&3")
        losing.wait_output("ready")
        fabric.weft("card", "fault", "node1", "command-status")
        node.run("echo go > /tmp/go")
        losing.wait(60)
        node.run("dmesg | grep 'which is lost'")
        node.run("! rmmod weft_uverbs")


@test(kernels=("stock",), timeout=120)
def rdma_cgroup_limits_contexts_and_objects_of_its_processes(lab):
    """rdma.max limits the contexts and objects of a control group, rdma.current counts them, and the objects of a removed device are no longer
    counted."""
    names = STACK[:-1]
    group = "/sys/fs/cgroup/limited"

    def current(node):
        return node.run(f"cat {group}/rdma.current").out.split("\n")[0].strip()

    with lab.boot(lab.guest("node1", vfio_user=Fabric(lab, PAIR).sockets[:1])) as (node,):
        load(node, names=names)
        node.put(PROBE, lab.program("weft-uverbs-probe").read_bytes())
        node.run(f"chmod +x {PROBE}; mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup")
        node.run(f"echo +rdma > /sys/fs/cgroup/cgroup.subtree_control; mkdir {group}; echo mlx4_0 hca_handle=2 hca_object=3 > {group}/rdma.max")
        for ends_first in (True, False):
            node.run("rm -f /tmp/go; mkfifo /tmp/go")
            probe = node.spawn(f"exec 3<>/tmp/go; echo $$ > {group}/cgroup.procs; exec {PROBE} control-group <&3")
            probe.wait_output("ready")
            assert current(node) == "mlx4_0 hca_handle=2 hca_object=3", current(node)
            if not ends_first:
                node.run("rmmod weft_mlx4")
                assert "mlx4_0" not in current(node), current(node)
            node.run("echo go > /tmp/go")
            probe.wait(60)
            assert current(node) in ("", "mlx4_0 hca_handle=0 hca_object=0"), current(node)
        node.run("rmmod " + " ".join(name for name in reversed(names) if name != "weft_mlx4"))


@test(kernels=("um-debug",), also=("um",), timeout=60)
def doorbell_mmap_is_refused_with_a_log_message_on_user_mode_linux(lab):
    """If the kernel emulates the registers of its devices itself, mapping a page of them is refused, and the log has the reason."""
    with lab.boot(lab.guest("node1", cards=Fabric(lab, PAIR).sockets[:1])) as (node,):
        load(node)
        said = node.run("ibv_devinfo", check=False)
        assert said.status != 0 and "Failed to open device" in said.out + said.err, said.out + said.err
        assert "ibv_devinfo: programs cannot map a device's registers on this kernel" in node.run("dmesg").out
        unload(node)
