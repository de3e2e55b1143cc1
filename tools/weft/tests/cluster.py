# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Provides a cluster on one host, for tests: nodes that are network namespaces behind a bridge, perhaps with Slurm.

    if reason := cluster.missing():         # the test is skipped
        ...
    cluster.inside(function)                # calls function() in namespaces of its own

The kernel kills everything that the function has started, and removes its interfaces and mounts, as soon as its process ends for any reason. This needs
root.
"""
import contextlib
import ctypes
import itertools
import os
import pathlib
import queue
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

from daemon import TIME_LIMIT, await_that

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x4000000, 0x20000000, 0x40000000
PR_SET_PDEATHSIG = 1
MARK = "WEFT_TEST_MARK"        # an environment variable of all processes of a user's labs
NETWORK = "10.77.0"
BRIDGE = "wbr0"
SYSTEM = os.pathsep.join(("/usr/sbin", "/usr/bin", "/sbin", "/bin"))
SLURM_PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "salloc", "sbatch", "squeue", "scancel", "sinfo")
# proctrack/linuxproc and task/none need no cgroups. A node that was down returns to service when its slurmd registers again.
SLURM_CONF = """
ClusterName=weft
SlurmctldHost=head({network}.254)
SlurmctldPort=16817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmdTimeout={timeout}
KillWait=5
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=INFINITE
"""


def missing(*programs):
    """Returns why a cluster cannot be set up here, or None. programs: other programs that the test needs."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if absent := [name for name in ("ip", "nsenter", "unshare", *programs) if not shutil.which(name, path=SYSTEM)]:
        return f"not installed: {', '.join(absent)}"
    if subprocess.run(["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "ip", "link", "add", BRIDGE, "type", "bridge"], stdin=subprocess.DEVNULL,
                      capture_output=True, check=False).returncode != 0:
        return "the kernel does not permit new namespaces, or has no bridges"
    return None


def inside(function):
    """Calls function() in new namespaces, in a process of its own; returns the exit status, which is that of the function or 0. Raises AssertionError
    with the traceback if the function has raised an exception."""
    library = ctypes.CDLL(None, use_errno=True)
    sys.stdout.flush()
    said = os.memfd_create("traceback")
    try:
        status = _in_child(lambda: _become(library, said, lambda: _run(library, said, function)), said)
        if os.lseek(said, 0, os.SEEK_END):
            raise AssertionError(os.pread(said, 1 << 20, 0).decode(errors="replace"))
        return status
    finally:
        os.close(said)


def _in_child(function, said):
    """Calls function() in a child; returns its exit status. The traceback of an exception goes to the descriptor `said`."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(_wait_for(child)) & 255
    status = 1
    try:
        status = function() or 0
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        os.write(said, traceback.format_exc().encode())
    sys.stdout.flush()
    os._exit(status)


def _wait_for(child):
    """Waits for a child, and reaps others that have become children of this process."""
    while True:
        number, status = os.waitpid(-1, 0)
        if number == child:
            return status


def _become(library, said, function):
    """Calls function() as the process with the number 1 of new namespaces. The kernel kills all others with it."""
    library.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if library.unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWPID | CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    return _in_child(function, said)


def _run(library, said, function):
    library.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    call("mount", "--make-rprivate", "/")
    call("mount", "-t", "proc", "proc", "/proc")
    os.environ["PATH"] = SYSTEM
    return _in_child(function, said)


def call(*words, **more):
    """Runs a command of the set-up, which must succeed; returns its output."""
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60, **more)
    if done.returncode != 0:
        raise AssertionError(f"{words}: {done.stdout}{done.stderr}")
    return done.stdout


class Node:
    """A host of the cluster: a network, a hostname and a /tmp of its own. It shares all other files."""

    def __init__(self, stack, folder, number):
        self.name = f"a{number}"
        self.address = f"{NETWORK}.{number}"
        self.port = f"port{number}"     # its cable's end at the bridge
        self.folder = folder / self.name
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir(parents=True)
        script = f'hostname {self.name} && mount --bind "{self.temporary}" /tmp && echo ready && exec sleep infinity'
        self.process = stack.enter_context(_ended(subprocess.Popen(["unshare", "--net", "--mount", "--uts", "--propagation=private", "sh", "-c", script],
                                                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)))
        assert self.process.stdout.readline() == b"ready\n"
        call("ip", "link", "add", self.port, "type", "veth", "peer", "name", "eth0", "netns", self.process.pid)
        call("ip", "link", "set", self.port, "master", BRIDGE, "up")
        for words in (("address", "add", f"{self.address}/24", "dev", "eth0"), ("link", "set", "eth0", "up"), ("link", "set", "lo", "up")):
            call(*self.words("ip", *words))

    def words(self, *words):
        """Returns the command line that runs a command on this node."""
        return ["nsenter", f"--target={self.process.pid}", "--net", "--mount", "--uts", "--", *map(str, words)]

    def cable(self, state):
        """Pulls the node's cable ("down") or plugs it in again ("up")."""
        call("ip", "link", "set", self.port, state)


@contextlib.contextmanager
def _ended(process):
    with process:
        try:
            yield process
        finally:
            process.kill()


class Cluster:
    """Nodes a1, a2, … and the host `head`, which is this process's. `folder` is a directory that all share; it is not in /tmp, which they do not."""

    def __init__(self, stack, count):
        """stack: an ExitStack, which removes the nodes."""
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weft-", dir="/var/tmp")))
        # Its file system ends with the namespace, so that keys do not stay behind if the test is killed. Only the empty directory does.
        call("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", self.folder)
        stack.callback(call, "umount", "--lazy", self.folder)
        self._stack = stack
        self._configuration = self.folder / "slurm.conf"
        os.environ["SLURM_CONF"] = str(self._configuration)
        call("hostname", "head")
        hosts = self.folder / "hosts"
        hosts.write_text("".join(f"{address} {name}\n" for address, name in (("127.0.0.1", "localhost"), (f"{NETWORK}.254", "head"),
                                                                            *((f"{NETWORK}.{number}", f"a{number}") for number in range(1, count + 1)))))
        call("mount", "--bind", hosts, "/etc/hosts")
        stack.callback(call, "umount", "/etc/hosts")
        call("ip", "link", "set", "lo", "up")
        call("ip", "link", "add", BRIDGE, "type", "bridge")
        stack.callback(call, "ip", "link", "delete", BRIDGE)
        call("ip", "address", "add", f"{NETWORK}.254/24", "dev", BRIDGE)
        call("ip", "link", "set", BRIDGE, "up")
        self.nodes = [Node(stack, self.folder, number) for number in range(1, count + 1)]
        self._slurmds = {}

    def start(self, *words, log, environment=None):
        output = self._stack.enter_context(open(log, "ab"))
        return self._stack.enter_context(_ended(subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                                                 env={**os.environ, **(environment or {})}, process_group=0)))

    # -- Slurm ----------------------------------------------------------------------------------

    def start_slurm(self, timeout=30):
        """Starts munged, slurmctld and the slurmd of each node. timeout: seconds after which Slurm considers a node without slurmd as down."""
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        (self.folder / "state").mkdir()
        nodes = "\n".join(f"NodeName={node.name} NodeAddr={node.address} Port=17001 CPUs=2 RealMemory=2000" for node in self.nodes)
        self._configuration.write_text(SLURM_CONF.format(folder=self.folder, network=NETWORK, timeout=timeout, nodes=nodes))
        munge = self.folder / "munge.socket"
        self.start("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={munge}", f"--pid-file={self.folder}/munge.pid",
                   f"--seed-file={self.folder}/munge.seed", f"--log-file={self.folder}/munge.log", log=self.folder / "munged.out")
        await_that("munged", munge.is_socket)
        self.start("slurmctld", "-D", log=self.folder / "slurmctld.out")
        for node in self.nodes:
            (node.folder / "spool").mkdir()
            self.start_slurmd(node)
        await_that("idle nodes", lambda: self.states() == {"idle"} or time.sleep(0.2))

    def start_slurmd(self, node):
        self._slurmds[node.name] = self.start(*node.words("slurmd", "-D"), log=node.folder / "slurmd.out")

    def kill_slurmd(self, node):
        self._slurmds[node.name].kill()
        self._slurmds[node.name].wait()

    def states(self):
        """Returns the states of all nodes."""
        return set(self.ask("sinfo", "--noheader", "--format=%T").split())

    def jobs(self):
        """Returns the number and the state of each job that has not ended."""
        return self.ask("squeue", "--noheader", "--format=%i %T").splitlines()

    @staticmethod
    def ask(*words):
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60).stdout


def tree(folder, *programs):
    """Copies programs to a tree that has the layout of the sources, in which weft finds the session program; returns the path of the first one."""
    sources = pathlib.Path(__file__).resolve().parents[3]
    binaries = folder / "tree/build/bin"
    binaries.mkdir(parents=True)
    for name in ("scripts", "tools"):
        (folder / "tree" / name).symlink_to(sources / name)
    for program in programs:
        shutil.copy(program, binaries)
    return binaries / pathlib.Path(programs[0]).name


def processes(mark):
    """Returns the command lines of processes whose command line or environment contains a text, by number."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (path / "cmdline").read_bytes()
            if mark.encode() in line + b"\0" + (path / "environ").read_bytes():
                found[int(path.name)] = line.decode(errors="replace").replace("\0", " ")
    return found


def _same(*paths):
    with contextlib.suppress(OSError):
        return os.path.samestat(*map(os.stat, paths))
    return False


class User:
    """Commands of a user of the cluster, who runs one lab at a time."""

    def __init__(self, cluster, weft, options=(), slowness=1, start="--slurm"):
        """weft: the program; options: those with which it starts a lab; slowness: factor of the time limits; start: how it starts places."""
        self.cluster = cluster
        self.nodes = cluster.nodes
        self.directory = cluster.folder / "lab"
        self.weft = str(weft)
        self.slowness = slowness
        self._options = [start, "--remote-weft", self.weft, *map(str, options)]
        self.mark = f"{MARK}={cluster.folder}"
        self.environment = {**{name: value for name, value in os.environ.items() if name not in ("TMPDIR", "XDG_RUNTIME_DIR")}, MARK: str(cluster.folder)}
        self._running = 0

    def words(self, *words, count=None):
        """Returns the command line of a weft that starts a lab. count: of the nodes, unless it is that of the allocation."""
        options = [*([f"--nodes={count}"] if count else []), *self._options]
        at = words.index("--") if "--" in words else len(words)
        return [self.weft, "--socket-dir", str(self.directory), *map(str, words[:at]), *options, *map(str, words[at:])]

    def call(self, *words, **more):
        return subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=self.environment,
                              timeout=3 * TIME_LIMIT * self.slowness, **more)

    def succeeds(self, *words):
        done = self.call(*words)
        assert done.returncode == 0, f"{words}: {done.returncode} {done.stdout}{done.stderr}"
        return done.stdout

    def of_lab(self, *words):
        return self.succeeds(self.weft, "--socket-dir", self.directory, *words)

    @contextlib.contextmanager
    def running(self, *words):
        """Runs a command in the background, as a shell runs it on a terminal: with its own process group. Its output is in files."""
        self._running += 1
        names = [self.cluster.folder / f"{self._running}.{kind}" for kind in ("out", "err")]
        with open(names[0], "w") as out, open(names[1], "w") as err:
            process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=self.environment, process_group=0)
        try:
            process.out, process.err = (name.read_text for name in names)
            yield process
        finally:
            for number in (signal.SIGTERM, signal.SIGKILL):     # srun ends its job after SIGTERM
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(TIME_LIMIT)

    def ends(self, process, seconds=TIME_LIMIT):
        """Returns the exit status of a command in the background."""
        try:
            return process.wait(seconds * self.slowness)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it has not ended: {process.out()}{process.err()}") from None

    def on(self, node, text):
        """Returns the processes of the lab on a node whose command line contains a text."""
        network = f"/proc/{node.process.pid}/ns/net"
        return [number for number, line in processes(self.mark).items() if text in line and _same(f"/proc/{number}/ns/net", network)]

    def assert_nothing_is_left(self):
        """No job, process or temporary file is left."""
        if "--slurm" in self._options:
            await_that("the end of the job", lambda: not self.cluster.jobs() or time.sleep(0.2))
        await_that("the end of all processes", lambda: not processes(self.mark) or time.sleep(0.2))
        left = {node.name: sorted(path.name for path in node.temporary.iterdir()) for node in self.nodes}
        assert not any(left.values()), left
        assert not [path for path in self.directory.rglob("*") if path.is_socket()] if self.directory.exists() else True

    def copy_logs(self, to):
        """Copies the output of daemons and of commands in the background."""
        for path in (*self.cluster.folder.glob("*.out"), *self.cluster.folder.glob("*.err"), *self.cluster.folder.glob("a*/slurmd.out")):
            name = path.name if path.parent == self.cluster.folder else f"{path.parent.name}-{path.name}"
            (to / name).write_bytes(path.read_bytes())


class Wire:
    """A cable between the nodes a1 and a2 in place of the bridge, with the faults of a network: it delays, loses and reorders frames. It is a program
    instead of the queueing discipline netem, which many kernels do not have."""

    SOL_PACKET, PACKET_VNET_HDR = 263, 15
    LONGEST = 70000     # bytes of a frame that the kernel has not divided into segments

    def __init__(self, stack, nodes, delay, loss=0.0, reorder=0.0, seed=1):
        """delay: seconds, for each frame; loss, reorder: probabilities of a frame; one that is reordered is delayed twice as long as others."""
        self.frames = self.lost = self.reordered = 0
        self._delay, self._loss, self._reorder = delay, loss, reorder
        self._choices = random.Random(seed)
        self._stall = None
        self._stalled_until = 0.0
        self._due = [queue.PriorityQueue() for _ in nodes]
        self._count = itertools.count()
        self._sockets = [stack.enter_context(self._open(node.port)) for node in nodes]
        for number in range(2):
            threading.Thread(target=self._receive, args=(number,), daemon=True).start()
            threading.Thread(target=self._send, args=(number,), daemon=True).start()

    def _open(self, port):
        call("ip", "link", "set", port, "nomaster")
        end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))     # ETH_P_ALL
        # The header describes a check sum that is missing, and segments.
        end.setsockopt(self.SOL_PACKET, self.PACKET_VNET_HDR, 1)
        end.bind((port, 3))
        return end

    def stall(self, frames, seconds):
        """Delivers nothing for some seconds, after some more frames have arrived."""
        self._stall = self.frames + frames, seconds

    def has_stalled(self):
        return self._stall is None and self._stalled_until > 0

    def _receive(self, number):
        while True:
            try:
                data, (_, _, kind, *_) = self._sockets[number].recvfrom(self.LONGEST)
            except OSError:     # closed: the test has ended
                return
            if kind == socket.PACKET_OUTGOING:
                continue
            self.frames += 1
            now = time.monotonic()
            if (stall := self._stall) and self.frames >= stall[0]:
                self._stall = None
                self._stalled_until = now + stall[1]
            delay = self._delay
            if self._choices.random() < self._loss:
                self.lost += 1
                continue
            if self._choices.random() < self._reorder:
                self.reordered += 1
                delay *= 2
            self._due[number].put((max(now, self._stalled_until) + delay, next(self._count), data))

    def _send(self, number):
        """Frames that are due earlier overtake others."""
        queued = self._due[number]
        while True:
            due, order, data = queued.get()
            if (left := due - time.monotonic()) > 0:
                queued.put((due, order, data))
                time.sleep(min(left, 0.001))
                continue
            with contextlib.suppress(OSError):      # the node has pulled its cable
                self._sockets[1 - number].send(data)


SSHD_CONFIG = """
Port {port}
ListenAddress {address}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
SetEnv {mark}
"""
SSH_CONFIG = """
Host *
IdentityFile {folder}/user
UserKnownHostsFile {folder}/known
StrictHostKeyChecking yes
BatchMode yes
Port {port}
"""


class Ssh:
    """sshd at some addresses, with keys that exist only for the test. `words` is the command ssh with its options."""

    PORT = 2222

    def __init__(self, cluster, hosts):
        """hosts: (name, address, words that run a command there) of each."""
        folder = self.folder = cluster.folder
        for name in ("host", "user"):
            call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name)
        (folder / "ssh.conf").write_text(SSH_CONFIG.format(folder=folder, port=self.PORT) +
                                         "".join(f"Host {name}\nHostName {address}\n" for name, address, _ in hosts))
        key = (folder / "host.pub").read_text()
        (folder / "known").write_text("".join(f"[{address}]:{self.PORT} {key}" for _, address, _ in hosts))
        for name, address, words in hosts:
            configuration = folder / f"sshd-{name}.conf"
            configuration.write_text(SSHD_CONFIG.format(folder=folder, address=address, port=self.PORT, mark=f"{MARK}={folder}"))
            # sshd wants a directory in /run, which is not to be that of this machine.
            script = 'mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && exec "$@"'
            cluster.start(*words("sh", "-c", script, "sh", shutil.which("sshd", path=SYSTEM), "-D", "-e", "-f", configuration), log=folder / f"sshd-{name}.out")
        self.words = ["ssh", "-F", str(folder / "ssh.conf")]
        for name, _, _ in hosts:
            await_that(f"sshd of {name}", lambda name=name: subprocess.run([*self.words, name, "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0)
