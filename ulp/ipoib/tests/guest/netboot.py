# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that a guest boots a kernel over InfiniBand from another guest, with Debian's iPXE, which has its own drivers for the cards and its own
IPoIB."""
import contextlib
import json

from lab import image, ipxe, kernels, vm
from lab.fabric import PAIR
from lab.testing import test

from pair import interfaces_up, load_stock, load_stack, reachable, start_fabric, unload_stack, weft

FILES = ("kernel", "initramfs")
# The guest that boots has a ConnectX-5 or an InfiniHost; iPXE's driver for the latter requires two ports.
MLX5 = PAIR.replace('name = "node2"\n', 'name = "node2"\nmodel = "mlx5"\n')
MTHCA = PAIR.replace('name = "node2"\n', 'name = "node2"\nmodel = "mthca"\nports = 2\n').replace('"node2", ', '"node2/1", ')


@contextlib.contextmanager
def booted_from(lab, server, socket, kernel):
    """iPXE fetches the kernel and its RAM disk from the server by HTTP. Yields the booted guest."""
    server.run("mkdir /tmp/served")
    for name, file in zip(FILES, (kernels.bzimage(kernel), image.initramfs(kernel))):
        server.put(f"/tmp/served/{name}", file.read_bytes())
    server.spawn("busybox httpd -f -p 80 -h /tmp/served")
    script = lab.directory / "boot.ipxe"
    diskless = lab.guest("node2", kernel=kernel.variant, cards=[socket], firmware_script=script, append="weft.fetched=1")
    script.write_text(ipxe.network_boot("10.0.0.2", "10.0.0.1", FILES, vm.command_line(diskless)))
    with lab.boot(diskless) as (client,):
        assert "weft.fetched=1" in client.run("cat /proc/cmdline").out
        yield client


def reach_each_other(server, client):
    client.run("ip link set ib0 up && ip addr add 10.0.0.2/24 dev ib0")
    reachable(client, "10.0.0.1")
    # The firmware's interface had the same address, and another queue pair.
    reachable(server, "10.0.0.2")


def boots_from(lab, server, socket, driver="weft_mlx4"):
    """The booted system has exclusive use of the card and reaches the server."""
    kernel = kernels.find("debug" if lab.kernel == "debug" else "plain")
    with booted_from(lab, server, socket, kernel) as client:
        load_stack(client, driver)
        reach_each_other(server, client)
        unload_stack(client, driver)


@test(kernels=(), also=("plain", "debug"), timeout=300)
def ipxe_boots_a_guest_from_a_server_on_the_weft_stack(lab):
    """A guest boots from a server on weft's stack."""
    sockets = start_fabric(lab)
    with lab.boot(lab.guest("node1", cards=[sockets[0]])) as (server,):
        load_stack(server)
        interfaces_up(server)
        boots_from(lab, server, sockets[1])
        unload_stack(server)


@test(kernels=(), also=("plain", "debug"), timeout=300)
def ipxe_boots_a_guest_from_a_server_on_the_debian_stack(lab):
    """A guest boots from a server on Debian's stack. Only the cards and the fabric are weft's."""
    sockets = start_fabric(lab)
    with lab.boot(lab.guest("node1", cards=[sockets[0]], kernel="stock")) as (server,):
        load_stock(server)
        interfaces_up(server)
        boots_from(lab, server, sockets[1])


@test(kernels=(), also=("plain", "debug"), timeout=300)
def ipxe_boots_a_guest_with_mthca_from_a_server_on_the_debian_stack(lab):
    """A guest with iPXE's driver for the InfiniHost boots from a server with a ConnectX on Debian's stack."""
    sockets = start_fabric(lab, MTHCA)
    with lab.boot(lab.guest("node1", cards=[sockets[0]], kernel="stock")) as (server,):
        load_stock(server)
        interfaces_up(server)
        boots_from(lab, server, sockets[1], "weft_mthca")


@test(kernels=(), also=("stock",), timeout=400)
def ipxe_boots_a_guest_with_mlx5_from_a_server_on_the_debian_stack(lab):
    """A guest with iPXE's driver for the ConnectX-5 boots Debian's kernel from a server with a ConnectX-2. The card refuses no request of either driver."""
    sockets = start_fabric(lab, MLX5)
    with lab.boot(lab.guest("node1", cards=[sockets[0]])) as (server,):
        load_stock(server)
        interfaces_up(server)
        with booted_from(lab, server, sockets[1], kernels.find("stock")) as client:
            load_stock(client, "mlx5_ib")
            reach_each_other(server, client)
            assert json.loads(weft(lab, "--json", "counters", "--cards"))["node2"]["unsupported"] == 0
