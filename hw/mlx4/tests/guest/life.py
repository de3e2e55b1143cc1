# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests the life cycle of a card from probe to remove. If there is a peer, its guest uses weft's modules or, in separate tests, Debian's in-tree
stack. The repeated probes have no peer."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from lab.fabric import Fabric
from lab.testing import test
from traffic import Node, Refused, event_delay, pair

DRIVER = "/sys/bus/pci/drivers/weft_mlx4"


def stream(sender, receiver):
    """Starts endless messages from one node to the other; returns both endpoints and the two running commands."""
    one, two = sender.open(type="rc"), receiver.open(type="rc")
    one.join(two, retry=2)
    two.post(count=16, size=4000)
    commands = two.start("receive count=100000 size=4000 repost=1"), one.start("send count=100000 size=4000")
    receiver.guest.wait_for("awk '/weft_mlx4-completion/ {exit $2 < 50}' /proc/interrupts", timeout=30)
    return one, two, *reversed(commands)


def is_refused(command, timeout):
    """Returns True if a command that was started fails."""
    try:
        command(timeout)
    except Refused:
        return True
    return False


def check_messages(one, two):
    for sender, receiver in ((one, two), (two, one)):
        receiver.post(count=16, size=4000)
        assert sender.send(count=16, size=4000, seed=5)["done"] == "16"
        assert receiver.receive(count=16, size=4000, seed=5)["good"] == "16"


def check_removal(peer, node):
    """Removes the node's card under traffic from its peer in three ways, and adds it again."""
    card = node.guest.card
    for way, back in ((f"echo {card.name} > {DRIVER}/unbind", f"echo {card.name} > {DRIVER}/bind"),
                      (f"echo 1 > {card}/remove", "echo 1 > /sys/bus/pci/rescan"),
                      ("rmmod weft_mlx4", "insmod /share/weft_mlx4.ko")):
        one, _, sends, receives = stream(peer, node)
        node.guest.run(way, timeout=60)
        assert is_refused(receives, 60)
        assert int(sends(90)["failed"]) > 0
        node.guest.run(f"[ ! -e {DRIVER}/{card.name} ]")
        node.guest.run(back, timeout=60)
        node.wait_active()
        one.close()


def check_recovery(peer, node):
    """The node's card fails, is reset and fails again, each under traffic from its peer."""
    for way in ("/sys/kernel/debug/weft_mlx4/*/reset", f"{node.guest.card}/reset", "/sys/kernel/debug/weft_mlx4/*/reset"):
        one, _, sends, receives = stream(peer, node)
        before = int(node.guest.run("cat /sys/kernel/debug/weft_mlx4/*/reset").out)
        node.guest.run(f"echo 1 > {way}", timeout=60)
        is_refused(receives, 60)
        assert int(sends(90)["failed"]) > 0
        node.guest.wait_for(f"[ $(cat /sys/kernel/debug/weft_mlx4/*/reset) -gt {before} ]", timeout=60)
        node.wait_active()
        assert "recoveries" in node.guest.run("cat /sys/kernel/debug/weft_mlx4/*/summary").out
        one.close()
    one, two = peer.open(type="rc"), node.open(type="rc")
    one.join(two)
    check_messages(one, two)


@test(kernels=("stock",), also=("plain", "debug"), timeout=600)
def repeated_probes_leak_no_resources(lab):
    """A hundred probes and removes leave nothing behind; each probe registers the device."""
    with lab.guest("node1", cards=Fabric(lab).sockets[:1]) as guest:
        card = guest.card
        node = Node(guest)
        node.load()
        rounds = 100 if lab.kernel == "plain" else 20
        out = guest.run(f"""
            for i in $(seq {rounds}); do
                echo {card.name} > {DRIVER}/unbind || exit 1
                [ ! -e {card}/driver ] || exit 2
                echo {card.name} > {DRIVER}/bind || exit 3
                [ -e {card}/driver ] || exit 4
            done
            dmesg | grep -c 'started in'""", timeout=400).out
        assert int(out) >= 1
        guest.run(f"echo 1 > {card}/remove; echo 1 > /sys/bus/pci/rescan; [ -e {card}/driver ]", timeout=60)
        node.unload()
        guest.run("cd /share && insmod weft_kern.ko && insmod weft_core.ko && insmod weft_mlx4.ko completion_vectors=0")
        guest.run(f"[ -e {card}/driver ] && grep -q 'weft_mlx4$' /proc/interrupts && rmmod weft_mlx4 weft_core weft_kern")
        assert guest.find_leaks() == ""


@test(kernels=("stock",), also=("plain", "debug"), timeout=300)
def commands_events_and_completions_share_one_intx_interrupt(lab):
    """Without MSI-X, one interrupt line serves commands, port events and completions, also during removal."""
    with pair(lab, append="pci=nomsi") as (node1, node2, _):
        one, two = node1.open(type="rc"), node2.open(type="rc")
        one.join(two)
        check_messages(one, two)
        # Sender and receiver usually also poll now and then; here only an event ends the wait.
        for sender, receiver in ((one, two), (two, one)):
            event_delay(sender, receiver)
        for node in (node1, node2):
            interrupts = node.guest.run("grep weft_mlx4 /proc/interrupts").out.splitlines()
            assert len(interrupts) == 1 and "MSI" not in interrupts[0] and int(interrupts[0].split()[1]) > 20, interrupts
            node.unload()


@test(kernels=("debug",), also=("stock", "plain"), timeout=300)
def card_can_be_removed_under_traffic(lab):
    """The driver is unbound, and the module removed, under traffic. The peer's requests end with an error, and nothing hangs."""
    with pair(lab) as (node1, node2, _):
        check_removal(node1, node2)


@test(kernels=("um-debug",), also=("debug", "stock", "plain"), timeout=300)
def failed_card_is_reset_and_carries_traffic_again(lab):
    """If the card fails under traffic, or the kernel resets it by FLR, queued requests are flushed, the device is registered again, and carries
    traffic. Each time, event handlers are notified of the failure."""
    with pair(lab) as (node1, node2, _):
        check_recovery(node1, node2)
        assert node2.events()["device fatal error"] == 3, node2.events()


@test(kernels=(), also=("stock", "plain", "debug"), timeout=300)
def card_recovers_from_pci_errors(lab):
    """After a PCI error that the root port reports and that leaves the link up, the card is stopped and restarted and carries traffic again. Errors
    that reset the link are not tested: QEMU's root port does not report the link as active afterwards, and Linux disables the device."""
    with pair(lab) as (node1, node2, _):
        # The port that the card is behind, by the name that QEMU's command line gives it.
        ports = [device["qdev_id"] for bus in node2.guest.qmp("query-pci") for device in bus["devices"] if "pci_bridge" in device
                 and device["pci_bridge"].get("devices")]
        for error, rounds in (("COMP_TIME", 1), ("UNX_COMP", 2)):
            before = int(node2.guest.run("cat /sys/kernel/debug/weft_mlx4/*/reset").out)
            node2.guest.qmp("human-monitor-command", **{"command-line": f"pcie_aer_inject_error {ports[0]} {error}"})
            node2.guest.wait_for(f"[ $(cat /sys/kernel/debug/weft_mlx4/*/reset) -gt {before} ]", timeout=60, what=f"recovery from {error}")
            node2.wait_active()
            node2.guest.wait_for(f'[ "$(dmesg | grep -c "device recovery successful")" -eq {rounds} ]', timeout=60, what=f"the end of the recovery from {error}")
        one, two = node1.open(type="rc"), node2.open(type="rc")
        one.join(two)
        check_messages(one, two)


@test(kernels=(), also=("stock", "plain", "debug"), timeout=300)
def peer_on_the_debian_stack_gets_error_completions_if_the_card_fails_or_is_removed_or_reset(lab):
    """When the card is removed, fails or is reset by FLR under traffic from a peer on Debian's stack, the peer's requests complete with an error.
    The card also works with INTx."""
    with pair(lab, stock_peer=True) as (ours, theirs, _):
        check_removal(theirs, ours)
        check_recovery(theirs, ours)
        ours.guest.run("rmmod weft_mlx4 && insmod /share/weft_mlx4.ko completion_vectors=0")
        ours.wait_active()
        one, two = ours.open(type="rc"), theirs.open(type="rc")
        one.join(two)
        check_messages(one, two)
        assert "MSI" not in ours.guest.run("grep weft_mlx4 /proc/interrupts").out
        ours.unload()
