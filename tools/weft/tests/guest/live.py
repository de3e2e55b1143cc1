# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that hosts can be added to and removed from a lab while its guests run, and that guests keep running when weftd is restarted."""
import re
import subprocess

from lab import GuestDied
from lab.fabric import Fabric
from lab.testing import test
from lab.waiting import wait_until

ONE = """
[[switch]]
name = "leaf"
[[host]]
name = "left"
[[link]]
ends = ["left", "leaf"]
"""
# The new host comes first in the file. The other host keeps its GUID and port nevertheless.
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


@test(kernels=(), also=("stock",), timeout=180)
def lab_apply_adds_and_removes_hosts(lab):
    """`weft lab apply` adds a host and a switch to a lab and starts a guest that reaches the other one, which keeps running; it also removes them."""
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
        assert weft("lab", "shell", "left", "cat /run/mark") == ["here"], "the guest was restarted"
    finally:
        weft("lab", "down")


# QEMU 10.1's vfio-user sometimes sets an error twice if a device's socket closes while the guest accesses the device.
QEMU_FAILS = "error_setv: Assertion `*errp == NULL' failed"


@test(kernels=(), also=("stock",), timeout=240)
def guest_keeps_running_when_weftd_restarts(lab):
    """If weftd is killed, the guest runs on without its card. The next weftd has the same GUID and LID for the card that is plugged in then."""
    for attempts_left in (3, 2, 1, 0):
        try:
            return _outlive(lab)
        except GuestDied as error:
            if QEMU_FAILS not in str(error) or not attempts_left:
                raise


def _outlive(lab):
    fabric = Fabric(lab, ONE)
    before = len(_active(fabric))
    with lab.boot(lab.guest("left", share=None, cards=fabric.sockets, spare_ports=1, allowed=[r"mlx4"])) as (guest,):
        guest.run(DRIVER)
        wait_until("the port to be active", lambda: len(_active(fabric)) == before + 1, 60)
        fabric.process.kill()
        fabric.process.wait()
        assert guest.run("echo still here").out == "still here\n"
        again = Fabric(lab, ONE)
        guest.plug(again.sockets[0])
        wait_until("the port to be active again", lambda: len(_active(again)) == before + 2, 60)
        assert len(set(_active(again)[before:])) == 1, _active(again)


def _active(fabric):
    """Returns the GUID and the LID of the host's port, as all managers of the test's daemons logged them."""
    return re.findall(r"left .* port GUID (\S+) is active, LID (\d+)", fabric.log())
