# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests `weft run` and `weft lab` over several hosts with guests. One computer simulates all hosts. A host is either a
directory, and a script replaces ssh; or it is a network namespace with an sshd of its own (cluster.py)."""
import contextlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

from lab.testing import Skip, test

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import cluster  # noqa: E402

PLACES = ("a", "b", "c", "d")
SSH = """#!/bin/sh
export XDG_RUNTIME_DIR={folder}/$1 TMPDIR={folder}/$1
mkdir -p $TMPDIR
cd $TMPDIR
exec sh -c "$2"
"""


def _processes(folder):
    """Returns the processes that a host's stand-in has started."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"XDG_RUNTIME_DIR={folder}/".encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            pass
    return found


def _lab_file(places, ethernet=False):
    """Returns a lab of a row of switches, one at each place, with one guest each: node1 at place a, node2 at place b, and so on. ethernet: the guests
    are on one Ethernet segment, too."""
    lines = ['name = "a row of places"', *(['[[ethernet]]\nname = "lan"'] if ethernet else [])]
    for number, place in enumerate(places, 1):
        lines += [f'[[place]]\nname = "{place}"\n[[switch]]\nname = "s{number}"\nplace = "{place}"\n[[host]]\nname = "node{number}"' + ('\nethernet = "lan"' if ethernet else "")]
        lines += [f'[[link]]\nends = ["{end}", "s{number}"]' for end in (f"node{number}", f"s{number - 1}") if end != "s0"]
    return "\n".join(lines) + "\n"


def _hosts(lab, count, **options):
    """Returns the directory with those of the hosts, and the options of `weft run` and `weft lab up` for them."""
    folder = lab.socket_path("x").parent    # the paths of sockets are short
    file, ssh, hosts = lab.directory / "lab.toml", lab.directory / "ssh", lab.directory / "hosts.txt"
    file.write_text(_lab_file(PLACES[:count], **options))
    ssh.write_text(SSH.format(folder=folder))
    ssh.chmod(0o755)
    hosts.write_text("".join(f"host-{place} 127.0.0.1\n" for place in PLACES[:count]))
    return folder, ["--lab", file, "--hosts", hosts, "--ssh", ssh, "--remote-weft", lab.program("weft"), "--kernel", lab.kernel]


@test(kernels=("um-debug",), timeout=180)
def guests_on_two_hosts_ping_each_other(lab):
    """Each host runs one guest. The link between their switches is a trunk, and a guest's address is that of its position in the lab file."""
    folder, options = _hosts(lab, 2)
    directory, program = folder / "lab", lab.program("weft")

    def weft(*words, at=directory):
        return subprocess.run([program, "--socket-dir", at, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def succeeds(*words, **more):
        done = weft(*words, **more)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    done = weft("run", *options, "--logs", lab.directory / "run", "--on", "node2", "--", "ping -c 1 -W 20 10.1.0.1 | grep -o ' 0% packet loss'; exit 7")
    assert (done.returncode, done.stdout) == (7, " 0% packet loss\n"), done.stdout + done.stderr
    assert "10.1.0.2 on ib0" in done.stderr, done.stderr
    assert not _processes(folder)
    logs = lab.directory / "logs"
    succeeds("lab", "up", *options, "--logs", logs)
    for host, other in (("node1", "10.1.0.2"), ("node2", "10.1.0.1")):
        assert " 0% packet loss" in succeeds("lab", "shell", host, "ping", "-c", "1", "-W", "20", other)
    capture = lab.directory / "b.pcapng"
    succeeds("capture", "node2", "--write", capture, "--seconds", "0.5", at=directory / "b")
    assert capture.stat().st_size > 0
    succeeds("lab", "check")
    succeeds("lab", "down")
    assert not _processes(folder)
    assert {"node1.log", "node2.log", "a/weftd.log", "b/weftd.log"} <= {str(path.relative_to(logs)) for path in logs.rglob("*") if path.is_file()}
    assert not [path for host in ("host-a", "host-b") for path in os.listdir(folder / host)]


@test(kernels=(), also=("stock",), timeout=600)
def guests_on_three_hosts_ping_each_other_through_an_ethernet_segment(lab):
    """Each host runs one guest. Three trunks connect the parts of the segment, and the guests' addresses are those of their positions in the lab file."""
    folder, options = _hosts(lab, 3, ethernet=True)
    directory, program = folder / "lab", lab.program("weft")

    def weft(*words):
        done = subprocess.run([program, "--socket-dir", directory, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    weft("lab", "up", *options, "--logs", lab.directory / "logs")
    for number in (1, 2, 3):
        for other in {1, 2, 3} - {number}:
            text = weft("lab", "shell", f"node{number}", "ping -c 20 -i 0.05 -s 8000 -W 20 10.2.0.%d; ip neighbour show dev eth0" % other)
            assert "20 received, 0% packet loss" in text and f"10.2.0.{other} lladdr 52:54:00:77:00:0{other} " in text, text
            assert "duplicates" not in text, text
    trunks = [trunk for trunk in json.loads(weft("--json", "fabric", "show"))["trunks"] if trunk["ethernet"] == "lan"]
    assert len(trunks) == 6 and all(trunk["connected"] for trunk in trunks), trunks
    # A pulled trunk separates only two of the hosts.
    weft("link", "down", "lan@a/b-lan@b/a")
    assert "100% packet loss" in weft("lab", "shell", "node1", "ping -c 3 -W 1 10.2.0.2; true")
    assert " 0% packet loss" in weft("lab", "shell", "node1", "ping -c 3 -W 20 10.2.0.3")
    weft("link", "up", "lan@a/b-lan@b/a")
    assert " 0% packet loss" in weft("lab", "shell", "node1", "ping -c 3 -W 20 10.2.0.2")
    weft("lab", "check")
    weft("lab", "down")
    assert not _processes(folder)


@test(kernels=(), also=("um-debug",), timeout=180)
def guests_on_two_hosts_started_through_openssh_ping_each_other(lab):
    """The same with OpenSSH. The file of hosts has only names, because ssh knows the addresses."""
    if reason := cluster.missing("ssh", "sshd", "ssh-keygen"):
        raise Skip(reason)

    def work():
        with contextlib.ExitStack() as stack:
            nodes = cluster.Cluster(stack, 2)
            ssh = cluster.Ssh(nodes, [(node.name, node.address, node.words) for node in nodes.nodes])
            hosts = nodes.folder / "hosts.txt"
            hosts.write_text("a1\na2\n")
            user = cluster.User(nodes, lab.program("weft"), ("--ssh", shlex.join(ssh.words), "--kernel", lab.kernel), lab.slowness, start=f"--hosts={hosts}")
            command = "ping -c 1 -W 20 10.1.0.1 | grep -o ' 0% packet loss'; exit 7"
            done = user.call(*user.words("run", "--logs", lab.directory / "logs", "--on", "node2", "--", command))
            assert (done.returncode, done.stdout) == (7, " 0% packet loss\n"), (done.returncode, done.stdout, done.stderr)
            assert all((lab.directory / "logs" / name).is_file() for name in ("node1.log", "node2.log", "p1/weftd.log", "p2/weftd.log"))
            user.assert_nothing_is_left()

    cluster.inside(work)


# Open MPI's daemons on the other hosts are started through a remote shell, here by socat. Each process sends to the next one and receives from the one
# before it, through UCX and the cards.
MPI = """
printf '10.1.0.%d node%d\\n' 1 1 2 2 3 3 4 4 >>/etc/hosts
cat >/usr/bin/rsh <<'END' && chmod +x /usr/bin/rsh
#!/bin/sh
host=$1
shift
echo "{ $*; } </dev/null >/dev/null 2>&1" | exec socat -t 60 - TCP:$host:10022,retry=60
END
cat >/usr/bin/exchange <<'END'
from mpi4py import MPI
world = MPI.COMM_WORLD
after, before = (world.rank + 1) % world.size, (world.rank - 1) % world.size
for size in (1, 4096, 65536, 1 << 20, 3 << 20):
    sent = bytearray((world.rank + 7 * byte) & 255 for byte in range(256)) * (size // 256 + 1)
    received = bytearray(len(sent))
    world.Sendrecv(sent, after, recvbuf=received, source=before)
    assert received == bytearray((before + 7 * byte) & 255 for byte in range(256)) * (size // 256 + 1), size
print(f"rank {world.rank} of {world.size} on {MPI.Get_processor_name()}: {world.allreduce(world.rank + 1)}", flush=True)
END
#@ node1
mpirun.openmpi --allow-run-as-root --host node1,node2,node3,node4 --mca plm_rsh_agent rsh --mca pml ucx -x UCX_TLS=rc_v,self -x UCX_NET_DEVICES=mlx4_0:1 python3 -m mpi4py /usr/bin/exchange
""" + "".join(f"#@ node{number}\nsocat -t 60 TCP-LISTEN:10022,reuseaddr EXEC:bash\n" for number in (2, 3, 4))


@test(kernels=(), also=("stock",), timeout=900)
def mpi_processes_on_four_hosts_exchange_messages(lab):
    """Each host has its own weftd, with one guest in which one process of an MPI job runs. The messages pass the trunks between the hosts, and are
    compared."""
    folder, options = _hosts(lab, 4)
    script = lab.directory / "script"
    script.write_text(MPI)
    done = subprocess.run([lab.program("weft"), "--socket-dir", folder / "lab", "run", *options, "--logs", lab.directory / "logs", "--script", script], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {f"node1: rank {rank} of 4 on node{rank + 1}: 10" for rank in range(4)} <= set(done.stdout.splitlines()), done.stdout + done.stderr
    assert not _processes(folder)
