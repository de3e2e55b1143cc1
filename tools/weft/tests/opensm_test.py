#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests OpenSM's configuration files on a fabric without guests: partitions, QoS, routing, and several subnet managers.

    opensm_test.py WEFT WEFTD [TEST...]
"""
import gzip
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
TREE = pathlib.Path(__file__).resolve().parents[3]
sys.path[1:1] = [str(TREE / "scripts"), str(TREE / "tools/weft/session")]
import cases
import daemon
import routes
import topology  # noqa: E402
from attached import FABRIC, NO_MANAGER, WEFT, WEFTD, Attached

# A standby manager polls the master twice a second, and takes over when two answers are missing; the default is 40 seconds.
STANDBY = "sminfo_polling_timeout 500\npolling_retry_number 2\n"
UNMANAGED = "[sm]\nenabled = false\n"


def ring(count, manager=UNMANAGED, without=None):
    """A ring of switches with a host each. Port 1 of a switch leads to its host. without: the number of a switch to leave out, with its host and links."""
    numbers = [number for number in range(1, count + 1) if number != without]
    nodes = (f'[[switch]]\nname = "switch{number}"\nports = 8\n[[host]]\nname = "node{number}"\nmodel = "endpoint"\n'
             f'[[link]]\nends = ["node{number}", "switch{number}/1"]\n' for number in numbers)
    links = (f'[[link]]\nends = ["switch{number}/2", "switch{number % count + 1}/3"]\n' for number in numbers if number % count + 1 != without)
    return "".join((*nodes, *links)) + manager


# Two switches with two links between them.
PARALLEL = "".join(f'[[switch]]\nname = "switch{number}"\nports = 8\n' for number in (1, 2)) + "".join(
    f'[[host]]\nname = "node{number}"\nmodel = "endpoint"\n[[link]]\nends = ["node{number}", "switch{switch}"]\n'
    for number, switch in ((1, 1), (2, 2), (3, 2))) + '[[link]]\nends = ["switch1", "switch2"]\n' * 2 + UNMANAGED
# A tree: switch1 and switch2 are leaves with two hosts each, switch3 and switch4 are spines.
FAT_TREE = "".join(f'[[switch]]\nname = "switch{number}"\nports = 8\n' for number in range(1, 5)) + "".join(
    f'[[host]]\nname = "node{number}"\nmodel = "endpoint"\n[[link]]\nends = ["node{number}", "switch{(number + 1) // 2}"]\n' for number in range(1, 5)) + "".join(
    f'[[link]]\nends = ["switch{leaf}", "switch{spine}"]\n' for leaf in (1, 2) for spine in (3, 4)) + UNMANAGED
# For the class ScheduledChanges: switch2 is replaced by switch5.
MANAGER = '[sm]\nswitch = "switch1"\npriority = 14\n'
BEFORE, AFTERWARDS = ring(5, MANAGER, without=5), ring(5, MANAGER, without=2)
# A manager whose priority is below that of the OpenSM that the tests start with priority 10.
PASSIVE_MANAGER = FABRIC + '[sm]\nswitch = "switch1"\npriority = 5\n'


class Configured(Attached):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-opensm-")))

    def file(self, name, text):
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def opensm(self, node, *words):
        # OpenSM would find the other links only when it sweeps again, after ten seconds or never.
        daemon.await_that("all links to be up", lambda: all(link["up"] for link in self.fabric()["links"]))
        return super().opensm(node, *words)

    def lid(self, node):
        return int(re.search(r"Base lid: (\d+)", self.run_on(node, "ibstat"))[1])

    def answer(self, node, *words):
        """Returns the output of a program on a node, or nothing if it fails."""
        done = subprocess.run(self.command(node, *words), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=self.environment(),
                              timeout=daemon.TIME_LIMIT)
        return done.stdout if done.returncode == 0 else ""

    def weft(self, *words):
        subprocess.run([WEFT, "--socket-dir", str(self.directory), *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)

    def path_record(self, source, destination, *options):
        """Returns {field: value} of the SA's record of a path, which is empty if there is none."""
        text = self.answer(source, "saquery", "-p", "--src-to-dst", f"{self.lid(source)}:{self.lid(destination)}", *options)
        return dict(re.findall(r"(\w+)\.+(\S+)", text))

    def route(self, source, destination, *options):
        """Returns the switches on the path between two nodes, according to the routing tables; None if the tables do not lead there."""
        return re.findall(r'switch port .* "(switch\d+)"', self.answer(source, "ibtracert", *options, str(self.lid(source)), str(self.lid(destination))))

    def await_managed(self, *nodes):
        """Waits until all these nodes have LIDs and can reach one another."""
        daemon.await_that("LIDs", lambda: all(self.lid(node) for node in nodes))
        daemon.await_that("routes", lambda: all(self.route(source, destination) for source in nodes for destination in nodes if source != destination))

    def end(self, manager):
        manager.kill()
        manager.wait()


class OpenSmConfigurationFiles(Configured):
    LAB = NO_MANAGER

    def test_pkey_tables_and_path_records_match_the_partitions_conf_of_opensm(self):
        guids = {node: self.guid_of(node) for node in ("node1", "node2")}
        partitions = self.file("partitions.conf", f"Default=0x7fff, ipoib: ALL=full;\nblue=0x8001, ipoib: {guids['node1']}=full, {guids['node2']}=limited;\n")
        self.opensm("node1", "-P", partitions)
        self.await_managed("node1", "node2", "node3")
        for node, expected in (("node1", "0xffff 0x8001 0x0000"), ("node2", "0xffff 0x0001 0x0000"), ("node3", "0xffff 0x0000 0x0000")):
            self.assertIn(f"0: {expected} ", self.run_on("node1", "smpquery", "pkeys", str(self.lid(node))))
        groups = self.run_on("node3", "saquery", "-g")
        self.assertIn("ff12:401b:ffff::ffff:ffff", groups)
        self.assertIn("ff12:401b:8001::ffff:ffff", self.run_on("node1", "saquery", "-g"))
        self.assertEqual(self.path_record("node1", "node2", "--pkey", "0x8001").get("pkey"), "0x8001")
        self.assertEqual(self.path_record("node1", "node3", "--pkey", "0x8001"), {})

    def test_opensm_qos_policy_selects_service_levels_and_sets_sl_to_vl_tables(self):
        policy = self.file("qos-policy.conf", f"qos-ulps\n default : 0\n any, target-port-guid {self.guid_of('node3')} : 3\nend-qos-ulps\n")
        options = self.file("opensm.conf", f"qos TRUE\nqos_policy_file {policy}\nqos_max_vls 4\nqos_high_limit 10\nqos_vlarb_high 0:64,1:32,2:16,3:8\n"
                            "qos_vlarb_low 0:4,1:4,2:4,3:4\nqos_sl2vl 0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3\n")
        manager = self.opensm("node1", "-F", options)
        self.await_managed("node2", "node3")
        self.assertEqual(self.path_record("node2", "node3")["sl"], "0x3")
        self.assertEqual(self.path_record("node3", "node2")["sl"], "0x0")
        switch = str(self.lid("switch3"))

        def maps_to_four_lanes():
            # OpenSM computes the tables before it raises OperationalVLs, so they are complete only after another sweep.
            manager.send_signal(signal.SIGHUP)
            return "| 0| 1| 2| 3| 0| 1| 2| 3| 0| 1| 2| 3| 0| 1| 2| 3|" in self.answer("node1", "smpquery", "sl2vl", switch, "1")
        daemon.await_that("SL to VL tables for four lanes", maps_to_four_lanes)
        self.assertRegex(self.run_on("node1", "smpquery", "vlarb", switch, "1"), r"High priority(?s:.*)\nWEIGHT: \|0x40\|0x20\|0x10\|0x8 \|")
        self.assertRegex(self.run_on("node1", "smpquery", "portinfo", switch, "1"), r"VLHighLimit:\.*10\n")


class OpenSmOnARing(Configured):
    LAB = ring(4)

    def test_updn_routes_pass_through_the_configured_root(self):
        """Up*/Down* forbids a path that goes down and up again: between two neighbours of the root, all routes pass the root."""
        for root, through in (("switch1", ("node2", "node4")), ("switch2", ("node1", "node3"))):
            manager = self.opensm("node1", "-R", "updn", "-a", self.file("roots", self.guid_of(root) + "\n"))
            ends = [f"switch{node[-1]}" for node in through]
            daemon.await_that(f"routes through {root}", lambda: all(self.lid(node) for node in through) and all(
                self.route(source, destination) == [way[0], root, way[1]]
                for source, destination, way in ((*through, ends), (*through[::-1], ends[::-1]))))
            self.end(manager)


class OpenSmOnAFatTree(Configured):
    LAB = FAT_TREE

    def test_ftree_routes_pass_through_the_configured_root(self):
        """Without the file, both spines are roots and share the routes."""
        for root in ("switch3", "switch4"):
            log = str(self.folder / f"log-{root}")
            manager = self.opensm("node1", "-R", "ftree", "-a", self.file("roots", self.guid_of(root) + "\n"), "-f", log,
                                  "-F", self.file("opensm.conf", "force_log_flush TRUE\n"))
            daemon.await_that(f"routes through {root}", lambda: all(self.lid(node) for node in ("node1", "node2", "node3", "node4")) and all(
                self.route(*ends) == way for way, pairs in ((["switch1", root, "switch2"], (("node1", "node3"), ("node2", "node4"))),
                                                            (["switch2", root, "switch1"], (("node3", "node1"), ("node4", "node2")))) for ends in pairs))
            self.end(manager)
            # OpenSM has not used another engine instead.
            self.assertIn("ftree tables configured on all switches", pathlib.Path(log).read_text())


class OpenSmRoutingEngines(Configured):
    """In a ring of five switches, shortest routes wait for one another in a loop, unless they are on several lanes."""

    LAB = ring(5)

    def has_loop(self, engine, with_lanes):
        log = self.folder / f"log-{engine}"
        manager = self.opensm("node1", "-R", engine, "-Q", "-f", str(log), "-F", self.file("opensm.conf", "force_log_flush TRUE\n"))

        def await_sweeps(count):
            daemon.await_that(f"{count} sweeps with {engine}",
                              lambda: log.exists() and log.read_text().count(f"{engine} tables configured on all switches") >= count)
        await_sweeps(1)
        # Engines and tables use the number of lanes that ports have got in an earlier sweep.
        manager.send_signal(signal.SIGHUP)
        await_sweeps(2)
        self.await_managed("node1", "node3")

        def text(*words):
            return self.run_on("node1", *words)
        subnet = routes.Subnet(text("ibnetdiscover"))
        self.assertEqual(len(subnet.hosts), 5)
        found = routes.has_loop(routes.waits_of(routes.tables(text), subnet, routes.selected_lanes(text, subnet) if with_lanes else routes.one_lane))
        self.end(manager)
        return found

    def test_routing_engines_that_use_virtual_lanes_avoid_deadlocks(self):
        self.assertTrue(self.has_loop("minhop", False))
        for engine in ("lash", "nue", "dfsssp"):
            with self.subTest(engine):
                self.assertFalse(self.has_loop(engine, True))


class OpenSmOnAnImportedTopology(Configured):
    LAB = ring(4)

    def discovered(self):
        """What ibnetdiscover prints about nodes and links, without the LIDs and the numbers of ports, of which an imported switch has one more."""
        text = self.run_on("node1", "ibnetdiscover")
        return text, sorted(re.sub(r"lid \d+|(?<=^Switch\t)\d+", "", line) for line in text.splitlines() if re.match(r"Switch|Ca|\[", line))

    def test_opensm_manages_a_topology_imported_from_ibnetdiscover(self):
        nodes = ("node1", "node2", "node3", "node4")
        self.opensm("node1")
        self.await_managed(*nodes)
        text, found = self.discovered()
        made = topology.read(text, "the output of ibnetdiscover")
        made.model = "endpoint"
        _, self.directory = self.enterContext(daemon.weftd(WEFTD, made.text().partition("[sm]")[0] + UNMANAGED))
        self.assertEqual(self.lid("node1"), 0)
        self.opensm("node1")
        self.await_managed(*nodes)
        self.assertEqual(self.discovered()[1], found)


class OpenSmOnAPublishedTopology(Configured):
    """The subnet of the example in ibnetdiscover's manual page, which has a host with two ports."""

    PAGE = pathlib.Path("/usr/share/man/man8/ibnetdiscover.8.gz")

    def setUp(self):
        if not self.PAGE.exists():
            self.skipTest(f"not installed: {self.PAGE}")
        example = re.search(r"^# Topology file: .*?(?=^\.)", gzip.decompress(self.PAGE.read_bytes()).decode(), re.MULTILINE | re.DOTALL)[0]
        self.subnet = topology.read(example.replace("\\-", "-"), str(self.PAGE))
        self.subnet.model = "endpoint"
        self.assertEqual(self.subnet.split_hosts(), 1)
        self.LAB = self.subnet.text().partition("[sm]")[0] + UNMANAGED
        super().setUp()

    def test_opensm_manages_the_example_subnet_of_the_ibnetdiscover_manual_page(self):
        hosts = list(self.subnet.hosts)
        self.assertEqual((len(hosts), len(self.subnet.switches), len(self.subnet.links)), (5, 2, 7))
        self.opensm(hosts[0])
        daemon.await_that("routes between all hosts", lambda: all(self.lid(host) for host in hosts) and all(
            self.answer(source, "ibtracert", str(self.lid(source)), str(self.lid(destination))) for source in hosts for destination in hosts))
        found = self.run_on(hosts[0], "ibnetdiscover")
        self.assertEqual([len(re.findall(pattern, found, re.MULTILINE)) for pattern in (r"^Ca\t", r"^Switch\t", r"^\[\d+\]")], [5, 2, 14])
        for name, switch in self.subnet.switches.items():
            self.assertRegex(found, rf'Switch\t\d+ "S-{switch.guid[2:]}"\s+# "{name}"')


class OpenSmWithParallelLinks(Configured):
    LAB = PARALLEL

    def test_opensm_assigns_parallel_links_in_the_order_of_the_guid_order_file(self):
        ports = {}
        for order in (("node2", "node3"), ("node3", "node2")):
            guids = self.file("order", "".join(f"{self.guid_of(node)}\n" for node in order))
            manager = self.opensm("node1", "-r", "--guid_routing_order_file", guids)
            self.await_managed("node1", "node2", "node3")
            table = self.run_on("node1", "ibroute", str(self.lid("switch1")))
            ports[order] = [re.search(rf"{self.lid(node):#06x} (\d+) :", table)[1] for node in order]
            self.assertEqual(len(set(ports[order])), 2, table)
            self.end(manager)
        first, second = ports.values()
        self.assertEqual(first, second)


class TwoOpenSms(Configured):
    LAB = NO_MANAGER

    def test_standby_opensm_takes_over_when_the_master_exits(self):
        options = self.file("opensm.conf", STANDBY)
        master = self.opensm("node1", "-F", options, "-p", "10")
        self.await_managed("node1", "node2", "node3")
        self.opensm("node2", "-F", options, "-p", "5")
        daemon.await_that("a standby", lambda: "SMINFO_STANDBY" in self.answer("node3", "sminfo", str(self.lid("node2"))))
        self.assertRegex(self.run_on("node3", "sminfo"), rf"sm lid {self.lid('node1')} ")
        lids = self.lids()
        self.end(master)
        daemon.await_that("the take-over", lambda: re.search(rf"sm lid {self.lid('node2')} .*SMINFO_MASTER", self.answer("node3", "sminfo")))
        self.await_managed("node1", "node2", "node3")
        self.assertEqual(self.lids(), lids)


    def test_master_opensm_hands_over_to_an_opensm_of_higher_priority(self):
        options = self.file("opensm.conf", STANDBY)
        first = self.opensm("node1", "-F", options, "-p", "5")
        self.await_managed("node1", "node2", "node3")
        lids = self.lids()
        self.opensm("node2", "-F", options, "-p", "10")
        daemon.await_that("the handover", lambda: re.search(rf"sm lid {self.lid('node2')} .*SMINFO_MASTER", self.answer("node3", "sminfo")))
        daemon.await_that("the first manager to stand by", lambda: "SMINFO_STANDBY" in self.answer("node3", "sminfo", str(self.lid("node1"))))
        self.assertIsNone(first.poll(), "OpenSM ended")
        self.await_managed("node1", "node2", "node3")
        self.assertEqual(self.lids(), lids)


class OpenSmWithWeftsManager(Configured):
    LAB = PASSIVE_MANAGER

    def test_opensm_of_higher_priority_replaces_wefts_manager_until_it_exits(self):
        self.await_subnet()
        own = int(re.search(r"sm lid (\d+)", self.run_on("node3", "sminfo"))[1])
        manager = self.opensm("node1", "-F", self.file("opensm.conf", STANDBY), "-p", "10")
        daemon.await_that("OpenSM to be master", lambda: re.search(rf"sm lid {self.lid('node1')} .*SMINFO_MASTER", self.answer("node3", "sminfo")))
        self.assertIn("SMINFO_STANDBY", self.run_on("node3", "sminfo", str(own)))
        self.assertIn("standby", str(self.fabric()))
        self.end(manager)
        daemon.await_that("weft's manager to be master again", lambda: re.search(rf"sm lid {own} .*SMINFO_MASTER", self.answer("node3", "sminfo")))
        self.await_managed("node1", "node2", "node3")


    def test_opensm_of_lower_priority_becomes_standby(self):
        self.await_subnet()
        own = int(re.search(r"sm lid (\d+)", self.run_on("node3", "sminfo"))[1])
        self.opensm("node1", "-F", self.file("opensm.conf", STANDBY), "-p", "1")
        daemon.await_that("OpenSM to stand by", lambda: "SMINFO_STANDBY" in self.answer("node3", "sminfo", str(self.lid("node1"))))
        self.assertRegex(self.run_on("node3", "sminfo"), rf"sm lid {own} .*SMINFO_MASTER")
        self.assertEqual(self.fabric()["subnet_manager"]["state"], "master")

    def test_opensm_hands_over_when_wefts_manager_is_enabled(self):
        self.await_subnet()
        self.weft("sm", "disable")
        self.opensm("node1", "-F", self.file("opensm.conf", STANDBY), "-p", "1")
        daemon.await_that("OpenSM to be master", lambda: re.search(rf"sm lid {self.lid('node1')} .*SMINFO_MASTER", self.answer("node3", "sminfo")))
        self.weft("sm", "enable")
        daemon.await_that("the handover", lambda: self.fabric()["subnet_manager"]["state"] == "master" and
                          "SMINFO_STANDBY" in self.answer("node3", "sminfo", str(self.lid("node1"))))
        self.await_managed("node1", "node2", "node3")


class Changing(Configured):
    """A fabric that changes while OpenSM runs. Between node1 and node3 there is a short way through switch2 and a long one."""

    LAB = ring(5)
    SHORT = ["switch1", "switch2", "switch3"]
    LONG = ["switch1", "switch5", "switch4", "switch3"]

    def await_route(self, way):
        # Queries are lost while a link is down.
        daemon.await_that(f"the route {way}", lambda: self.route("node1", "node3", "-t", "200") == way)


class OpenSmTraps(Changing):
    def test_opensm_without_periodic_sweeps_reroutes_after_link_state_traps_of_a_switch(self):
        log = self.folder / "log"
        self.opensm("node1", "-s", "0", "-f", str(log), "-F", self.file("opensm.conf", "force_log_flush TRUE\n"))
        self.await_route(self.SHORT)
        for state, way in (("down", self.LONG), ("up", self.SHORT)):
            before = log.read_text().count("num:128")
            self.weft("link", state, "switch1/2")
            self.await_route(way)
            self.assertGreater(log.read_text().count("num:128"), before)


class OpenSmLinkChanges(Changing):
    def test_opensm_reroutes_when_a_link_goes_down_and_when_it_comes_up_again(self):
        self.opensm("node1")
        self.await_route(self.SHORT)
        for state, way in (("down", self.LONG), ("up", self.SHORT)):
            self.weft("link", state, "switch1/2")
            self.await_route(way)


class OpenSmSwitchChanges(Changing):
    def test_opensm_reroutes_when_a_switch_is_removed_and_when_it_is_added_again(self):
        self.opensm("node1")
        self.await_route(self.SHORT)
        self.weft("lab", "apply", self.file("without.toml", ring(5, without=2)))
        self.await_route(self.LONG)
        self.assertNotIn('"node2"', self.run_on("node1", "ibnetdiscover"))
        self.weft("lab", "apply", self.file("with.toml", ring(5)))
        self.await_route(self.SHORT)
        self.await_managed("node1", "node2", "node3")


class ScheduledEvents(Configured):
    LAB = ring(3)
    # The effect of the only event remains, so a slow test does not miss it.
    EVENTS = ({"at": 0.5, "command": "link.down", "link": "switch1/2"},)

    def test_link_goes_down_at_a_scheduled_event_in_a_lab_without_virtual_time(self):
        def links_that_are_down():
            return [link["ends"] for link in self.fabric()["links"] if link["settings"]["state"] == "down"]
        self.assertEqual(daemon.await_that("the link to go down", links_that_are_down), [["switch1/2", "switch2/3"]])


class ScheduledChanges(Configured):
    """Scheduled events disable weft's own manager, replace a switch and its host by another one, and take the link of the master OpenSM down. The last state is
    the same if OpenSM starts after some of the events."""

    LAB = BEFORE
    EVENTS = ({"at": daemon.TIME_LIMIT / 20, "command": "sm.disable"},
              {"at": daemon.TIME_LIMIT / 15, "command": "lab.apply", "text": AFTERWARDS, "source": "afterwards.toml", "folder": "/"},
              {"at": daemon.TIME_LIMIT / 10, "command": "link.down", "link": "node1"})

    def test_opensm_follows_scheduled_changes_of_switches_links_and_managers(self):
        options = self.file("opensm.conf", STANDBY)
        # Frequent sweeps find links that come up after OpenSM has started. The events may occur before all links are up.
        Attached.opensm(self, "node1", "-s", "2", "-F", options, "-p", "10")
        Attached.opensm(self, "node3", "-s", "2", "-F", options, "-p", "5")
        daemon.await_that("the second OpenSM to be master", lambda: self.lid("node3") and self.fabric()["subnet_manager"]["state"] == "not active" and
                          re.search(rf"sm lid {self.lid('node3')} .*SMINFO_MASTER", self.answer("node4", "sminfo")))
        daemon.await_that("routes by the new switch", lambda: self.route("node3", "node5") == ["switch3", "switch4", "switch5"])
        daemon.await_that("switch2, node1 and node2 to be gone", lambda: not re.search('"(switch2|node1|node2)"', self.run_on("node3", "ibnetdiscover")))


class OpenSmWithDisabledManager(Configured):
    LAB = PASSIVE_MANAGER

    def test_opensm_is_the_manager_while_wefts_manager_is_disabled(self):
        self.await_subnet()
        own = int(re.search(r"sm lid (\d+)", self.run_on("node3", "sminfo"))[1])
        self.opensm("node1", "-F", self.file("opensm.conf", STANDBY), "-p", "1")
        daemon.await_that("OpenSM to stand by", lambda: "SMINFO_STANDBY" in self.answer("node3", "sminfo", str(self.lid("node1"))))
        for state, lid in (("disable", self.lid("node1")), ("enable", own)):
            self.weft("sm", state)
            daemon.await_that(f"the manager with the LID {lid}", lambda: re.search(rf"sm lid {lid} .*SMINFO_MASTER", self.answer("node3", "sminfo")))
        self.await_managed("node1", "node2", "node3")


class OpenSmHandover(Configured):
    LAB = NO_MANAGER

    def test_standby_opensm_takes_over_when_the_link_of_the_master_fails(self):
        options = self.file("opensm.conf", STANDBY)
        self.opensm("node1", "-F", options, "-p", "10")
        self.await_managed("node1", "node2", "node3")
        self.opensm("node2", "-F", options, "-p", "5")
        standby = self.lid("node2")
        daemon.await_that("a standby", lambda: "SMINFO_STANDBY" in self.answer("node3", "sminfo", str(standby)))
        self.assertRegex(self.run_on("node3", "sminfo"), rf"sm lid {self.lid('node1')} .*SMINFO_MASTER")
        self.weft("link", "down", "node1")
        daemon.await_that("the take-over", lambda: re.search(rf"sm lid {standby} .*SMINFO_MASTER", self.answer("node3", "sminfo")))
        self.await_managed("node2", "node3")


if __name__ == "__main__":
    cases.main([sys.argv[0], *sys.argv[3:]])
