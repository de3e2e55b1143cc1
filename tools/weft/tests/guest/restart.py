# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""weftd is killed while guests use their cards, and is started again by `weft lab`."""
import json
import os
import signal
import socket
import struct
import subprocess
import time

from lab.testing import full, test
from lab.waiting import wait_until

RETURN = 60     # seconds in which guests reach each other after weftd serves again; mlx4 waits ten of them for a command of the failed card
LAB = '[[switch]]\nname = "s1"\nports = 8\n' + "".join(f'[[host]]\nname = "node{number}"\n[[link]]\nends = ["node{number}", "s1"]\n' for number in (1, 2, 3))
SPARE = '[[host]]\nname = "spare"\nmodel = "endpoint"\n[[link]]\nends = ["spare", "s1"]\n'


def _pid(directory):
    """The process that serves the control socket, or None."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(directory / "control.sock"))
        except OSError:
            return None
        return struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


@test(kernels=(), also=("stock",), timeout=240)
def guests_survive_kills_of_weftd(lab):
    """weftd is killed at random moments under flood pings and RDMA writes: twice with two guests, with --full a hundred times with three. Each
    time all guests ping again, none has exited, no kernel has reported anything, and a link that was down is still down."""
    directory = lab.socket_path("control.sock").parent
    hosts = ["node1", "node2", "node3"][:lab.rounds(2, 3)]
    file = lab.directory / "lab.toml"
    file.write_text((LAB if full() else LAB.split('[[host]]\nname = "node3"')[0]) + SPARE)

    def weft(*words, check=True):
        done = subprocess.run([lab.program("weft"), "--socket-dir", directory, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    weft("lab", "up", "--lab", file, "--logs", lab.directory)
    try:
        weft("link", "down", "spare")
        for _ in range(lab.rounds(2, 100)):
            traffic = [subprocess.Popen([lab.program("weft"), "--socket-dir", directory, "lab", "shell", host, command], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                       for host, command in (("node1", "ping -f -q -w 300 10.1.0.2"), ("node2", "ib_write_bw -D 300"), ("node1", "sleep 1; ib_write_bw -D 300 10.1.0.2"))]
            weft("lab", "shell", "node1", "ping -c 1 -W 20 10.1.0.2")
            time.sleep(lab.random.uniform(0, 3))        # only the moment is random
            before = _pid(directory)
            os.kill(before, signal.SIGKILL)
            wait_until("another weftd", lambda: (now := _pid(directory)) and now != before, 30 * lab.slowness)
            began = time.monotonic()
            for host in hosts:
                for number, other in enumerate(hosts, 1):
                    if other != host:
                        wait_until(f"{host} to ping {other}", lambda host=host, number=number: "1 received" in
                                   weft("lab", "shell", host, f"ping -c 1 -W 1 10.1.0.{number}", check=False), RETURN * lab.slowness)
            print(f"guests ping {time.monotonic() - began:.1f} s after weftd is back")
            for each in traffic:
                each.terminate()
                each.wait(60 * lab.slowness)
            weft("lab", "shell", "node2", "pkill -x ib_write_bw; exit 0")
            weft("lab", "shell", "node1", "pkill -x ib_write_bw; exit 0")
            links = json.loads(weft("--json", "fabric", "show"))["links"]
            assert [link["settings"]["state"] for link in links if link["name"].startswith("spare/")] == ["down"], links
            said = weft("lab", "check", check=False).splitlines()
            assert len([line for line in said if line.startswith("weftd was killed by SIGKILL")]) == 1, said
            assert all("weftd was killed" in line or "has its card again" in line for line in said), said
    finally:
        weft("lab", "down", check=False)
