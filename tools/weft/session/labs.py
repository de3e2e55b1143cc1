# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""A lab that runs: weftd, and a machine for every host of it."""
import contextlib
import dataclasses
import itertools
import json
import pathlib
import queue
import socket
import subprocess
import threading
import time

from lab import DeadlineExceeded, Guest, GuestDied, kernels, own_kernel
from lab.errors import LabError
from lab.machine import ethernet_netdev
from lab.waiting import wait_until

# Waits for a line of a file. In bash alone: on an emulated CPU it takes longer to start a program than what is waited for.
AWAIT = """
exec {never}<> <(:)
await() {
	tries=0
	until read -r said 2>/dev/null <"$1" && [[ $said == $2 ]]; do
		((++tries < 3000)) || { echo "$3 within 30 s" >&2; exit 1; }
		read -rt 0.01 -u $never
	done
	return 0	# not that of the last read
}
"""
# What makes a machine a node of the subnet, with Debian's driver. ib0 has a carrier once it is in its broadcast group; until then nobody is reached. It is
# brought up once the port is active: if that finds it up, it may ask before the kernel knows where the subnet manager is, and asks again after a second.
NODE_SETUP = AWAIT + """
address=$1
modprobe -a mlx4_ib ib_uverbs ib_umad ib_ipoib || exit 1
await "$(echo /sys/class/infiniband/*/ports/1/state)" "*ACTIVE" "the port did not become active"
ip -batch - <<END || exit 1
address add $address/24 dev ib0
link set ib0 up
END
await /sys/class/net/ib0/carrier 1 "ib0 did not join its broadcast group"
"""
# The card's driver first, by the guest's initramfs; and no page zeroed that nobody asked to be, which takes 0.4 s of an emulated CPU's 4.4.
QUICKLY = "weft.early=1 init_on_alloc=0"
# The same on the lab's Ethernet.
ETHERNET_SETUP = "modprobe -q virtio_net; ip address add {address}/24 dev eth0 && ip link set eth0 up"
MOST_ADDRESSES = 254    # of 10.1.0.0/24, and of 10.2.0.0/24
BOOT_TIMEOUT = 120      # seconds, of a machine with an emulated CPU
SETUP_TIMEOUT = 120


@dataclasses.dataclass(frozen=True)
class Machine:
    """What a host's machine is made of. kernel: a name of lab.kernels, or a path, as own_kernel.find() takes it."""

    kernel: str = "stock"
    modules: str | None = None
    initrd: str | None = None
    share: str | None = None
    append: str = ""
    cpus: int = 1
    memory: str = "768M"

    def but(self, settings):
        """This one, with what the lab file says of a host. A kernel brings its own modules and initramfs, or none."""
        if "kernel" in settings:
            settings = {"modules": None, "initrd": None, **settings}
        return dataclasses.replace(self, **settings)

    def find_kernel(self, ib0):
        if self.kernel in kernels.VARIANTS:
            if self.modules or self.initrd:
                raise LabError(f"the kernel {self.kernel} brings its own modules and initramfs", "name a kernel of your own by --kernel")
            return kernels.find(self.kernel)
        return own_kernel.find(self.kernel, self.modules, self.initrd, share=bool(self.share), ib0=ib0)


def ask_weftd(directory, command):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(str(directory / "control.sock"))
        client.sendall(json.dumps({"command": command}).encode() + b"\n")
        answer = json.loads(client.makefile("rb").readline())
    if not answer["ok"]:
        raise LabError(f"weftd: {answer['error']}")
    return answer["result"]


def _next(done):
    """What comes next. Ctrl-C may have woken another thread than this one, which alone acts on it: it is looked for twice a second."""
    while True:
        try:
            return done.get(timeout=0.5)
        except queue.Empty:
            pass


def together(guests, work):
    """Calls work(guest) for all at once, a thread each, on the main thread; returns what each returned. The first that fails ends it."""
    done = queue.SimpleQueue()

    def one(guest):
        try:
            done.put((guest, work(guest), None))
        except BaseException as error:
            done.put((guest, None, error))

    for guest in guests:
        threading.Thread(target=one, args=(guest,), daemon=True).start()
    results = {}
    for _ in guests:
        guest, result, error = _next(done)
        if error:
            raise error
        results[guest] = result
    return results


class Lab:
    """weftd and the machines. Made, brought up and closed on the main thread. tell(text): is told what happens meanwhile."""

    def __init__(self, directory, logs, weftd, lab_file, machine, bare, tell):
        self.directory = directory
        self.logs = logs
        self.guests = {}
        self._numbers = {}      # the last part of each machine's address, for as long as it is there
        self._weftd_program = weftd
        self._lab_file = lab_file
        self._machine = machine
        self._bare = bare
        self._tell = tell
        self._begun = time.monotonic()
        self._weftd = None

    def tell(self, text):
        self._tell(f"[{time.monotonic() - self._begun:5.1f} s] {text}")

    def up(self):
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.logs.mkdir(parents=True, exist_ok=True)
        command = ["setpriv", "--pdeathsig", "TERM", self._weftd_program, "--socket-dir", str(self.directory)]
        if self._lab_file:
            command += ["--lab", str(self._lab_file)]
        with open(self.logs / "weftd.log", "w") as log:
            # Ctrl-C is for this program, which then ends what it started.
            self._weftd = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0)
        wait_until("weftd to serve", self._weftd_serves, 30)
        self._start_machines(self._hosts())

    def _hosts(self):
        """Those that machines can have."""
        return [host for host in ask_weftd(self.directory, "fabric.show")["hosts"] if host["socket"]]

    def settle(self, replaced, tell):
        """Makes the machines those of the hosts that weftd has now; machines of hosts in `replaced` start again, for their card is another."""
        self._tell = tell
        hosts = {host["name"]: host for host in self._hosts()}
        for name in [name for name in self.guests if name not in hosts or name in replaced]:
            self._end(name)
            self.tell(f"{name}: has ended")
        self._start_machines([host for name, host in hosts.items() if name not in self.guests])

    def _end(self, name):
        self.guests.pop(name).close()
        self._numbers.pop(name)

    def _start_machines(self, hosts):
        if len(self.guests) + len(hosts) > MOST_ADDRESSES and not self._bare:
            raise LabError(f"{len(self.guests) + len(hosts)} machines are more than 10.1.0.0/24 has addresses", "--bare gives none")
        machines = {host["name"]: self._machine.but(host.get("boot", {})) for host in hosts}
        started = []
        for host in hosts:
            machine = machines[host["name"]]
            append = machine.append if self._bare else f"{QUICKLY} {machine.append}"
            kernel = machine.find_kernel(ib0=not self._bare)
            netdevs = [ethernet_netdev(host["ethernet"]["socket"])] if "socket" in host.get("ethernet", {}) else []
            if netdevs and kernel.native:
                raise LabError(f"{host['name']}: a kernel that is a program has no place on an Ethernet")
            guest = Guest(host["name"], kernel=kernel, netdevs=netdevs, cpus=machine.cpus, memory=machine.memory, share=machine.share, append=append,
                          cards=[host["socket"]], log=self.logs / f"{host['name']}.log")
            self.guests[host["name"]] = guest
            self._numbers[host["name"]] = next(number for number in itertools.count(1) if number not in self._numbers.values())
            guest.start()
            started.append(guest)
            self.tell(f"{guest.name}: boots {kernel.release}, {'as a program' if kernel.native else guest.accelerator}")
        try:
            together(started, lambda guest: self._bring_up(guest, self._numbers[guest.name]))
        except BaseException:
            for guest in started:
                self._end(guest.name)
            raise

    def _bring_up(self, guest, number):
        try:
            guest.ready(BOOT_TIMEOUT)
        except (GuestDied, DeadlineExceeded) as error:
            reason = own_kernel.why_not_up(guest.console()) if guest.kernel.variant == own_kernel.VARIANT else None
            raise LabError(f"{guest.name}: {reason}\n(its console: {guest.log})" if reason else f"{error}\n(its console: {guest.log})") from None
        self.tell(f"{guest.name}: is up")
        if not self._bare and guest.kernel.variant in ("stock", own_kernel.VARIANT):
            done = guest.run(f"set -- 10.1.0.{number}\n{NODE_SETUP}", SETUP_TIMEOUT, check=False)
            if done.status != 0:
                raise LabError(f"{guest.name}: no ib0: {(done.err or done.out).strip() or f'status {done.status}'}\n(its console: {guest.log})")
            self.tell(f"{guest.name}: 10.1.0.{number} on ib0")
        if not self._bare and guest.netdevs:
            done = guest.run(ETHERNET_SETUP.format(address=f"10.2.0.{number}"), SETUP_TIMEOUT, check=False)
            if done.status != 0:
                raise LabError(f"{guest.name}: no eth0: {(done.err or done.out).strip() or f'status {done.status}'}\n(its console: {guest.log})")
            self.tell(f"{guest.name}: 10.2.0.{number} on eth0")

    def _weftd_serves(self):
        if not self.alive():
            raise LabError((self.logs / "weftd.log").read_text().strip() or "weftd ended")
        return (self.directory / "control.sock").is_socket()

    def alive(self):
        return self._weftd.poll() is None

    def close(self):
        for guest in self.guests.values():
            guest.close()
        if self._weftd:
            self._weftd.terminate()
            try:
                self._weftd.wait(10)
            except subprocess.TimeoutExpired:
                self._weftd.kill()
                self._weftd.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.close()


def program_beside(path):
    """The path of weftd, told by the caller: it lies beside weft."""
    path = pathlib.Path(path)
    if not path.is_file():
        raise LabError(f"there is no {path}", "weftd lies beside weft: build both, or install the package weft")
    return path
