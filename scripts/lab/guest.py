# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""A guest: a virtual machine that a test boots, drives by commands, and is told about when its kernel complains.

Threads: a Guest is used from one thread. A thread of its own reads the agent's frames. QEMU is killed by
the kernel when the thread that started it ends (PR_SET_PDEATHSIG), so guests are started from the main thread.
"""
import contextlib
import os
import pathlib
import re
import shlex
import socket
import struct
import subprocess
import tempfile
import threading
import time

from lab import accelerator, image, kernels, qemu, reports
from lab.errors import LabError
from lab.waiting import DeadlineExceeded, wait_until

HEADER = struct.Struct("<III")
RUN, PUT, GET, KILL, READY, OUT, ERR, EXIT = 1, 2, 3, 4, 16, 17, 18, 19

# How much slower than a plain kernel on an emulated CPU: every time limit in a guest is multiplied by it.
SLOWNESS = {"stock": 1.0, "plain": 1.0, "debug": 4.0}


class GuestDied(Exception):
    """The guest ended by itself: a panic, or QEMU failed. The message has the log's last lines."""


class CommandFailed(Exception):
    """A command in a guest exited with a status other than 0."""


class KernelReport(Exception):
    """The guest's kernel reported a BUG, a WARNING, a leak…; the message is the report."""


class Process:
    """A command that runs in a guest. `out` and `err` grow while it runs; `status` is None until it ended."""

    def __init__(self, guest, number, command):
        self.guest = guest
        self.command = command
        self.status = None
        self._number = number
        self._out = bytearray()
        self._err = bytearray()

    @property
    def raw(self):
        """Standard output so far, as bytes."""
        return bytes(self._out)

    @property
    def out(self):
        return self._out.decode(errors="replace")

    @property
    def err(self):
        return self._err.decode(errors="replace")

    def wait(self, timeout=60, check=True):
        """Waits for its end. A status other than 0 raises CommandFailed unless check is False."""
        self.guest.wait_for_event(f"the end of `{self.command}`", lambda: self.status is not None, timeout)
        if check and self.status != 0:
            raise CommandFailed(f"{self.guest.name}: `{self.command}` exited with status {self.status}\n"
                                f"{self.out[-4000:]}{self.err[-4000:]}".rstrip())
        return self

    def wait_output(self, pattern, timeout=30):
        """Waits until a pattern matches its output (standard output, or error); returns the match."""
        compiled = re.compile(pattern, re.MULTILINE)
        found = []

        def look():
            found[:] = [match for match in (compiled.search(self.out), compiled.search(self.err)) if match]
            return found or self.status is not None

        self.guest.wait_for_event(f"/{pattern}/ in the output of `{self.command}`", look, timeout)
        if not found:
            raise CommandFailed(f"{self.guest.name}: `{self.command}` ended with status {self.status} before its output had "
                                f"/{pattern}/\n{self.out[-2000:]}{self.err[-2000:]}".rstrip())
        return found[0]

    def kill(self, signal=9):
        """Sends a signal to the command and its children, if it still runs."""
        self.guest.send(self._number, KILL, struct.pack("<I", signal))
        return self


class Guest:
    """A virtual machine. Use as a context manager: leaving it ends QEMU, and raises if the kernel reported anything.

    name       host name, and what messages call it
    kernel     "stock" (Debian's), "plain" (KUnit) or "debug" (KASAN, lockdep, kmemleak…)
    vfio_user  sockets of vfio-user servers, one device each, behind a PCIe root port each; they must be listening
    share      a host folder that the guest sees as /share, read and write
    netdevs    virtio-net devices: values of QEMU's -netdev without id ("user", "dgram,…")
    memory     QEMU's notation; icount: one instruction is one nanosecond, one CPU; log: where the console goes
    allowed    regular expressions of kernel reports that the test provokes on purpose
    """

    def __init__(self, name="guest", *, kernel="stock", cpus=1, memory="768M", vfio_user=(), share=None, netdevs=(),
                 append="", icount=False, log=None, allowed=(), qemu_args=(), reboot=False):
        self.name = name
        self.kernel = kernels.find(kernel)
        self.slowness = SLOWNESS[kernel]
        self.allowed = [re.compile(pattern) for pattern in allowed]
        self.release = None
        self._cpus = 1 if icount else cpus
        self._memory = memory
        self._vfio_user = list(vfio_user)
        self._share = pathlib.Path(share).resolve() if share else None
        self._netdevs = list(netdevs)
        self._append = append
        self._icount = icount
        self._reboot = reboot
        self._qemu_args = list(qemu_args)
        self._keep_log = log is not None
        if log is None:
            handle, log = tempfile.mkstemp(prefix=f"weft-{name}-", suffix=".log")
            os.close(handle)
        self.log = pathlib.Path(log)
        self._errors = tempfile.TemporaryFile()
        self._changed = threading.Condition()
        self._processes = {}
        self._next = 1
        self._marks = 0
        self._checked = 0
        self._qemu = None
        self._agent = None
        self._boots = 0
        self.last_lines = []    # of the console, once the guest is closed

    # -- life ---------------------------------------------------------------------------------

    def start(self):
        """Starts QEMU; does not wait for the guest to be up."""
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("guests are started from the main thread (see the module's head)")
        for path in self._vfio_user:
            if not pathlib.Path(path).is_socket():
                raise LabError(f"{path} is not a socket", "the vfio-user server must listen before the guest starts")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.write_bytes(b"")
        agent, agent_far = socket.socketpair()
        with agent_far:
            program = qemu.find()
            argv = ["setpriv", "--pdeathsig", "KILL", *program.argv, *self._options(agent_far.fileno())]
            self._qemu = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self._errors, stderr=self._errors,
                                          pass_fds=[agent_far.fileno()], env={**os.environ, **program.environment})
        self._agent = agent
        threading.Thread(target=self._read_frames, args=(agent,), daemon=True).start()
        return self

    def ready(self, timeout=90):
        """Waits until the guest takes commands."""
        self.wait_for_event("the guest to be up", lambda: self._boots > 0, timeout)
        return self

    def close(self):
        """Ends QEMU at once. Nothing in the guest is told: it is a power cut."""
        if self._qemu:
            self._qemu.kill()
            self._qemu.wait()
        if self._agent:
            # The reader thread sees the end of the stream and goes.
            with contextlib.suppress(OSError):
                self._agent.shutdown(socket.SHUT_RDWR)
        self._errors.close()
        self.last_lines = self.console().splitlines()[-25:]
        if not self._keep_log:
            self.log.unlink(missing_ok=True)

    def __enter__(self):
        if self._qemu is None:
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

    def _options(self, agent_fd):
        words = ["console=ttyS0,115200", "earlyprintk=ttyS0,115200", "ignore_loglevel", "oops=panic", "panic=-1", "mitigations=off",
                 "random.trust_cpu=on", "net.ifnames=0", "audit=0", "apparmor=0", "rcupdate.rcu_cpu_stall_timeout=60",
                 "8250.nr_uarts=1", f"weft.name={self.name}"]
        if self._share:
            words.append("weft.share=1")
        if self._icount:
            words.append("tsc=reliable")
        words.append(self._append)
        options = ["-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35,memory-backend=mem",
                   "-object", f"memory-backend-memfd,id=mem,size={self._memory},share=on", "-m", self._memory,
                   "-smp", str(self._cpus), "-kernel", str(self.kernel.image), "-initrd", str(image.initramfs(self.kernel)),
                   "-append", " ".join(words).strip(), "-chardev", f"file,id=console,path={_quoted(self.log)}", "-serial", "chardev:console",
                   "-drive", f"if=none,id=root,format=raw,readonly=on,file={_quoted(image.root_image())}", "-device", "virtio-blk-pci,drive=root",
                   "-device", "virtio-serial-pci", "-chardev", f"socket,id=agent,fd={agent_fd}",
                   "-device", "virtserialport,chardev=agent,name=weft.agent", "-device", "virtio-rng-pci"]
        options += ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-cpu", "max"] if self._icount else accelerator.options()
        if not self._reboot:
            options.append("-no-reboot")
        for number, path in enumerate(self._vfio_user, 1):
            options += ["-device", f"pcie-root-port,id=rp{number},chassis={number},slot={number},mem-reserve=4M,pref64-reserve=32M",
                        "-device", '{"driver":"vfio-user-pci","bus":"rp%d","rombar":0,"socket":{"type":"unix","path":"%s"}}'
                        % (number, pathlib.Path(path).resolve())]
        if self._share:
            options += ["-fsdev", f"local,id=share,path={_quoted(self._share)},security_model=none,multidevs=remap",
                        "-device", "virtio-9p-pci,fsdev=share,mount_tag=share"]
        for number, netdev in enumerate(self._netdevs):
            options += ["-netdev", f"{netdev},id=net{number}",
                        "-device", f"virtio-net-pci,netdev=net{number},mac=52:54:00:{os.getpid() >> 8 & 255:02x}:{os.getpid() & 255:02x}:{id(self) >> 4 & 255:02x},romfile="]
        return options + self._qemu_args

    # -- commands -----------------------------------------------------------------------------

    def spawn(self, command):
        """Starts a command (a line for bash, or a list of words); returns its Process at once."""
        if not isinstance(command, str):
            command = shlex.join(str(word) for word in command)
        return self._request(RUN, command.encode(), command)

    def run(self, command, timeout=60, check=True):
        """Runs a command as root and waits for its end; returns its Process (out, err, status).

        timeout: seconds on a plain kernel. Raises CommandFailed on another status than 0 (unless check is
        False), DeadlineExceeded (after killing the command), GuestDied.
        """
        process = self.spawn(command)
        try:
            return process.wait(timeout, check)
        except DeadlineExceeded as error:
            process.kill()
            tail = (process.out + process.err)[-2000:]
            raise DeadlineExceeded(f"{error}; its output so far:\n{tail}") from None

    def wait_for(self, command, timeout=30, what=None):
        """Waits until a command in the guest exits with status 0; returns its last Process."""
        last = []

        def attempt():
            last[:] = [self.run(command, timeout, check=False)]
            return last[0].status == 0

        try:
            wait_until(f"{self.name}: {what or f'`{command}` to succeed'}", attempt, timeout * self.slowness, interval=0.1)
        except DeadlineExceeded as error:
            raise DeadlineExceeded(f"{error}; it last said:\n{last[0].out[-2000:]}{last[0].err[-2000:]}") from None
        return last[0]

    def put(self, path, data):
        """Writes a file in the guest."""
        data = data.encode() if isinstance(data, str) else data
        return self._request(PUT, str(path).encode() + b"\0" + data, f"put {path}").wait()

    def get(self, path):
        """A guest file's contents, as bytes."""
        return self._request(GET, str(path).encode(), f"get {path}").wait().raw

    def insmod(self, *paths, timeout=60):
        """Inserts modules by path in the guest, in this order."""
        for path in paths:
            self.run(["insmod", path], timeout)

    # -- the kernel's log ---------------------------------------------------------------------

    def sync_log(self):
        """Waits until all that the kernel has logged so far is in the log file; returns the file's text."""
        self._marks += 1
        mark = f"weft-mark {self._marks}."
        self.run(f"echo '{mark}' >/dev/kmsg")
        wait_until(f"{self.name}: its console to catch up", lambda: mark in self.console(), 30 * self.slowness)
        return self.console()

    def console(self):
        """The text on the console so far."""
        return self.log.read_text(errors="replace")

    def new_reports(self):
        """The kernel's reports since the last call, each as its text."""
        text = self.console()
        fresh, self._checked = text[self._checked:], len(text)
        return reports.find(fresh, self.allowed)

    def check_log(self):
        """Raises KernelReport if the kernel has reported anything since the last look."""
        if self._qemu.poll() is None:
            self.sync_log()
        found = self.new_reports()
        if found:
            raise KernelReport(f"{self.name}'s kernel reported:\n" + "\n".join(found))

    def find_leaks(self):
        """On the debug kernel: lets kmemleak look twice (it only reports objects older than 5 s); returns its report."""
        if not self.run("test -e /sys/kernel/debug/kmemleak", check=False).status == 0:
            return ""
        self.run("echo scan >/sys/kernel/debug/kmemleak; sleep 6; echo scan >/sys/kernel/debug/kmemleak", 120)
        return self.run("cat /sys/kernel/debug/kmemleak").out

    # -- below --------------------------------------------------------------------------------

    def alive(self):
        return self._qemu is not None and self._qemu.poll() is None

    def wait_for_end(self, timeout=30):
        """Waits until QEMU ended (the guest powered off, or panicked)."""
        wait_until(f"{self.name}: QEMU to end", lambda: not self.alive(), timeout * self.slowness)

    def wait_for_event(self, what, condition, timeout):
        """Waits until condition() is true, looking when a frame arrives; notices when the guest dies."""
        deadline = time.monotonic() + timeout * self.slowness
        with self._changed:
            while not condition():
                if not self.alive():
                    raise GuestDied(self._obituary(what))
                left = deadline - time.monotonic()
                if left <= 0:
                    raise DeadlineExceeded(f"{self.name}: waited {timeout * self.slowness:g} s for {what}")
                self._changed.wait(min(left, 0.5))

    def send(self, number, kind, data):
        """Sends a frame to the agent."""
        try:
            self._agent.sendall(HEADER.pack(len(data), number, kind) + data)
        except OSError:
            raise GuestDied(self._obituary("it to take a command")) from None

    def _request(self, kind, data, description):
        number, self._next = self._next, self._next + 1
        process = self._processes[number] = Process(self, number, description)
        self.send(number, kind, data)
        return process

    def _obituary(self, what):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._qemu.wait(timeout=5)
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip()
        found = reports.find(self.console(), self.allowed)
        tail = "\n".join(found) or "\n".join(self.console().splitlines()[-15:])
        return f"{self.name} ended (status {self._qemu.poll()}) while waiting for {what}\n{said}\n{tail}".strip()

    def _read_frames(self, agent):
        stream = agent.makefile("rb")
        while True:
            try:
                header = stream.read(HEADER.size)
                if len(header) < HEADER.size:
                    break
                size, number, kind = HEADER.unpack(header)
                data = stream.read(size)
            except OSError:
                break
            with self._changed:
                if kind == READY:
                    self.release = data.decode()
                    self._boots += 1
                elif kind == OUT:
                    self._processes[number]._out += data
                elif kind == ERR:
                    self._processes[number]._err += data
                elif kind == EXIT:
                    self._processes[number].status = struct.unpack("<I", data)[0]
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()


def _quoted(path):
    """A path as a value in a QEMU option, where a comma is doubled."""
    return str(path).replace(",", ",,")


@contextlib.contextmanager
def boot(*guests):
    """Starts several guests at once, waits for all, and closes all at the end:

        with boot(Guest("node1"), Guest("node2")) as (node1, node2): …
    """
    with contextlib.ExitStack() as stack:
        for guest in guests:
            stack.push(guest)
            guest.start()
        for guest in guests:
            guest.ready()
        yield guests
