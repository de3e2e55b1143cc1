# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that Debian's drivers can use a card again after their modules were reloaded, after a reboot, after a function-level reset, after a
guest was killed, and after the example replug-cards has replaced the card of a killed weftd."""
import os
import pathlib
import re

from lab import cache
from lab.fabric import Fabric
from lab.guest import GuestDied
from lab.testing import test
from lab.waiting import wait_until

from stock import active, check, complaints, guests, interfaces_up, lid, load, pair, ping, reactivate, unload

CARD = "/sys/bus/pci/devices/0000:01:00.0"
NEW_CARD = "/sys/bus/pci/devices/0000:02:00.0"      # at the spare port
REPLUG = cache.TREE / "tools/weft/examples/replug-cards"
CARD_RESTARTED = "mlx4_core 0000:01:00.0: mlx4_restart_one was ended"
# QEMU may abort when weftd exits (Documentation/restart.rst).
ABORTED = "Assertion `*errp == NULL' failed"
ATTEMPTS = 4


@test(kernels=(), also=("stock",), timeout=400)
def ib0_carries_packets_after_each_reload_of_the_driver_modules(lab):
    """The modules of both guests are removed and inserted three times (a hundred with --full), and ib0 carries packets each time."""
    with guests(lab) as (_, (node1, node2)):
        for _ in range(lab.rounds(3, 100)):
            load(node1, node2)
            active(node1, node2)
            interfaces_up(node1, node2)
            ping(node1, node2, "10.0.0.2", 20)
            unload(node1, node2)
        for node in (node1, node2):
            assert complaints(node, "mlx4|ib0|ib_|pcieport") == ""


@test(kernels=("stock",), timeout=400)
def ib0_recovers_after_flr_and_reboot(lab):
    """After an FLR of an unbound and of a bound card, and after a reboot of a guest, ib0 works again."""
    with pair(lab, may_reboot=True) as (fabric, (node1, node2)):
        interfaces_up(node1, node2)
        ping(node1, node2, "10.0.0.2", 20)
        lids = lid(node1), lid(node2)

        with check("an unbound card is reset by FLR, and works when it is bound again"):
            unload(node1)
            assert "flr" in node1.run(f"cat {CARD}/reset_method").out
            node1.run(f"echo flr >{CARD}/reset_method && echo 1 >{CARD}/reset")
            load(node1)
            active(node1)
            interfaces_up(node1)
            ping(node1, node2, "10.0.0.2", 20)

        with check("a card is reset by FLR under its driver, which then restarts it"):
            # The driver is not notified. Its next command is not answered: after its own timeout of up to a minute
            # it treats the card as failed, resets it, and registers the device again.
            node1.run(f"echo 1 >{CARD}/reset", timeout=60)
            assert re.search(r"node1/1 +down", fabric.weft("fabric", "show")), "a card that was reset has closed its port"
            active(node1, timeout=150)
            reactivate(fabric, node1)
            interfaces_up(node1)
            ping(node1, node2, "10.0.0.2", 20)
            ping(node2, node1, "10.0.0.1", 20)

        with check("a guest reboots under traffic, and the other one can ping it afterwards"):
            flood = node2.spawn("ping -f -q -w 60 10.0.0.1")
            node1.reboot()
            flood.kill()
            load(node1)
            active(node1, node2)
            interfaces_up(node1)
            ping(node1, node2, "10.0.0.2", 20)
            ping(node2, node1, "10.0.0.1", 20)

        with check("both ports have kept their LIDs"):
            assert (lid(node1), lid(node2)) == lids


@test(kernels=("stock",), timeout=120)
def new_guest_can_use_the_card_of_a_killed_guest_and_killed_weftd_can_be_restarted(lab):
    """A card is usable by a new guest after its guest was killed under traffic, and weftd starts again after it was killed."""
    fabric = Fabric(lab)

    def booted(name, socket):
        return lab.boot(lab.guest(name, share=None, vfio_user=[socket]))

    with booted("node2", fabric.sockets[1]) as (node2,):
        load(node2)
        for attempt in ("first", "second"):
            with booted(f"node1-{attempt}", fabric.sockets[0]) as (node1,):
                load(node1)
                active(node1, node2)
                interfaces_up(*((node1, node2) if attempt == "first" else (node1,)))
                ping(node1, node2, "10.0.0.2", 20)
                node1.spawn("ping -f -q -w 60 10.0.0.2")
                # Leaving the block kills QEMU by SIGKILL.
    fabric.process.kill()
    fabric.process.wait()
    assert all(path.is_socket() for path in fabric.sockets), "the sockets of the killed weftd are missing"
    assert "node1" in Fabric(lab).weft("fabric", "show")


def _waits_for_weftd(process):
    """Returns whether replug-cards has sent its request to weftd. It has no other socket then, and sleeps only in recv()."""
    sockets = [link for link in pathlib.Path(f"/proc/{process.pid}/fd").iterdir() if os.readlink(link).startswith("socket:")]
    return bool(sockets) and pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def _replug(lab, started):
    """Kills weftd and starts it again, while replug-cards waits for that. Adds the processes that it starts to a list."""
    fabric = Fabric(lab)
    started.append(fabric.process)
    monitors = [lab.socket_path(f"monitor{number}") for number in (1, 2)]
    for monitor in monitors:
        monitor.unlink(missing_ok=True)     # of the last attempt
    with lab.boot(*(lab.guest(f"node{number}", share=None, vfio_user=[card], spare_ports=1, qemu_args=("-qmp", f"unix:{monitor},server=on,wait=off"))
                    for number, (card, monitor) in enumerate(zip(fabric.sockets, monitors, strict=True), 1))) as nodes:
        load(*nodes)
        active(*nodes)
        reactivate(fabric, *nodes)
        interfaces_up(*nodes)
        ping(*nodes, "10.0.0.2", 20)
        programs = [lab.start(REPLUG, "--once", "--ports", "spare0", fabric.directory / "control.sock", monitor, f"card={card}")
                    for card, monitor in zip(fabric.sockets, monitors, strict=True)]
        started += programs
        for program in programs:
            wait_until("replug-cards to wait for weftd", lambda program=program: _waits_for_weftd(program), 30 * lab.slowness)
        fabric.weft("fabric", "show")       # weftd answers it after those of replug-cards
        fabric.process.kill()
        fabric.process.wait()
        for node in nodes:
            node.wait_for(f"dmesg | grep -q '{CARD_RESTARTED}'", timeout=60, what="the driver to find that its card has failed")
            node.run(f"echo 1 >{CARD}/remove", timeout=120)
        fabric = Fabric(lab)
        started.append(fabric.process)
        for node, program in zip(nodes, programs, strict=True):
            wait_until("replug-cards to plug the card in", lambda program=program: program.poll() is not None, 120 * lab.slowness)
            if program.returncode != 0:
                node.run("true")        # raises GuestDied if QEMU has aborted
            assert program.returncode == 0, (lab.directory / "replug-cards.log").read_text()
        for node in nodes:
            node.wait_for(f"test -e {NEW_CARD}/net/ib*", timeout=120, what="an interface of the new card")
        reactivate(fabric, *nodes)
        interfaces_up(*nodes)
        ping(*nodes, "10.0.0.2", 20)
        ping(*reversed(nodes), "10.0.0.1", 20)


@test(kernels=(), also=("stock",), timeout=600)
def replug_cards_script_gives_guests_new_cards_after_weftd_was_killed(lab):
    """weftd is killed and started again, while no session watches it and its guests. The example replug-cards adds a new card to each guest by the monitor
    of its QEMU, and the guests ping each other by the new cards."""
    for attempts_left in reversed(range(ATTEMPTS)):
        started = []
        try:
            _replug(lab, started)
            return
        except GuestDied as error:
            if ABORTED not in str(error) or not attempts_left:
                raise
            print(f"QEMU aborted: {error}", flush=True)
        for process in started:
            process.kill()
            process.wait()
