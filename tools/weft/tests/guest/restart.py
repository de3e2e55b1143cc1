# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that guests continue to use their cards when weftd is killed and `weft lab` starts it again."""
import json
import os
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import threading
import time

from lab import accelerator, cache
from lab.testing import full, load, test
from lab.waiting import wait_until

# Seconds from the daemon's return until each guest reaches the others, on a host that is not busy. Before, mlx4 waits for a command of the failed card, which
# takes the same time on any host.
RETURN = 10
COMMAND_TIMEOUT = 10
EMULATED = 2            # factor of the times without KVM; the factor for the load is measured
TIME_LIMIT = 300          # seconds after which a guest is taken to be lost
FIRST_PORT = 18515      # of the servers of ib_write_bw
LAB = '[[switch]]\nname = "s1"\nports = 8\n' + "".join(
    f'[[host]]\nname = "node{number}"\nmodel = "{model}"\n[[link]]\nends = ["node{number}", "s1"]\n' for number, model in enumerate(("mlx4", "mlx5", "mlx5"), 1))
SPARE = '[[host]]\nname = "spare"\nmodel = "endpoint"\n[[link]]\nends = ["spare", "s1"]\n'


def _pid(directory):
    """Returns the ID of the process that serves the control socket, or None."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(directory / "control.sock"))
        except OSError:
            return None
        return struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


class Running:
    """A lab that the test has started by `weft lab up`."""

    def __init__(self, lab):
        self.directory = lab.socket_path("control.sock").parent
        self._program = lab.program("weft")
        self._slowness = lab.slowness

    def weft(self, *words, check=True):
        done = subprocess.run([self._program, "--socket-dir", self.directory, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def start(self, host, command):
        return subprocess.Popen([self._program, "--socket-dir", self.directory, "lab", "shell", host, command], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def results(self, hosts, command):
        """Runs a command in these guests at once; returns {host: its output}."""
        running = {host: subprocess.Popen([self._program, "--socket-dir", self.directory, "lab", "shell", host, command], stdin=subprocess.DEVNULL,
                                          stdout=subprocess.PIPE, text=True) for host in hosts}
        said = {host: each.communicate()[0].strip() for host, each in running.items()}
        assert not any(each.returncode for each in running.values()), said
        return said

    def pid(self):
        return _pid(self.directory)

    def kill(self):
        """Kills weftd, and waits until another one serves."""
        before = self.pid()
        os.kill(before, signal.SIGKILL)
        wait_until("another weftd", lambda: (now := self.pid()) and now != before, 30 * self._slowness)

    def await_cards(self, hosts):
        """Waits until all hosts have their cards again; returns what `weft lab check` has printed since it was called last."""
        said = []

        def all_have():
            said.extend(self.weft("lab", "check", check=False).splitlines())
            assert not any("has lost its card" in line for line in said), said
            return all(any(line.startswith(f"{host}: has its card again") for line in said) for host in hosts)

        wait_until("the guests to have their cards again", all_have, TIME_LIMIT * self._slowness, interval=1)
        return said


class Load(threading.Thread):
    """Measures how many times as long the programs of this host take as on one that is not busy: the programs that can run, on average, for each CPU."""

    def __init__(self):
        super().__init__(daemon=True)
        self._end = threading.Event()
        self._samples = []
        self.start()

    def run(self):
        while not self._end.wait(0.25):
            with open("/proc/loadavg") as file:
                running, _, _ = file.read().split()[3].partition("/")
            self._samples.append(int(running) - 1)      # without this thread

    def factor(self):
        """Ends the measurement; returns the factor, which is at least 1."""
        self._end.set()
        self.join()
        busy = sum(self._samples) / max(1, len(self._samples)) / os.cpu_count()
        return max(1.0, busy) * (1 if accelerator.kvm_works() else EMULATED)


def _traffic(hosts):
    """Returns (host, command) for each program: a flood of pings and RDMA writes from each host to the next one."""
    programs = []
    for number, host in enumerate(hosts):
        other = (number + 1) % len(hosts)
        address, port = f"10.1.0.{other + 1}", FIRST_PORT + number
        programs += [(host, f"ping -f -q -w 300 {address}"), (hosts[other], f"ib_write_bw -p {port} -D 300"),
                     (host, f"sleep 1; ib_write_bw -p {port} -D 300 {address}")]
    return programs


def _until_it_pings(addresses, pause="sleep 0.2"):
    return "; ".join(f"until ping -c 1 -W 1 10.1.0.{address}; do {pause}; done" for address in addresses)


# Ends what is left of the traffic, and prints the number of the interface, which another card's interface does not have.
BEFORE = "pkill -x ib_write_bw; pkill -x ping; cat /sys/class/net/ib0/ifindex"
# Waits until the failed card is removed, ends the flood, which without a card only takes CPU time from the driver, and waits for the next card. Waits without
# starting processes, which are slow on an emulated CPU.
PAUSE = "read -t 0.3 -u 9 || :"
RETURN_SCRIPT = """
exec 9<> <(:)
is_there() { read now </sys/class/net/ib0/ifindex && [[ $now = $former ]]; } 2>/dev/null
has_carrier() { read carrier </sys/class/net/ib0/carrier && [[ $carrier = 1 ]]; } 2>/dev/null
while is_there; do PAUSE; done
pkill -x ping
until has_carrier; do PAUSE; done
""".replace("PAUSE", PAUSE)


def _return_script(index, addresses):
    return f"former={index}{RETURN_SCRIPT}{_until_it_pings(addresses, PAUSE)}"


def _wait_for(programs, began, timeout):
    """Waits until all of these programs, {guest: process}, have succeeded; returns {guest: seconds since began}."""
    took = {}

    def all_have():
        for host, program in programs.items():
            if host not in took and program.poll() is not None:
                assert program.returncode == 0, f"`weft lab shell {host}` failed with status {program.returncode}"
                took[host] = time.monotonic() - began
        return len(took) == len(programs)

    wait_until("the guests to reach one another", all_have, timeout, interval=0.1)
    return took


@test(kernels=(), also=("stock",), timeout=300, full_timeout=4 * 3600)
def guests_keep_running_and_ping_each_other_after_kills_of_weftd(lab):
    """weftd is killed at random moments under flood pings and RDMA writes of all guests: twice with two guests, with --full a hundred times with three. The
    first guest has an mlx4 card, the others have mlx5 cards. Each time all guests ping each other within ten seconds of the daemon's return and of mlx4's
    wait, scaled by the load, none has exited, no kernel has reported anything, and a link that was down is still down. `scripts/test --seed` repeats the
    moments. The environment variable WEFT_KILLS sets the number of kills."""
    hosts = ["node1", "node2", "node3"][:lab.rounds(2, 3)]
    file = lab.directory / "lab.toml"
    file.write_text((LAB if full() else LAB.split('[[host]]\nname = "node3"')[0]) + SPARE)

    running = Running(lab)
    weft, start = running.weft, running.start
    times, loads = [], []
    weft("lab", "up", "--lab", file, "--logs", lab.directory)
    try:
        weft("link", "down", "spare")
        for number in range(1, max(1, int(os.environ.get("WEFT_KILLS") or lab.rounds(2, 100))) + 1):
            began = time.monotonic()
            indexes = running.results(hosts, BEFORE)
            traffic = [start(host, command) for host, command in _traffic(hosts)]
            # The flood may lose one packet.
            weft("lab", "shell", "node1", _until_it_pings([2]))
            flowing = time.monotonic() - began
            time.sleep(lab.random.uniform(2, 5))        # only the moment is random; see UNTIL_KILLED for the minimum
            killed = time.monotonic()
            running.kill()
            back, load = time.monotonic(), Load()
            took = _wait_for({host: start(host, _return_script(indexes[host], [address for address, other in enumerate(hosts, 1) if other != host]))
                              for host in hosts}, back, TIME_LIMIT * lab.slowness)
            factor, slowest = load.factor(), max(took.values())
            limit = (COMMAND_TIMEOUT + RETURN * factor) * lab.slowness
            times += took.values()
            loads.append(factor)
            assert slowest <= limit, f"the guests needed {slowest:.1f} s, more than {limit:.1f} s at {factor:.1f} times the usual load"
            cleaning = time.monotonic()
            for each in traffic:
                each.terminate()
            for each in traffic:
                each.wait(60 * lab.slowness)
            links = json.loads(weft("--json", "fabric", "show"))["links"]
            assert [link["settings"]["state"] for link in links if link["name"].startswith("spare/")] == ["down"], links
            said = weft("lab", "check", check=False).splitlines()
            assert len([line for line in said if line.startswith("weftd was killed by SIGKILL")]) == 1, said
            assert all("weftd was killed" in line or "has its card again" in line for line in said), said
            print(f"kill {number}: guests ping {', '.join(f'{took[host]:.1f}' for host in hosts)} s after weftd is back, of {limit:.1f} s at {factor:.1f} times "
                  f"the usual load; traffic flows after {flowing:.1f} s, weftd is back after {back - killed:.2f} s, the checks take "
                  f"{time.monotonic() - cleaning:.1f} s", flush=True)
    finally:
        if times:
            print(f"{len(loads)} kills: a guest pings {statistics.median(times):.1f} s (median) after weftd is back, {min(times):.1f} to {max(times):.1f} s, at "
                  f"{min(loads):.1f} to {max(loads):.1f} times the usual load", flush=True)
        weft("lab", "down", check=False)


# In the first two seconds after ib0 has its carrier, Linux does not survive the loss of the card (Documentation/restart.rst), and shows no sign of their end.
UNTIL_KILLED = "sleep 4; touch /share/ready; until test -e /share/killed; do sleep 0.2; done; until ping -c 1 -W 1 10.1.0.2; do sleep 0.5; done >/dev/null; echo reached"


@test(kernels=(), also=("stock",), timeout=300)
def command_started_by_weft_run_continues_after_weftd_was_killed(lab):
    """The command of `weft run` continues while weftd is started again, and reaches the other guest afterwards. The logs are kept, although it succeeds."""
    share, temporary = lab.directory / "share", lab.socket_path("run")
    share.mkdir()
    temporary.mkdir()
    with subprocess.Popen([lab.program("weft"), "run", "--quiet", "--on", "node1", "--share", share, "--", UNTIL_KILLED], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(temporary)}) as run:
        try:
            wait_until("the command to run", lambda: run.poll() is not None or (share / "ready").exists(), 200 * lab.slowness)
            assert run.poll() is None, run.communicate()
            (directory,) = temporary.glob("weft-run-*")
            os.kill(_pid(directory), signal.SIGKILL)
            (share / "killed").touch()
            out, err = run.communicate(timeout=120 * lab.slowness)
        finally:
            run.terminate()
    assert (run.returncode, out) == (0, "reached\n"), (run.returncode, out, err)
    assert "weft run: weftd was killed by SIGKILL and was started again" in err, err
    assert "weft run: node1: has its card again, 10.1.0.1 on ib0" in err, err
    (kept,) = temporary.glob("weft-logs-*")
    assert f"weft run: logs are kept in {kept}\n" in err, err
    assert {"node1.log", "node2.log", "weftd.log", "weftd-1.log"} <= {path.name for path in kept.iterdir()}


# Linux's ib_mthca does not release a failed card.
MODELS = {"mlx4": 'model = "mlx4"', "mlx5": 'model = "mlx5"', "weft": 'model = "mlx4"\nboot = { stack = "weft" }'}


@test(kernels=(), also=("stock",), timeout=600)
def guests_get_their_mlx4_and_mlx5_cards_back_after_a_kill_and_an_upgrade_of_weftd(lab):
    """Guests with an mlx4 and an mlx5 card on Linux's stack, and one on weft's own stack, have their cards and addresses again after weftd was
    killed, and after it was replaced by another binary."""
    file, copy = lab.directory / "lab.toml", lab.directory / "another-weftd"
    file.write_text('[[switch]]\nname = "s1"\nports = 8\n' + "".join(f'[[host]]\nname = "{host}"\n{settings}\n[[link]]\nends = ["{host}/1", "s1"]\n'
                                                                     for host, settings in MODELS.items()))
    shutil.copy(lab.program("weftd"), copy)
    running = Running(lab)

    def ping_each_other():
        for host in MODELS:
            running.weft("lab", "shell", host, "; ".join(f"ping -c 1 -W 20 10.1.0.{address} || exit 1" for address, other in enumerate(MODELS, 1) if other != host))

    running.weft("lab", "up", "--lab", file, "--logs", lab.directory, "--memory", "320M")
    try:
        ping_each_other()
        running.kill()
        running.await_cards(MODELS)
        ping_each_other()
        said = running.weft("lab", "upgrade", "--weftd", copy)
        assert f"weftd was replaced by {copy}" in said, said
        assert all(f"{host}: has its card again" in said for host in MODELS), said
        assert os.readlink(f"/proc/{running.pid()}/exe") == str(copy)
        ping_each_other()
    finally:
        running.weft("lab", "down", check=False)


@test(kernels=(), also=("stock",), timeout=400)
def mthca_guests_get_their_cards_back_after_an_upgrade_of_weftd(lab):
    """Guests with mthca cards have their cards and addresses again after weftd was replaced, because their drivers release the cards before that. Their
    drivers do not release the card of a weftd that was killed."""
    running = Running(lab)
    hosts = ("node1", "node2")

    def ping_each_other():
        for number, host in enumerate(hosts):
            running.weft("lab", "shell", host, f"ping -c 1 -W 20 10.1.0.{2 - number}")

    running.weft("lab", "up", "--card", "mthca", "--logs", lab.directory)
    try:
        ping_each_other()
        began = time.monotonic()
        said = running.weft("lab", "upgrade")
        assert all(f"{host}: has its card again" in said for host in hosts), said
        print(f"the upgrade took {time.monotonic() - began:.1f} s", flush=True)
        ping_each_other()
    finally:
        running.weft("lab", "down", check=False)


@test(kernels=(), also=("stock",), timeout=400)
def nvme_over_rdma_reconnects_after_weftd_was_killed(lab):
    """After weftd was killed, an initiator is connected again to its disk, which has the data that was written before, and can be written."""
    storage = load(cache.TREE / "tools/tests/guest/storage.py")
    running = Running(lab)
    running.weft("lab", "up", "--card", "mlx4", "--logs", lab.directory)

    def in_guest(host, script):
        return running.weft("lab", "shell", host, f"set -e\n{script}")

    try:
        in_guest("node1", storage.NVME_TARGET.replace("10.0.0.1", "10.1.0.1"))
        in_guest("node2", f"modprobe nvme-rdma; echo transport=rdma,traddr=10.1.0.1,trsvcid=4420,nqn={storage.NQN},nr_io_queues=1 >/dev/nvme-fabrics")
        in_guest("node2", f"until test -b /dev/nvme0n1; do sleep 0.1; done; dd if=/dev/urandom of=/tmp/data bs=1M count={storage.MEGABYTES} status=none; "
                          "dd if=/tmp/data of=/dev/nvme0n1 bs=256k oflag=direct status=none")
        running.kill()
        said = running.await_cards(("node1", "node2"))
        assert "node1: has its card again, 10.1.0.1 on ib0, and NVMe over RDMA listens again" in said, said
        assert "node2: has its card again, 10.1.0.2 on ib0, and NVMe over RDMA has connected again" in said, said
        in_guest("node2", "until disk=$(ls /dev/nvme?n1); do sleep 0.1; done; dd if=$disk bs=256k iflag=direct status=none | cmp - /tmp/data; "
                          "head -c 256k /dev/urandom >/tmp/new; dd if=/tmp/new of=$disk bs=256k oflag=direct status=none; "
                          "dd if=$disk bs=256k count=1 iflag=direct status=none | cmp - /tmp/new")
    finally:
        running.weft("lab", "down", check=False)
