#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests generated and converted topologies: their switches, hosts and links, and that weftd accepts each; and that it accepts the example lab files.

    topology_test.py WEFT WEFTD
"""
import collections
import contextlib
import io
import pathlib
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "session"), str(HERE.parents[2] / "scripts")]

import topology  # noqa: E402
from lab.errors import LabError  # noqa: E402

# Two switches and two hosts, one of them by two ports, and a lab's own manager.
DISCOVERED = """#
# Topology file: generated on Sun Nov 22 2026
#
# Initiated from node 0002c90300000a10 port 0002c90300000a11

vendid=0x2c9
devid=0xbd36
sysimgguid=0x2c90200000001
switchguid=0x2c90200000001(2c90200000001)
Switch\t36 "S-0002c90200000001"\t\t# "MF0;rack-1:SX6036/U1" enhanced port 0 lid 1 lmc 0
[1]\t"H-0002c90300000a10"[1](2c90300000a11) \t\t# "alpha HCA-1" lid 4 4xQDR
[2]\t"H-0002c90300000b10"[1](2c90300000b11) \t\t# "beta mlx4_0" lid 5 4xFDR
[36]\t"S-0002c90200000002"[36]\t\t# "MF0;rack-1:SX6036/U1" lid 2 4xFDR10
[35]\t"H-0002c90300000c10"[1](2c90300000c11) \t\t# "weft SM" lid 3 4xQDR

vendid=0x2c9
switchguid=0x2c90200000002(2c90200000002)
Switch\t36 "S-0002c90200000002"\t\t# "MF0;rack-1:SX6036/U1" enhanced port 0 lid 2 lmc 0
[36]\t"S-0002c90200000001"[36]\t\t# "MF0;rack-1:SX6036/U1" lid 1 4xFDR10
[7]\t"H-0002c90300000b10"[2](2c90300000b12) \t\t# "beta mlx4_0" lid 6 4xSDR

vendid=0x2c9
caguid=0x2c90300000a10
Ca\t2 "H-0002c90300000a10"\t\t# "alpha HCA-1"
[1](2c90300000a11) \t"S-0002c90200000001"[1]\t\t# lid 4 lmc 0 "MF0;rack-1:SX6036/U1" lid 1 4xQDR

caguid=0x2c90300000b10
Ca\t2 "H-0002c90300000b10"\t\t# "beta mlx4_0"
[1](2c90300000b11) \t"S-0002c90200000001"[2]\t\t# lid 5 lmc 0 "MF0;rack-1:SX6036/U1" lid 1 4xFDR
[2](2c90300000b12) \t"S-0002c90200000002"[7]\t\t# lid 6 lmc 0 "MF0;rack-1:SX6036/U1" lid 2 4xSDR

caguid=0x2c90300000c10
Ca\t1 "H-0002c90300000c10"\t\t# "weft SM"
[1](2c90300000c11) \t"S-0002c90200000001"[35]\t\t# lid 3 lmc 0 "MF0;rack-1:SX6036/U1" lid 1 4xQDR
"""

# The format of a network of ibsim; the link to "third" is listed at one end only.
IBSIM = """# Net configuration file
Switch\t8 "Switch1"
[1]\t"Hca1"[1]
[2]\t"Hca2"[2]\tw=12
[3]\t"Switch2"[3]
[4]\t"Switch2" [4]

Switch 8 "Switch2"
[3]\t"Switch1"[3]
[4]\t"Switch1"[4]
[5]\t"third node"[1]

Hca\t2 "Hca1"
[1]\t"Switch1"[1]

Hca\t2 "Hca2"
[2]\t"Switch1"[2] w=12

Hca 1 "third node"
"""


def lab_of(made):
    return tomllib.loads(made.text())


def degrees(made):
    """Returns the number of links between switches of each switch, by name."""
    counted = collections.Counter()
    for a, b, _ in made.links:
        ends = [end.split("/")[0] for end in (a, b)]
        if all(end in made.switches for end in ends):
            counted.update(ends)
    return counted


def hops(made):
    """Returns the maximum number of links between any two nodes; None if they are not all connected."""
    near = collections.defaultdict(set)
    for a, b, _ in made.links:
        a, b = a.split("/")[0], b.split("/")[0]
        near[a].add(b)
        near[b].add(a)
    most = 0
    for start in near:
        seen, edge = {start}, {start}
        steps = -1
        while edge:
            steps += 1
            edge = set().union(*(near[node] for node in edge)) - seen
            seen |= edge
        if len(seen) != len(made.switches) + len(made.hosts):
            return None
        most = max(most, steps)
    return most


class GeneratedTopologies(unittest.TestCase):
    def test_fat_trees_have_full_bisection_bandwidth(self):
        for hosts, ports in ((1, 36), (35, 36), (36, 36), (64, 36), (215, 36), (648, 36), (7, 4), (8, 4), (50, 11)):
            made = topology.fat_tree(hosts, ports)
            self.assertEqual(len(made.hosts), hosts)
            self.assertLessEqual(max(node.ports for node in made.switches.values()), ports)
            self.assertLessEqual(hops(made), 4)
            for name, up in degrees(made).items():
                if name.startswith("leaf"):
                    self.assertGreaterEqual(up, made.switches[name].ports - up, "no more hosts than links up")
        with self.assertRaisesRegex(LabError, "reach 648 hosts"):
            topology.fat_tree(649, 36)

    def test_fat_tree_has_the_given_dimensions(self):
        made = topology.fat_tree(100, 36, each=40, spines=4)
        self.assertEqual(degrees(made), {"leaf1": 4, "leaf2": 4, "leaf3": 4, "spine1": 3, "spine2": 3, "spine3": 3, "spine4": 3})
        made.model = "endpoint"
        self.assertEqual({host["model"] for host in lab_of(made)["host"]}, {"endpoint"})
        for words in ({"each": 40}, {"spines": 4}):
            with self.assertRaisesRegex(LabError, "go together"):
                topology.fat_tree(100, 36, **words)

    def test_rings_have_two_links_per_switch(self):
        for switches in (2, 3, 9):
            made = topology.ring(switches, switches)
            self.assertEqual(set(degrees(made).values()), {1} if switches == 2 else {2})
            self.assertEqual(hops(made), switches // 2 + 2)

    def test_all_adjacent_switches_of_a_torus_are_linked(self):
        self.assertEqual(set(degrees(topology.torus((4, 4), 16)).values()), {4})
        self.assertEqual(set(degrees(topology.torus((3, 3, 3), 27)).values()), {6})
        self.assertEqual(set(degrees(topology.torus((2, 3), 6)).values()), {3}, "two are linked once")
        self.assertEqual(hops(topology.torus((4, 4, 4), 64)), 6 + 2)

    def test_dragonflies_have_a_diameter_of_three(self):
        for hosts, groups in ((1, 2), (6, 3), (72, 9), (73, 5), (342, 19)):
            made = topology.dragonfly(hosts)
            self.assertEqual(len({name.split("-")[0] for name in made.switches}), groups)
            self.assertLessEqual(hops(made), 3 + 2, "within a group, between, within")

    def test_hosts_are_distributed_evenly_over_the_switches(self):
        made = topology.ring(4, 10)
        counted = collections.Counter(end.split("/")[0] for a, b, _ in made.links for end in (a, b) if "node" in a + b and "switch" in end)
        self.assertEqual(sorted(counted.values()), [2, 2, 3, 3])

    def test_too_large_topologies_are_refused(self):
        for made in (topology.ring(4097, 1), topology.ring(1, 19456)):
            with self.assertRaisesRegex(LabError, "too many"):
                made.text()
        with self.assertRaisesRegex(LabError, "255 ports"):
            topology.ring(1, 255).text()
        for size in ("", "0", "4x", "4x4x4x4", "x", "4096x2", "-1", "4X4"):
            with self.assertRaisesRegex(LabError, "not the size of a torus"):
                topology._size(size)


class ImportedTopologies(unittest.TestCase):
    def setUp(self):
        self.said = self.enterContext(contextlib.redirect_stderr(io.StringIO()))

    def test_ibnetdiscover_output_is_converted(self):
        lab = lab_of(topology.read(DISCOVERED, "net"))
        self.assertEqual([(node["name"], node["guid"], node["ports"]) for node in lab["switch"]],
                         [("rack-1", "0x0002c90200000001", 37), ("rack-1-2", "0x0002c90200000002", 36)])
        self.assertEqual([(node["name"], node["guid"], node.get("ports", 1)) for node in lab["host"]],
                         [("alpha", "0x0002c90300000a10", 1), ("beta", "0x0002c90300000b10", 2)])
        self.assertEqual(sorted((*link["ends"], link["width"], link["speed"]) for link in lab["link"]),
                         [("alpha/1", "rack-1/1", "4x", "QDR"), ("beta/1", "rack-1/2", "4x", "FDR"), ("beta/2", "rack-1-2/7", "4x", "SDR"),
                          ("rack-1/36", "rack-1-2/36", "4x", "QDR")])
        self.assertEqual(self.said.getvalue(), "weft: net:33: the subnet manager of a lab is left out\n"
                         "weft: net: 1 link of FDR10: QDR instead\n")

    def test_invalid_lines_of_ibnetdiscover_and_ibsim_files_are_reported(self):
        for wrong, reason in ((DISCOVERED.replace('[36]\t"S-0002c90200000001"[36]', '[36]\t"S-0002c90200000001"[35]'), "does not name"),
                              (DISCOVERED.replace("Switch\t36", "Switch\t255"), "1 to 254 ports"),
                              (DISCOVERED + "Ca\t1 \"H-0002c90300000a10\"\n", "twice"),
                              (DISCOVERED + "[3] hello\n", r"net:35: '\[3\] hello' is neither"),
                              (DISCOVERED + "Switch x\n", r"net:35: 'Switch x' is neither"),
                              ("hello\n", "no switch"),
                              (IBSIM.replace('"Hca2"[2]', '"Hca2"[1]'), "does not name"),
                              (IBSIM.replace('"Hca2"[2]', '"Hca3"[2]'), "the node Hca3 is not in the file"),
                              ("[1] \"S-1\"[1]\n", "before the first node"),
                              (DISCOVERED.replace('"H-0002c90300000b10"[2]', '"H-0002c90300000b19"[2]'), "not in the file"),
                              ("Switch 8 \"S-0\"\n", "must not be 0"),
                              ("", "no switch")):
            with self.assertRaisesRegex(LabError, reason):
                topology.read(wrong, "net")

    def test_ibnetdiscover_output_with_and_without_grouping_gives_the_same_lab(self):
        """The output of ibnetdiscover --grouping has additional headings, chassis positions and external port numbers, which are ignored."""
        grouped = DISCOVERED.replace("vendid=0x2c9\ndevid", "Chassis 1 (guid 0x2c90200000000)\n\n# Spine Nodes\nvendid=0x2c9\ndevid")
        grouped = grouped.replace("vendid=0x2c9\ncaguid", "\n# Chassis CAs\nNon-Chassis Nodes\n\nvendid=0x2c9\ncaguid")
        grouped = grouped.replace("(2c90200000001)\n", "(2c90200000001)\t# Chassis 1 \n").replace("[2]\t\"H", "[2][ext 14]\t\"H").replace("[2]\t\t# lid", "[2][ext 14]\t\t# lid")
        self.assertNotEqual(grouped.count("[ext 14]"), 0)
        self.assertEqual(lab_of(topology.read(grouped, "net")), lab_of(topology.read(DISCOVERED, "net")))

    def test_unknown_lines_of_ibnetdiscover_output_are_skipped_and_reported(self):
        noise = "ibwarn: [4711] mad_rpc: _do_madrpc failed; dport (Lid 3)\nsrc/query_smp.c:197; umad (DR path slid 0) bad status 110\n"
        self.assertEqual(lab_of(topology.read(noise + DISCOVERED, "net")), lab_of(topology.read(DISCOVERED, "net")))
        self.assertIn("weft: net:1: 'ibwarn: [4711] mad_rpc: _do_madrpc failed; dport (Lid 3)' is left out\n", self.said.getvalue())
        self.assertIn("weft: net:2: ", self.said.getvalue())
        topology.read("x\n" * 100 + DISCOVERED, "net")
        self.assertIn("weft: net: 90 more lines are left out\n", self.said.getvalue())

    def test_unsupported_speeds_and_widths_are_reported(self):
        text = DISCOVERED.replace("4xQDR", "4xNDR").replace("4xSDR", "2xHDR")
        lab = lab_of(topology.read(text, "net"))
        self.assertEqual(sorted((*link["ends"], link.get("width"), link.get("speed")) for link in lab["link"])[:3],
                         [("alpha/1", "rack-1/1", "4x", "EDR"), ("beta/1", "rack-1/2", "4x", "FDR"), ("beta/2", "rack-1-2/7", None, None)])
        self.assertIn("weft: net: 1 link of NDR: EDR, the fastest of a lab instead\n", self.said.getvalue())
        self.assertIn("weft: net: 1 link of width 2x: the width that a lab's links have instead\n", self.said.getvalue())

    def test_ibsim_network_is_converted(self):
        lab = lab_of(topology.read(IBSIM, "net"))
        self.assertEqual([(node["name"], node.get("guid"), node["ports"]) for node in lab["switch"]], [("Switch1", None, 9), ("Switch2", None, 8)])
        self.assertEqual([(node["name"], node.get("guid"), node.get("ports", 1)) for node in lab["host"]], [("Hca1", None, 1), ("Hca2", None, 2), ("third", None, 1)])
        self.assertEqual(sorted((*link["ends"], link.get("width")) for link in lab["link"]),
                         [("Hca1/1", "Switch1/1", None), ("Hca2/2", "Switch1/2", "12x"), ("Switch1/3", "Switch2/3", None), ("Switch1/4", "Switch2/4", None),
                          ("Switch2/5", "third/1", None)])
        self.assertEqual(self.said.getvalue(), "")

    def test_host_with_two_ports_is_split_into_two_hosts(self):
        """A host for each linked port, for the model endpoint. The first one has the name and the GUID; the other names are unique."""
        made = topology.read(DISCOVERED, "net")
        two = next(name for name, host in made.hosts.items() if host.ports == 2)
        before = {name: host.guid for name, host in made.hosts.items()}
        made.hosts[f"{two}-p2"] = topology.Node(f"{two}-p2", 1)
        links = len(made.links)
        self.assertEqual(made.split_hosts(), 1)
        self.assertEqual({name: host.guid for name, host in made.hosts.items()}, before | {f"{two}-p2": None, f"{two}-p2-2": None})
        self.assertEqual({host.ports for host in made.hosts.values()}, {1})
        ends = [end for link in made.links for end in link[:2]]
        self.assertEqual((len(made.links), ends.count(two), ends.count(f"{two}-p2-2"), ends.count(f"{two}-p2")), (links, 1, 1, 0))
        self.assertEqual(topology.read(IBSIM, "net").split_hosts(), 1)
        self.assertEqual(made.split_hosts(), 0)

    def test_names_of_imported_nodes_are_made_valid_and_unique(self):
        taken = set()
        names = [topology._name(text, "node1", taken) for text in ("", None, "sm", "äöü x", "...", "a" * 80, "a" * 80, "a/b\"c d")]
        self.assertEqual(len(set(names)), len(names))
        for name in names:
            self.assertRegex(name, r"^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,31}$")


class AcceptedTopologies(unittest.TestCase):
    """The commands and the daemon accept the generated files."""

    def setUp(self):
        # The directory has the layout of build/bin in a tree, where weft finds the other programs.
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.weft = self.folder / "build/bin/weft"
        self.weft.parent.mkdir(parents=True)
        shutil.copy(WEFT, self.weft)
        (self.folder / "tools").symlink_to(HERE.parents[1])

    def test_weftd_accepts_all_generated_and_imported_topologies(self):
        lab = self.folder / "lab.toml"
        for words in (["fat-tree", "--hosts", "64"], ["fat-tree", "--hosts=648"], ["fat-tree", "--hosts", "8", "--ports", "4"], ["ring", "--switches", "6"],
                      ["torus", "--size", "4x4"], ["torus", "--size", "2x3x4", "--hosts", "100"], ["dragonfly", "--hosts", "72"],
                      ["fat-tree", "--hosts", "100", "--each", "40", "--spines", "4", "--model", "endpoint"], ["import", "-"],
                      ["import", "--model", "mthca", "-"], ["import", "--model", "endpoint", "-"]):
            made = subprocess.run([self.weft, "topology", *words], input=DISCOVERED, capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(made.returncode, 0, made.stderr)
            self.assertEqual("one host of the model endpoint for each port" in made.stderr, words[:3] == ["import", "--model", "endpoint"])
            lab.write_text(made.stdout)
            done = subprocess.run([WEFTD, "--check", "--lab", lab], capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)

    def test_weftd_accepts_all_example_files(self):
        tree = HERE.parents[2]
        examples = sorted((HERE.parent / "examples").glob("*.toml"))
        self.assertEqual([path.name for path in examples], ["lossy-ring.toml", "opensm.toml", "partitions.toml"])
        for lab in (*examples, *(HERE.parent / "python/examples").glob("*.toml"), tree / "debian/lab.toml"):
            done = subprocess.run([WEFTD, "--check", "--lab", lab], capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""), lab)
            # Beginners read the files, so each begins with its purpose and with commands to try.
            if lab in examples:
                self.assertIn(f"\n#     weft lab up --lab {lab.name}", lab.read_text())

    def test_topology_command_refuses_invalid_arguments(self):
        for words, reason in ((["fat-tree"], "--hosts is required"), (["ring", "--switches", "0"], "is not an integer from 1 to 4096"), (["torus", "--size", "4xx"], "is not the size of a torus"),
                              (["import", "/none"], "cannot read /none"), (["star"], "weft topology has no command 'star'")):
            done = subprocess.run([self.weft, "topology", *words], capture_output=True, text=True, check=False, timeout=60)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(reason, done.stdout + done.stderr)


if __name__ == "__main__":
    WEFTD = sys.argv.pop()
    WEFT = sys.argv.pop()
    unittest.main()
