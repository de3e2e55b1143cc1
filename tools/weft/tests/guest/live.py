# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Labs that change under their machines, and a weftd that starts again."""
import subprocess

from lab.fabric import Fabric
from lab.testing import test

ONE = """
[[switch]]
name = "leaf"
[[host]]
name = "left"
[[link]]
ends = ["left", "leaf"]
"""
# Its host comes first in the file; the other keeps GUID and port all the same.
TWO = """
[[switch]]
name = "leaf"
[[switch]]
name = "more"
[[host]]
name = "right"
[[host]]
name = "left"
[[link]]
ends = ["right", "more"]
[[link]]
ends = ["more", "leaf"]
[[link]]
ends = ["left", "leaf"]
"""
DRIVER = "for module in mlx4_ib ib_umad; do modprobe $module || exit 1; done"
# Of the device that the driver has last, how it calls itself and its LID once it is active.
ACTIVE = """
port=/sys/class/infiniband/{device}/ports/1
until grep -q ACTIVE $port/state; do sleep 0.05; done
cat $port/../../node_guid $port/lid
"""


@test(kernels=(), also=("stock",), timeout=180)
def hosts_come_and_go(lab):
    """`weft lab apply` gives a lab a host and a switch more: a machine is started for it and reaches the other, which has noticed nothing; and
    takes them away."""
    directory = lab.socket_path("control.sock").parent
    small, large = lab.directory / "one.toml", lab.directory / "two.toml"
    small.write_text(ONE)
    large.write_text(TWO)

    def weft(*words):
        done = subprocess.run([lab.program("weft"), "--socket-dir", directory, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout.splitlines()

    weft("lab", "up", "--lab", small, "--logs", lab.directory)
    try:
        weft("lab", "shell", "left", "echo here >/run/mark")
        assert weft("lab", "apply", large) == ["+ switch more", "+ host right", "+ link right/1-more/1", "+ link more/2-leaf/3"]
        weft("lab", "shell", "right", "ping -c 1 -W 20 10.1.0.1")
        assert weft("lab", "apply", large) == []
        assert weft("lab", "apply", small) == ["- switch more", "- host right", "- link right/1-more/1", "- link more/2-leaf/3"]
        assert weft("lab", "shell", "left", "cat /run/mark") == ["here"], "the same machine all the time"
    finally:
        weft("lab", "down")


@test(kernels=(), also=("stock",), timeout=120)
def machine_outlives_its_weftd(lab):
    """weftd is killed: the machine runs on without its card, which does not come back by itself. The next weftd has the same GUID and LID for a
    card that is plugged in anew."""
    fabric = Fabric(lab, ONE)
    guest = lab.guest("left", cards=fabric.sockets, spare_ports=1, allowed=[r"mlx4"])
    lab.boot(guest)
    guest.run(DRIVER)
    before = guest.run(ACTIVE.format(device="mlx4_0")).out
    fabric.process.kill()
    fabric.process.wait()
    assert guest.run("echo still here").out == "still here\n"
    again = Fabric(lab, ONE)
    guest.plug(again.sockets[0])
    assert guest.run(ACTIVE.format(device="mlx4_1"), 60).out == before
