# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Boots a guest, which is a virtual machine or a User-Mode Linux kernel. A test boots it, runs commands in it, and collects its kernel's reports.

Threads: any thread may run commands; one thread starts a Guest, closes it and reads its log. Another thread reads the agent's frames. The
kernel kills QEMU or User-Mode Linux when the thread that started it exits (PR_SET_PDEATHSIG), so guests are started from the main thread.
"""
import contextlib
import os
import pathlib
import re
import shlex
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from lab import accelerator, kernels, qemu, reports, uml, vm
from lab.errors import LabError, exit_in_words
from lab.monitor import Monitor
from lab.console import Reader, Recorder
from lab.process import (BEGIN, CONSUMED, ERR, EXECUTE, EXIT, GET, HEADER, LINE_MOST, LINE_STEP, OUT, PIPE, PUT, READY, RUN, START, TAKEN, TERMINAL, BadFrame, CommandFailed,
                         Process, read_frame, to_bytes)
from lab.waiting import DeadlineExceeded, wait_until

PANIC = "Kernel panic - not syncing"
BOOT_WAITS = 4      # maximum number of time limits for which ready() waits, as long as the guest prints something during each
BUSYBOX = "/.weft/busybox"      # a program without shared libraries, which starts several times as fast


def slowness(kernel):
    """Returns the factor by which every time limit for a guest is multiplied. WEFT_SLOWNESS is another factor, for a busy host."""
    return {"debug": 4.0, "um-debug": 2.0}.get(kernel, 1.0) * float(os.environ.get("WEFT_SLOWNESS", "1"))


# Maximum of contention(). The load average also counts processes that wait for a disk or a network, which do not delay a guest.
MOST_CONTENTION = 10.0


def contention():
    """Returns the factor by which the host's load delays a guest: the load average per CPU, but at least 1."""
    return min(MOST_CONTENTION, max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0))))


class GuestDied(Exception):
    """The guest exited unexpectedly: its kernel panicked, or QEMU failed. The message has the log's last lines."""


class KernelReport(Exception):
    """The guest's kernel reported a BUG, a WARNING, a leak or another error; the message is the report."""


class Guest:
    """A virtual machine. Use as a context manager: leaving the context stops the guest, and raises if its kernel reported anything.

    name        host name, also used in messages
    kernel      "stock" (Debian's), "plain" (KUnit) or "debug" (KASAN, lockdep, kmemleak…); "um" and "um-debug" are the plain and the debug
                kernel as User-Mode Linux, which runs as a process of the host with one CPU, and refuses the options below that only QEMU
                has; or a Kernel, as own_kernel.find() returns it
    cpus        virtual CPUs; memory: in QEMU's notation
    cards       sockets of a Fabric's cards: each is a function on the guest's PCI bus, over vfio-user in QEMU, over vhost-user in
                User-Mode Linux
    vfio_user   sockets of vfio-user servers, one device each, behind a PCIe root port each; they must be listening
    spare_ports empty root ports, for plug()
    share       a host folder that the guest sees as /share, read and write; it can make no file there set-user-ID (no_setuid.py)
    netdevs     virtio-net devices: values of QEMU's -netdev without id ("user", "dgram,…"), each alone or with a MAC address in a tuple
    append      more words for the kernel's command line; qemu_args: more of QEMU's options
    icount      the guest has one CPU, and each instruction takes one nanosecond. An idle guest's clock jumps to its next timer. With "sleep" it
                advances with the host's clock instead; a guest that waits for another one needs that
    log         the file that keeps the console's output; without it, the output is deleted with the guest
    bounded_log keep only the log's beginning and end (console.py), for a guest whose output is not trusted to be short
    allowed     regular expressions of kernel reports that the test provokes on purpose
    firmware_script  a script for iPXE, which then boots instead of the kernel; the script must boot the kernel at its end (see
                ipxe.network_boot())
    may_reboot  the guest may reboot (see reboot()). Otherwise it exits if it reboots or panics
    """

    def __init__(self, name="guest", *, kernel="stock", cpus=1, memory="768M", cards=(), vfio_user=(), spare_ports=0, share=None, netdevs=(),
                 append="", qemu_args=(), icount=False, log=None, bounded_log=False, allowed=(), firmware_script=None,
                 may_reboot=False):
        self.name = name
        self.kernel = kernels.find(kernel) if isinstance(kernel, str) else kernel
        self.slowness = slowness(self.kernel.variant)
        self.cpus = 1 if icount else cpus
        self.memory = memory
        self.cards = list(cards)
        self.vfio_user = list(vfio_user) if self.kernel.native else [*self.cards, *vfio_user]
        self.spare_ports = spare_ports
        self.share = pathlib.Path(share).resolve() if share else None
        self.netdevs = list(netdevs)
        self.append = append
        self.qemu_args = list(qemu_args)
        self.icount = icount
        self.allowed = [re.compile(pattern) for pattern in allowed]
        self.firmware_script = firmware_script
        self.may_reboot = may_reboot
        self.release = None     # output of uname -r, after the boot
        self.last_lines = []    # of the console, after the guest was closed
        self._keep_log = log is not None
        if log is None:
            handle, log = tempfile.mkstemp(prefix=f"weft-{name}-", suffix=".log")
            os.close(handle)
        self.log = pathlib.Path(log)
        self._bounded_log = bounded_log
        self._recorder = None       # the Recorder of the log, if it is bounded
        self._console = Reader(self.log)
        self._boot_begins = 0   # start of the console output of the boot for which ready() waits
        self._errors = tempfile.TemporaryFile()
        self.changed = threading.Condition()
        self._broken = None         # the reason why the agent's frames are not read any more
        self._processes = {}
        self._next = 1
        self._sending = threading.Lock()    # held while a frame is sent
        self._sent = 0      # bytes sent to the agent, and bytes that it has reported as read, if it reports them
        self._taken = 0
        self._marks = 0     # number of marks that sync_log() has written
        self._checked = 0   # end of the console output that new_reports() has searched
        self._plugged = 0   # number of devices that plug() has added
        self._process = None        # QEMU, or the supervisor process of User-Mode Linux with its directory
        self._state = None          # the directory of the User-Mode Linux instance
        self._agent = None
        self._monitor = None
        self._closed = False        # set by close() before it stops the guest, so that waits in other threads report the reason
        self._boots = 0             # number of boots that the agent has reported
        self._expected_boots = 1

    # -- start and stop -----------------------------------------------------------------------

    def start(self):
        """Starts the guest, and does not wait until it is up."""
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("guests must be started from the main thread (see the module's docstring)")
        for path in {*self.cards, *self.vfio_user}:
            if not pathlib.Path(path).is_socket():
                raise LabError(f"{path} is not a socket", "the server of a card must listen before the guest starts")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.write_bytes(b"")
        agent, agent_far = socket.socketpair()
        monitor, monitor_far = socket.socketpair()
        if self._bounded_log:
            self._recorder = Recorder(self.log)
        with agent_far, monitor_far:
            if self.kernel.native:
                self._state = tempfile.TemporaryDirectory(prefix="weft-um-", ignore_cleanup_errors=True)
                self._process = uml.start(self.kernel, uml.guest_words(self, agent_far.fileno(), pathlib.Path(self._state.name)), memory=self.memory, log=self.log_target(),
                                          state=pathlib.Path(self._state.name), pass_fds=[agent_far.fileno()], no_setuid=bool(self.share))
            else:
                program = qemu.find()
                fds = [agent_far.fileno(), monitor_far.fileno()]
                confine = [sys.executable, "-B", uml.NO_SETUID] if self.share else []
                argv = ["setpriv", "--pdeathsig", "KILL", *confine, *program.argv, *vm.options(self, *fds)]
                if self._recorder:
                    fds.append(self._recorder.writer)
                # In a process group of its own, because Ctrl-C is for the program that controls the guest.
                self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self._errors, stderr=self._errors,
                                                 pass_fds=fds, env={**os.environ, **program.environment}, process_group=0)
        if self._recorder:
            self._recorder.close_writer()
        self._agent = agent
        self._monitor = Monitor(monitor)
        threading.Thread(target=self._read_frames, args=(agent,), daemon=True).start()
        return self

    def ready(self, timeout=90, silence=None):
        """Waits until the guest accepts commands. A kernel that panics before it has parsed panic= on its command line hangs.

        timeout, silence: seconds, for a plain kernel on a host without other load. A guest without console output for `silence` is assumed to hang.
        """
        what = "the guest to be up"
        read = self._boot_begins
        seen, since = self._boot_begins, time.monotonic()
        hung = None

        def up():
            nonlocal read, seen, since, hung
            end = self._console.end()
            fresh, read = self._console.since(read, end), max(self._boot_begins, end - len(PANIC))
            if self._boots >= self._expected_boots:
                return True
            if PANIC in fresh:
                raise GuestDied(self._end_in_words(what))
            if end != seen:
                seen, since = end, time.monotonic()
            elif silence and not self.console_error() and time.monotonic() - since > (limit := silence * self.slowness * contention()):
                hung = f"{self.name}: its console has been silent for {limit:.3g} s while waiting for {what}"
                raise DeadlineExceeded(hung)
            return False

        for waits in range(1, BOOT_WAITS + 1):
            before = self._console.end()
            try:
                self.wait_for_event(what, up, timeout)
                break
            except DeadlineExceeded:
                if hung or waits == BOOT_WAITS or self._console.end() == before:
                    waited = f"{self.name}: waited {waits * timeout * self.slowness:g} s for {what}"
                    raise DeadlineExceeded("\n".join([hung or waited, *self.console().splitlines()[-15:]])) from None
        return self

    def reboot(self, timeout=90):
        """Reboots the guest, which must have may_reboot, as `reboot -f` does, and waits until it accepts commands again."""
        self._expected_boots += 1
        self._boot_begins = self._console.end()
        self.spawn([BUSYBOX, "reboot", "-f"])
        return self.ready(timeout)

    def power_off(self, timeout=30):
        """Powers the guest off, including its drivers' shutdown, and waits for its exit."""
        self.spawn([BUSYBOX, "poweroff", "-f"])
        wait_until(f"{self.name}: its virtual machine to end", lambda: not self.alive(), timeout * self.slowness)

    def qmp(self, command, **arguments):
        """Executes a command of QEMU's monitor; returns its result."""
        return self._monitor.command(command, **arguments)

    def plug(self, path):
        """Hot-plugs the device of a vfio-user server into the next free root port."""
        bus, self._plugged = f"{vm.EMPTY_PORT_ID}{self._plugged}", self._plugged + 1
        return self.qmp("device_add", id=f"plugged-{bus}", **vm.vfio_user_device(bus, path))

    def close(self):
        """Kills the guest at once, like a power cut: nothing in the guest is notified."""
        self._closed = True
        if self._process:
            if self.kernel.native:
                uml.end(self._process)
                self._state.cleanup()
            else:
                self._process.kill()
                self._process.wait()
        if self._agent:
            # The reader thread exits at the end of the stream.
            with contextlib.suppress(OSError):
                self._agent.shutdown(socket.SHUT_RDWR)
            self._monitor.close()
        if self._recorder:
            self._recorder.join()
        self._errors.close()
        self.last_lines = self.console().splitlines()[-25:]
        if not self._keep_log:
            self.log.unlink(missing_ok=True)

    def __enter__(self):
        if self._process is None:
            try:
                self.start().ready()
            except BaseException:
                self.close()
                raise
        return self

    def __exit__(self, kind, value, trace):
        try:
            if kind is None:
                self.check_log()
            elif issubclass(kind, (CommandFailed, AssertionError, DeadlineExceeded)):
                found = self.new_reports()
                if found and hasattr(value, "add_note"):
                    value.add_note(f"{self.name}'s kernel reported:\n" + "\n".join(found))
        finally:
            self.close()

    @property
    def card(self):
        """Returns the directory of the first card in the guest's sysfs; its name is the card's PCI address."""
        return pathlib.PurePosixPath("/sys/bus/pci/devices", "0000:00:00.0" if self.kernel.native else "0000:01:00.0")

    @property
    def accelerator(self):
        """Returns a description of the guest's CPU for messages."""
        return "with KVM" if not self.icount and accelerator.kvm_works() else "on an emulated CPU"

    # -- commands -----------------------------------------------------------------------------

    def spawn(self, command):
        """Starts a command (a line for bash, or a list with a program and its arguments); returns its Process at once.

        On the kernel um-debug, starting a process takes a quarter of a second, and starting bash three times as long. To write or read a
        file, use put() and get(), which take a millisecond.
        """
        if isinstance(command, str):
            return self._request(RUN, to_bytes(command), command)
        words = [str(word) for word in command]
        return self._request(EXECUTE, b"".join(to_bytes(word) + b"\0" for word in words), shlex.join(words))

    def start_program(self, words, terminal=None, environment=()):
        """Starts a program that has standard input (Process.give()): a pipe, or a terminal of (rows, columns). environment: NAME=VALUE words for it."""
        words = [*(["env", *environment] if environment else []), *map(str, words)]
        return self._request(START, BEGIN.pack(TERMINAL if terminal else PIPE, *(terminal or (0, 0))) + b"".join(to_bytes(word) + b"\0" for word in words), shlex.join(words))

    def run(self, command, timeout=60, check=True):
        """Runs a command as root and waits until it exits; returns its Process (out, err, status).

        timeout: seconds on a plain kernel. Raises CommandFailed if the status is not 0 (unless check is False), DeadlineExceeded (after it
        has killed the command), or GuestDied.
        """
        process = self.spawn(command)
        try:
            return process.wait(timeout, check)
        except DeadlineExceeded as error:
            process.kill()
            tail = (process.out + process.err)[-2000:]
            raise DeadlineExceeded(f"{error}; its output so far:\n{tail}") from None

    def wait_for(self, command, timeout=30, what=None):
        """Repeats a command in the guest until it exits with status 0; returns the last Process."""
        last = []

        def attempt():
            last[:] = [self.run(command, timeout, check=False)]
            return last[0].status == 0

        try:
            wait_until(f"{self.name}: {what or f'`{command}` to succeed'}", attempt, timeout * self.slowness, interval=0.1)
        except DeadlineExceeded as error:
            raise DeadlineExceeded(f"{error}; its last output:\n{last[0].out[-2000:]}{last[0].err[-2000:]}") from None
        return last[0]

    def put(self, path, data, timeout=60, check=True):
        """Writes a file in the guest without running a command; returns a Process, whose status is 0 or an errno."""
        data = to_bytes(data) if isinstance(data, str) else data
        return self._request(PUT, str(path).encode() + b"\0" + data, f"put {path}").wait(timeout, check)

    def get(self, path, timeout=60):
        """Returns the contents of a guest's file as bytes, without running a command."""
        return self._request(GET, str(path).encode(), f"get {path}").wait(timeout).raw

    def read(self, path):
        """Returns the text of a short file, without the end of the line."""
        return self.get(path).decode(errors="replace").strip()

    def wait_for_text(self, path, text, timeout=30, what=None):
        """Waits until a file exists and has this text."""
        said = [None]

        def attempt():
            try:
                said[0] = self.read(path)
            except CommandFailed as error:
                said[0] = str(error)
            return said[0] == text

        try:
            wait_until(f"{self.name}: {what or f'{path} to have {text}'}", attempt, timeout * self.slowness, interval=0.05)
        except DeadlineExceeded as error:
            raise DeadlineExceeded(f"{error}; its last output:\n{said[0]}") from None

    def wait_for_carrier(self, interface="ib0", there=True, timeout=60):
        """Waits until an interface that is up has a carrier, or with there=False until it has none."""
        self.wait_for_text(f"/sys/class/net/{interface}/carrier", str(int(there)), timeout, f"{'the' if there else 'no'} carrier of {interface}")

    def insmod(self, *paths, timeout=60):
        """Inserts modules by path in the guest, in this order."""
        self.run([BUSYBOX, "sh", "-c", f"for module; do {BUSYBOX} insmod $module || exit; done", "insmod", *paths], timeout * len(paths))

    # -- the kernel's log ---------------------------------------------------------------------

    def sync_log(self):
        """Waits until the log file contains all that the kernel has logged so far, or until the file cannot be written; returns its text."""
        self._marks += 1
        mark = f"weft-mark {self._marks}."
        before = self._console.end()
        self.put("/dev/kmsg", f"{mark}\n")
        wait_until(f"{self.name}: its console to catch up", lambda: self.console_error() or mark in self._console.since(before), 30 * self.slowness)
        return self.console()

    def console(self):
        """Returns the console's text so far."""
        return self._console.text()

    def console_error(self):
        """Returns the reason why the log is incomplete, or None."""
        return self._recorder.error if self._recorder else None

    def new_reports(self):
        """Returns the texts of the kernel's reports since the last call."""
        end = self._console.end()
        fresh, self._checked = self._console.since(self._checked, end), end
        return reports.find(fresh, self.allowed)

    def check_log(self):
        """Raises KernelReport if the kernel has reported an error since the last check."""
        if self._process.poll() is None:
            self.sync_log()
        found = self.new_reports()
        if found:
            raise KernelReport(f"{self.name}'s kernel reported:\n" + "\n".join(found))

    def find_leaks(self):
        """Scans twice for leaks with kmemleak, which reports only objects older than 5 s; returns its report. Other kernels than debug have none."""
        if not self.run("test -e /sys/kernel/debug/kmemleak", check=False).status == 0:
            return ""
        self.run("echo scan >/sys/kernel/debug/kmemleak; sleep 6; echo scan >/sys/kernel/debug/kmemleak", 120)
        return self.run("cat /sys/kernel/debug/kmemleak").out

    # -- for the other modules of lab, and internals ------------------------------------------

    def log_target(self):
        """Returns the path to which the console is written: the log, or a pipe to the Recorder that limits the log's size."""
        return f"/dev/fd/{self._recorder.writer}" if self._recorder else self.log

    def closed(self):
        """Returns whether close() has stopped the guest or is stopping it."""
        return self._closed

    def alive(self):
        return self._process is not None and self._process.poll() is None

    def wait_for_event(self, what, condition, timeout):
        """Waits until condition() is true, checking it when a frame arrives; raises if the guest exits."""
        deadline = time.monotonic() + timeout * self.slowness
        with self.changed:
            while not condition():
                if self._broken:
                    raise GuestDied(f"{self.name}: its agent sent {self._broken} and is ignored from now on")
                if not self.alive():
                    raise GuestDied(self._end_in_words(what))
                if self._boots > self._expected_boots:
                    raise GuestDied(f"{self.name} has rebooted unexpectedly while waiting for {what}\n" + "\n".join(self.new_reports()))
                left = deadline - time.monotonic()
                if left <= 0:
                    raise DeadlineExceeded(f"{self.name}: waited {timeout * self.slowness:g} s for {what}")
                self.changed.wait(min(left, 0.5))

    def send(self, number, kind, data):
        """Sends a frame to the agent."""
        frame = HEADER.pack(len(data), number, kind) + data
        piece = LINE_STEP if self.kernel.native else len(frame)
        with self._sending:
            for begin in range(0, len(frame), piece):
                self._send_piece(frame[begin:begin + piece])

    def _send_piece(self, piece):
        if self.kernel.native:
            self.wait_for_event("the agent to read a command", lambda: self._sent + len(piece) - self._taken <= LINE_MOST, 60)
        try:
            self._agent.sendall(piece)
        except OSError:
            raise GuestDied(self._end_in_words("the agent to read a command")) from None
        self._sent += len(piece)

    def _request(self, kind, data, description):
        with self.changed:
            number, self._next = self._next, self._next + 1
            process = self._processes[number] = Process(self, number, description)
        self.send(number, kind, data)
        return process

    def _end_in_words(self, what):
        """Returns how the guest ended while a caller waited for `what`, with the reports or the last lines of its console."""
        if self._closed:
            return f"{self.name} has been closed"
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        try:
            self._errors.seek(0)
            said = self._errors.read().decode(errors="replace").strip()
        except ValueError:      # closed meanwhile
            return f"{self.name} has been closed"
        found = reports.find(self.console(), self.allowed)
        tail = "\n".join(found) or "\n".join(self.console().splitlines()[-15:])
        status = self._process.poll()
        ended = "has panicked" if status is None else exit_in_words(status)
        return f"{self.name} {ended} while waiting for {what}\n{said}\n{tail}".strip()

    def _read_frames(self, agent):
        """Reads the agent's frames until one is invalid or the connection is closed. Runs in a separate thread."""
        stream = agent.makefile("rb")
        why = None
        try:
            while frame := read_frame(stream):
                with self.changed:
                    self._take(*frame)
                    self.changed.notify_all()
        except OSError:
            pass
        except BadFrame as error:
            why = str(error)
        with self.changed:
            self._broken = why
            self.changed.notify_all()

    def _take(self, number, kind, data):
        if kind == READY:
            self.release = data.decode(errors="replace")
            self._boots += 1
        elif kind == TAKEN:
            self._taken = struct.unpack("<I", data)[0]
        # The frame belongs to a command that has exited or does not exist.
        elif (process := self._processes.get(number)) is None:
            pass
        elif kind in (OUT, ERR):
            process.take(kind, data)
            while process.is_full() and self.alive():
                self.changed.wait(0.5)
        elif kind == CONSUMED:
            process.window.take(struct.unpack("<I", data)[0])
        elif kind == EXIT:
            process.status = struct.unpack("<I", data)[0]
            del self._processes[number]


@contextlib.contextmanager
def boot(*guests):
    """Starts several guests at once, waits until all are up, and closes all at the end of the block:

        with boot(Guest("node1"), Guest("node2")) as (node1, node2): …
    """
    with contextlib.ExitStack() as stack:
        for guest in guests:
            stack.push(guest)
            guest.start()
        for guest in guests:
            guest.ready()
        yield guests
