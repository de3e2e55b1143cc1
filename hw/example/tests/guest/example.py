# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs the example device and its driver, as described in Documentation/write-a-card.rst."""
import json

from lab.fabric import Fabric
from lab.testing import test

LAB = """
[[host]]
name = "node1"
model = "example"
[sm]
enabled = false
"""
MODULES = "insmod /share/weft_kern.ko; insmod /share/weft_example.ko"
DRIVER = "/sys/bus/pci/drivers/weft_example"


def bound(guest):
    return guest.run(f"ls -d {DRIVER}/0000:* 2>/dev/null | wc -l").out.strip() == "1"


@test(kernels=("um-debug",), also=("um", "stock", "debug", "plain"), timeout=120)
def driver_sends_messages_and_does_not_bind_to_an_unresponsive_device(lab):
    """The driver sends messages through the device, can be unbound and bound again, and refuses a device that does not respond."""
    fabric = Fabric(lab, LAB)
    with lab.guest("node1", cards=fabric.sockets) as guest:
        guest.run(MODULES)
        assert bound(guest)
        assert "128 messages in" in guest.run("dmesg | grep weft_example").out
        counts = json.loads(fabric.weft("--json", "counters", "--cards"))["node1"]
        assert counts == {"doorbells": 128, "requests": 128, "interrupts": 128}, counts

        card = guest.run(f"cd {DRIVER}; ls -d 0000:*").out.strip()
        guest.run(f"echo {card} > {DRIVER}/unbind; echo {card} > {DRIVER}/bind")
        assert bound(guest)

        fabric.weft("card", "fault", "node1", "interrupt-lost")
        guest.run(f"echo {card} > {DRIVER}/unbind; echo {card} > {DRIVER}/bind", check=False)
        assert not bound(guest), "a driver whose first interrupt never came has taken the device"
        guest.run(f"echo {card} > {DRIVER}/bind")
        assert bound(guest)
        guest.run("rmmod weft_example weft_kern")
