# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that Debian's drivers probe the card and report no error."""
import re

from lab.testing import test

from stock import active, check, complaints, guests, lid, load, unload


def field(text, name):
    """Returns the value of `name: value` in the output of ibstat or ibv_devinfo."""
    return next(line.split(":", 1)[1].strip() for line in text.splitlines() if line.strip().startswith(name + ":"))


@test(kernels=("stock",), timeout=120)
def drivers_probe_without_warnings(lab):
    """mlx4_core, mlx4_ib and ib_ipoib probe without a warning, and ibstat and ibv_devinfo -v show an active card."""
    with guests(lab) as (_, nodes):
        for node in nodes:
            node.run("dmesg -C")
        load(*nodes)
        active(*nodes)
        for node in nodes:
            with check("neither the drivers nor the PCI bus log a warning during the probe"):
                assert complaints(node) == "", complaints(node)
            with check("ibstat shows an active port with a LID"):
                said = node.run("ibstat").out
                assert field(said, "State") == "Active" and field(said, "Physical state") == "LinkUp", said
                assert field(said, "CA type") == "MT26428" and field(said, "Rate") == "40", said
                assert 0 < int(field(said, "Base lid")) < 0xc000 and 0 < int(field(said, "SM lid")) < 0xc000, said
            with check("ibv_devinfo -v shows the attributes of the card"):
                said = node.run("ibv_devinfo -v").out
                guid = field(said, "node_guid")
                assert re.fullmatch("0002:c903:[0-9a-f]{4}:[0-9a-f]{4}", guid) and field(said, "vendor_part_id") == "26428", said
                # The port's GUID is the next one.
                assert field(said, "GID[  0]").startswith(f"fe80:0000:0000:0000:{guid[:-4]}{int(guid[-4:], 16) + 1:04x}"), said
                assert field(said, "state").startswith("PORT_ACTIVE") and field(said, "active_mtu").startswith("4096"), said
                for offered in ("XRC", "MEM_MGT_EXTENSIONS", "MEM_WINDOW_TYPE_2B", "UD_IP_CSUM", "atomic_cap:\t\t\tATOMIC_HCA"):
                    assert offered in said, said
            with check("the card uses MSI-X"):
                assert "PCI-MSI" in node.run("grep mlx4 /proc/interrupts").out
        assert lid(nodes[0]) != lid(nodes[1])
        unload(*nodes)


@test(kernels=("stock",), timeout=120)
def card_uses_intx_if_msi_x_is_disabled(lab):
    """With msi_x=0 the card uses INTx, and 500 pings are answered."""
    with guests(lab) as (_, nodes):
        load(*nodes, options="msi_x=0")
        active(*nodes)
        node1, node2 = nodes
        interrupts = node1.run("grep mlx4 /proc/interrupts").out
        assert "IO-APIC" in interrupts and "MSI" not in interrupts, interrupts
        server = node1.spawn("ibping -S")
        node1.wait_for("pgrep ibping", what="ibping's server")
        node2.wait_for(f"ibping -c 1 -t 500 {lid(node1)} | grep -q ' 1 received'", what="a first answer")
        out = node2.run(f"ibping -f -t 10000 -c 500 {lid(node1)}").out
        assert "500 packets transmitted, 500 received, 0% packet loss" in out, out
        server.kill()
        assert int(node1.run("awk '/mlx4/ {print $2}' /proc/interrupts").out.split()[0]) > 500
        unload(*nodes)
