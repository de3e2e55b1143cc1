# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests RDMA between guests with Debian's kernel on two hosts. The hosts are network namespaces (cluster.py), and a script replaces ssh. The link
between the two switches is a trunk, so all traffic between the hosts passes it."""
import contextlib
import hashlib
import json
import pathlib
import re
import subprocess
import sys

from lab import cache
from lab.testing import Skip, load, test
from lab.waiting import wait_until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import cluster  # noqa: E402

check = load(cache.TREE / "tools/tests/guest/stock.py").check

# The guest node1 is on the first host; node2 and node3 are on the second one.
LAB = """
name = "two hosts"
[[place]]
name = "p1"
[[place]]
name = "p2"
[[switch]]
name = "s1"
place = "p1"
[[switch]]
name = "s2"
place = "p2"
[[host]]
name = "node1"
model = "mlx4"
[[host]]
name = "node2"
model = "mlx5"
[[host]]
name = "node3"
model = "mthca"
[[link]]
ends = ["node1", "s1/1"]
[[link]]
ends = ["node2", "s2/1"]
[[link]]
ends = ["node3", "s2/2"]
[[link]]
ends = ["s1/36", "s2/36"]
"""
TRUNK = "s1/36-s2/36"
TRUNK_PORTS = ("s1/36", "s2/36")
# The same without node3, for tests that need only two guests.
PAIR = LAB.replace('[[host]]\nname = "node3"\nmodel = "mthca"\n', "").replace('[[link]]\nends = ["node3", "s2/2"]\n', "")
MEMORY = "320M"         # for mlx5
ADDRESSES = {f"node{number}": f"10.1.0.{number}" for number in (1, 2, 3)}
SECONDS = 180           # for one command or change
START = 600             # seconds for the start of the lab
FILE = "/tmp/buffer"
# Delays, losses and reorderings of frames between the hosts.
FAULTS = {"delay": 0.002, "loss": 0.01, "reorder": 0.05}
# A trunk keeps at least 256 packets of a virtual lane on the way, and further ones wait in the switch. The switch discards those that have waited for a second
# (HOQLife), so that a blocked port cannot stop the others (IBA 18.2.5.4). With these options, at most 64 packets are on the way: two messages of 64 KiB with an
# MTU of 2,048 bytes. The timeout of an acknowledgement, 4 s, is longer than the stall, so that no message is sent again meanwhile.
IN_FLIGHT = "-n 50 -t 2 -u 20"
STALL = 2.5             # seconds
STALL_AFTER = 100       # frames: after the programs have exchanged the addresses of their queue pairs
ERRORS = re.compile("error|downed|dropped|discards")


class Hosts:
    """A lab on two hosts, which is up."""

    def __init__(self, lab, stack, lab_file, wire):
        """wire: the arguments of a cluster.Wire, or None."""
        self.slowness = lab.slowness
        nodes = cluster.Cluster(stack, 2)
        self.hosts = nodes.nodes
        self.wire = cluster.Wire(stack, nodes.nodes, **wire) if wire else None
        file, hosts, ssh = (nodes.folder / name for name in ("lab.toml", "hosts.txt", "ssh"))
        file.write_text(lab_file)
        hosts.write_text("".join(f"{node.name} {node.address}\n" for node in self.hosts))
        cases = "".join(f"{node.name}) exec {' '.join(node.words('sh', '-c'))} \"$2\";;\n" for node in self.hosts)
        ssh.write_text(f"#!/bin/sh\ncase $1 in\n{cases}esac\n")
        ssh.chmod(0o755)
        self.user = cluster.User(nodes, lab.program("weft"), ("--ssh", ssh, "--kernel", lab.kernel, "--memory", MEMORY, "--lab", file), lab.slowness, start=f"--hosts={hosts}")
        self._start(self.user.words("lab", "up", "--logs", lab.directory / "logs"), lab.directory / "up.out")

    def _start(self, words, log):
        """Starts the lab. weft has time limits of its own, which are long because guests boot slowly on a busy host."""
        with open(log, "w") as output:
            status = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False, env=self.user.environment, timeout=START * self.slowness).returncode
        assert status == 0, log.read_text()

    def end(self):
        """Ends the lab, whose guests must not have reported anything."""
        self.weft("lab", "check")
        self.weft("lab", "down")
        self.user.assert_nothing_is_left()

    def await_that(self, what, condition):
        wait_until(what, condition, SECONDS * self.slowness, interval=0.5)

    def weft(self, *words):
        return self.user.of_lab(*words)

    def _shell(self, guest, script):
        return self.user.weft, "--socket-dir", self.user.directory, "lab", "shell", guest, f"set -e\n{script}"

    def run(self, guest, script):
        """Runs a script in a guest; returns its output."""
        return self.user.succeeds(*self._shell(guest, script))

    @contextlib.contextmanager
    def running(self, guest, script):
        """Runs a script in a guest in the background. Yields a function that waits for its success and returns its output."""
        with self.user.running(*self._shell(guest, script)) as process:
            def output():
                status = self.user.ends(process, SECONDS)
                assert status == 0, f"{guest}: {script}: {status}\n{process.out()}{process.err()}"
                return process.out()
            output.process = process
            yield output

    def serve(self, server, client, command, *, before=":", after=":", client_command=None, listens="ss -ltn | grep -q :18515"):
        """Runs a program in two guests, as a server and as a client, between two other commands. Returns the outputs of both."""
        script = f"{before}\n{command} &\nuntil {listens}; do kill -0 $!; sleep 0.1; done\necho listening\nwait $!\n{after}"
        with self.running(server, script) as serving:
            self.await_that("the server", lambda: "listening\n" in serving.process.out() or serving.process.poll() is not None)
            asked = self.run(client, f"{before}\n{client_command or command} {ADDRESSES[server]}\n{after}")
            return serving(), asked

    def counters(self):
        """Returns {port: {counter: value}}."""
        return json.loads(self.weft("--json", "counters"))

    def errors(self):
        """Returns the error counters that are not 0. Only the view of a single place has the ports that represent the other place."""
        found = {}
        for place in ("p1", "p2"):
            counters = json.loads(self.user.succeeds(self.user.weft, "--socket-dir", self.user.directory / place, "--json", "counters"))
            assert len(counters) >= 4, counters
            for port, values in counters.items():
                if errors := {name: value for name, value in values.items() if value and ERRORS.search(name)}:
                    found[place, port] = errors
        return found

    def connected(self):
        return [trunk["connected"] for trunk in json.loads(self.weft("--json", "fabric", "show"))["trunks"]]


def on_hosts(lab, work, lab_file=PAIR, wire=None):
    """Calls work(hosts) with a lab on two hosts."""
    if reason := cluster.missing():
        raise Skip(reason)

    def within():
        with contextlib.ExitStack() as stack:
            hosts = Hosts(lab, stack, lab_file, wire)
            try:
                work(hosts)
                hosts.end()
            except BaseException:
                # The logs of guests and daemons arrive when the lab ends.
                hosts.user.call(hosts.user.weft, "--socket-dir", hosts.user.directory, "lab", "down")
                raise
            finally:
                hosts.user.copy_logs(lab.directory)

    cluster.inside(within)


def transfer(hosts, server, client, operation, size, options):
    """Runs ib_{operation}_bw, whose buffers are files, and compares the data at both ends. The first half of a buffer is sent or, by reads, received into; the
    second half is received into or, by reads, read."""
    with check(f"ib_{operation}_bw {options} moves {size} bytes from {client} to {server} intact"):
        digests = f'echo data $(head -c {size} {FILE} | sha256sum) $(tail -c {size} {FILE} | sha256sum)'
        outputs = hosts.serve(server, client, f"ib_{operation}_bw -F -s {size} {options} --mmap={FILE}", before=f"head -c {2 * size} /dev/zero >{FILE}", after=digests)
        serving, asking = (re.search(r"^data (\w+) +- (\w+) +-$", output, re.MULTILINE).groups() for output in outputs)
        assert asking[0] == serving[1], outputs
        assert asking[0] != hashlib.sha256(bytes(size)).hexdigest()


def exchange(hosts, server, client, command, count):
    """Runs an example of rdma-core that compares what it receives."""
    with check(f"{command} exchanges data between {client} and {server}"):
        for output in hosts.serve(server, client, f"{command} -c -n {count}"):
            assert f"{count} iters in" in output and "invalid data" not in output, output


def connect(hosts, server, client, count):
    """Runs rping, which compares what it receives."""
    with check(f"rping of {client} connects to {server} and exchanges data"):
        for guest in (server, client):
            hosts.run(guest, "modprobe rdma_ucm")
        options = f"-v -V -C {count} -S 16384 -a"
        _, output = hosts.serve(server, client, f"rping -s {options} {ADDRESSES[server]}", client_command=f"rping -c {options}", listens="rdma resource show cm_id | grep -q LISTEN")
        assert output.count("ping data: rdma-ping-") == count and "mismatch" not in output, output


@test(kernels=(), also=("stock",), timeout=900)
def programs_with_verbs_transfer_data_intact_between_guests_on_two_hosts(lab):
    """Between guests on two hosts, with mlx4, mlx5 and mthca cards, perftest, rping and the examples of rdma-core transfer data, which is compared. The
    trunk counts no error and loses no packet."""
    def work(hosts):
        for operation, size in (("write", 1 << 20), ("read", 65536), ("send", 65536)):
            transfer(hosts, "node1", "node2", operation, size, "-n 5")
        transfer(hosts, "node3", "node1", "write", 65536, "-n 5 -m 2048")
        for server, client, mtu in (("node1", "node2", ""), ("node3", "node1", "-m 2048")):
            exchange(hosts, server, client, f"ibv_rc_pingpong {mtu} -s 65536", 20)
            exchange(hosts, server, client, "ibv_ud_pingpong -s 1024", 50)
            connect(hosts, server, client, 10)
        assert not (errors := hosts.errors()), errors
        no_packet_is_lost(hosts)

    on_hosts(lab, work, LAB)


def no_packet_is_lost(hosts):
    """Each packet that one end of the trunk has sent has arrived at the other end."""
    near, far = TRUNK_PORTS

    def all_have_arrived():
        counters = hosts.counters()
        return all(counters[source]["xmit_packets"] == counters[target]["rcv_packets"] > 0 for source, target in ((near, far), (far, near)))

    hosts.await_that("all packets of the trunk to arrive", all_have_arrived)


class Disk:
    """node1's RAM disk, which node2 uses by NVMe over RDMA."""

    STORAGE = load(cache.TREE / "tools/tests/guest/storage.py")

    def __init__(self, hosts):
        self._hosts = hosts
        target = self.STORAGE.NVME_TARGET.replace("10.0.0.1", ADDRESSES["node1"])
        hosts.run("node1", target)
        options = f"transport=rdma,traddr={ADDRESSES['node1']},trsvcid=4420,nqn={self.STORAGE.NQN},nr_io_queues=1,reconnect_delay=1"
        hosts.run("node2", f"modprobe nvme-rdma\necho {options} >/dev/nvme-fabrics\nuntil test -b /dev/nvme0n1; do sleep 0.1; done\n{self._random()}")

    def _random(self):
        return f"dd if=/dev/urandom of=/tmp/data bs=1M count={self.STORAGE.MEGABYTES} status=none"

    def write(self):
        self._hosts.run("node2", "dd if=/tmp/data of=/dev/nvme0n1 bs=256k oflag=direct status=none")

    @contextlib.contextmanager
    def writing(self):
        """New data is written again and again meanwhile, for the last time afterwards."""
        script = (f"{self._random()}\necho writing\nwhile :; do last=; if test -e /tmp/stop; then last=1; fi\n"
                  "dd if=/tmp/data of=/dev/nvme0n1 bs=64k oflag=direct status=none\nif test -n \"$last\"; then exit 0; fi; done")
        with self._hosts.running("node2", script) as writer:
            self._hosts.await_that("the writer", lambda: "writing\n" in writer.process.out() or writer.process.poll() is not None)
            yield
            self._hosts.run("node2", "touch /tmp/stop")
            writer()

    def await_state(self, state):
        self._hosts.run("node2", f"for times in $(seq {int(SECONDS * self._hosts.slowness)}); do if grep -qx {state} /sys/class/nvme/nvme0/state; then exit 0; fi; sleep 1; done; exit 1")

    def compare(self):
        """The initiator reads what it has written, and the target's own disk contains the same."""
        count = self.STORAGE.MEGABYTES << 2
        self._hosts.run("node2", f"dd if=/dev/nvme0n1 of=/tmp/read bs=256k count={count} iflag=direct status=none\ncmp /tmp/data /tmp/read")
        digests = [self._hosts.run(guest, f"dd if={file} bs=256k count={count} {flag} status=none | sha256sum") for guest, file, flag in
                   (("node1", "/dev/ram0", "iflag=direct"), ("node2", "/tmp/data", ""))]
        assert digests[0] == digests[1], digests

    def close(self):
        self._hosts.run("node2", "for each in /sys/class/nvme/nvme*/delete_controller; do echo 1 >$each; done")


@test(kernels=(), also=("stock",), timeout=900)
def nvme_over_rdma_reconnects_after_the_cable_between_two_hosts_was_unplugged(lab):
    """An initiator and a target on two hosts transfer a disk's data, which is compared. Data is written while the network cable is unplugged until the trunk
    and the initiator have lost their connections. The initiator connects again, and no data is lost."""
    def work(hosts):
        disk = Disk(hosts)
        with check("data is read as it was written"):
            disk.write()
            disk.compare()
        with check("no data is lost if the cable is unplugged during writes"):
            with disk.writing():
                hosts.hosts[1].cable("down")
                hosts.await_that("the trunk to go down", lambda: not any(hosts.connected()))
                disk.await_state("connecting")
                hosts.hosts[1].cable("up")
                disk.await_state("live")
            assert "Successfully reconnected" in hosts.run("node2", "dmesg")
            disk.compare()
        disk.close()

    on_hosts(lab, work)


@test(kernels=(), also=("stock",), timeout=900)
def network_faults_between_two_hosts_only_delay_rdma_between_their_guests(lab):
    """The network between two hosts delays, loses and reorders frames. The same programs and NVMe over RDMA transfer data intact, and no port counts an error
    or loses a packet. The same applies when the network delivers nothing for two seconds and a half."""
    def work(hosts):
        before = hosts.errors()
        for operation in ("write", "read", "send"):
            transfer(hosts, "node1", "node2", operation, 65536, IN_FLIGHT)
        exchange(hosts, "node1", "node2", "ibv_ud_pingpong -s 1024", 50)
        connect(hosts, "node1", "node2", 10)
        disk = Disk(hosts)
        with check("a disk's data is read as it was written"):
            disk.write()
            disk.compare()
        disk.close()
        assert hosts.wire.lost > 10 and hosts.wire.reordered > 10, (hosts.wire.frames, hosts.wire.lost, hosts.wire.reordered)
        print(f"of {hosts.wire.frames} frames, {hosts.wire.lost} were lost and {hosts.wire.reordered} reordered", flush=True)
        with check("a network that delivers nothing for some seconds only delays the packets that are on the way"):
            hosts.wire.stall(frames=STALL_AFTER, seconds=STALL)
            transfer(hosts, "node1", "node2", "write", 65536, IN_FLIGHT)
            assert hosts.wire.has_stalled()
        with check("no port counts an error or loses a packet"):
            assert (errors := hosts.errors()) == before, (before, errors)
            assert hosts.connected() == [True, True], hosts.connected()
            no_packet_is_lost(hosts)

    on_hosts(lab, work, wire=FAULTS)


OPENSM = load(cache.TREE / "tools/tests/guest/opensm.py")
# A standby OpenSM notifies the master of its priority. weft's subnet manager may have handed the subnet over before the trap arrives, and then ignores it.
TRAP_TO_FORMER_MASTER = re.compile(r"ERR 5410: Send completed with error|ERR 3113: .*SubnTrap\(Notice\)")


def discovery(hosts):
    """Returns what ibnetdiscover finds from node1, sorted, without the comments in front. A line is a node or a link, with the LIDs."""
    text = re.sub(r"\A(#.*\n|\n)*", "", hosts.run("node1", "ibnetdiscover"))
    return sorted(node.strip() for node in re.split(r"\n\n+", text))


def master(hosts):
    """Returns (whether weft's subnet manager is the master, the LID of the master that answers node1 or None)."""
    state = json.loads(hosts.weft("--json", "fabric", "show"))["subnet_manager"]["state"]
    answer = re.search(r"sm lid (\d+) .*MASTER", hosts.run("node1", "sminfo || :"))
    return state == "master", answer and int(answer[1])


def activates_again(hosts, guest):
    """Checks that the master activates a port whose link was down."""
    hosts.weft("link", "down", guest)
    hosts.run(guest, "while grep -q ACTIVE /sys/class/infiniband/*/ports/1/state; do sleep 0.1; done")
    hosts.weft("link", "up", guest)
    hosts.run(guest, "until grep -q ACTIVE /sys/class/infiniband/*/ports/1/state; do sleep 0.1; done")


@test(kernels=(), also=("stock",), timeout=900)
def opensm_on_another_host_takes_over_from_weft_sm_until_it_is_killed(lab):
    """OpenSM in a guest on the second host becomes master of the subnet of both hosts, whose subnet manager is on the first host. It changes no LID and no link,
    and activates a port on the first host. When it is killed, weft's subnet manager is the master again."""
    def work(hosts):
        for guest in ("node1", "node2"):
            hosts.run(guest, "modprobe ib_umad")
        before = discovery(hosts)
        assert len(before) == 5 and " lid 0 " not in "\n".join(before), before    # two guests, two switches, the subnet manager
        own = int(hosts.run("node2", "cat /sys/class/infiniband/*/ports/1/lid"), 16)
        first = master(hosts)
        assert first[0] and first[1] != own, first
        # It is killed together with its shell.
        with hosts.running("node2", f"echo $$ >/tmp/opensm.pid\n{OPENSM.OPENSM} -p 14") as opensm:
            with check("OpenSM manages the whole subnet"):
                hosts.await_that("OpenSM to be the master", lambda: opensm.process.poll() is not None or master(hosts) == (False, own))
                assert opensm.process.poll() is None, opensm.process.err()
                hosts.run("node2", f"until grep -q 'SUBNET UP' {OPENSM.LOG}; do sleep 0.2; done")
                assert discovery(hosts) == before
                activates_again(hosts, "node1")
                assert discovery(hosts) == before
                hosts.run("node2", f"until ping -c 1 -W 1 {ADDRESSES['node1']}; do :; done; ping -q -c 20 -i 0.05 {ADDRESSES['node1']}")
                log = hosts.run("node2", f"cat {OPENSM.LOG}")
                assert not [line for line in log.splitlines() if " ERR " in line and not TRAP_TO_FORMER_MASTER.search(line)], log
            with check("weft's subnet manager takes over when OpenSM is killed"):
                hosts.run("node2", "kill -9 $(cat /tmp/opensm.pid)")
                hosts.await_that("weft's subnet manager to be the master", lambda: master(hosts) == first)
                assert discovery(hosts) == before
                activates_again(hosts, "node1")
                assert discovery(hosts) == before
                hosts.run("node2", f"until ping -c 1 -W 1 {ADDRESSES['node1']}; do :; done; ping -q -c 20 -i 0.05 {ADDRESSES['node1']}")

    on_hosts(lab, work)
