#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that one lab file gives the same subnet and the same Ethernet segments if one, two or four daemons run the lab.

    places_test.py WEFT WEFTD LIBRARY [TEST...]

LIBRARY is the library that replaces libibumad in programs of infiniband-diags. weft finds it without this argument.
"""
import contextlib
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import cases
import daemon

WEFT, WEFTD, LIBRARY = sys.argv[1:4]
assert os.path.exists(LIBRARY)
SYSTEM = os.pathsep.join(("/usr/sbin", "/sbin", os.environ.get("PATH", os.defpath)))
SWITCHES, HOSTS = 4, 8
# Four switches in a ring, with two links between neighbours and two hosts each.
LAB = "\n".join(['name = "ring"', 'trunk-key-file = "trunk.key"',
                 *(f'[[switch]]\nname = "s{number}"\nports = 8' for number in range(1, SWITCHES + 1)),
                 *(f'[[host]]\nname = "h{number}"\nmodel = "endpoint"' for number in range(1, HOSTS + 1)),
                 *(f'[[link]]\nends = ["h{number}", "s{(number + 1) // 2}"]' for number in range(1, HOSTS + 1)),
                 *(f'[[link]]\nends = ["s{number}", "s{number % SWITCHES + 1}"]\ndelay = "20us"' for number in range(1, SWITCHES + 1) for _ in range(2)), ""])


def free_port(count):
    """Returns the first of some consecutive ports that are free, below those that the kernel assigns."""
    while True:
        first = 20000 + secrets.randbelow(10000)
        with contextlib.ExitStack() as stack:
            try:
                for number in range(first, first + count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", number))
            except OSError:
                continue
            return first


class Daemons:
    """The weftds that run one lab file together."""

    def __init__(self, test, file, places=(), options=lambda name: ()):
        self.test = test
        self.directories = {}
        self.running = {}
        self.hosts = {}     # the directory of each host's daemon
        self._file = file
        self._options = options
        for name in places or ("all",):
            self.directories[name] = pathlib.Path(test.enterContext(tempfile.TemporaryDirectory(prefix=f"weft-{name}-")))
            self.start(name)
            for host in self.fabric(name)["hosts"]:
                self.hosts[host["name"]] = self.directories[name]

    def start(self, name):
        """Starts the daemon of a place, also again after it was killed."""
        directory = self.directories[name]
        (directory / "control.sock").unlink(missing_ok=True)
        place = () if name == "all" else ("--place", name, *self._options(name))
        running = self.test.enterContext(daemon.process(WEFTD, "--socket-dir", str(directory), "--lab", str(self._file), *place, stderr=subprocess.DEVNULL))
        daemon.await_that("weftd to serve", lambda: (directory / "control.sock").is_socket() or running.poll() is not None)
        self.test.assertIsNone(running.poll(), f"{name} ended")
        self.running[name] = running

    def kill(self, name):
        self.running[name].kill()
        self.running[name].wait()

    @staticmethod
    def weft(directory, *words):
        return subprocess.run([WEFT, "--socket-dir", str(directory), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              env={**os.environ, "PATH": SYSTEM}, timeout=daemon.TIME_LIMIT).stdout

    def fabric(self, name):
        return json.loads(self.weft(self.directories[name], "--json", "fabric", "show"))

    def attached(self, host, *words):
        return self.weft(self.hosts[host], "attach", host, "--", *words)

    def discovery(self, host):
        """Returns what ibnetdiscover prints from a host, without the comments at the beginning. It lists the nodes in the order of their responses."""
        text = re.sub(r"\A(#.*\n|\n)*", "", self.attached(host, "ibnetdiscover"))
        return "\n\n".join(sorted(node.strip() for node in re.split(r"\n\n+", text)))

    def await_subnet(self, nodes):
        """Returns the discovery from h1, once all nodes are in it with LIDs and all links are up."""
        def complete():
            text = self.discovery("h1")
            names = set(re.findall(r'^(?:Switch|Ca)\s.*# "([^"]*)"', text, re.MULTILINE))
            return names >= nodes and " lid 0" not in text and self.links_are_up() and text == self.discovery("h1") and text
        return daemon.await_that("the subnet to be complete", complete)

    def links_are_up(self):
        return all(link["up"] for name in self.directories for link in self.fabric(name)["links"])

    def links(self):
        return {link["name"] for name in self.directories for link in self.fabric(name)["links"]}


class OneLabFile(unittest.TestCase):
    """Has a lab file and the key of its trunks."""
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-places-")))
        key = self.folder / "trunk.key"
        key.write_bytes(secrets.token_bytes(32))
        key.chmod(0o600)
        self.file = self.folder / "lab.toml"

    def plan(self, *options):
        return json.loads(subprocess.run([WEFT, "--json", "lab", "plan", str(self.file), *options], capture_output=True, text=True, check=True).stdout)

    def divided(self, count):
        """Starts the daemons of a lab file without places."""
        plan = self.plan("--places", str(count))["places"]
        listening = [place["name"] for place in plan if any(trunk["role"] == "listens" for trunk in place["trunks"])]
        peers = []
        for place in plan:
            if place["name"] in listening:
                peers += ["--peer", f"{place['name']}=localhost:{free_port(len(place['trunks']))}"]
        return Daemons(self, self.file, [place["name"] for place in plan], lambda name: ("--places", str(count), *peers))


class Places(OneLabFile):
    def setUp(self):
        super().setUp()
        self.nodes = {"weft SM", *(f"s{number}" for number in range(1, SWITCHES + 1)), *(f"h{number}" for number in range(1, HOSTS + 1))}

    def needs_diagnostics(self):
        if missing := [name for name in ("ibnetdiscover", "ibtracert") if not shutil.which(name, path=SYSTEM)]:
            self.skipTest(f"not installed: {', '.join(missing)}")

    def test_one_lab_file_gives_the_same_subnet_on_1_2_and_4_daemons(self):
        self.needs_diagnostics()
        self.file.write_text(LAB)
        whole = Daemons(self, self.file)
        expected = whole.await_subnet(self.nodes)
        far = whole.discovery("h7")
        for count in (2, 4):
            with self.subTest(count=count):
                parts = self.divided(count)
                self.assertEqual(len(set(parts.hosts.values())), count)
                self.assertEqual(parts.await_subnet(self.nodes), expected)
                self.assertEqual(parts.discovery("h7"), far)
                self.assertEqual(parts.links(), whole.links())
                lids = [re.search(rf'"{host}".*?lid (\d+)', expected, re.DOTALL)[1] for host in ("h1", "h6")]
                for each in (whole, parts):
                    route = each.attached("h1", "ibtracert", *lids)
                    self.assertEqual(re.findall(r'"(.*)"', route)[:2], ["h1", "s1"])

    def test_each_daemon_runs_the_nodes_that_the_lab_file_assigns_to_it(self):
        """The file assigns places, also to a host apart from its switch; a changed file is applied to each daemon."""
        self.needs_diagnostics()
        text = LAB
        for name, place in (("s1", "a"), ("s2", "b"), ("s3", "b"), ("s4", "a"), ("h3", "a")):
            text = text.replace(f'name = "{name}"', f'name = "{name}"\nplace = "{place}"')
        text += f'[[place]]\nname = "b"\naddress = "127.0.0.1:{free_port(8)}"\n[[place]]\nname = "a"\naddress = "127.0.0.1:1"\n[sm]\nplace = "a"\n'
        self.file.write_text(text)
        whole, parts = Daemons(self, self.file), Daemons(self, self.file, ("a", "b"))
        self.assertEqual(parts.hosts["h3"], parts.directories["a"])
        self.assertEqual(parts.fabric("a")["subnet_manager"]["node"], "sm")
        self.assertIsNone(parts.fabric("b")["subnet_manager"])
        self.assertEqual(whole.await_subnet(self.nodes), parts.await_subnet(self.nodes))
        # Either half takes the whole link down.
        link = next(link["name"] for link in parts.fabric("b")["links"] if "h3/1" in link["ends"])
        parts.weft(parts.directories["b"], "link", "down", link)
        daemon.await_that("the link to go down", lambda: not next(each for each in parts.fabric("a")["links"] if each["name"] == link)["up"])
        parts.weft(parts.directories["b"], "link", "up", link)
        self.file.write_text(text.replace('[[host]]\nname = "h5"', '[[host]]\nname = "h0"\nmodel = "endpoint"\n[[host]]\nname = "h5"') +
                             '[[link]]\nends = ["h0", "s3"]\n[[link]]\nends = ["s1", "s3"]\n')
        for each in (whole, parts):
            for directory in each.directories.values():
                each.weft(directory, "lab", "apply", str(self.file))
        nodes = self.nodes | {"h0"}
        self.assertEqual(whole.await_subnet(nodes), parts.await_subnet(nodes))
        self.assertEqual(whole.links(), parts.links())

    def test_invalid_place_options_and_place_sections_of_a_lab_file_are_refused(self):
        def refusal(text, *options):
            self.file.write_text(text)
            done = subprocess.run([WEFTD, "--socket-dir", str(self.folder / "sockets"), "--lab", str(self.file), *options], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, check=False, timeout=daemon.TIME_LIMIT)
            self.assertNotEqual(done.returncode, 0)
            return done.stderr

        places = '[[place]]\nname = "a"\n'
        self.assertIn(f"{self.file}:1: the lab has no [[place]]; add them, or use --places", refusal(LAB, "--place", "p1"))
        line = LAB.count("\n") + 1
        self.assertIn(f"{self.file}:{line + 2}: the place 'a' is given twice", refusal(LAB + places + places, "--place", "a"))
        self.assertIn(f"{self.file}:1: place 'p1' listens for trunks, so it needs an address", refusal(LAB, "--place", "p2", "--places", "2"))
        self.assertIn("there is no place 'p3'; there is p1, p2", refusal(LAB, "--place", "p3", "--places", "2"))
        self.assertIn("--peer p1: ", refusal(LAB, "--place", "p1", "--places", "2", "--peer", "p1=127.0.0.1:x"))
        self.assertIn("a weftd runs only one place", refusal(LAB, "--places", "2", "--place", "p1", "--place", "p2"))
        self.assertIn("is required by --places, --peer and --trunk-key", refusal(LAB, "--places", "2"))

    def test_restarted_daemon_restores_its_part_of_the_lab_from_the_state_file(self):
        """A daemon that is started again needs no lab file, because its state contains it. It repeats the changes, too."""
        self.file.write_text(LAB)
        port, state = free_port(8), self.folder / "p1.state"
        placement = ("--places", "2", "--peer", f"p1=127.0.0.1:{port}")

        def start(name, *options):
            directory = self.folder / name
            (directory / "control.sock").unlink(missing_ok=True)
            running = self.enterContext(daemon.process(WEFTD, "--socket-dir", str(directory), "--place", name, *placement, *options, stderr=subprocess.PIPE, text=True))
            daemon.await_that(f"{name} to serve", lambda: (directory / "control.sock").is_socket() or running.poll() is not None)
            self.assertIsNone(running.poll(), running.poll() is not None and running.stderr.read())
            return running

        def show(name):
            return json.loads(Daemons.weft(self.folder / name, "--json", "fabric", "show"))

        def all_connected():
            trunks = [trunk for name in ("p1", "p2") for trunk in show(name)["trunks"]]
            return len(trunks) == 8 and all(trunk["connected"] for trunk in trunks)

        start("p2", "--lab", str(self.file))
        first = start("p1", "--lab", str(self.file), "--state", str(state))
        daemon.await_that("the trunks to be connected", all_connected)
        Daemons.weft(self.folder / "p1", "link", "down", "h1/1")
        before = show("p1")
        first.send_signal(signal.SIGKILL)
        first.wait(daemon.TIME_LIMIT)
        self.file.unlink()
        start("p1", "--state", str(state))
        daemon.await_that("the trunks to be connected again", all_connected)
        after = show("p1")
        self.assertEqual([host["guid"] for host in after["hosts"]], [host["guid"] for host in before["hosts"]])
        self.assertEqual([link["name"] for link in after["links"]], [link["name"] for link in before["links"]])
        self.assertFalse(next(link for link in after["links"] if "h1/1" in link["ends"])["up"])

    def test_place_and_plan_options_of_weftd_require_a_lab_file(self):
        for options in (("--place", "p1", "--places", "2"), ("--plan", "json", "--places", "2"), ("--place", "p1", "--state", str(self.folder / "absent"))):
            with self.subTest(options=options):
                done = subprocess.run([WEFTD, "--socket-dir", str(self.folder / "sockets"), *options], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                      check=False, timeout=daemon.TIME_LIMIT)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("--place and --plan need --lab, or the --state of a weftd with a lab file", done.stderr)
                self.assertFalse((self.folder / "absent").exists())

    def test_lab_plan_contains_tcp_ports_of_trunks_only_if_the_lab_file_sets_them(self):
        """Programs that start the places choose free ports for the others."""
        for address, port in (("127.0.0.1", None), ("127.0.0.1:6000", 6000)):
            with self.subTest(address=address):
                self.file.write_text(LAB + f'[[place]]\nname = "a"\naddress = "{address}"\n[[place]]\nname = "b"\naddress = "127.0.0.1"\n')
                done = subprocess.run([WEFTD, "--lab", str(self.file), "--plan", "json"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
                                      timeout=daemon.TIME_LIMIT)
                plan = json.loads(done.stdout)["places"]
                self.assertEqual([place["address"] for place in plan], [address, "127.0.0.1"])
                self.assertEqual(plan[1]["peers"], {"a": address})
                for place in plan:
                    self.assertEqual([trunk["port"] for trunk in place["trunks"]], [port and port + index for index in range(4)])

    def test_lab_plan_command_prints_the_hosts_and_trunks_of_each_daemon(self):
        self.file.write_text(LAB)
        text = subprocess.run([WEFT, "lab", "plan", str(self.file), "--places", "2"], capture_output=True, text=True, check=True).stdout
        self.assertIn("    hosts (4): h1 h2 h3 h4\n", text)
        self.assertRegex(text, r"(?m)^4 of 17 links are trunks between places$")
        plan = self.plan("--places", "2", "--place", "p2")
        self.assertEqual([(place["name"], place["hosts"]) for place in plan["places"]], [("p2", ["h5", "h6", "h7", "h8"])])


class Nic:
    """The guest's end of a host's Ethernet socket, which speaks the format of QEMU's `-netdev stream`."""

    def __init__(self, test, directory, host, number):
        self.mac = bytes([2, 0, 0, 0, 0, number])
        self.host = host
        self._data = b""
        self._socket = test.enterContext(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        self._socket.connect(str(directory / f"{host}-eth0.sock"))
        self._socket.setblocking(False)
        self.frames = []    # that have arrived

    def send(self, to, payload, count=1):
        frame = to + self.mac + b"\x88\xb5" + payload
        self._socket.setblocking(True)
        self._socket.sendall((struct.pack(">I", len(frame)) + frame) * count)
        self._socket.setblocking(False)

    def received(self):
        """Returns the payloads of the frames that have arrived so far."""
        with contextlib.suppress(BlockingIOError):
            while data := self._socket.recv(1 << 20):
                self._data += data
        while len(self._data) >= 4 and len(self._data) >= 4 + (size := struct.unpack_from(">I", self._data)[0]):
            self.frames.append(self._data[18:4 + size])
            self._data = self._data[4 + size:]
        return self.frames


BROADCAST = b"\xff" * 6
ETHERNET_HOSTS = 4
ETHERNET_LAB = "\n".join(['name = "lan"', 'trunk-key-file = "trunk.key"', "[sm]", "enabled = false", '[[ethernet]]\nname = "lan"',
                          *(f'[[host]]\nname = "h{number}"\nethernet = "lan"' for number in range(1, ETHERNET_HOSTS + 1)), ""])


class EthernetPlaces(OneLabFile):
    """A segment whose hosts are at several places."""

    def start(self, count):
        self.file.write_text(ETHERNET_LAB)
        daemons = self.divided(count) if count > 1 else Daemons(self, self.file)
        if count > 1:
            daemon.await_that("the trunks to be connected", lambda: self.connected(daemons, count))
        nics = [Nic(self, daemons.hosts[f"h{number}"], f"h{number}", number) for number in range(1, ETHERNET_HOSTS + 1)]
        daemon.await_that("the guests to be connected", lambda: all(attachment["guest"] for name in daemons.directories
                                                                      for attachment in daemons.fabric(name)["ethernet"]["attachments"]))
        return daemons, nics

    @staticmethod
    def connected(daemons, count):
        trunks = [trunk for name in daemons.directories for trunk in daemons.fabric(name)["trunks"]]
        return len(trunks) == count * (count - 1) and all(trunk["connected"] and trunk["ethernet"] == "lan" for trunk in trunks)

    @staticmethod
    def await_frames(nics, expected):
        """Waits for {nic: payloads}; the order of those of different senders does not matter."""
        daemon.await_that("the frames to arrive", lambda: all(len(nic.received()) >= len(expected[nic]) for nic in nics))
        for nic in nics:
            assert sorted(nic.received()) == sorted(expected[nic]), (nic.host, nic.frames, expected[nic])

    def test_frames_arrive_once_at_each_host_on_1_2_and_4_daemons(self):
        names = None
        for count in (1, 2, 4):
            with self.subTest(count=count):
                daemons, nics = self.start(count)
                self.assertEqual(len(set(daemons.hosts.values())), count)
                expected = {nic: [] for nic in nics}
                for sender in nics:
                    sender.send(BROADCAST, sender.mac)
                    for nic in nics:
                        if nic is not sender:
                            expected[nic].append(sender.mac)
                    self.await_frames(nics, expected)
                # All addresses are known now, so that nobody else gets these.
                for sender in nics:
                    for nic in nics:
                        if nic is not sender:
                            nic_payload = b"to " + nic.mac + sender.mac + bytes(8000)
                            sender.send(nic.mac, nic_payload)
                            expected[nic].append(nic_payload)
                self.await_frames(nics, expected)
                shown = [daemons.fabric(name)["ethernet"] for name in daemons.directories]
                self.assertEqual([switch["addresses"] for each in shown for switch in each["switches"]], [ETHERNET_HOSTS] * count)
                links = {link["name"] for each in shown for link in each["links"] if "@" not in link["name"]}
                self.assertEqual(links, names := names or links)

    def test_lost_daemon_is_forgotten_and_reachable_again_when_it_returns(self):
        daemons, nics = self.start(2)
        one, _, three, _ = nics
        here, = (name for name, directory in daemons.directories.items() if directory == daemons.hosts["h1"])
        there, = (name for name, directory in daemons.directories.items() if directory == daemons.hosts["h3"])
        three.send(BROADCAST, b"1")
        daemon.await_that("a frame", one.received)

        def addresses():
            return daemons.fabric(here)["ethernet"]["switches"][0]["addresses"]

        self.assertEqual(addresses(), 1)
        daemons.kill(there)
        daemon.await_that("the address to be forgotten", lambda: addresses() == 0)
        self.assertIn("not connected", daemons.weft(daemons.directories[here], "fabric", "show"))
        for socket_file in daemons.directories[there].glob("*.sock"):
            socket_file.unlink()
        daemons.start(there)
        daemon.await_that("the trunk to be connected again", lambda: self.connected(daemons, 2))
        three = Nic(self, daemons.hosts["h3"], "h3", 3)
        daemon.await_that("the guest to be connected", lambda: any(each["guest"] for each in daemons.fabric(there)["ethernet"]["attachments"]))
        one.send(three.mac, b"2")
        daemon.await_that("a frame", lambda: three.received() == [b"2"])

    def test_trunk_of_an_ethernet_segment_can_be_pulled_and_has_counters(self):
        daemons, (one, _, three, _) = self.start(2)
        here = daemons.hosts["h1"]
        link = "lan@p1/p2-lan@p2/p1"
        daemons.weft(here, "link", "down", link)
        one.send(BROADCAST, b"lost")

        def counters():
            return json.loads(daemons.weft(here, "--json", "counters", link))

        daemon.await_that("the frame to be dropped", lambda: counters()["lan@p1/p2"]["xmit_discards"] == 1)
        daemons.weft(here, "link", "up", "lan@p1/p2")
        one.send(BROADCAST, b"arrives")
        daemon.await_that("a frame", lambda: three.received())
        self.assertEqual(three.received(), [b"arrives"])
        self.assertEqual((counters()["lan@p1/p2"]["xmit_frames"], counters()["lan@p2/p1"]["rcv_frames"]), (1, 1))
        self.assertRegex(daemons.weft(here, "fabric", "show"), r"(?m)^link +lan@p1/p2-lan@p2/p1 +up +Ethernet$")


if __name__ == "__main__":
    cases.main([sys.argv[0], *sys.argv[4:]])
