#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests `weft attach`: the unmodified programs of infiniband-diags and OpenSM run on nodes of a fabric without guests.

    attach_test.py WEFT WEFTD LIBRARY [TEST...]

LIBRARY is the library that replaces libibumad in these programs. weft finds it without this argument.
"""
import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

sys.dont_write_bytecode = True
import cases
import daemon
from attached import Attached, NEEDED, NODE1, NODES, NO_MANAGER, OWN_MANAGER, SYSTEM, WEFT, WEFTD

LIBRARY = sys.argv[3]
assert os.path.exists(LIBRARY)
UNUSED = 999        # no port has this LID
TREE = pathlib.Path(__file__).resolve().parents[3]


class AttachedDiagnostics(Attached):
    def test_ibstat_lists_the_port(self):
        self.await_subnet()
        listed = self.run_on("node1", "ibstat")
        self.assertIn("CA 'weft0'", listed)
        self.assertIn("Number of ports: 1", listed)
        self.assertRegex(listed, r"State: Active\n\s+Physical state: LinkUp\n\s+Rate: 40")
        self.assertRegex(listed, rf"Base lid: {self.lids()['node1']}\n")
        self.assertRegex(self.run_on("switch2", "ibstat"), r"Switch 'weft0'(?s:.*)Port 0:\n")

    def test_attach_passes_on_arguments_and_returns_the_exit_status(self):
        self.run_on("node1", "sh", "-c", "exit 37", status=37)
        self.assertEqual(self.run_on("node1", "printf", "%s|", "a b", "--json"), "a b|--json|")
        self.run_on("node1", "/nowhere", status=127)
        self.run_on("node1", "/etc/passwd", status=126)
        self.run_on("nobody", "true", status=1)

    def test_sminfo_finds_the_subnet_manager(self):
        self.await_subnet()
        self.assertRegex(self.run_on("node1", "sminfo"), r"sm lid \d+ .* state 3 SMINFO_MASTER")

    def test_smpquery_reads_attributes_by_direct_route_and_by_lid(self):
        self.await_subnet()
        lids = self.lids()
        self.assertEqual({switch["name"]: switch["lid"] for switch in self.fabric()["switches"]}, {name: lid for name, lid in lids.items() if "switch" in name})
        self.assertRegex(self.run_on("node1", "smpquery", "nodedesc", "-D", "0"), r"node1\n")
        self.assertRegex(self.run_on("node1", "smpquery", "nodedesc", "-D", "0,1"), r"switch1\n")
        for node in lids:
            self.assertRegex(self.run_on("node1", "smpquery", "nodedesc", str(lids[node])), rf"{node}\n")
        self.assertRegex(self.run_on("switch3", "smpquery", "nodedesc", str(lids["node2"])), r"node2\n")
        self.assertRegex(self.run_on("switch3", "smpquery", "nodeinfo", "-D", "0"), r"NodeType:\.*Switch")
        self.assertRegex(self.run_on("node1", "smpquery", "portinfo", str(lids["switch2"]), "1"), r"LinkState:\.*Active")

    def test_ibnetdiscover_finds_every_node_and_link(self):
        self.await_subnet()
        for origin in ("node2", "switch3"):
            found = self.run_on(origin, "ibnetdiscover")
            for name in NODES:
                self.assertIn(f'"{name}"', found)
            # Each link is printed from both ends: seven links of the file, and that of the subnet manager.
            self.assertEqual(len(re.findall(r'^\[\d+\]', found, re.MULTILINE)), 2 * len(self.fabric()["links"]))
        links = self.run_on("node1", "iblinkinfo", "-l")
        self.assertEqual(len(re.findall(r"Active/\s*LinkUp", links)), 2 * len(self.fabric()["links"]))

    def test_diagnostics_read_counters_routes_and_sa_records(self):
        self.await_subnet()
        lids = self.lids()
        for target in ("node1", "node2", "switch3"):
            counters = self.run_on("node1", "perfquery", str(lids[target]), "1")
            self.assertGreater(int(re.search(r"PortXmitPkts:\.*(\d+)", counters)[1]), 0)
            extended = self.run_on("node1", "perfquery", "-x", str(lids[target]), "1")
            self.assertGreater(int(re.search(r"PortUnicastXmitPkts:\.*(\d+)", extended)[1]), 0)
        traced = self.run_on("node1", "ibtracert", str(lids["node1"]), str(lids["node3"])).splitlines()
        self.assertEqual([re.search(r'"(.*)"', line)[1] for line in traced], ["node1", "switch1", "switch3", "node3", "node3"])
        routes = self.run_on("node1", "ibroute", str(lids["switch1"]))
        for name, lid in lids.items():
            self.assertRegex(routes, rf"{lid:#06x} \d+ : \(.* '{name}'\)")
        # Queries a table that needs RMPP, and a single record.
        records = self.run_on("node2", "saquery", "NR")
        for name in ("node1", "node2", "node3", "switch1", "switch3"):
            self.assertIn(name, records)
        self.assertRegex(self.run_on("node2", "saquery", "-p", "--src-to-dst", f"{lids['node2']}:{lids['node3']}"), rf"dlid\.*{lids['node3']}\n")

    def test_ibqueryerrors_finds_errors_of_a_link(self):
        self.await_subnet()
        nodes = len(NODES) + 1      # including that of the subnet manager
        self.assertRegex(self.run_on("node1", "ibqueryerrors"), rf"Summary: {nodes} nodes checked, 0 bad nodes found")
        self.set_link("node2", "corruption=50%")
        for _ in range(5):
            self.await_answer("node2", "sminfo")
        self.set_link("node2", "corruption=0")
        # The subnet manager may have removed the node from the routes meanwhile.
        self.await_answer("node1", "perfquery", "-G", self.guid_of("node2"), "1")
        found = self.run_on("node1", "ibqueryerrors", status=1)
        self.assertRegex(found, r'Errors for "node2"\n.*port 1: \[SymbolErrorCounter == \d+\]')
        self.assertRegex(found, rf"Summary: {nodes} nodes checked, [1-9] bad nodes found")

    def set_link(self, link, setting):
        subprocess.run([WEFT, "--socket-dir", str(self.directory), "link", "set", link, setting], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)

    def await_answer(self, node, *words):
        def answers():
            return subprocess.run(self.command(node, *words), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                                  env={**os.environ, "PATH": SYSTEM}).returncode == 0
        daemon.await_that(f"{words} to succeed", answers)

    def test_ibsysstat_queries_a_program_on_another_node(self):
        self.await_subnet()
        lid = str(self.lids()["node2"])
        with self.running_on("node2", "ibsysstat", "-S", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            # The node's own refusal also counts as an answer for ibsysstat, so wait for text.
            daemon.await_that("ibsysstat's server", lambda: self.run_on("node3", "ibsysstat", lid, "host").strip())
            self.assertEqual(self.run_on("node3", "ibsysstat", lid), "sysstat ping succeeded\n")
            self.assertIn(socket.gethostname().partition(".")[0], self.run_on("node3", "ibsysstat", lid, "host"))
            self.assertRegex(self.run_on("node3", "ibsysstat", lid, "cpu"), r"^cpu 0: model .* MHZ")

    def test_mad_that_a_node_does_not_support_gets_an_error_response(self):
        self.await_subnet()
        lids = self.lids()
        lids["weft SM"] = int(re.search(r"sm lid (\d+)", self.run_on("node1", "sminfo"))[1])
        # The requests come from another node and from the node itself.
        for origin, target in (*(("node1", target) for target in ("node1", "node2", "switch1", "switch2", "weft SM")), ("switch1", "switch1")):
            done = subprocess.run(self.command(origin, "vendstat", "-N", str(lids[target])), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  check=False, env={**os.environ, "PATH": SYSTEM})
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stderr, "vendstat: method 1, attribute 1 failure\n")     # no message about a timeout

    def test_ibdiagnet_finds_no_errors(self):
        if not shutil.which("ibdiagnet", path=SYSTEM):
            self.skipTest("not installed: ibutils")
        self.await_subnet()
        room = self.enterContext(tempfile.TemporaryDirectory(prefix="weft-ibdiagnet-"))
        said = self.run_on("node1", "ibdiagnet", "-o", room)
        self.assertRegex(said, r"8 nodes \(3 Switches & 5 CA-s\) discovered")
        for stage in ("Bad GUIDs/LIDs Check", "Link State Active Check", "Performance Counters Report", "Partitions Check"):
            self.assertRegex(said, rf"{stage}\s+0\s+0")
        with open(f"{room}/ibdiagnet.lst") as links:
            self.assertIn("switch3", links.read())

    def test_ibping_server_of_a_node_answers_ibping_of_another_node(self):
        self.await_subnet()
        lids = self.lids()
        with self.running_on("node2", "ibping", "-S", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            def answers():
                # Its status is also 0 without answers.
                return " 1 received" in self.run_on("node3", "ibping", "-c", "1", str(lids["node2"]))
            daemon.await_that("ibping's server", answers)
            self.assertIn("2 packets transmitted, 2 received, 0% packet loss", self.run_on("node3", "ibping", "-c", "2", str(lids["node2"])))
            # A second server of the class on the node is refused, but one on another node is not.
            self.run_on("node2", "ibping", "-S", status=255)
        # The agent was removed when the program exited.
        with self.running_on("node2", "ibping", "-S", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            daemon.await_that("the next server", answers)

    def test_untrusted_node_cannot_send_smps(self):
        self.await_subnet()
        done = subprocess.run(self.command("node4", "smpquery", "nodeinfo", "-D", "0"), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, env={**os.environ, "PATH": SYSTEM})
        self.assertNotEqual(done.returncode, 0)
        # Programs that need no SMPs work as soon as the port knows its subnet manager.
        daemon.await_that("node4's subnet manager", lambda: "SM lid: 0" not in self.run_on("node4", "ibstat"))
        self.assertIn("node1", self.run_on("node4", "saquery", "NR"))


class AttachedOpenSm(Attached):
    LAB = NO_MANAGER

    def test_opensm_manages_the_fabric_from_a_host(self):
        running = self.opensm("node1")
        daemon.await_that("LIDs of all nodes", lambda: running.poll() is not None or all(self.lids().values()))
        self.assertIsNone(running.poll(), "OpenSM ended")
        self.await_subnet()
        lids = self.lids()
        self.assertEqual(len(set(lids.values())), 7)
        self.assertRegex(self.run_on("node3", "sminfo"), rf"sm lid {lids['node1']} .* state 3 SMINFO_MASTER")
        # The SA is queried from its own node and from another one.
        for node in ("node1", "node2"):
            records = self.run_on(node, "saquery", "NR")
            for name in lids:
                self.assertIn(name, records)
        self.assertIn("node4", self.run_on("node1", "ibtracert", str(lids["node2"]), str(lids["node4"])))
        self.assertRegex(self.run_on("node2", "smpquery", "portinfo", str(lids["node1"])), r"CapMask:(?s:.*)IsSM\n")

    def test_opensm_manages_the_fabric_from_a_switch(self):
        running = self.opensm("switch2")
        daemon.await_that("LIDs of all nodes", lambda: running.poll() is not None or all(self.lids().values()))
        self.assertIsNone(running.poll(), "OpenSM ended")
        self.await_subnet()
        self.assertRegex(self.run_on("node3", "sminfo"), rf"sm lid {self.lids()['switch2']} .* state 3 SMINFO_MASTER")

    def test_opensm_can_be_killed_and_restarted(self):
        first = self.opensm("node1")
        daemon.await_that("LIDs of all nodes", lambda: all(self.lids().values()))
        self.await_subnet()
        first.kill()
        first.wait()
        # The agents and the IsSM capability of the killed program have been released.
        second = self.opensm("node1")
        daemon.await_that("the second manager", lambda: second.poll() is not None or "SMINFO_MASTER" in subprocess.run(
            self.command("node2", "sminfo"), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env={**os.environ, "PATH": SYSTEM}).stdout)
        self.assertIsNone(second.poll(), "OpenSM ended")


class AttachedProgramExit(Attached):
    def test_attached_program_exits_when_the_lab_ends(self):
        self.await_subnet()
        with self.running_on("node1", "ibping", "-S", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            subprocess.run([WEFT, "--socket-dir", str(self.directory), "shutdown"], stdin=subprocess.DEVNULL, check=True)
            self.weftd.wait(daemon.TIME_LIMIT)
            server.wait(daemon.TIME_LIMIT)


class OwnProgram(Attached):
    """attach_program.c, which uses the library in ways that stock programs do not."""

    @classmethod
    def setUpClass(cls):
        if not shutil.which("cc") or not os.path.exists("/usr/include/infiniband/umad.h"):
            raise unittest.SkipTest("not installed: a C compiler, libibumad-dev")
        cls.program = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="weft-attach-"))) / "program"
        subprocess.run(["cc", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1", "-o", cls.program, TREE / "tools/weft/tests/attach_program.c", "-libumad"],
                       stdin=subprocess.DEVNULL, check=True)

    def setUp(self):
        # Memory that the sanitizer quarantines is not counted.
        options = os.pathsep.join(filter(None, (os.environ.get("ASAN_OPTIONS"), "quarantine_size_mb=1")))
        self.enterContext(unittest.mock.patch.dict(os.environ, ASAN_OPTIONS=options))
        super().setUp()

    def run_program(self, node, *words):
        return self.run_on(node, self.program, *words)

    @contextlib.contextmanager
    def program_running(self, node, *words):
        """Starts the program and waits until it has printed a line; yields both."""
        with self.running_on(node, self.program, *words, stdout=subprocess.PIPE, text=True) as running:
            yield running, running.stdout.readline().strip()

    def rest_of(self, running):
        """Returns what the program prints until it exits by itself."""
        rest = running.communicate(timeout=daemon.TIME_LIMIT)[0]
        return rest.splitlines()


class AttachedUserPrograms(OwnProgram):
    """Tests threads, fork(), agents, the removal of a lab, and floods."""

    def apply(self, lab):
        file = self.directory / "applied.toml"
        file.write_text(lab)
        subprocess.run([WEFT, "--socket-dir", str(self.directory), "lab", "apply", file], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)

    def test_program_with_threads_and_epoll_receives_all_responses(self):
        self.assertEqual(self.run_program("node1", "threads"), "threads: all responses\n")
        self.assertEqual(self.run_program("switch1", "threads"), "threads: all responses\n")

    def test_forked_child_processes_can_use_the_port_and_exec_a_program(self):
        self.assertRegex(self.run_program("node1", "children", "ibstat", "-p"), r"^0x[0-9a-f]{16}\nchildren: done\n$")

    def test_child_forked_by_a_threaded_program_can_send_mads(self):
        self.assertEqual(self.run_program("node1", "fork"), "fork beside a thread: done\n")

    def test_killed_program_leaves_no_mad_agents(self):
        # Another program on the node does not affect the subnet manager of the port.
        self.enterContext(self.program_running("node1", "wait", "poll"))
        for _ in range(20):
            with self.program_running("node1", "agents") as (running, said):
                self.assertEqual(said, "agents: 32, and one more: ENOMEM")
                running.kill()
                running.wait()
        # The same applies to programs that are killed while they send.
        for _ in range(5):
            with self.running_on("node1", self.program, "flood", "40", "1", "1000") as running:
                time.sleep(0.1)
                running.kill()
        self.assertEqual(self.run_program("node1", "threads"), "threads: all responses\n")

    def test_second_mad_agent_for_the_same_class_and_method_on_a_node_is_refused(self):
        with self.program_running("node1", "register", "0x04", "1") as (first, said):
            self.assertEqual(said, "umad_register: registered, umad_register2: registered")
            self.assertEqual(self.run_program("node1", "register", "0x04", "1"), "umad_register: EPERM, umad_register2: EINVAL\n")
            # Other methods, other classes and other nodes can still be used.
            for node, *wanted in (("node1", "0x04", "2"), ("node1", "0x09", "1"), ("node2", "0x04", "1")):
                with self.program_running(node, "register", *wanted) as (_, said):
                    self.assertEqual(said, "umad_register: registered, umad_register2: registered")
            first.kill()
            first.wait()
        with self.program_running("node1", "register", "0x04", "1") as (_, said):
            self.assertEqual(said, "umad_register: registered, umad_register2: registered")

    @staticmethod
    def is_asleep(process):
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "S"

    def check_waiting_programs(self, end):
        """Checks that waiting programs on node1 get errors when end() removes the node."""
        with contextlib.ExitStack() as stack:
            waiting = {how: stack.enter_context(self.program_running("node1", "wait", how)) for how in ("recv", "umad_poll", "poll")}
            managers = []
            for _ in range(3):
                managers.append(stack.enter_context(self.program_running("node1", "manager")))
                if len(managers) == 1:
                    self.assertEqual(managers[0][0].stdout.readline(), "is the manager\n")
            self.assertEqual({said for _, said in (*waiting.values(), *managers)}, {"waits"})
            for running, _ in (*waiting.values(), *managers):
                daemon.await_that("the program to wait", lambda: self.is_asleep(running.pid))
            end()
            first = {"recv": "umad_recv: EIO", "umad_poll": "umad_poll: EIO", "poll": "poll: POLLHUP"}
            for how, (running, _) in waiting.items():
                self.assertEqual(self.rest_of(running), [first[how], "then: EIO EIO EIO, register: EPERM EIO, open: ENODEV"])
            for running, _ in managers[1:]:
                self.assertEqual(self.rest_of(running), ["open: EIO"])

    def test_programs_that_wait_for_mads_get_an_error_when_the_lab_ends(self):
        def end():
            subprocess.run([WEFT, "--socket-dir", str(self.directory), "shutdown"], stdin=subprocess.DEVNULL, check=True)
            self.weftd.wait(daemon.TIME_LIMIT)
        self.check_waiting_programs(end)

    def test_programs_that_wait_for_mads_get_an_error_when_weftd_dies(self):
        def end():
            self.weftd.kill()
            self.weftd.wait()
        self.check_waiting_programs(end)

    def test_programs_that_wait_for_mads_get_an_error_when_their_node_is_removed(self):
        self.check_waiting_programs(lambda: self.apply(self.LAB.replace(NODE1, "")))
        self.run_on("node1", "ibstat", status=1)
        self.apply(self.LAB)
        self.assertEqual(self.run_program("node1", "threads"), "threads: all responses\n")
        with self.program_running("node1", "manager") as (running, _):
            self.assertEqual(running.stdout.readline(), "is the manager\n")

    def test_program_that_sends_a_flood_of_mads_gets_an_error_when_the_lab_ends(self):
        with self.running_on("node1", self.program, "flood", "40", "1", "1000", stdout=subprocess.PIPE, text=True) as running:
            time.sleep(1)
            subprocess.run([WEFT, "--socket-dir", str(self.directory), "shutdown"], stdin=subprocess.DEVNULL, check=True)
            self.assertRegex("\n".join(self.rest_of(running)), "^umad_(send|recv): Input/output error$")

    def test_mads_with_a_forged_source_are_not_delivered(self):
        self.await_subnet()
        with self.running_on("node1", self.program, "forge", str(self.lids()["node2"]), stdout=subprocess.PIPE, text=True) as forger:
            self.assertEqual([forger.stdout.readline().strip() for _ in range(5)],
                             ["path bits: 0", "P_Key index: EINVAL", "GID index: EINVAL", "SMP from QP1: EINVAL", "route that begins elsewhere: ETIMEDOUT"])
            for node in ("node1", "node2"):
                self.assertEqual(self.run_program(node, "threads"), "threads: all responses\n")
            self.assertRegex(self.run_on("node2", "perfquery", self.guid_of("node1"), "-G"), "PortXmitPkts")
            self.assertIsNone(forger.poll(), "the program exited")

    def test_forged_responses_with_the_transaction_ids_of_another_program_are_not_delivered(self):
        """The forger knows the transaction IDs of a program on another node: of a request that was answered, of one for an unused LID, and of the next one."""
        self.await_subnet()
        lids = self.lids()
        with self.running_on("node2", self.program, "await-responses", str(lids["node1"]), str(UNUSED), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             text=True) as running:
            high = running.stdout.readline().strip()
            self.assertEqual(self.run_program("node1", "forge-responses", str(lids["node2"]), high), "own request: 0\n")
            running.stdin.write("\n")
            running.stdin.flush()
            self.assertEqual(self.rest_of(running), ["response 3"])

    def memory(self):
        """Returns weftd's memory in MiB."""
        status = pathlib.Path(f"/proc/{self.weftd.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024

    def time_used(self):
        """Returns weftd's CPU time in seconds."""
        fields = pathlib.Path(f"/proc/{self.weftd.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def is_blocked(process):
        """Returns whether a process has not run for a second."""
        def time_run():
            return int(pathlib.Path(f"/proc/{process}/schedstat").read_text().split()[0])

        before = time_run()
        time.sleep(1)
        return time_run() == before

    def check_flood(self, timeout, retries):
        """Checks that weftd's memory is bounded while a program floods the fabric, that the program has to wait then, that other programs are served, and that
        weftd is idle afterwards."""
        self.await_subnet()
        before = self.memory()

        def served_within_bounds():
            self.assertLess(self.memory() - before, 48)
            self.assertIn("SMINFO_MASTER", self.run_on("node2", "sminfo"))
            return True

        with self.running_on("node1", self.program, "flood", "40", timeout, retries) as running:
            daemon.await_that("the program to wait for weftd", lambda: served_within_bounds() and self.is_blocked(running.pid))
            for _ in range(10):
                served_within_bounds()
            self.assertIsNone(running.poll())
        daemon.await_that("weftd to be idle", self.is_idle)

    def test_memory_of_weftd_is_bounded_in_a_flood_of_retried_sends(self):
        self.check_flood("1", "1000")

    def test_memory_of_weftd_is_bounded_in_a_flood_of_sends_with_long_timeouts(self):
        self.check_flood("60000", "0")

    def is_idle(self):
        before = self.time_used()
        time.sleep(0.5)
        return self.time_used() - before < 0.1


class Congestion(OwnProgram):
    """A scheduled event slows the link of node2 down. Packets in flight hold the receiver's credits, so a flood has to wait for them."""

    EVENTS = ({"at": daemon.TIME_LIMIT / 20, "command": "link.set", "link": "node2", "settings": {"delay": "10ms"}},)

    def waits(self, switch):
        """Returns the counter PortXmitWait of the switch's port to node2."""
        return int(re.search(r"PortXmitWait:\.*(\d+)", self.run_on("node1", "perfquery", str(switch), "1"))[1])

    def test_port_xmit_wait_grows_on_a_slow_link(self):
        self.await_subnet()
        lids = self.lids()
        self.assertIn('"node2"', re.search(r'^Switch.*"switch2".*\n\[1\].*', self.run_on("node1", "ibnetdiscover"), re.MULTILINE)[0])
        daemon.await_that("the event", lambda: any(link["settings"]["delay"] == "10ms" for link in self.fabric()["links"]))
        before = self.waits(lids["switch2"])
        with self.running_on("node3", self.program, "flood-performance", str(lids["node2"])):
            daemon.await_that("PortXmitWait to grow", lambda: self.waits(lids["switch2"]) > before + 100)
            # The counters of other ports must not increase.
            self.assertEqual(self.run_on("node1", "sminfo").count("SMINFO_MASTER"), 1)


class LargeSaTables(OwnProgram):
    """The records of this number of nodes do not fit into a message of the socket."""

    HOSTS = 340
    LAB = daemon.fat_tree(leaves=20, spines=4, hosts=HOSTS, each=17, lines=1).replace("[[host]]", '[[host]]\nmodel = "endpoint"')

    def test_large_sa_table_is_received_completely(self):
        self.await_subnet()
        daemon.await_that("all nodes", lambda: len(re.findall(r"NodeDescription", self.run_on("node1", "saquery", "NR"))) == self.HOSTS + 20 + 4 + 1)
        manager = re.search(r"sm lid (\d+)", self.run_on("node1", "sminfo"))[1]
        nodes = self.HOSTS + 20 + 4 + 1
        # A record has 108 bytes, padded to 112, and the MAD's headers have 56 bytes.
        self.assertEqual(self.run_program("node1", "descriptors", manager), f"without a descriptor: EIO\nwith one: {56 + 112 * nodes} bytes\n")


class CardsWithoutGuests(Attached):
    """Hosts whose guests are not connected."""

    LAB = Attached.LAB.replace('"node2"\nmodel = "endpoint"', '"node2"\nmodel = "mlx5"').replace('"node3"\nmodel = "endpoint"', '"node3"\nmodel = "mlx4"')

    def test_port_of_a_card_without_a_guest_is_down(self):
        for node in ("node2", "node3"):
            self.assertRegex(self.run_on(node, "ibstat"), r"CA 'weft0'(?s:.*)Number of ports: 1\n(?s:.*)State: Down")
            self.assertIn(node, self.run_on(node, "smpquery", "nodedesc", "-D", "0"))


class AttachedLibibmad(Attached):
    """attach_mad_program.c, which uses libibmad: that library finds weft's libibumad."""

    def test_program_with_libibmad_queries_the_fabric(self):
        if not shutil.which("cc") or not os.path.exists("/usr/include/infiniband/mad.h"):
            self.skipTest("not installed: a C compiler, libibmad-dev")
        program = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-attach-"))) / "program"
        subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-O1", "-o", program, TREE / "tools/weft/tests/attach_mad_program.c", "-libmad", "-libumad"],
                       stdin=subprocess.DEVNULL, check=True)
        self.await_subnet()
        lids = self.lids()
        # Counters that are not 0, and a path that the subnet manager knows.
        self.assertIn("SMINFO_MASTER", self.run_on("node2", "sminfo"))
        self.assertEqual(self.run_on("node1", program, str(lids["node2"]), self.guid_of("node2")).splitlines(),
                         [f"own LID {lids['node1']}, port 1", "by LID: node2", "by a directed route: switch1", "packets: some",
                          f"by a path query: LID {lids['node2']}", "of an unused LID: no answer"])


class AttachWithoutRoot(unittest.TestCase):
    """Copies of the programs, as installed, in a directory that all users can read. weftd and its clients run as user nobody."""

    USER = {"user": 65534, "group": 65534, "extra_groups": []}

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("only root can run programs as another user; all other tests run without root then")
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-attach-")))
        self.root.chmod(0o755)
        for source, target in ((WEFT, "bin/weft"), (WEFTD, "bin/weftd"), (LIBRARY, "lib/weft/libibumad.so.3")):
            (self.root / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, self.root / target)
        self.directory = self.root / "sockets"
        self.directory.mkdir()
        os.chown(self.directory, self.USER["user"], self.USER["group"])
        self.enterContext(daemon.weftd(self.root / "bin/weftd", OWN_MANAGER, self.directory, **self.USER))

    def run_on(self, node, *words, status=0):
        done = subprocess.run([self.root / "bin/weft", "--socket-dir", self.directory, "attach", node, "--", *words], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, env={"PATH": SYSTEM}, timeout=daemon.TIME_LIMIT, **self.USER)
        self.assertEqual(done.returncode, status, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    @unittest.skipUnless(shutil.which("ibnetdiscover", path=SYSTEM), "not installed: ibnetdiscover")
    def test_attached_programs_run_without_root_privileges(self):
        self.assertEqual(self.run_on("node1", "sh", "-c", "id -u; grep CapEff /proc/self/status"), "65534\nCapEff:\t0000000000000000\n")
        daemon.await_that("the subnet to be up", lambda: self.run_on("node1", "ibstat").count("State: Active"))
        daemon.await_that("all nodes", lambda: set(re.findall(r'# "(\w+)"', self.run_on("node1", "ibnetdiscover"))) >= set(NODES))
        self.assertIn("SMINFO_MASTER", self.run_on("node1", "sminfo"))
        # SMPs need no privileges of the host, but node4 is not trusted.
        self.run_on("node4", "sminfo", status=255)


class PytestPlugin(unittest.TestCase):
    def test_examples_of_the_pytest_plugin_pass_without_guests(self):
        if missing := [name for name in NEEDED if not shutil.which(name, path=SYSTEM)]:
            self.skipTest(f"not installed: {', '.join(missing)}")
        # `weft lab` finds the session program relative to its own directory, which is build/bin in a tree.
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-attach-")))
        (folder / "tools").symlink_to(TREE / "tools")
        for source, place in ((WEFT, "build/bin/weft"), (WEFTD, "build/bin/weftd"), (LIBRARY, "build/lib/weft/libibumad.so.3")):
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, folder / place)
        done = subprocess.run(["/usr/bin/python3", "-B", "-m", "pytest", "-p", "weft.pytest_plugin", "-p", "no:cacheprovider", "--weft", folder / "build/bin/weft",
                               "--weft-logs", folder / "logs", TREE / "tools/weft/python/examples/test_opensm.py"], cwd=folder,
                              env={**os.environ, "PYTHONPATH": str(TREE / "tools/weft/python")}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, timeout=4 * daemon.TIME_LIMIT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"3 passed in")
        # All examples have used one lab.
        self.assertEqual([path.name for path in (folder / "logs").iterdir()], ["lab1"])


if __name__ == "__main__":
    cases.main([sys.argv[0], *sys.argv[4:]])
