# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs a lab: starts weftd and a guest for every host, waits until the guests are ready, and stops all of them."""
import collections
import contextlib
import dataclasses
import functools
import itertools
import json
import os
import pathlib
import queue
import re
import shlex
import signal
import socket
import threading
import time

import stack
from lab import CommandFailed, DeadlineExceeded, Guest, GuestDied, image, kernels, own_kernel
from lab.errors import LabError, printable
from lab.guest import BUSYBOX, contention
from lab.vm import WITHOUT_ZEROING, ethernet_netdev
from weftd_process import Daemon, is_served

# Waits for a line of a file. It uses only bash, because on an emulated CPU starting a program takes longer than the awaited event. The
# limit is a time and not a number of attempts: on a busy host each attempt takes several times as long, and SETUP_TIMEOUT would stop the script
# before it can report what is missing.
AWAIT = """
exec {never}<> <(:)
await() {
	SECONDS=0
	until read -r said 2>/dev/null <"$1" && [[ $said == $2 ]]; do
		((SECONDS < ${limit:-60})) || { echo "$3 within ${limit:-60} s" >&2; exit 1; }
		read -rt 0.01 -u $never
	done
	return 0	# not that of the last read
}
"""
# A User-Mode Linux guest has a directory of the host with the kernel's own modules, in which modprobe looks for them.
MODULES_DIRECTORY = '"/usr/lib/modules/$(uname -r)"'
MOUNT = f"mkdir -p {MODULES_DIRECTORY} && mount -t hostfs -o {{modules}} modules {MODULES_DIRECTORY} || exit 1\n"
# The arguments: the interface's address, its name, and the modules to load.
LOAD = """
address=$1
interface=$2
shift 2
if [ $# -gt 0 ]; then modprobe -a "$@" || exit 1; fi
"""
SET_UP = """
ip -batch - <<END || exit 1
address add $address/16 dev $interface
link set $interface up
END
"""
# Makes a guest a node of the subnet. Afterwards the caller waits for the carrier of ib0, which has one once it has joined its broadcast group. The
# interface is brought up after the port has become active: an interface that is up earlier may query the SA before the kernel knows where the subnet
# manager is, and repeats the query only after a second.
BECOME_NODE = AWAIT + LOAD + """
await "$(echo /sys/class/infiniband/*/ports/1/state)" "*ACTIVE" "the port did not become active"
""" + SET_UP
NODE_SETUP = BECOME_NODE + """
await /sys/class/net/$interface/carrier 1 "$interface did not get a carrier"
"""
# The same as NODE_SETUP for a card that has been plugged in again: its driver is loaded, and initialises it meanwhile. The first argument is 1 if the
# subnet has a subnet manager. If the guest's user has removed the driver, the status is NOT_LOADED.
NOT_LOADED = 3
SETUP_AGAIN = f"[ -e $card/infiniband ] || [ -e /sys/module/$driver ] || exit {NOT_LOADED}\n" + AWAIT + """
managed=$1
address=$2
interface=$3
appear() {
	SECONDS=0
	until compgen -G "$1" >/dev/null; do
		((SECONDS < ${limit:-60})) || { echo "$2 did not appear within ${limit:-60} s" >&2; exit 1; }
		read -rt 0.01 -u $never
	done
}
appear "/sys/class/infiniband/*/ports/1/state" "the card"
[ $managed = 0 ] || await "$(echo /sys/class/infiniband/*/ports/1/state)" "*ACTIVE" "the port did not become active"
appear /sys/class/net/$interface "$interface"
""" + SET_UP
# mlx4 checks every five seconds whether its card has failed, and then resets it. If a reset starts while the card is being removed, the two wait for
# each other forever (Linux 6.1: catas_reset() for the lock of mlx4_remove_one(), which flushes catas_reset()). So the driver must find the failure
# while resets are disabled: it then stops checking and starts no reset.
NO_RESET = """
if [ -e $reset ] && [ ! -e $former ]; then
	cat $reset >$former
	echo 0 >$reset
	read now idle </proc/uptime
	echo "weft: weftd has ended at $now" >$mark
	cat $mark >$kmsg
fi
"""
# mlx5 checks every two seconds whether its card has failed. It then completes all requests, removes the device from its users, and waits for the card. If
# the removal begins before, a command that waits for the failed card takes a minute to fail, and ib_core may wait forever for the sends of its queries.
AWAIT_MLX5_RELEASE = """
case "$(readlink -f $card/driver)" in
*/mlx5_core)
	while [ -e $card/infiniband ] && [ $checks -gt 0 ]; do
		checks=$((checks - 1))
		sleep 0.1
	done ;;
esac
"""
# When resets are enabled and the failed card does not execute a command, the driver notifies the users of the card and completes their requests. This
# must happen before the removal, during which the driver no longer notifies users: ib_core would then wait forever for the sends of its queries. A
# reset that started before resets were disabled has finished, or holds the lock, when the removal begins. Resets are enabled as soon as the kernel's
# log shows that the driver has found the failure, because each command takes ten seconds to fail, and one that fails before that is of no use.
REMOVE = """
if [ -e $former ]; then
	for state in $card/infiniband/*/ports/1/state; do
		cat $state >/dev/null 2>&1 &
		commands="$commands $!"
	done
	mkfifo $pipe
	cat $kmsg >$pipe 2>/dev/null &
	reader=$!
	sleep $delay </dev/null >/dev/null 2>&1 &
	limit=$!
	($awk -v mark="$(cat $mark)" 'index($0, mark) { marked = 1 } marked && /Internal error detected/ { found = 1; exit } END { exit !found }' && kill $limit) <$pipe &
	search=$!
	wait $limit 2>/dev/null
	kill $reader $search 2>/dev/null
	rm $pipe
	cat $former >$reset
	rm $former
	[ -z "$commands" ] || wait $commands
fi
""" + AWAIT_MLX5_RELEASE + "if [ -e $card ]; then echo 1 >$card/remove; fi\n"
REMOVE_WORKING = "[ ! -e {card} ] || echo 1 >{card}/remove"
RESET_PLACES = ("reset=/sys/module/mlx4_core/parameters/internal_err_reset former=/run/weft-reset mark=/run/weft-mark pipe=/run/weft-pipe.$$ kmsg=/dev/kmsg "
                f"awk='{BUSYBOX} awk' commands= delay=7 checks=200\n")
# Linux removes the NVMe controllers of a device that is removed, and targets stop listening. For each controller, this records the line that creates
# it again. Lines that an interrupted restart has left are kept. Busybox runs this because it starts faster than bash: the driver itself may also
# remove a failed card.
NOTE_NVME = """
for controller in $nvme/nvme*; do
	if [ "$(cat $controller/transport 2>/dev/null)" = rdma ]; then
		line=transport=rdma,$(cat $controller/address),nqn=$(cat $controller/subsysnqn) || continue
		for option in hostnqn hostid ctrl_loss_tmo reconnect_delay; do
			value=$(cat $controller/$option 2>/dev/null)
			case "$value" in
			"") ;;
			off) line=$line,$option=-1 ;;
			*) line=$line,$option=$value ;;
			esac
		done
		[ -d $controller ] || continue	# it was removed meanwhile, so the line may be incomplete
		grep -qxF "$line" $note 2>/dev/null || echo "$line" >>$note
	fi
done
if [ -s $note ]; then echo initiator; fi
if grep -qx rdma $nvmet/ports/*/addr_trtype 2>/dev/null; then echo target; fi
"""
# A target's ports listen again when subsystems are linked to them again. Then the controllers are created again. The guest with the target may get
# its card later.
CONNECT_NVME = """
SECONDS=0
failed=0
# The links are recorded before they are removed, so that the next restart can continue if this script is interrupted or a link cannot be created.
for port in $nvmet/ports/*; do
	[[ $(cat $port/addr_trtype 2>/dev/null) == rdma ]] || continue
	for link in $port/subsystems/*; do
		[[ -L $link ]] || continue
		line="$port $(readlink -f "$link")"
		grep -qxF "$line" $links 2>/dev/null || echo "$line" >>$links
		rm "$link"
	done
done
if [[ -s $links ]]; then
	: >$links.left
	while read -r port subsystem; do
		[[ -L $port/subsystems/${subsystem##*/} ]] || ln -s "$subsystem" $port/subsystems/ || { echo "$port $subsystem" >>$links.left; failed=1; }
	done <$links
	mv $links.left $links
fi
[[ -s $note ]] || exit $failed
while read -r line; do
	until message=$({ echo "$line" >$fabrics; } 2>&1); do
		((SECONDS < limit)) || { echo "$line: ${message##*: }"; failed=1; break; }
		sleep 1
	done
done <$note
rm $note
exit $failed
"""
NVME_PLACES = "nvme=/sys/class/nvme nvmet=/sys/kernel/config/nvmet fabrics=/dev/nvme-fabrics note=/run/weft-nvme links=/run/weft-nvmet\n"
# The same without a subnet manager: when one is started, the port becomes active, and the interface gets its carrier.
UNMANAGED_SETUP = LOAD + SET_UP
# The initramfs loads Debian's driver of that model early, if it has one.
EARLY_DRIVER = "weft.early={model}"
# The same on the lab's Ethernet.
ETHERNET_SETUP = "modprobe -q virtio_net; ip address add {address}/16 dev eth0 && ip link set eth0 up"
IPOIB_NETWORK, ETHERNET_NETWORK = "10.1", "10.2"    # with a prefix of 16 bits; weftd allows fewer hosts than each has addresses
ADDRESSES_OF_BYTE = 254
BOOT_TIMEOUT = 120      # seconds, for a guest with an emulated CPU
# Guests of a large lab boot one after the other, because each would take too long if all booted at once: so many at a time, or more on many CPUs.
LEAST_BOOTING, BOOTING_ON_A_CPU = 8, 4
BOOT_SILENCE = 30       # seconds without console output after which a guest that does not share its CPU counts as hung
MEMORY = re.compile(r"([0-9]+(?:\.[0-9]+)?)([KMGT])", re.IGNORECASE)
MEBIBYTES = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024 * 1024}
LEAST_MEMORY = {"stock": 192}   # MiB that Debian's kernel needs to boot
LEAST_OF_OTHERS = 32            # no kernel with weft's initramfs boots with less
NVME_TIMEOUT = 90       # seconds within which the guest with the target gets its card again
SETUP_TIMEOUT = 200     # seconds: longer than all waits of a script together, because loading modules takes a while
# seconds to wait for the carrier of ib0; after each but the last, the link is unplugged and plugged in again
CARRIER_TIMEOUTS = (5, 20, 60)
CARRIER_TIMEOUTS_AT_BOOT = (20, 40, 60)     # guests that boot at the same time are slow to join, and a link that was down is counted
NOTE_TIMEOUT = 30       # seconds
NOT_NOTED = "has not recorded its NVMe controllers in time, so NVMe over RDMA does not connect again"
RELEASE_TIMEOUT = 90    # seconds that a driver may take to release a card whose server has exited
# The same for a card that works, before an upgrade, including the time in which its guest records its NVMe controllers. It is not longer on a busy host:
# a driver that waits for a program never releases its card.
UPGRADE_TIMEOUT = 30
UPGRADE_NOTE_TIMEOUT = 15       # the part of it that recording the controllers may take
LEFT_REMOVAL_TIMEOUT = 30       # seconds that a removal which has not ended within UPGRADE_TIMEOUT may take after weftd was replaced
PATIENCE = 5            # seconds after which an upgrade reports the guests for which it waits
NO_RESET_TIMEOUT = 10   # seconds


@dataclasses.dataclass(frozen=True)
class GuestSettings:
    """Settings of a host's guest. kernel: a name in lab.kernels, or a path for own_kernel.find(); stack: one of stack.NAMES."""

    kernel: str = "stock"
    modules: str | None = None
    initrd: str | None = None
    share: str | None = None
    append: str = ""
    cpus: int = 1
    memory: str = "768M"
    stack: str = stack.LINUX

    def but(self, settings):
        """Returns these settings with those of a host in the lab file. If the file sets the kernel, the modules and the initramfs of these settings
        do not apply."""
        if "kernel" in settings:
            settings = {"modules": None, "initrd": None, **settings}
        return dataclasses.replace(self, **settings)

    def mebibytes(self):
        """The memory in MiB, as a whole number. QEMU and User-Mode Linux have different notations, and QEMU a different unit for each option."""
        match = MEMORY.fullmatch(self.memory)
        if not match:
            raise LabError(f"'{self.memory}' is not an amount of memory", "write it as 768M or 2G")
        return int(float(match[1]) * MEBIBYTES[match[2].upper()])

    def check_memory(self, variant):
        """Raises LabError if the guest has too little memory to boot a kernel of this variant."""
        least = LEAST_MEMORY.get(variant, LEAST_OF_OTHERS)
        if self.mebibytes() < least:
            raise LabError(f"{self.memory} of memory are too little for a guest", f"give it {least}M or more")

    def is_native(self):
        return self.kernel in kernels.VARIANTS and kernels.is_native(self.kernel)

    def find_kernel(self, card=None):
        if self.kernel in kernels.VARIANTS:
            if self.modules or self.initrd:
                raise LabError(f"the kernel {self.kernel} has its own modules and initramfs", "name a kernel of your own by --kernel")
            return kernels.find(self.kernel)
        return own_kernel.find(self.kernel, self.modules, self.initrd, share=bool(self.share), card=card)


def bus_of(native):
    """Returns the name of the protocol by which a guest has its card, which differs between User-Mode Linux and QEMU."""
    return "vhost-user" if native else "vfio-user"


@dataclasses.dataclass(frozen=True)
class Fabric:
    """State of weftd's fabric. hosts: the hosts that guests can use; managed: it has a subnet manager."""

    hosts: list
    managed: bool


@dataclasses.dataclass(frozen=True)
class Plan:
    """A host's guest before its boot. stack: the modules that it loads for its card, or None."""

    host: dict
    settings: GuestSettings
    kernel: object
    stack: stack.Stack | None


@dataclasses.dataclass
class LeftRemoval:
    """A removal of a card that had not ended when weftd was replaced. seconds: how long it is awaited; 0 after it has been awaited once."""

    process: object
    seconds: int


def mac_of(number):
    """Returns the Ethernet address of the guest with this number. It is the same whichever host of the lab runs the guest, and no other guest has it."""
    return f"52:54:00:77:{number >> 8:02x}:{number & 255:02x}"


def address_of(number, network=IPOIB_NETWORK):
    """Returns the address of the guest with this number, from 1 on, in one of the networks. None ends in 0 or 255."""
    return f"{network}.{(number - 1) // ADDRESSES_OF_BYTE}.{(number - 1) % ADDRESSES_OF_BYTE + 1}"


def ask_weftd(directory, command, **arguments):
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(str(directory / "control.sock"))
            client.sendall(json.dumps({"command": command, **arguments}).encode() + b"\n")
            answer = json.loads(client.makefile("rb").readline())
    except (OSError, ValueError):
        raise LabError("weftd has ended") from None
    try:
        if not answer["ok"]:
            raise LabError(f"weftd: {answer['error']}")
        return answer["result"]
    except (KeyError, TypeError):
        raise LabError(f"the answer from {directory / 'control.sock'} is not weftd's", "end the program that serves it, or choose another --socket-dir") from None


def warnings_of(log):
    """Returns the texts of the warnings in weftd's log, whose lines are a time, a level, a component, and the text."""
    return [line.split(None, 3)[3] for line in log.splitlines() if line.split()[1:2] == ["warning"] and len(line.split()) > 3]


class Interruption:
    """Handles Ctrl-C, SIGTERM and SIGHUP: each raises KeyboardInterrupt on the main thread, and is recorded. Python drops an exception that a handler
    raises while a finalizer or a callback of a weak reference runs, so a wait on the main thread also checks whether one has been recorded
    (check())."""

    def __init__(self):
        self.came = False
        self.number = signal.SIGINT     # the last signal
        self._watched = ()
        self._once = False

    def forget(self):
        """Clears an interruption that has been handled; the next one takes effect again."""
        self.came = False

    def watch(self, *numbers, once=False):
        """once: only the first signal raises an exception. What handles it is then not interrupted by another one."""
        self._watched, self._once = numbers, once
        for number in numbers:
            signal.signal(number, self._come)

    @contextlib.contextmanager
    def diverted(self, handler):
        """Calls handler(number, frame) for these signals instead."""
        before = {number: signal.signal(number, handler) for number in self._watched}
        try:
            yield
        finally:
            for number, former in before.items():
                signal.signal(number, former)

    def check(self):
        if self.came:
            raise KeyboardInterrupt

    def _come(self, number, _):
        if self._once and self.came:
            return
        self.came = True
        self.number = number
        raise KeyboardInterrupt


interruption = Interruption()


def no_host(name, hosts):
    """Returns the error of a command for a host that is not among those that have a guest."""
    if not hosts:
        return LabError(f"there is no host {name} with a guest", "no host of this lab has one")
    return LabError(f"there is no host {name}", f"there is {', '.join(hosts)}")


def _next(done, meanwhile):
    """Returns the next result. A signal may wake another thread than the main thread, on which its handler runs, so this thread wakes twice a second,
    too."""
    while True:
        try:
            return done.get(timeout=0.5)
        except queue.Empty:
            interruption.check()
            meanwhile()


def together(guests, work, meanwhile=lambda: None, begin=lambda _: None, most=None):
    """Calls work(guest) for all guests at once, each on a thread; returns all results. Called on the main thread. The first exception stops the wait,
    and so does one of meanwhile(), which is called on the main thread about twice a second. begin(guest) is called on the main thread before work();
    most: the number of guests for which work() runs at a time."""
    done = queue.SimpleQueue()

    def one(guest):
        try:
            done.put((guest, work(guest), None))
        except BaseException as error:
            done.put((guest, None, error))

    waiting = collections.deque(guests)
    results = {}
    running = 0
    while waiting or running:
        while waiting and (most is None or running < most):
            guest = waiting.popleft()
            begin(guest)
            threading.Thread(target=one, args=(guest,), daemon=True).start()
            running += 1
        guest, result, error = _next(done, meanwhile)
        running -= 1
        if error:
            raise error
        results[guest] = result
    return results


class Stopping(Exception):
    """Raised if the lab is stopped while guests get their cards again."""


class Lab:
    """weftd and the guests. Created, started and closed on the main thread. report(text) is called with reports of the progress."""

    def __init__(self, directory, logs, weftd, lab_file, settings, bare, report, card=None, restart=True, placement=(), descriptors=(),
                 managed=False):
        """For a lab over several hosts: placement: options of weftd; descriptors: of files that weftd reads because of them; managed: another host may
        have the subnet manager."""
        self.directory = directory
        self.logs = logs
        self.guests = {}
        self._numbers = {}      # the last part of each guest's address, while the guest exists
        self._loaded = {}       # the stack.Stack of each guest, or None
        self.stopping = threading.Event()   # set to stop waiting for guests whose cards are replaced
        self._notes = {}        # the Process of each guest that prepares the removal of its card
        self._removals = {}     # the LeftRemoval of each guest that was still removing its card when weftd was replaced
        self.weftd = Daemon(weftd, directory, logs, restart, bus_of(settings.is_native()), placement, descriptors)
        self._lab_file = lab_file
        self._managed = managed
        self._card = card       # without a lab file: the card model of its hosts
        self._settings = settings
        self._bare = bare
        self._report = report
        self._begun = time.monotonic()

    def report(self, text):
        self._report(f"[{time.monotonic() - self._begun:5.1f} s] {text}")

    def up(self, check=lambda _: None):
        """Starts weftd and the guests. check(names of hosts): called before any guest boots; it may raise an exception."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.logs.mkdir(parents=True, exist_ok=True)
        if is_served(self.weftd.control):
            raise LabError(f"a weftd that this command did not start serves {self.directory}",
                           f"end it with `weft --socket-dir {self.directory} shutdown`, or choose another --socket-dir")
        if self._card:
            # The name must not be one that a user would give a file, because the directory may belong to the user.
            self._lab_file = self.directory / ".weft-card.toml"
            self._lab_file.write_text(stack.two_hosts(self._card))
        self.weftd.start(self._lab_file)
        with open(self.weftd.log) as log:
            for warning in warnings_of(log.read()):
                self.report(f"warning: {printable(warning)}")
        fabric = self._fabric()
        check([host["name"] for host in fabric.hosts])
        self._start_guests(fabric.hosts, fabric.managed)

    def _fabric(self):
        # The state of a subnet manager is "not active" until it has run for the first time.
        shown = ask_weftd(self.directory, "fabric.show")
        return Fabric([host for host in shown["hosts"] if host["socket"]], self._managed or shown["subnet_manager"] is not None)

    def settle(self, replaced, report):
        """Starts and stops guests so that there is one for each present host of weftd. Guests of hosts in `replaced` are restarted, because their
        cards are new."""
        self._report = report
        fabric = self._fabric()
        names = [host["name"] for host in fabric.hosts]
        for name in [name for name in self.guests if name not in names or name in replaced]:
            self._end(name)
            self.report(f"{name}: has ended")
        self._start_guests([host for host in fabric.hosts if host["name"] not in self.guests], fabric.managed)

    def restart(self, names, report):
        """Stops the guests of these hosts, in any state, and starts them again with the same cards."""
        hosts = [host["name"] for host in self._fabric().hosts]
        unknown = [name for name in names if name not in hosts]
        if unknown:
            raise no_host(unknown[0], hosts)
        self.settle(names, report)

    def log_of(self, name):
        """Returns the path of a host's console log, which also exists after its guest has exited."""
        path = self.logs / f"{name}.log"
        if name not in self.guests and not path.is_file():
            raise no_host(name, self.guests)
        return path

    def look_after(self, report=None):
        """If weftd has exited, starts it again with its former state, and gives the guests cards again. report(text) reports what was lost. Raises
        LabError if weftd must not be started again, or exits too often."""
        while not self.weftd.alive():
            report = report or self.report
            self._prepare_removal()
            report(self.weftd.start_again())
            try:
                self._give_cards_again(report)
            except LabError:
                if not self.weftd.ends_soon():
                    raise

    def upgrade(self, program, report):
        """Replaces weftd by another program, or by a new process of the same."""
        self._report = report
        # Guests that have released their cards may not get them again, for example because a driver is too slow.
        self.weftd.check_program(program)
        self._prepare_removal("")
        self._release_cards()
        try:
            self.report(self.weftd.replace(program))
        except LabError:
            # The former program serves the lab again, but the cards' clients have been disconnected all the same.
            if self.weftd.alive():
                self._give_cards_again(self.report)
            raise
        self._give_cards_again(self.report)
        self.look_after(self.report)

    def _prepare_removal(self, before=NO_RESET):
        """Prevents drivers from resetting their cards, and makes guests record their NVMe controllers. Does not wait for either. before: the script for
        the drivers, which a card that has not failed does not need."""
        for name, guest in self.guests.items():
            if self._may_have_in_tree_driver(guest):
                with contextlib.suppress(GuestDied):
                    self._notes[name] = guest.spawn([BUSYBOX, "sh", "-c", RESET_PLACES + before + NVME_PLACES + NOTE_NVME])

    def _may_have_in_tree_driver(self, guest):
        # If the lab has loaded no stack, the user may have loaded one.
        loaded = self._loaded.get(guest.name)
        return (loaded is None or loaded.in_tree) and not guest.kernel.native

    def _release_cards(self):
        """Removes cards that work from their guests' kernels. While weftd serves the cards, drivers release them in less time than failed cards, and
        mthca's driver releases no failed card. A card that a driver does not release in time is removed after it has failed; when this returns, its driver
        does not reset it."""
        guests = [guest for guest in self.guests.values() if guest.alive() and not guest.kernel.native]
        awaited = {guest.name for guest in guests}
        patient_until = time.monotonic() + PATIENCE

        def release(guest):
            released = self._release_card(guest)
            awaited.discard(guest.name)
            return released

        def meanwhile():
            nonlocal patient_until
            self._is_wanted()
            if awaited and time.monotonic() > patient_until:
                patient_until = float("inf")
                self.report(f"waits for guests to release their cards: {', '.join(sorted(awaited))}")

        released = together(guests, release, meanwhile)
        left = [guest for guest in guests if not released[guest] and guest.alive()]
        together([guest for guest in left if self._may_have_in_tree_driver(guest)], self._forbid_resets, self._is_wanted)
        for guest in left:
            self.report(f"{guest.name}: has not released its card, which is replaced all the same")

    def _release_card(self, guest):
        """Returns whether the guest's kernel has released its card while weftd served it."""
        def has_ended(process, timeout):
            with contextlib.suppress(DeadlineExceeded):
                guest.wait_for_event("the removal of its card", lambda: process.status is not None or not self.weftd.alive(), timeout)
            return process.status is not None

        with contextlib.suppress(GuestDied):
            begun = time.monotonic()
            note = self._notes.get(guest.name)
            noted = not note or has_ended(note, UPGRADE_NOTE_TIMEOUT)
            if not self.weftd.alive():
                return False
            # The guest's NVMe controllers may be lost, but its card must not be.
            if not noted:
                note.kill()
                del self._notes[guest.name]
                self.report(f"{guest.name}: {NOT_NOTED}")
            removal = guest.spawn([BUSYBOX, "sh", "-c", REMOVE_WORKING.format(card=guest.card)])
            if has_ended(removal, UPGRADE_TIMEOUT - min(time.monotonic() - begun, UPGRADE_NOTE_TIMEOUT)):
                return removal.status == 0
            self._removals[guest.name] = LeftRemoval(removal, LEFT_REMOVAL_TIMEOUT)
        return False

    def _forbid_resets(self, guest):
        with contextlib.suppress(CommandFailed, DeadlineExceeded, GuestDied):
            guest.spawn([BUSYBOX, "sh", "-c", RESET_PLACES + NO_RESET]).wait(NO_RESET_TIMEOUT)

    def _give_cards_again(self, report):
        """Each guest removes its card from its kernel, and finds a card again after weftd has received its connection. Returns early if weftd exits
        again."""
        fabric = self._fabric()
        # A port whose cable is unplugged does not become active.
        pulled = {link["name"] for link in ask_weftd(self.directory, "fabric.show")["links"] if link["settings"]["state"] == "down"}
        for host in fabric.hosts:
            guest = self.guests.get(host["name"])
            if not guest or guest.alive() and not guest.kernel.native:
                continue
            why = "User-Mode Linux cannot connect again" if guest.alive() else "the guest has ended"
            report(f"{guest.name}: has lost its card: {why}; `weft lab restart {guest.name}` starts the guest again")

        hosts = {guest: host for host in fabric.hosts if (guest := self.guests.get(host["name"])) and guest.alive() and not guest.kernel.native}

        def give(guest):
            try:
                managed = fabric.managed and hosts[guest]["ports"][0]["link"] not in pulled
                if address := self._give_card_again(guest, hosts[guest], managed, report):
                    report(f"{guest.name}: has its card again{address}")
            except (CommandFailed, DeadlineExceeded, GuestDied, LabError) as error:
                if self.weftd.alive():
                    reason, _, _ = str(error).partition("\n")
                    report(f"{guest.name}: has lost its card: {reason}; `weft lab restart {guest.name}` starts the guest again")

        together(hosts, give, self._is_wanted)

    def _is_wanted(self):
        if self.stopping.is_set():
            raise Stopping

    def _await_left_removal(self, guest, report):
        """Returns whether an earlier removal of the guest's card has ended; False if weftd has exited. Raises LabError if it does not end."""
        left = self._removals.get(guest.name)
        if not left:
            return True
        if left.process.status is None and left.seconds:
            report(f"{guest.name}: waits for its driver to release the card that was replaced")
            with contextlib.suppress(DeadlineExceeded):
                guest.wait_for_event("the removal of its card", lambda: left.process.status is not None or not self.weftd.alive(), left.seconds)
        if left.process.status is not None:
            del self._removals[guest.name]
            return True
        if not self.weftd.alive():
            return False
        left.seconds = 0
        raise LabError("its driver has not released the card that was replaced")

    def _give_card_again(self, guest, host, managed, report):
        """Returns text that is appended to the message about the card; None if weftd has exited meanwhile."""
        if not self.weftd.keeper.has(guest.name):
            raise LabError("its connection is not known")

        scale = contention()

        def waited_for(process, what, seconds):
            try:
                guest.wait_for_event(what, lambda: process.status is not None or not self.weftd.alive(), seconds * scale)
            except DeadlineExceeded:
                process.kill()
                raise
            return process.status is not None

        # The driver detects that the card has failed, and later that it is a new one.
        note = self._notes.pop(guest.name, None)
        try:
            if note and not waited_for(note, "it to prepare the removal of its card", NOTE_TIMEOUT):
                return None
        except DeadlineExceeded:
            report(f"{guest.name}: {NOT_NOTED}")
            note = None
        removal = guest.spawn([BUSYBOX, "sh", "-c", f"{RESET_PLACES}card={guest.card}\n{REMOVE}"])
        if not waited_for(removal, "its driver to release the card", RELEASE_TIMEOUT) or not self._await_left_removal(guest, report):
            return None
        try:
            self.weftd.keeper.pass_on(guest.name)
        except OSError:
            return None
        if not waited_for(guest.spawn([BUSYBOX, "sh", "-c", "echo 1 >/sys/bus/pci/rescan"]), "its driver to find the card", SETUP_TIMEOUT):
            return None
        loaded = self._loaded.get(guest.name)
        if not loaded:
            return " "
        waits = managed or loaded.interface != stack.IPOIB
        port = host["ports"][0]["name"]
        address = address_of(self._numbers[guest.name])
        process = guest.spawn(f"limit={60 * scale:.0f} card={guest.card} driver={loaded.driver}\nset -- {int(waits)} {address} {loaded.interface}\n{SETUP_AGAIN}")
        if not waited_for(process, "its card to work again", SETUP_TIMEOUT):
            process.kill()
            return None
        if process.status == NOT_LOADED:
            return f", but no {loaded.interface}, because {loaded.driver} is not loaded"
        if process.status != 0:
            raise LabError(f"no {loaded.interface}: {(process.err or process.out).strip() or f'status {process.status}'}")
        if waits:
            self._await_carrier(guest, loaded.interface, port, scale, CARRIER_TIMEOUTS)
        if not note or not note.out:
            return f", {address} on {loaded.interface}"
        process = guest.spawn(f"limit={NVME_TIMEOUT * scale:.0f}\n{NVME_PLACES}{CONNECT_NVME}")
        if not waited_for(process, "NVMe over RDMA to connect again", SETUP_TIMEOUT):
            process.kill()
            return None
        if process.status != 0:
            return f", {address} on {loaded.interface}; NVMe over RDMA has not connected again: {(process.out or process.err).strip()}"
        return f", {address} on {loaded.interface}, and NVMe over RDMA {'has connected' if 'initiator' in note.out else 'listens'} again"

    def _await_carrier(self, guest, interface, port, scale, timeouts):
        """Waits until an interface has a carrier. port: that of its card; timeouts: seconds, after each of which except the last the link is pulled."""
        for timeout in timeouts:
            try:
                return guest.wait_for_carrier(interface, timeout=timeout * scale)
            except DeadlineExceeded:
                # Linux's SA client learns the location of the subnet manager from a change of the port. mlx4_core reports no changes to a driver
                # that registers its device at that time, so that the client may miss the one of a port that becomes active early.
                if timeout == timeouts[-1]:
                    raise
                # If weftd crashes in between, the next one must not take the link for one that a user has pulled.
                ask_weftd(self.directory, "link.down", link=port, record=False)
                ask_weftd(self.directory, "link.up", link=port)

    def _weftd_is_there(self):
        if not self.weftd.alive():
            raise LabError(self.weftd.how_it_ended())

    def _end(self, name):
        self.guests.pop(name).close()
        # The start may have been interrupted before it had all of these.
        for kept in (self._numbers, self._loaded, self._notes, self._removals):
            kept.pop(name, None)
        self.weftd.keeper.forget(name)

    def _start_guests(self, hosts, managed):
        # Missing files are reported before any guest boots.
        own_modules = functools.cache(stack.weft_modules)
        plans = [self._plan(host, own_modules) for host in hosts]
        planned = {self._make_guest(plan): plan for plan in plans}
        begun = []
        cpus = len(os.sched_getaffinity(0))
        most = max(LEAST_BOOTING, BOOTING_ON_A_CPU * cpus)
        # Guests that share a CPU are silent for longer.
        silence = BOOT_SILENCE * max(1, min(len(planned), most) / cpus)
        up = itertools.count(1)

        def begin(guest):
            plan = planned[guest]
            self.guests[guest.name] = guest
            begun.append(guest)
            # Of a lab over several hosts, this one has only a part of the numbers.
            self._numbers[guest.name] = plan.host.get("number") or next(number for number in itertools.count(1) if number not in self._numbers.values())
            self._loaded[guest.name] = plan.stack
            guest.start()
            self.report(f"{guest.name}: boots {plan.kernel.release}, {'as a program' if plan.kernel.native else guest.accelerator}")

        def bring_up(guest):
            port = next((port["name"] for port in planned[guest].host.get("ports", ())), None)
            self._bring_up(guest, planned[guest].stack, port, managed, silence)
            if len(planned) > most:
                self.report(f"{next(up)} of {len(planned)} guests are up")

        try:
            together(planned, bring_up, self._weftd_is_there, begin, most)
        except BaseException:
            for guest in begun:
                self._end(guest.name)
            raise

    def _plan(self, host, own_modules):
        settings = self._settings.but(host.get("boot", {}))
        own = settings.stack == stack.WEFT
        kernel = settings.find_kernel(None if self._bare or own else host["model"])
        try:
            settings.check_memory(kernel.variant)
        except LabError as error:
            raise LabError(f"{host['name']}: {error}") from None
        if host["bus"] != bus_of(kernel.native):
            raise LabError(f"{host['name']}: its card is served by {host['bus']}, and the kernel {kernel.release} needs {bus_of(kernel.native)}",
                           f'write bus = "{bus_of(kernel.native)}" in its section of the lab file')
        if "socket" in host.get("ethernet", {}) and kernel.native:
            raise LabError(f"{host['name']}: User-Mode Linux guests cannot be attached to an Ethernet segment")
        loaded = None
        if not self._bare and own:
            loaded = stack.Stack(stack.interface(host["model"]), own=own_modules(host["model"], kernel.release))
        elif not self._bare and kernel.native:
            loaded = stack.Stack(stack.interface(host["model"]), in_tree=stack.modules_of(kernel, host["model"]))
        elif not self._bare and kernel.variant in ("stock", own_kernel.VARIANT):
            loaded = stack.Stack(stack.interface(host["model"]), in_tree=stack.in_tree_modules(host["model"]))
        return Plan(host, settings, kernel, loaded)

    def _make_guest(self, plan):
        host, settings = plan.host, plan.settings
        append = settings.append
        if not self._bare:
            own = settings.stack == stack.WEFT
            # See the comment on WITHOUT_ZEROING.
            quickly = (WITHOUT_ZEROING,) if own or host["model"] != "mthca" else ()
            early = (EARLY_DRIVER.format(model=host["model"]),) if not own and image.EARLY + host["model"] in image.BOOT_MODULES else ()
            append = " ".join((*quickly, *early, append))
        netdevs = [(ethernet_netdev(host["ethernet"]["socket"]), mac_of(host["number"]))] if "socket" in host.get("ethernet", {}) else []
        return Guest(host["name"], kernel=plan.kernel, netdevs=netdevs, cpus=settings.cpus, memory=f"{settings.mebibytes()}M", share=settings.share, append=append,
                     cards=[host["socket"]], log=self.logs / f"{host['name']}.log", bounded_log=True)

    def _bring_up(self, guest, loaded, port, managed, silence):
        number = self._numbers[guest.name]
        try:
            guest.ready(BOOT_TIMEOUT, silence)
        except (GuestDied, DeadlineExceeded) as error:
            reason = own_kernel.why_not_up(guest.console()) if guest.kernel.variant == own_kernel.VARIANT else None
            raise LabError(f"{guest.name}: {reason}\n(its console: {guest.log})" if reason else f"{error}\n(its console: {guest.log})") from None
        self.report(f"{guest.name}: is up")
        if loaded:
            if loaded.own:
                self._load_own(guest, loaded.own)
            interface = loaded.interface
            waits = managed or interface != stack.IPOIB
            mount = MOUNT.format(modules=shlex.quote(str(guest.kernel.modules))) if guest.kernel.native and loaded.in_tree else ""
            scale = contention()
            # The link of a card on Ethernet is not pulled.
            pulls = managed and port and interface == stack.IPOIB
            script = UNMANAGED_SETUP if not waits else BECOME_NODE if pulls else NODE_SETUP
            done = guest.run(f"{mount}limit={60 * scale:.0f}\nset -- {address_of(number)} {interface} {' '.join(loaded.in_tree)}\n"
                             f"{script}", SETUP_TIMEOUT * scale, check=False)
            if done.status != 0:
                raise LabError(f"{guest.name}: no {interface}: {(done.err or done.out).strip() or f'status {done.status}'}\n(its console: {guest.log})")
            if pulls:
                try:
                    self._await_carrier(guest, interface, port, scale, CARRIER_TIMEOUTS_AT_BOOT)
                except DeadlineExceeded as error:
                    raise LabError(f"{guest.name}: {interface} did not get a carrier: {error}\n(its console: {guest.log})") from None
            self.report(f"{guest.name}: {address_of(number)} on {interface}{'' if waits else ', without a carrier until a subnet manager runs'}")
        if not self._bare and guest.netdevs:
            done = guest.run(ETHERNET_SETUP.format(address=address_of(number, network=ETHERNET_NETWORK)), SETUP_TIMEOUT, check=False)
            if done.status != 0:
                raise LabError(f"{guest.name}: no eth0: {(done.err or done.out).strip() or f'status {done.status}'}\n(its console: {guest.log})")
            self.report(f"{guest.name}: {address_of(number, network=ETHERNET_NETWORK)} on eth0")

    def _load_own(self, guest, modules):
        try:
            stack.load(guest, modules)
        except CommandFailed as error:
            raise LabError(f"{guest.name}: {error}\n(its console: {guest.log})") from None
        self.report(f"{guest.name}: has weft's modules")

    def close(self):
        for guest in self.guests.values():
            guest.close()
        self.weftd.end()
        if self._card and self._lab_file:
            self._lab_file.unlink(missing_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.close()


def program_in_same_directory(path):
    """Returns the path of weftd that weft has passed, which is in the directory of weft. Raises LabError if there is no file."""
    path = pathlib.Path(path)
    if not path.is_file():
        raise LabError(f"there is no {path}", "weftd must be in the same directory as weft: build both, or install the package weft")
    return path
