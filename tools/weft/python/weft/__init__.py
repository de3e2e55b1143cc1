# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Provides labs of weft in Python: virtual machines with RDMA cards on an emulated fabric.

    with weft.Lab() as lab:
        print(lab["node1"].run("ping -c 3 10.1.0.2").stdout)
        with lab.link("node2").changed(loss="5%"):
            lab["node1"].run(["ib_send_bw", "10.1.0.2"])

    with weft.Lab("fat-tree.toml") as lab:      # a lab whose hosts have no guests
        print(lab.attach("node1").run("ibnetdiscover").stdout)

The package runs the program weft, see weft(1). If weft fails, methods raise WeftError with its message.
"""
import contextlib
import dataclasses
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

KERNEL_REPORT, GUEST_DIED = 125, 126    # exit statuses of `weft lab check`
GRACE = 10      # seconds that an attached program has to exit after SIGTERM
# Debian's infiniband-diags and OpenSM, which are in a user's $PATH only if the user has added it.
SYSTEM_PROGRAMS = ("/usr/sbin", "/sbin")


class WeftError(Exception):
    """A weft command failed; the message is weft's own."""


class CommandFailed(WeftError):
    """A command in a guest, or an attached program, exited with a status other than 0. result: its Result, with its output."""

    def __init__(self, host, command, result):
        super().__init__(f"{host}: `{command}` exited with status {result.status}\n{result.stdout}{result.stderr}".rstrip())
        self.result = result


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of a command in a guest, or of an attached program."""

    status: int
    stdout: str
    stderr: str


def find_program():
    """Returns the path of the program weft: $WEFT, the one in the source tree of this file, or the one in $PATH."""
    built = pathlib.Path(__file__).resolve().parents[4] / "build/bin/weft"
    found = os.environ.get("WEFT") or (str(built) if built.is_file() else shutil.which("weft"))
    if not found:
        raise WeftError("there is no program weft: install the package weft, or run `make tools` in its source tree")
    return found


class Process:
    """A command that runs in a guest. Use as a context manager, which kills the command at its end."""

    def __init__(self, host, command, popen):
        self._host, self._command, self._popen = host, command, popen

    def running(self):
        return self._popen.poll() is None

    def wait(self, timeout=None, check=True):
        """Waits until the command has exited; returns its Result. Raises CommandFailed if its status is not 0, subprocess.TimeoutExpired after
        `timeout` seconds."""
        stdout, stderr = self._popen.communicate(timeout=timeout)
        result = Result(self._popen.returncode, stdout, stderr)
        if check and result.status != 0:
            raise CommandFailed(self._host, self._command, result)
        return result

    def stop(self, number=signal.SIGTERM):
        """Sends the command a signal, and waits until it has exited; returns its Result."""
        if self.running():
            self._popen.send_signal(number)
        return self.wait(check=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class AttachedProcess(Process):
    """A program of this host that runs on a node. Its output is kept in files, so that a program with much output does not wait for a reader."""

    def __init__(self, node, command, popen, stdout, stderr):
        super().__init__(node, command, popen)
        self._stdout, self._stderr = stdout, stderr
        self._result = None

    def wait(self, timeout=None, check=True):
        """Waits until the program has exited; returns its Result. Raises the same exceptions as Process.wait()."""
        status = self._popen.wait(timeout)
        if not self._result:
            self._result = Result(status, _text_of(self._stdout), _text_of(self._stderr))
            self._stdout.close()
            self._stderr.close()
        if check and status != 0:
            raise CommandFailed(self._host, self._command, self._result)
        return self._result

    def output(self):
        """Returns what the program has printed to standard output so far."""
        return self._result.stdout if self._result else _text_of(self._stdout)

    def end(self):
        """Sends SIGTERM, and SIGKILL if the program still runs after GRACE seconds; returns its Result."""
        if self.running():
            self._popen.terminate()
        try:
            return self.wait(GRACE, check=False)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            return self.wait(check=False)


def _text_of(file):
    # Do not move the file position, which this descriptor shares with the program.
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")


class Attachment:
    """A node on which programs of this host run: unmodified ones that use libibumad, such as OpenSM. The node is a switch, a host of the model
    `endpoint`, or a host with an InfiniBand card."""

    def __init__(self, lab, node):
        self._lab = lab
        self.node = node

    def start(self, *argv, input=None):
        """Starts a program, given its name and its arguments, which may be paths and numbers. input: text for its standard input. It is stopped at
        the end of the context, and at the latest with the lab."""
        return self._lab.start_attached(self.node, [str(word) for word in argv], input)

    def run(self, *argv, check=True, timeout=None, input=None):
        """Runs a program until it exits; returns its Result. Raises CommandFailed if its status is not 0, unless check=False. After `timeout` seconds
        it is stopped, and subprocess.TimeoutExpired is raised."""
        process = self.start(*argv, input=input)
        try:
            return process.wait(timeout, check)
        finally:
            process.end()

    def wait_until_active(self, timeout=60):
        """Waits until a subnet manager has made the node's port active. Raises WeftError after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while "State: Active" not in (state := self.run("ibstat").stdout):
            if time.monotonic() > deadline:
                raise WeftError(f"{self.node}: the port is not active after {timeout} s\n{state}".rstrip())
            time.sleep(0.05)


class Host:
    """A host of a lab, with its guest."""

    def __init__(self, lab, name):
        self._lab = lab
        self.name = name

    def start(self, command, stdin=subprocess.DEVNULL):
        """Starts a command as root: text for a shell, or a list of words. stdin: see subprocess.Popen."""
        text = command if isinstance(command, str) else shlex.join(command)
        return Process(self.name, text, self._lab.start_program("lab", "shell", self.name, "--", text, stdin=stdin))

    def run(self, command, timeout=None, check=True):
        """Runs a command until it exits; returns its Result. After `timeout` seconds it is stopped, and subprocess.TimeoutExpired is raised."""
        process = self.start(command)
        try:
            return process.wait(timeout, check)
        except BaseException:
            process.stop(signal.SIGKILL)
            raise

    def restart(self):
        """Starts the guest again, even if it has exited."""
        self._lab.call("lab", "restart", self.name)

    def console(self):
        """Returns the console output of its kernel."""
        return self._lab.call("lab", "console", self.name)

    def fault(self, fault, count=1):
        """Makes the next operations of a kind fail on its card; weft(1) lists the kinds."""
        self._lab.call("card", "fault", self.name, fault, "--count", str(count))


class Link:
    """A link, given by its name, by a port, or by a node with one link."""

    def __init__(self, lab, name):
        self._lab = lab
        self.name = name

    def down(self):
        self._lab.call("link", "down", self.name)

    def up(self):
        self._lab.call("link", "up", self.name)

    def set(self, **settings):
        """Changes settings, such as loss="1%" or delay="50us"; weft(1) lists them."""
        self._lab.call("link", "set", self.name, *(f"{name}={value}" for name, value in settings.items()))

    @property
    def settings(self):
        """Returns the current values of all settings by name."""
        for link in self._lab.fabric["links"]:
            ports = link["ends"]
            if self.name in (link["name"], *ports, *(port.rpartition("/")[0] for port in ports)):
                return link["settings"]
        raise WeftError(f"there is no link {self.name}")

    @contextlib.contextmanager
    def changed(self, **settings):
        """Changes settings within a context, and restores them at its end."""
        before = self.settings
        self.set(**settings)
        try:
            yield self
        finally:
            self.set(**{name: before[name] for name in settings})


class Lab:
    """A fabric and the guests on it, if it has any. Use as a context manager, or call up() and down().

    lab: a lab file, see weft-lab.toml(5); the default is node1 and node2 at a switch. options: the options of `weft lab up`, such as
    kernel, stack, memory, cpus, share, append and bare. logs: a directory in which consoles and weftd's log are kept.
    """

    def __init__(self, lab=None, *, program=None, logs=None, **options):
        self._program = program or find_program()
        # Sockets have short paths.
        self._directory = pathlib.Path(tempfile.mkdtemp(prefix="weft-"))
        self._attached = []     # programs that may still be running
        self._words = []
        for name, value in {"lab": lab, "logs": logs, **options}.items():
            if value is True:
                self._words.append(f"--{name}")
            elif value is not None and value is not False:
                self._words.append(f"--{name}={value}")

    def start_program(self, *words, stdin=subprocess.DEVNULL):
        return subprocess.Popen([self._program, "--socket-dir", self._directory, *words], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                errors="replace")

    def start_attached(self, node, words, text):
        """Starts a program on a node; Attachment has the interface for users."""
        stdin, stdout, stderr = (tempfile.TemporaryFile() for _ in range(3))
        with stdin:
            stdin.write((text or "").encode())
            stdin.seek(0)
            path = os.pathsep.join((os.environ.get("PATH", os.defpath), *SYSTEM_PROGRAMS))
            popen = subprocess.Popen([self._program, "--socket-dir", self._directory, "attach", node, "--", *words], stdin=stdin, stdout=stdout, stderr=stderr,
                                     env={**os.environ, "PATH": path})
        process = AttachedProcess(node, shlex.join(words), popen, stdout, stderr)
        self._attached = [process, *(other for other in self._attached if other.running())]
        return process

    def call(self, *words):
        """Runs weft with these arguments; returns its output. Raises WeftError with its message."""
        process = self.start_program(*words)
        stdout, stderr = process.communicate()
        if process.returncode != 0:
            raise WeftError(stderr.strip() or f"`weft {shlex.join(words)}` ended with status {process.returncode}")
        return stdout

    def up(self):
        try:
            self.call("lab", "up", *self._words)
        except BaseException:
            self.down()
            raise

    def down(self):
        """Stops attached programs, the guests and weftd."""
        for process in self._attached:
            process.end()
        with contextlib.suppress(WeftError):
            self.call("lab", "down")
        shutil.rmtree(self._directory, ignore_errors=True)

    def check(self):
        """Returns the reports of the guests' kernels since the last check, and which guests have exited; "" if there are none."""
        process = self.start_program("lab", "check")
        _, stderr = process.communicate()
        if process.returncode not in (0, KERNEL_REPORT, GUEST_DIED):
            raise WeftError(stderr.strip())
        return stderr if process.returncode else ""

    @property
    def fabric(self):
        """Returns the topology with its state, as `weft --json fabric show` prints it."""
        return json.loads(self.call("--json", "fabric", "show"))

    @property
    def hosts(self):
        """Returns the names of the hosts."""
        return [host["name"] for host in self.fabric["hosts"]]

    @property
    def guests(self):
        """Returns the names of the hosts that have a guest: all except those of the model `endpoint`."""
        return [host["name"] for host in self.fabric["hosts"] if host["socket"]]

    def counters(self, *ports):
        """Returns counters by port and name, of all ports or of the given ones."""
        asked = [(name,) for name in ports] or [()]
        return {port: counters for words in asked for port, counters in json.loads(self.call("--json", "counters", *words)).items()}

    def __getitem__(self, name):
        return Host(self, name)

    def attach(self, node):
        return Attachment(self, node)

    def link(self, name):
        return Link(self, name)

    @contextlib.contextmanager
    def capture(self, link, file):
        """Records the packets of a link, or of all links ("all"), to a file within a context."""
        process = self.start_program("capture", link, "-w", str(file))
        # The first line of progress shows that the capture has started.
        first = process.stderr.readline()
        try:
            if process.poll() is not None:
                raise WeftError((first + process.stderr.read()).strip())
            yield pathlib.Path(file)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate()

    def __enter__(self):
        self.up()
        return self

    def __exit__(self, *_):
        self.down()
