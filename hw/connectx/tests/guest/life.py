# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""From probe to remove."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from lab.testing import test
from traffic import Node, pair

CARD = "/sys/bus/pci/devices/0000:01:00.0"
DRIVER = "/sys/bus/pci/drivers/weft_connectx"


@test(kernels=("plain", "stock"), also=("debug",), timeout=600)
def a_card_comes_and_goes(lab):
    """A hundred probes and removes leave nothing behind; each probe registers the device."""
    directory = lab.socket_path("fabric")
    directory.mkdir()
    lab.start(lab.program("weftd"), "--socket-dir", directory, until=(directory / "node1.sock").is_socket)
    with lab.guest("node1", vfio_user=[directory / "node1.sock"]) as guest:
        node = Node(guest)
        node.load()
        rounds = 100 if lab.kernel == "plain" else 20
        out = guest.run(f"""
            for i in $(seq {rounds}); do
                echo 0000:01:00.0 > {DRIVER}/unbind || exit 1
                [ ! -e {CARD}/driver ] || exit 2
                echo 0000:01:00.0 > {DRIVER}/bind || exit 3
                [ -e {CARD}/driver ] || exit 4
            done
            dmesg | grep -c 'started in'""", timeout=400).out
        assert int(out) >= 1
        guest.run(f"echo 1 > {CARD}/remove; echo 1 > /sys/bus/pci/rescan; [ -e {CARD}/driver ]", timeout=60)
        node.unload()
        guest.run("cd /share && insmod weft_kern.ko && insmod weft_core.ko && insmod weft_connectx.ko completion_vectors=0")
        guest.run(f"[ -e {CARD}/driver ] && grep -q 'weft_connectx$' /proc/interrupts && rmmod weft_connectx weft_core weft_kern")
        assert guest.find_leaks() == ""


@test(kernels=("plain", "stock"), also=("debug",), timeout=300)
def a_card_does_with_the_interrupt_pin(lab):
    """Where there is no MSI-X one line serves commands, port events and completions; removal ends that, too."""
    with pair(lab, append="pci=nomsi") as (node1, node2, _):
        one, two = node1.open(type="rc"), node2.open(type="rc")
        one.join(two)
        for sender, receiver in ((one, two), (two, one)):
            receiver.post(count=32, size=1000)
            assert sender.send(count=32, size=1000, seed=5)["done"] == "32"
            assert receiver.receive(count=32, size=1000, seed=5)["good"] == "32"
        for node in (node1, node2):
            interrupts = node.guest.run("grep weft_connectx /proc/interrupts").out.splitlines()
            assert len(interrupts) == 1 and "MSI" not in interrupts[0] and int(interrupts[0].split()[1]) > 20, interrupts
            node.unload()


@test(kernels=("plain", "stock", "debug"), timeout=300)
def a_card_leaves_under_traffic(lab):
    """The card is unbound, and the module removed, while messages stream; the peer's requests end with an error, nobody hangs."""
    with pair(lab) as (node1, node2, _):
        for way, back in ((f"echo 0000:01:00.0 > {DRIVER}/unbind", f"echo 0000:01:00.0 > {DRIVER}/bind"),
                          (f"echo 1 > {CARD}/remove", "echo 1 > /sys/bus/pci/rescan"),
                          ("rmmod weft_connectx", "insmod /share/weft_connectx.ko")):
            one, two = node1.open(type="rc"), node2.open(type="rc")
            one.join(two, timeout=14, retry=2)
            two.post(count=16, size=4000)
            receiver = node2.guest.spawn(f"echo 'receive id={two.number} count=100000 size=4000 repost=1' > /sys/kernel/debug/weft_traffic/control")
            sender = node1.guest.spawn(f"echo 'send id={one.number} count=100000 size=4000' > /sys/kernel/debug/weft_traffic/control")
            node2.guest.wait_for("awk '/weft_connectx-completion/ {exit $2 < 50}' /proc/interrupts", timeout=30)
            node2.guest.run(way, timeout=60)
            assert receiver.wait(timeout=60, check=False).status != 0
            assert sender.wait(timeout=90).status == 0 and 'failed=0' not in node1.command(f"state id={one.number}")['']
            node2.guest.run(f"[ ! -e {DRIVER}/0000:01:00.0 ]")
            node2.guest.run(back, timeout=60)
            node2.wait_active()
            one.close()


@test(kernels=("plain", "stock", "debug"), timeout=300)
def a_failed_card_comes_back(lab):
    """A card that fails under traffic, or that the kernel resets by FLR: what was queued is flushed, the device is registered anew, and carries
    traffic again."""
    with pair(lab) as (node1, node2, _):
        for way in ("/sys/kernel/debug/weft_connectx/*/reset", f"{CARD}/reset", "/sys/kernel/debug/weft_connectx/*/reset"):
            one, two = node1.open(type="rc"), node2.open(type="rc")
            one.join(two, timeout=14, retry=2)
            two.post(count=16, size=4000)
            receiver = node2.guest.spawn(f"echo 'receive id={two.number} count=100000 size=4000 repost=1' > /sys/kernel/debug/weft_traffic/control")
            sender = node1.guest.spawn(f"echo 'send id={one.number} count=100000 size=4000' > /sys/kernel/debug/weft_traffic/control")
            node2.guest.wait_for("awk '/weft_connectx-completion/ {exit $2 < 50}' /proc/interrupts", timeout=30)
            before = int(node2.guest.run("cat /sys/kernel/debug/weft_connectx/*/reset").out)
            node2.guest.run(f"echo 1 > {way}", timeout=60)
            receiver.wait(timeout=60, check=False)
            sender.wait(timeout=90, check=False)
            node2.guest.wait_for(f"[ $(cat /sys/kernel/debug/weft_connectx/*/reset) -gt {before} ]", timeout=60)
            node2.wait_active()
            assert "recoveries" in node2.guest.run("cat /sys/kernel/debug/weft_connectx/*/summary").out
            one.close()
        one, two = node1.open(type="rc"), node2.open(type="rc")
        one.join(two)
        two.post(count=16, size=4000)
        assert one.send(count=16, size=4000, seed=5)["done"] == "16"
        assert two.receive(count=16, size=4000, seed=5)["good"] == "16"
