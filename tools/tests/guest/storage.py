# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests kernel users of verbs and of the connection manager: Debian's storage targets and initiators (NVMe over RDMA, SRP, iSER), and reliable
datagram sockets (RDS)."""
import subprocess

from lab import cache
from lab.testing import test

from stock import active, check, complaints, interfaces_up, pair

MEGABYTES = 8
NQN = "nqn.2014-08.org.nvmexpress:weft"

NVME_TARGET = f"""
modprobe brd rd_nr=1 rd_size={MEGABYTES << 10}
modprobe -a nvmet nvmet-rdma
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
cd /sys/kernel/config/nvmet
mkdir -p subsystems/{NQN}/namespaces/1 ports/1
echo 1 > subsystems/{NQN}/attr_allow_any_host
echo -n /dev/ram0 > subsystems/{NQN}/namespaces/1/device_path
echo 1 > subsystems/{NQN}/namespaces/1/enable
echo rdma > ports/1/addr_trtype
echo ipv4 > ports/1/addr_adrfam
echo 10.0.0.1 > ports/1/addr_traddr
echo 4420 > ports/1/addr_trsvcid
ln -s subsystems/{NQN} ports/1/subsystems/{NQN}
"""

# Target and initiator are identified by the GUIDs of their ports, in groups of four digits.
SRP_TARGET = f"""
modprobe -a target_core_mod ib_srpt
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
cd /sys/kernel/config/target
mkdir -p core/rd_mcp_0/disk
echo rd_pages={MEGABYTES << 8} > core/rd_mcp_0/disk/control
echo 1 > core/rd_mcp_0/disk/enable
group=srpt/@TARGET@/@TARGET@
mkdir -p $group/lun/lun_0 $group/acls/@INITIATOR@
ln -s core/rd_mcp_0/disk $group/lun/lun_0/disk
mkdir $group/acls/@INITIATOR@/lun_0
ln -s $group/lun/lun_0 $group/acls/@INITIATOR@/lun_0/disk
echo 1 > $group/enable
"""

ISCSI_NAME = "iqn.2014-08.com.example:disk"
ISCSI_PROGRAMS = ("open-iscsi", "libopeniscsiusr", "libisns0")      # for stock.programs()
# Any initiator may log in, without a password.
ISER_TARGET = f"""
modprobe -a target_core_mod iscsi_target_mod ib_isert
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
cd /sys/kernel/config/target
mkdir -p core/rd_mcp_0/iscsi_disk
echo rd_pages={MEGABYTES << 8} > core/rd_mcp_0/iscsi_disk/control
echo 1 > core/rd_mcp_0/iscsi_disk/enable
mkdir -p iscsi
group=iscsi/{ISCSI_NAME}/tpgt_1
mkdir -p $group/np/10.0.0.1:3260 $group/lun/lun_0
echo 1 > $group/np/10.0.0.1:3260/iser
ln -s core/rd_mcp_0/iscsi_disk $group/lun/lun_0/disk
echo 0 > $group/attrib/authentication
echo 1 > $group/attrib/generate_node_acls
echo 0 > $group/attrib/demo_mode_write_protect
echo 1 > $group/enable
"""
# Discovery uses TCP and does not find this target.
ISER_LOGIN = f"""
mkdir -p /etc/iscsi/nodes /run/lock/iscsi
echo InitiatorName=iqn.2014-08.com.example:host > /etc/iscsi/initiatorname.iscsi
modprobe -a ib_iser sd_mod
iscsid
iscsiadm -m node -o new -T {ISCSI_NAME} -p 10.0.0.1:3260 -I iser
iscsiadm -m node -T {ISCSI_NAME} -p 10.0.0.1:3260 -I iser --login
"""


def gid(node):
    """Returns the groups of digits of the port's first GID."""
    return node.run("cat /sys/class/infiniband/*/ports/1/gids/0").out.strip().split(":")


def random_data(node):
    node.run(f"dd if=/dev/urandom of=/tmp/data bs=1M count={MEGABYTES} status=none")


def write_and_compare(node, device):
    """Checks that data written to a disk by RDMA is read back unchanged. Caches are bypassed."""
    random_data(node)
    node.run(f"dd if=/tmp/data of={device} bs=256k oflag=direct status=none", timeout=60)
    compare(node, device)


def compare(node, device):
    node.run(f"dd if={device} of=/tmp/read bs=256k count={MEGABYTES << 2} iflag=direct status=none && cmp /tmp/data /tmp/read", timeout=60)


def same(target, device, host):
    """Checks that the target's disk contains the host's data, with direct I/O because the target's driver does not update the page cache."""
    digest = target.run(f"dd if={device} bs=256k count={MEGABYTES << 2} iflag=direct status=none | sha256sum").out
    assert digest == host.run("sha256sum < /tmp/data").out, digest


def nvme_over_rdma(fabric, target, host):
    target.run(f"set -e\n{NVME_TARGET}")
    host.run("modprobe nvme-rdma")
    host.run(f"echo transport=rdma,traddr=10.0.0.1,trsvcid=4420,nqn={NQN},nr_io_queues=1,reconnect_delay=1 > /dev/nvme-fabrics", timeout=60)
    host.wait_for("test -b /dev/nvme0n1", timeout=30, what="the disk")
    write_and_compare(host, "/dev/nvme0n1")
    with check("the target's own disk contains the written data"):
        same(target, "/dev/ram0", host)
    with check("no data is lost if the link flaps during writes"):
        random_data(host)
        # The last round begins after the last flap, so it has rewritten the whole disk.
        writer = host.spawn("while :; do last=; test -e /tmp/stop && last=1; "
                            "dd if=/tmp/data of=/dev/nvme0n1 bs=64k oflag=direct status=none || exit 1; test -z \"$last\" || exit 0; done")
        for _ in range(3):
            fabric.weft("link", "down", "node2")
            host.wait_for("! grep -q ACTIVE /sys/class/infiniband/*/ports/1/state", timeout=30, what="the loss of the link")
            fabric.weft("link", "up", "node2")
            active(host)
        host.run("touch /tmp/stop")
        writer.wait(120)
        compare(host, "/dev/nvme0n1")
        same(target, "/dev/ram0", host)
    host.run("for c in /sys/class/nvme/nvme*/delete_controller; do echo 1 > $c; done", timeout=60)


def srp(target, host):
    """The target's disk is a RAM disk that is accessible only by SRP, so data that is read back has been transferred by SRP."""
    listener, initiator = (":".join(gid(node)[4:]) for node in (target, host))
    guid = target.run("cat /sys/class/infiniband/*/node_guid").out.strip().replace(":", "")
    target.run("set -e\n" + SRP_TARGET.replace("@TARGET@", listener).replace("@INITIATOR@", initiator), timeout=60)
    with check("the target listens on its node's GUID, which the communication manager does not take for a service ID of its own"):
        assert complaints(target, "ib_cm_listen|ib_srpt.*failed") == ""
    host.run("modprobe -a sd_mod ib_srp")
    login = f"id_ext={guid},ioc_guid={guid},dgid={''.join(gid(target))},pkey=ffff,service_id={guid}"
    host.run(f"echo {login} > /sys/class/infiniband_srp/srp-*-1/add_target", timeout=60)
    host.wait_for("test -b /dev/sda", timeout=30, what="the disk")
    write_and_compare(host, "/dev/sda")
    host.run("for port in /sys/class/srp_remote_ports/port-*/delete; do echo 1 > $port; done", timeout=60)
    host.wait_for("! test -b /dev/sda", timeout=30, what="the end of the session")


def iser(target, host):
    """Linux's target over iSER, and open-iscsi from the host's shared folder, transfer data of a RAM disk that is accessible only by iSER."""
    target.run(f"set -e\n{ISER_TARGET}", timeout=60)
    host.run(f"set -e\n{ISER_LOGIN}", timeout=90)
    host.wait_for("test -b /dev/sda", timeout=30, what="the disk")
    assert "Iface Transport: iser" in host.run("iscsiadm -m session -P 1").out
    write_and_compare(host, "/dev/sda")
    host.run(f"iscsiadm -m node -T {ISCSI_NAME} --logout", timeout=60)
    host.wait_for("! test -b /dev/sda", timeout=30, what="the end of the session")


def reliable_datagrams(lab, fabric, server, client):
    """rds_rdma returns each datagram of up to 64 KiB unchanged and in order, and its connection survives a link flap."""
    program = lab.directory / "rds"
    source = cache.TREE / "tools/tests/guest/rds.c"
    subprocess.run(["gcc", "-O2", "-static", "-Wall", "-Wextra", "-Werror", source, "-o", program], stdin=subprocess.DEVNULL, check=True)
    for node in (server, client):
        node.put("/tmp/rds", program.read_bytes())
        node.run("chmod +x /tmp/rds && modprobe rds_rdma")
        assert "rds_tcp" not in node.run("cat /proc/modules").out
    serving = server.spawn("/tmp/rds serve 10.0.0.1")
    try:
        server.wait_for("grep -q RDS /proc/net/protocols && pgrep -x rds", timeout=20, what="the server")
        client.run("/tmp/rds ask 10.0.0.2 10.0.0.1 200", timeout=60)
        asking = client.spawn("/tmp/rds ask 10.0.0.2 10.0.0.1 1000")
        fabric.weft("link", "down", "node2")
        client.wait_for("! grep -q ACTIVE /sys/class/infiniband/*/ports/1/state", timeout=30, what="the loss of the link")
        fabric.weft("link", "up", "node2")
        asking.wait(120)
    finally:
        serving.kill()
        serving.wait(30, check=False)


@test(kernels=("stock",), timeout=300)
def srp_rds_and_nvme_over_rdma_transfer_data(lab):
    """nvmet-rdma with nvme-rdma and ib_srpt with ib_srp transfer disks' data unchanged, the former also over a link that flaps. RDS returns every
    datagram."""
    with pair(lab) as (fabric, (target, host)):
        interfaces_up(target, host)
        with check("NVMe over RDMA transfers a disk's data unchanged"):
            nvme_over_rdma(fabric, target, host)
        with check("SRP transfers a disk's data unchanged"):
            srp(target, host)
        with check("RDS returns every datagram"):
            reliable_datagrams(lab, fabric, target, host)
