# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Labs of weft in Python: virtual machines with RDMA cards on an emulated fabric.

    with weft.Lab() as lab:
        print(lab["node1"].run("ping -c 3 10.1.0.2").stdout)
        with lab.link("node2").changed(loss="5%"):
            lab["node1"].run(["ib_send_bw", "10.1.0.2"])

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

KERNEL_REPORT, GUEST_DIED = 125, 126    # exit statuses of `weft lab check`


class WeftError(Exception):
    """A weft command failed; the message is weft's own."""


class CommandFailed(WeftError):
    """A command in a guest ended with a status other than 0. result: its Result, with its output."""

    def __init__(self, host, command, result):
        super().__init__(f"{host}: `{command}` exited with status {result.status}\n{result.stdout}{result.stderr}".rstrip())
        self.result = result


@dataclasses.dataclass(frozen=True)
class Result:
    """The outcome of a command in a guest."""

    status: int
    stdout: str
    stderr: str


def find_program():
    """The program weft: $WEFT, the one in the source tree of this file, or the one in $PATH."""
    built = pathlib.Path(__file__).resolve().parents[4] / "build/bin/weft"
    found = os.environ.get("WEFT") or (str(built) if built.is_file() else shutil.which("weft"))
    if not found:
        raise WeftError("there is no program weft: install the package weft, or run `make tools` in its source tree")
    return found


class Process:
    """A command that runs in a guest. Use as a context manager: leaving it ends the command."""

    def __init__(self, host, command, popen):
        self._host, self._command, self._popen = host, command, popen

    def running(self):
        return self._popen.poll() is None

    def wait(self, timeout=None, check=True):
        """Waits for the command's end; returns its Result. Raises CommandFailed if its status is not 0, subprocess.TimeoutExpired after `timeout` seconds."""
        stdout, stderr = self._popen.communicate(timeout=timeout)
        result = Result(self._popen.returncode, stdout, stderr)
        if check and result.status != 0:
            raise CommandFailed(self._host, self._command, result)
        return result

    def stop(self, number=signal.SIGTERM):
        """Sends the command a signal, and waits for its end; returns its Result."""
        if self.running():
            self._popen.send_signal(number)
        return self.wait(check=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Host:
    """A host of a lab, with its guest."""

    def __init__(self, lab, name):
        self._lab = lab
        self.name = name

    def start(self, command, stdin=subprocess.DEVNULL):
        """Starts a command as root: text for a shell, or a list of words. stdin: as of subprocess.Popen."""
        text = command if isinstance(command, str) else shlex.join(command)
        return Process(self.name, text, self._lab.start_program("lab", "shell", self.name, "--", text, stdin=stdin))

    def run(self, command, timeout=None, check=True):
        """Runs a command to its end; returns its Result. After `timeout` seconds it is ended, and subprocess.TimeoutExpired raised."""
        process = self.start(command)
        try:
            return process.wait(timeout, check)
        except BaseException:
            process.stop(signal.SIGKILL)
            raise

    def restart(self):
        """Starts the guest again, also if it has died."""
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
        """The current values of all settings, by name."""
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
    """Guests and their fabric. Use as a context manager, or call up() and down().

    lab: a lab file, see weft-lab.toml(5); the default is node1 and node2 at a switch. options: the options of `weft lab up`, such as
    kernel, stack, memory, cpus, share, append and bare. logs: a directory in which consoles and weftd's log are kept.
    """

    def __init__(self, lab=None, *, program=None, logs=None, **options):
        self._program = program or find_program()
        # Sockets have short paths.
        self._directory = pathlib.Path(tempfile.mkdtemp(prefix="weft-"))
        self._words = []
        for name, value in {"lab": lab, "logs": logs, **options}.items():
            if value is True:
                self._words.append(f"--{name}")
            elif value is not None and value is not False:
                self._words.append(f"--{name}={value}")

    def start_program(self, *words, stdin=subprocess.DEVNULL):
        return subprocess.Popen([self._program, "--socket-dir", self._directory, *words], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                errors="replace")

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
        with contextlib.suppress(WeftError):
            self.call("lab", "down")
        shutil.rmtree(self._directory, ignore_errors=True)

    def check(self):
        """Returns the reports of the guests' kernels since the last check, and which guests have ended; "" for nothing."""
        process = self.start_program("lab", "check")
        _, stderr = process.communicate()
        if process.returncode not in (0, KERNEL_REPORT, GUEST_DIED):
            raise WeftError(stderr.strip())
        return stderr if process.returncode else ""

    @property
    def fabric(self):
        """The topology with its state, as `weft --json fabric show` prints it."""
        return json.loads(self.call("--json", "fabric", "show"))

    @property
    def hosts(self):
        """The names of the hosts."""
        return [host["name"] for host in self.fabric["hosts"]]

    def counters(self, *ports):
        """Counters by port and name, of all ports or of the given ones."""
        asked = [(name,) for name in ports] or [()]
        return {port: counters for words in asked for port, counters in json.loads(self.call("--json", "counters", *words)).items()}

    def __getitem__(self, name):
        return Host(self, name)

    def link(self, name):
        return Link(self, name)

    @contextlib.contextmanager
    def capture(self, link, file):
        """Records the packets of a link, or of all links ("all"), into a file within a context."""
        process = self.start_program("capture", link, "-w", str(file))
        # Its first line of progress reports that it records.
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
