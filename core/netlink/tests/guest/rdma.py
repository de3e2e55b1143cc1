# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests Debian's `rdma` tool on weft's modules: the devices, ports and objects that it shows, and which users and network namespaces see them."""
import contextlib
import json

from lab.fabric import PAIR, Fabric
from lab.testing import test

STACK = ("weft_kern", "weft_core", "weft_mad", "weft_sysfs", "weft_uverbs", "weft_umad", "weft_netlink", "weft_mlx4")
DEVICE = "/sys/class/infiniband/mlx4_0"
NOBODY = "setpriv --reuid 65534 --clear-groups --inh-caps=-all"

# Queries by netlink which counters of a port are enabled (STAT_GET_STATUS), because the tool shows only those that can be switched. Prints a line for
# each: name, number, and whether it can be switched.
STATUS = """
import socket, struct

def attributes(text):
    while text:
        length, kind = struct.unpack_from("=HH", text)
        yield kind & 0x3fff, text[4:length]
        text = text[(length + 3) & ~3:]

asked = struct.pack("=HHIHHI", 8, 1, {device}, 8, 3, {port})
rdma = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 20)
rdma.send(struct.pack("=IHHII", 16 + len(asked), 5 << 10 | 24, 1, 1, 0) + asked)
answer = rdma.recv(65536)
if struct.unpack_from("=IH", answer)[1] == 2:
    print("error", struct.unpack_from("=i", answer, 16)[0])
else:
    for table in (value for kind, value in attributes(answer[16:]) if kind == 80):
        for entry in (dict(attributes(value)) for _, value in attributes(table)):
            print(entry[82][:-1].decode(), struct.unpack("=I", entry[94])[0], 95 in entry)
"""


def rdma_json(node, what, by=""):
    return json.loads(node.run(f"{by} rdma -j {what}").out or "[]")


@contextlib.contextmanager
def weft_node(lab, memory=None):
    """Yields a guest with weft's modules loaded; they can be unloaded at the end."""
    options = {"memory": memory} if memory else {}
    with lab.boot(lab.guest("node1", cards=Fabric(lab, PAIR).sockets[:1], **options)) as (node,):
        node.insmod(*(f"/share/{name}.ko" for name in STACK))
        node.wait_for(f"grep -q ACTIVE {DEVICE}/ports/1/state", timeout=60, what="the port to be active")
        yield node
        node.wait_for("rmmod weft_netlink", what="the end of all who ask")
        node.run("rmmod " + " ".join(name for name in reversed(STACK) if name != "weft_netlink"))


@test(kernels=("um-debug",), also=("stock", "plain", "debug"), timeout=150)
def rdma_tool_lists_devices_and_kernel_objects(lab):
    """`rdma` lists devices, ports and the kernel's own objects correctly, and only privileged users can rename a device. A device can be
    removed while it is listed."""
    with weft_node(lab) as node:
        device, = rdma_json(node, "dev")
        for name, value in (("ifname", "mlx4_0"), ("node_type", "ca")):
            assert device[name] == value, device
        for name in ("node_guid", "sys_image_guid"):
            assert device[name] == node.run(f"cat {DEVICE}/{name}").out.strip(), (name, device)
        assert device["fw"] == node.run(f"cat {DEVICE}/fw_ver").out.strip(), device
        link, = rdma_json(node, "link")
        assert (link["ifname"], link["port"], link["state"], link["physical_state"]) == ("mlx4_0", 1, "ACTIVE", "LINK_UP"), link
        for name in ("lid", "sm_lid"):
            assert link[name] == int(node.run(f"cat {DEVICE}/ports/1/{name}").out, 16), (name, link)
        assert "netns shared" in node.run("rdma system").out

        # The objects of the management agents are listed.
        counts, = rdma_json(node, "resource")
        queues = rdma_json(node, "resource show qp")
        assert {queue["type"] for queue in queues} == {"SMI", "GSI"} and {queue["comm"] for queue in queues} == {"weft_mad"}, queues
        for kind in ("pd", "cq", "mr", "qp", "srq"):
            assert len(rdma_json(node, f"resource show {kind}")) == counts[kind], (kind, counts)
        assert rdma_json(node, "resource show cm_id") == []
        one, = rdma_json(node, f"resource show cq cqn {rdma_json(node, 'resource show cq')[0]['cqn']}")
        assert one["comm"] == "weft_mad", one

        # `rdma statistic` shows the same hardware counters as sysfs.
        counted, = rdma_json(node, "statistic show")
        assert (counted.pop("ifname"), counted.pop("port")) == ("mlx4_0", 1), counted
        shown = node.run(f"cd {DEVICE}/ports/1/hw_counters && grep -H . *_num_*").out.split()
        assert counted == {name: int(value) for name, value in (line.split(":") for line in shown)} and "rq_num_wrfe" in counted, (counted, shown)
        assert "rq_num_wrfe" not in node.run("rdma statistic qp show 2>&1", check=False).out

        assert len(rdma_json(node, "resource show qp", NOBODY)) == counts["qp"]
        assert "not permitted" in node.run(f"{NOBODY} rdma dev set mlx4_0 name other 2>&1", check=False).out
        node.run("rdma dev set mlx4_0 name other")
        assert [device["ifname"] for device in rdma_json(node, "dev")] == ["other"]
        assert node.run("ls /sys/class/infiniband; grep NAME= /sys/class/infiniband/other/uevent").out.split() == ["other", "NAME=other"]
        for wrong in ("a/b", "a%d", "''"):
            assert node.run(f"rdma dev set other name {wrong}", check=False).status != 0, wrong
        node.run("rdma dev set other name mlx4_0")

        asking = [node.spawn(f"while :; do rdma {what}; done >/dev/null 2>&1") for what in ("resource show qp", "resource show cq", "link")]
        for _ in range(lab.rounds(2, 100)):
            node.run("rmmod weft_mlx4")
            node.insmod("/share/weft_mlx4.ko")
        for one in asking:
            one.kill()
        node.run("rmmod weft_mlx4")
        assert rdma_json(node, "dev") == [] and rdma_json(node, "resource") == []
        node.insmod("/share/weft_mlx4.ko")


@test(kernels=("stock",), also=("plain", "debug"), timeout=150)
def device_in_exclusive_netns_mode_is_hidden_from_other_namespaces(lab):
    """Devices are shared by all network namespaces, or each belongs to one. In the latter case other namespaces neither see it by netlink nor open
    its nodes."""
    with weft_node(lab, memory="768M") as node:
        pod = "ip netns exec pod"

        def refused(command):
            result = node.run(f"{command} 2>&1", check=False)
            assert result.status != 0, (command, result.out)
            return result.out

        node.run("ip netns add pod")
        assert rdma_json(node, "dev", pod) == rdma_json(node, "dev")
        node.run(f"{pod} ibv_devinfo -d mlx4_0")
        # As long as another namespace exists, the mode cannot be changed, and no device can be moved.
        assert "busy" in refused("rdma system set netns exclusive")
        assert "not supported" in refused("rdma dev set mlx4_0 netns pod")
        node.run("ip netns del pod")
        node.wait_for("rdma system set netns exclusive", what="the end of the namespace")
        assert "netns exclusive" in node.run("rdma system").out

        node.run("ip netns add pod")
        device, = rdma_json(node, "dev")
        for what in ("dev", "link", "resource"):
            assert rdma_json(node, what, pod) == [], what
        for path in ("uverbs0", "umad0", "issm0"):
            assert "Operation not permitted" in refused(f"{pod} dd of=/dev/infiniband/{path} count=0 conv=notrunc"), path
        assert "not permitted" in refused(f"{NOBODY} rdma dev set mlx4_0 netns pod")
        assert "not permitted" in refused("unshare --user --map-root-user rdma dev set mlx4_0 netns pod")
        assert "busy" in refused("rdma system set netns shared")

        # A program loses its device as if it had been removed; the other namespace can use all of it.
        program = node.spawn("exec ibv_rc_pingpong")
        node.wait_for("rdma resource show qp | grep -q pingpong", timeout=20, what="the program's queue pair")
        node.run("rdma dev set mlx4_0 netns pod")
        assert rdma_json(node, "dev") == []
        assert rdma_json(node, "dev", pod) == [device]
        assert rdma_json(node, "resource show ctx", pod) == []
        node.run(f"{pod} ibv_devinfo -d mlx4_0 && {pod} sminfo")
        for path in ("uverbs0", "umad0", "issm0"):
            assert "Operation not permitted" in refused(f"dd of=/dev/infiniband/{path} count=0 conv=notrunc"), path
        program.kill()

        # When the namespace is deleted, the objects of its programs are released, and the device returns to the first namespace.
        node.run("ip netns del pod")
        node.wait_for("rdma dev show mlx4_0", what="the device's return")
        assert rdma_json(node, "dev") == [device]
        node.run("ibv_devinfo -d mlx4_0")
        # The device is moved back and forth while programs query it, and the driver is removed.
        asking = [node.spawn(f"while :; do rdma {what}; ibv_devinfo; done >/dev/null 2>&1") for what in ("resource show qp", "link")]
        node.run("ip netns attach first 1 && ip netns add pod && for i in 1 2 3 4 5; do rdma dev set mlx4_0 netns pod && "
                 f"{pod} rdma dev set mlx4_0 netns first || exit; done", timeout=60)
        node.run("rdma dev set mlx4_0 netns pod && rmmod weft_mlx4")
        for one in asking:
            one.kill()
        node.run("ip netns del pod")
        node.wait_for("rdma system set netns shared", what="the end of the namespace")
        node.insmod("/share/weft_mlx4.ko")


@test(kernels=("stock",), also=("plain", "debug"), timeout=150)
def rdma_tool_lists_user_objects_with_their_process(lab):
    """A program's objects are listed with their process as long as they exist. Only administrators see keys."""
    with weft_node(lab, memory="768M") as node:
        counts, = rdma_json(node, "resource")
        server = node.spawn("exec ibv_srq_pingpong -q 3")
        node.wait_for("ss -ltn | grep -q :18515", timeout=20, what="ibv_srq_pingpong to listen")
        pid = int(node.run("pidof ibv_srq_pingpong").out)

        def of_program(kind, by=""):
            return [one for one in rdma_json(node, f"resource show {kind}", by) if one.get("pid") == pid]

        for kind, count in (("qp", 3), ("cq", 1), ("mr", 1), ("pd", 1), ("ctx", 1), ("srq", 1)):
            own = of_program(kind)
            # For an SRQ, the tool prints the last of its QPs' numbers there.
            assert len(own) == count and (kind == "srq" or {one["comm"] for one in own} == {"ibv_srq_pingpong"[:15]}), (kind, own)
        queues = of_program("qp")
        assert {one["type"] for one in queues} == {"RC"} and {one["state"] for one in queues} == {"INIT"}, queues
        found, = rdma_json(node, f"resource show qp lqpn {queues[1]['lqpn']}")
        assert found["pid"] == pid, found
        # Consecutive QP numbers are listed as one range.
        takers = json.dumps(of_program("srq")[0]["lqpn"])
        assert str(queues[0]["lqpn"]) in takers, (takers, queues)
        region, = of_program("mr")
        assert region["mrlen"] == 4096 and "rkey" in region and "lkey" in region, region
        region, = of_program("mr", NOBODY)
        assert region["mrlen"] == 4096 and not region.keys() & {"rkey", "lkey"}, region

        # All counters of a port that has counters are always enabled.
        device, = rdma_json(node, "dev")
        counters = [name for name in rdma_json(node, "statistic show")[0] if name not in ("ifname", "port")]
        assert "rq_num_wrfe" in counters, counters
        for port, expected in ((1, [f"{name} {number} False" for number, name in enumerate(counters)]), (2, ["error -22"])):
            node.put("/tmp/status.py", STATUS.format(device=device["ifindex"], port=port))
            status = node.run(f"{NOBODY} python3 /tmp/status.py").out.splitlines()
            assert status == expected, (port, status, expected)

        server.kill()
        node.wait_for(f"rdma resource show qp >/tmp/qps && ! grep -q 'pid {pid} ' /tmp/qps", what="the end of the program's QPs")
        after, = rdma_json(node, "resource")
        assert after == counts, (counts, after)
