# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that the diagnostic tools of infiniband-diags show nodes, links, routes and counters of the emulated fabric correctly."""
import json
import re
import tomllib

from lab.testing import test

from stock import check, interfaces_up, lid, pair, ping

COUNTED = re.compile(r"^(\w+):\.*(\d+)$", re.MULTILINE)


def counters(text):
    return {name: int(value) for name, value in COUNTED.findall(text)}


@test(kernels=("stock",), timeout=300)
def infiniband_diags_report_the_topology_of_the_lab(lab):
    """ibnetdiscover, iblinkinfo, ibtracert, ibroute, smpquery, sminfo, saquery, perfquery and ibping agree with the lab."""
    with pair(lab) as (fabric, (node1, node2)):
        interfaces_up(node1, node2)
        one, two = lid(node1), lid(node2)
        with check("ibnetdiscover finds the switch and every end port, connected as in the lab file"):
            out = node1.run("ibnetdiscover").out
            assert re.search(r'^Switch\s+36 "S-\w+"\s+# "switch1" base port 0 lid \d+', out, re.MULTILINE), out
            guids = {host["name"]: host["guid"] for host in json.loads(fabric.weft("--json", "fabric", "show"))["hosts"]}
            for port, (name, where) in enumerate((("node1", one), ("node2", two)), 1):
                guid = guids[name].removeprefix("0x")
                assert guid.startswith("0002c903"), guid
                assert re.search(rf'^\[{port}\]\s+"H-{guid}"\[1\]\(\w+\)\s+# "{name} [^"]*" lid {where} 4xQDR', out, re.MULTILINE), out
            assert len(re.findall(r"^Ca\s", out, re.MULTILINE)) == 3, out
        with check("`weft topology import` converts that into a lab with the same switch, hosts and cables"):
            made = tomllib.loads(fabric.weft("topology", "import", "-", input=out))
            assert sorted((node["name"], node["guid"]) for node in made["host"]) == [(name, f"0x{int(guids[name], 16):016x}") for name in ("node1", "node2")], made
            assert [node["name"] for node in made["switch"]] == ["switch1"], made
            assert sorted((sorted(link["ends"]), link["width"], link["speed"]) for link in made["link"]) == [
                ([f"node{port}/1", f"switch1/{port}"], "4x", "QDR") for port in (1, 2)], made
        with check("iblinkinfo shows three active links, at 4X QDR"):
            out = node1.run("iblinkinfo --switches-only").out
            assert len(re.findall(r"4X\s+10\.0 Gbps Active/  LinkUp", out)) == 3 and "Down/" in out, out
        with check("iblinkinfo shows a link that is down, and shows it as active once it is up again"):
            fabric.weft("link", "down", "node2")
            node1.wait_for("iblinkinfo --switches-only | grep -c Active | grep -qx 2", what="two links left")
            assert '"node2' not in node1.run("ibnetdiscover").out
            fabric.weft("link", "up", "node2")
            node1.wait_for("iblinkinfo --switches-only | grep -c Active | grep -qx 3", what="the third link")
        with check("ibtracert, ibroute and smpquery follow the forwarding tables"):
            out = node1.run(f"ibtracert {one} {two}").out
            assert re.search(r"\[2\] -> ca port", out) and '"switch1"' in out, out
            switch = int(re.search(r'# "switch1" base port 0 lid (\d+)', node1.run("ibnetdiscover").out)[1])
            out = node1.run(f"ibroute {switch}").out
            assert re.search(rf"^0x{two:04x} 002 : ", out, re.MULTILINE), out
            assert "LinkState:.......................Active" in node1.run(f"smpquery portinfo {switch} 1").out
            assert "NodeType:........................Channel Adapter" in node2.run(f"smpquery nodeinfo {one}").out
            assert "0: 0xffff" in node2.run(f"smpquery pkeys {one}").out
        with check("sminfo and saquery find weft's subnet manager, its nodes, ports, paths and groups"):
            assert re.search(rf"sm lid {int(node1.run('cat /sys/class/infiniband/mlx4_0/ports/1/sm_lid').out, 16)} .*SMINFO_MASTER", node1.run("sminfo").out)
            assert node1.run("saquery NR").out.count("NodeRecord dump") == 4
            assert node1.run("saquery PIR").out.count("PortInfoRecord dump") >= 6
            assert re.search(rf"dlid\.+{two}\b", node1.run(f"saquery PR --src-to-dst {one}:{two}").out)
            assert "ff12:401b:ffff::ffff:ffff" in node1.run("saquery -g").out
            assert node1.run("saquery MCMR --gid-prefix 0 -m 0xc000 || true").status == 0
        with check("perfquery shows the packets and bytes sent, and resets the counters"):
            before = counters(node1.run("perfquery -x").out)
            ping(node1, node2, "10.0.0.2", 500, "-f -s 1000")
            after = counters(node1.run("perfquery -x").out)
            for packets, data in (("PortXmitPkts", "PortXmitData"), ("PortRcvPkts", "PortRcvData")):
                assert after[packets] - before[packets] >= 500, (before, after)
                # Words of four bytes: LRH, BTH, DETH, IPoIB's, IP's and ICMP's headers, the data, the ICRC.
                assert after[data] - before[data] >= 500 * (8 + 12 + 8 + 4 + 20 + 8 + 1000 + 4) // 4, (before, after)
            for what in ("SymbolErrorCounter", "PortRcvErrors", "PortXmitDiscards", "VL15Dropped"):
                assert counters(node1.run(f"perfquery {two}").out)[what] == 0
            node1.run(f"perfquery -x -R {two}")
            assert counters(node2.run("perfquery -x").out)["PortXmitPkts"] < before["PortXmitPkts"] + 500
        with check("ibping gets 1000 answers to 1000"):
            server = node2.spawn("ibping -S")
            node1.wait_for(f"ibping -c 1 {two} | grep -q ' 1 received'", what="ibping's server")
            out = node1.run(f"ibping -f -t 10000 -c 1000 {two}").out
            assert "1000 packets transmitted, 1000 received, 0% packet loss" in out, out
            server.kill()
        with check("no error counter has increased except LinkDowned of the pulled cable"):
            out = node1.run("ibqueryerrors --suppress LinkDownedCounter", check=False).out
            assert re.search(r"(\d+) nodes checked, 0 bad nodes found", out), out
