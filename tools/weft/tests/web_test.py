#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests what `weft web` serves to which clients: it is read-only by default, refuses malformed requests and requests from other sites, and limits the
number of its clients.

    web_test.py WEFT WEFTD
"""
import asyncio
import http.client
import json
import os
import pathlib
import socket
import stat
import subprocess
import sys
import unittest
import urllib.parse

from prometheus_client.parser import text_string_to_metric_families

sys.dont_write_bytecode = True
import cases
import daemon
import stand_in_lab

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "web"))
sys.path.append(str(HERE.parent / "session"))
import metrics
import peers
import watching

WEFT, WEFTD = sys.argv[1:3]
LINK = "node1/1-switch1/1"
ETHERNET_LINKS = ("node1/eth0-lan/1", "node2/eth0-lan/2")


class Client:
    def __init__(self, address):
        parts = urllib.parse.urlsplit(address)
        self.where = parts.netloc
        self.token = parts.fragment

    def ask(self, method, path, body=None, **headers):
        """Returns (status, headers, body)."""
        connection = http.client.HTTPConnection(self.where, timeout=daemon.TIME_LIMIT)
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, answer.headers, content

    def get(self, path):
        status, _, body = self.ask("GET", path)
        assert status == 200, (path, status, body)
        return json.loads(body)

    def post(self, path, body, **headers):
        headers = {"Origin": f"http://{self.where}", "X_Weft_Token": self.token, "Content_Type": "application/json", **headers}
        status, _, said = self.ask("POST", path, body if isinstance(body, (str, bytes)) else json.dumps(body), **headers)
        return status, said

    def raw(self, data):
        host, port = self.where.split(":")
        with socket.create_connection((host, int(port)), timeout=daemon.TIME_LIMIT) as connection:
            connection.sendall(data)
            return connection.makefile("rb").readline()


class ClientUids(unittest.TestCase):
    """Tests that the user of a client is found by the socket's addresses."""

    def user_of(self, family, address, client_family, client_address):
        with socket.socket(family) as listener, socket.socket(client_family) as client:
            listener.bind((address, 0))
            listener.listen()
            client.connect((client_address, listener.getsockname()[1]))
            served, peer = listener.accept()
            with served:
                return peers.uid_of(peer, served.getsockname())

    def test_uid_of_a_local_client_is_found(self):
        for ends in ((socket.AF_INET, "127.0.0.1", socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1", socket.AF_INET6, "::1"),
                     (socket.AF_INET, "127.0.0.1", socket.AF_INET6, "::ffff:127.0.0.1")):
            with self.subTest(ends):
                self.assertEqual(self.user_of(*ends), os.getuid())

    def test_uid_of_a_remote_client_is_not_found(self):
        self.assertIsNone(peers.uid_of(("192.0.2.1", 1), ("192.0.2.2", 2)))


class StubControl:
    """Answers requests for samples with given ones."""

    def __init__(self, samples):
        self._samples = iter(samples)
        self.asked = []

    async def ask(self, command, **arguments):
        if command == "fabric.sample":
            self.asked.append(arguments)
            return next(self._samples)
        link = {"settings": {"width": "4x", "speed": "QDR"}}
        return {"log": {"last": 0, "lines": []},
                "fabric.show": {"links": [{**link, "name": "a-b", "ends": ["a", "b"]}, {**link, "name": "c-d", "ends": ["c", "d"]}], "hosts": [], "switches": [],
                                "ethernet": {"switches": [], "links": []}, "subnet_manager": None}}[command]

    def close(self):
        pass


class Watching(unittest.TestCase):
    """weftd is asked only for changes, from which the same rates and metrics follow as from complete samples."""

    COMPLETE = {"time": 1, "generation": 5, "columns": ["xmit_data", "xmit_packets", "rcv_errors"], "ports": {port: [0, 0, 0] for port in "abcd"}, "down": [],
                "guests": [], "subnet_manager": None, "cards": {"h": {"commands": 3}},
                "ethernet": {"columns": ["xmit_bytes", "xmit_frames"], "ports": {}, "links": {}, "attached": []}}

    @staticmethod
    def changes(number, ports, cards=()):
        return {"time": number, "generation": 4 + number, "since": 3 + number, "ports": ports, "cards": dict(cards), "subnet_manager": None, "ethernet": {"ports": {}}}

    def watch(self, *samples):
        watch = watching.Watch(pathlib.Path("/"), 1)
        watch.control = StubControl(samples)
        return watch

    def test_rates_are_computed_from_samples_that_contain_only_changed_ports(self):
        watch = self.watch(self.COMPLETE, self.changes(2, {"a": [10, 1, 0]}, {"h": {"commands": 5}}), self.changes(3, {"c": [0, 0, 2]}), self.changes(4, {}),
                           self.changes(5, {"d": [5, 1, 0]}))
        seen = []
        for _ in range(5):
            asyncio.run(watch._sample())
            seen.append((watch.rates["a-b"], watch.rates["c-d"], watch.hosts.of("h")[-1][1:]))
        still = [0, 0, 0, 0, 0, 0]
        self.assertEqual(seen, [(still, still, [0]), ([320, 0, 1, 0, 0, 0], still, [2]), (still, [0, 0, 0, 0, 2, 2], [0]), (still, [0, 0, 0, 0, 2, 0], [0]),
                                (still, [0, 160, 0, 1, 2, 0], [0])])
        self.assertEqual(watch.sample["ports"], {"a": [10, 1, 0], "b": [0, 0, 0], "c": [0, 0, 2], "d": [5, 1, 0]})
        self.assertEqual(watch.cards, {"h": {"commands": 5}})
        self.assertEqual([each["since"] for each in watch.control.asked], [0, 5, 6, 7, 8])

    def test_second_complete_sample_replaces_the_values_of_all_ports(self):
        moved = {**self.COMPLETE, "generation": 9, "time": 2, "ports": {port: [1, 1, 1] for port in "abcd"}}
        watch = self.watch(self.COMPLETE, moved)
        for _ in range(2):
            asyncio.run(watch._sample())
        self.assertEqual((watch.sample, watch.rates["a-b"]), (moved, [32, 32, 1, 1, 2, 2]))

    def test_metrics_are_formatted_again_only_if_a_sample_has_changed_values(self):
        manager = {"node": "sm", "state": "master", "sweeps": 1, "complete": True}
        samples = [self.COMPLETE, self.changes(2, {}), self.changes(3, {"a": [1, 1, 0]}), self.changes(4, {}), self.changes(5, {}, {"h": {"commands": 4}}),
                   {**self.changes(6, {}), "down": ["a-b"]}, {**self.changes(7, {}), "subnet_manager": manager}, {**self.changes(8, {}), "subnet_manager": manager},
                   {**self.changes(9, {}), "subnet_manager": manager, "ethernet": {"ports": {}, "attached": ["e"]}}]
        watch = self.watch(*samples)
        watch.there = True
        seen, texts = [], []
        for _ in samples:
            asyncio.run(watch._sample())
            seen.append(watch.content)
            texts.append(metrics.text(watch, "1"))
        changed = [later != before for before, later in zip(seen, seen[1:])]
        self.assertEqual(changed, [False, True, False, True, True, True, False, True])
        # The metrics are formatted again only if the content has changed.
        self.assertFalse([number for number, new in enumerate(changed, 1) if not new and texts[number] != texts[number - 1]])

    def test_fabric_update_that_is_not_relative_to_the_last_received_state_is_refused(self):
        watch = self.watch(self.COMPLETE, self.changes(3, {}))
        asyncio.run(watch._sample())
        with self.assertRaises(ValueError):
            asyncio.run(watch._sample())


def listening(where):
    """Returns the addresses at which a process listens on a port, in the format of /proc/net/tcp: loopback is 0100007F."""
    port = f"{int(where.split(':')[1]):04X}"
    lines = [line.split() for file in ("tcp", "tcp6") for line in pathlib.Path("/proc/net", file).read_text().splitlines()[1:]]
    return {local.split(":")[0] for _, local, _, state, *_ in lines if state == "0A" and local.endswith(f":{port}")}


# The default lab, whose hosts are also attached to an Ethernet.
LAB = """
[[switch]]
name = "switch1"
[[ethernet]]
name = "lan"
[[host]]
name = "node1"
ethernet = "lan"
[[host]]
name = "node2"
ethernet = { network = "lan", state = "down" }
[[link]]
ends = ["node1", "switch1"]
[[link]]
ends = ["node2", "switch1"]
"""


class WebServerReads(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.weftd = cls._enter(daemon.weftd(WEFTD, LAB))
        cls.client = Client(cls._enter(daemon.web(WEFT, cls.weftd[1], "interval:=0.2")))
        daemon.await_that("a sample", lambda: cls.client.get("/api/live")["there"])

    @classmethod
    def _enter(cls, context):
        value = context.__enter__()
        cls.addClassCleanup(context.__exit__, None, None, None)
        return value

    def test_page_files_and_json_data_of_the_fabric_are_served(self):
        live = self.client.get("/api/live")
        self.assertEqual(sorted(live["rates"]), sorted([LINK, "node2/1-switch1/2", "sm/1-switch1/3", *ETHERNET_LINKS]))
        self.assertIn(LINK, live["down"])
        # One link has no guest, and the other one is unplugged.
        self.assertTrue(set(ETHERNET_LINKS) <= set(live["down"]))
        self.assertEqual(live["faulty"]["node2/eth0-lan/2"], {"state": "down"})
        self.assertEqual(live["subnet_manager"]["node"], "sm")
        fabric = self.client.get("/api/fabric")
        self.assertEqual(fabric["allowed"], [])
        self.assertIn("catastrophic", fabric["hosts"][0]["faults"])
        self.assertIn("commands", fabric["cards"]["node1"])
        daemon.await_that("a second sample", lambda: len(self.client.get(f"/api/history?link={LINK}")["samples"]) > 1)
        self.assertTrue(self.client.get("/api/history?host=node1")["samples"])
        daemon.await_that("a sweep in the log", lambda: any("sweep of" in line["text"] for line in self.client.get("/api/log?part=sm")))
        self.assertEqual(self.client.get("/api/log?after=999999"), [])
        status, headers, drawn = self.client.ask("GET", "/api/drawing")
        self.assertEqual((status, headers["Content-Type"].split(";")[0]), (200, "image/svg+xml"))
        self.assertIn(f'data-name="{LINK}"'.encode(), drawn)
        for path in ("/", "/style.css", "/d3.js", *(f"/{file.name}" for file in (daemon.WEB.parent / "page").glob("*.js"))):
            status, headers, _ = self.client.ask("GET", path)
            self.assertEqual(status, 200)
            self.assertIn("default-src 'self'", headers["Content-Security-Policy"])
            self.assertNotIn("Access-Control-Allow-Origin", headers)

    def test_favicon_is_served(self):
        for path in ("/favicon.ico", "/favicon.svg"):
            status, headers, _ = self.client.ask("GET", path)
            self.assertEqual((status, headers["Content-Type"]), (200, "image/svg+xml"))

    def test_port_counters_pkeys_and_routes_are_served(self):
        ports = self.client.get("/api/ports?link=sm/1-switch1/3")
        self.assertEqual(set(ports["ports"]), {"sm/1", "switch1/3"})
        self.assertGreater(ports["ports"]["sm/1"][ports["columns"].index("xmit_packets")], 0)
        self.assertEqual(set(self.client.get("/api/ports?node=switch1")["ports"]), {"switch1/1", "switch1/2", "switch1/3"})
        manager = daemon.await_that("the manager's LID", lambda: self.client.get("/api/subnet?node=sm")["ports"])
        self.assertIn("0xffff", manager["1"]["pkeys"])
        routes = daemon.await_that("routes", lambda: self.client.get("/api/subnet?node=switch1")["routes"])
        self.assertEqual(routes["3"], str(manager["1"]["lid"]))

    def test_rates_and_counters_of_ethernet_links_are_served(self):
        """Rates and counters of an Ethernet link and of its segment, from frames of a program that attaches as a guest does."""
        frame = bytes.fromhex("ffffffffffff 020000000001 88b5") + bytes(986)
        with socket.socket(socket.AF_UNIX) as guest:
            guest.connect(str(self.weftd[1] / "node1-eth0.sock"))
            daemon.await_that("the link", lambda: ETHERNET_LINKS[0] not in self.client.get("/api/live")["down"])

            def rate():
                guest.sendall(len(frame).to_bytes(4, "big") + frame)
                return self.client.get("/api/live")["rates"][ETHERNET_LINKS[0]]
            bits, _, frames, *_ = daemon.await_that("a rate", lambda: (found := rate())[0] and found)
            # Both rates are rounded.
            self.assertAlmostEqual(bits / frames, 8000, delta=8000 * 0.1 / frames)
        daemon.await_that("no guest", lambda: ETHERNET_LINKS[0] in self.client.get("/api/live")["down"])
        by_link = self.client.get(f"/api/ports?link={ETHERNET_LINKS[0]}")
        self.assertEqual(set(by_link["ports"]), {"node1/eth0", "lan/1"})
        self.assertGreater(by_link["ports"]["node1/eth0"][by_link["columns"].index("xmit_bytes")], 999)
        self.assertEqual(set(self.client.get("/api/ports?segment=lan")["ports"]), {"lan/1", "lan/2"})
        self.assertEqual(self.client.ask("GET", "/api/ports?segment=switch1")[0], 400)
        self.assertTrue(any(bits for _, bits, *_ in self.client.get(f"/api/history?link={ETHERNET_LINKS[0]}")["samples"]))

    def test_api_live_reports_link_faults_set_by_the_weft_link_set_command(self):
        """A setting made on the command line is reported by /api/live without a request for the topology."""
        self.assertNotIn("sm/1-switch1/3", self.client.get("/api/live")["faulty"])
        weft = [WEFT, "--socket-dir", self.weftd[1], "link", "set", "sm"]
        subprocess.run([*weft, "delay=1ms"], check=True, stdout=subprocess.DEVNULL)
        daemon.await_that("the delay", lambda: self.client.get("/api/live")["faulty"].get("sm/1-switch1/3") == {"delay": "1ms"})
        subprocess.run([*weft, "delay=0"], check=True, stdout=subprocess.DEVNULL)
        daemon.await_that("its end", lambda: "sm/1-switch1/3" not in self.client.get("/api/live")["faulty"])

    def test_metrics_match_the_fabric_counters_and_follow_prometheus_conventions(self):
        status, headers, body = self.client.ask("GET", "/metrics")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
        families = {family.name: family for family in text_string_to_metric_families(body.decode())}
        self.assertEqual([sample.value for sample in families["weft_up"].samples], [1])
        self.assertEqual(families["weft_port_transmit_bytes"].type, "counter")
        sent = {sample.labels["port"]: sample.value for sample in families["weft_port_transmit_bytes"].samples}
        self.assertGreater(sent["sm/1"], 0)
        # The control socket counts words of four bytes, the metrics count bytes.
        words = json.loads(subprocess.run([WEFT, "--socket-dir", self.weftd[1], "--json", "counters", "sm/1"], capture_output=True, check=True).stdout)["sm/1"]["xmit_data"]
        self.assertLessEqual(sent["sm/1"], 4 * words)
        self.assertGreaterEqual(sent["sm/1"], words)
        up = {sample.labels["link"]: sample.value for sample in families["weft_link_up"].samples}
        self.assertEqual((up[LINK], up["sm/1-switch1/3"]), (0, 1))
        self.assertEqual((up["node1/eth0-lan/1"], up["node2/eth0-lan/2"]), (1, 0))
        received = {sample.labels["port"]: sample.value for sample in families["weft_ethernet_receive_bytes"].samples}
        # Another test may have sent frames to lan/1.
        self.assertEqual({port: count for port, count in received.items() if port != "lan/1"}, {"node1/eth0": 0, "node2/eth0": 0, "lan/2": 0})
        self.assertIn("lan/1", received)
        self.assertEqual({sample.labels["port"]: sample.labels["link"] for sample in families["weft_ethernet_receive_bytes"].samples},
                         {end: link for link in ETHERNET_LINKS for end in link.rsplit("-", 1)})
        self.assertEqual({sample.labels["host"] for sample in families["weft_card_commands"].samples}, {"node1", "node2"})
        at_ports = {sample.labels["port"]: sample.labels["link"] for sample in families["weft_port_transmit_bytes"].samples}
        self.assertEqual((at_ports["sm/1"], at_ports["switch1/3"], at_ports["node1/1"]), ("sm/1-switch1/3", "sm/1-switch1/3", LINK))
        version = subprocess.run([WEFT, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
        self.assertEqual([(sample.labels, sample.value) for sample in families["weft_build_info"].samples], [({"version": version}, 1)])
        # Four lanes of 8 Gbit/s.
        self.assertEqual({sample.labels["link"]: sample.value for sample in families["weft_link_speed_bytes_per_second"].samples}[LINK], 4e9)
        self.assertEqual([sample.labels for sample in families["weft_link_info"].samples if sample.labels["link"] == LINK],
                         [{"link": LINK, "width": "4x", "speed": "QDR", "mtu": "4096"}])
        self.assertIn("not a time", families["weft_port_transmit_wait"].documentation)
        # The checks of `promtool check metrics`: every metric has help text, a base unit and no type in its name.
        for name, family in families.items():
            self.assertRegex(name, r"^weft_[a-z0-9_]+$")
            self.assertRegex(family.documentation, r"^[A-Z].*[.01]$", name)
            self.assertNotRegex(name, r"(bits|milliseconds|minutes|kilobytes|counter|gauge)(_|$)")
            self.assertNotRegex(name, r"_total$" if family.type != "counter" else r"_(info|count|sum|bucket)$")

    def test_requests_that_change_the_lab_are_refused_without_the_allow_option(self):
        """Without --allow, all requests for changes are refused."""
        for path, body in (("/api/link", {"link": LINK, "settings": {"state": "down"}}), ("/api/card", {"host": "node1", "fault": "catastrophic", "count": 1}),
                           ("/api/capture", {"link": LINK, "seconds": 1})):
            self.assertEqual(self.client.post(path, body)[0], 403)
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
            self.assertEqual(self.client.ask(method, "/api/link")[0], 405)
        self.assertEqual(self.client.token, "")

    def test_server_listens_on_loopback_by_default(self):
        """The server cannot be reached from another host unless --listen is given."""
        self.assertEqual(listening(self.client.where), {"0100007F"})
        with daemon.web(WEFT, self.weftd[1], "listen=127.0.0.2") as address:
            self.assertEqual(listening(Client(address).where), {"0200007F"})

    def test_requests_of_other_users_are_refused(self):
        """On loopback, other users are refused, because they cannot access the socket directory either."""
        if os.geteuid() != 0:
            self.skipTest("only root can ask as another user")
        asks = ["/usr/bin/python3", "-c", "import sys, urllib.request as u, urllib.error as e\n"
                "try: print(u.urlopen(sys.argv[1]).status)\nexcept e.HTTPError as error: print(error.code)"]

        def as_user(user, address):
            return subprocess.run([*asks, f"{address.partition('#')[0]}api/live"], user=user, stdout=subprocess.PIPE, text=True, check=True,
                                  timeout=daemon.TIME_LIMIT).stdout.strip()

        own = f"http://{self.client.where}/"
        self.assertEqual((as_user(0, own), as_user(65534, own)), ("200", "403"))
        with daemon.web(WEFT, self.weftd[1], "allow+=reading") as address:
            self.assertNotIn("#", address)
            self.assertEqual(as_user(65534, address), "200")
        with daemon.web(WEFT, self.weftd[1], "listen=::1") as address:
            self.assertEqual((as_user(0, address), as_user(65534, address)), ("200", "403"))

    def test_malformed_requests_are_refused(self):
        for data in (b"garbage\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9.9\r\n\r\n", b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
                     b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n\r\n"):
            self.assertIn(b" 400 ", self.client.raw(data), data[:60])
        for path in ("/api/history", "/api/history?link=nowhere", "/api/history?host=%ff",
                     "/api/ports", "/api/ports?node=nowhere", "/api/ports?link=nowhere", "/api/subnet", "/api/subnet?node=nowhere",
                     "/api/console", "/api/console?host=sm", "/api/console?host=../node1", "/api/console?host=node1&after=-1", "/api/log?after=-1", "/api/log?after=x", "/api/log?after=" + "9" * 30):
            self.assertEqual(self.client.ask("GET", path)[0], 400, path)
        for path in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/api/", "/weft-web"):
            self.assertEqual(self.client.ask("GET", path)[0], 404, path)

    def test_requests_whose_host_header_does_not_name_this_server_are_refused(self):
        """Host names under which a foreign site reaches this computer are refused."""
        port = self.client.where.split(":")[1]
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1", f"[::2]:{port}", "", f"192.0.2.1:{port}"):
            for path in ("/", "/api/live", "/metrics"):
                self.assertEqual(self.client.ask("GET", path, Host=host)[0], 403, host)
        self.assertEqual(self.client.ask("GET", "/", Host=f"localhost:{port}")[0], 200)

    def test_number_of_clients_is_limited(self):
        host, port = self.client.where.split(":")
        held = [socket.create_connection((host, int(port)), timeout=daemon.TIME_LIMIT) for _ in range(70)]
        try:
            # 64 clients, which is the limit, are connected and send nothing.
            daemon.await_that("a client too many", lambda: b" 503 " in self.client.raw(f"GET / HTTP/1.1\r\nHost: {self.client.where}\r\n\r\n".encode()))
        finally:
            for each in held:
                each.close()
        daemon.await_that("a free place", lambda: b" 200 " in self.client.raw(f"GET / HTTP/1.1\r\nHost: {self.client.where}\r\n\r\n".encode()))


class WebServerConsoles(unittest.TestCase):
    """Only consoles of guests are served, and no other file."""

    def setUp(self):
        self.enter = lambda context: [context.__enter__(), self.addCleanup(context.__exit__, None, None, None)][0]
        _, self.directory = self.enter(daemon.weftd(WEFTD))
        self.paths = {"node1": self.directory / "node1.log"}
        self.paths["node1"].write_bytes(b"Linux \x1b[1;31mversion\x1b[0m 6\r\n\x00\xff<b>\xe2\x80\xae\n")

    def serve(self, *options):
        client = Client(self.enter(daemon.web(WEFT, self.directory, "interval:=0.2", *options)))
        daemon.await_that("a sample", lambda: client.get("/api/live")["there"])
        return client

    def status(self, client, query="host=node1", **headers):
        return client.ask("GET", f"/api/console?{query}", **headers)[0]

    def test_text_of_a_guest_console_is_served(self):
        client = self.serve()
        self.assertEqual((self.status(client), client.get("/api/fabric")["consoles"]), (404, False))
        self.enter(stand_in_lab.lab(self.directory, self.paths))
        self.assertTrue(client.get("/api/fabric")["consoles"])
        got = client.get("/api/console?host=node1")
        # Control characters and characters that change the text direction are replaced.
        self.assertEqual(got["text"], "Linux version 6\n\ufffd\ufffd<b>\ufffd\n")
        with self.paths["node1"].open("ab") as file:
            file.write(b"more\n")
        self.assertEqual(client.get(f"/api/console?host=node1&after={got['to']}"), {"from": got["to"], "to": got["to"] + 5, "text": "more\n"})
        # Only the end of a long console is served; a truncated file is read from its start.
        self.paths["node1"].write_bytes(b"x" * 200000)
        tail = client.get("/api/console?host=node1&after=5")
        self.assertEqual((tail["from"], tail["to"], len(tail["text"])), (200000 - 65536, 200000, 65536))
        self.paths["node1"].write_bytes(b"anew")
        self.assertEqual(client.get("/api/console?host=node1&after=200000")["text"], "anew")
        self.assertEqual(self.status(client, "host=node2"), 404)

    def test_files_other_than_consoles_are_refused(self):
        client = self.serve()
        self.enter(stand_in_lab.lab(self.directory, self.paths))
        other = self.directory / "other"
        other.mkdir()
        link, pipe, folder = other / "node1.log", self.directory / "pipe" / "node1.log", self.directory / "folder" / "node1.log"
        link.symlink_to("/etc/passwd")
        pipe.parent.mkdir()
        os.mkfifo(pipe)
        folder.mkdir(parents=True)
        for path in ("/etc/passwd", os.path.relpath(self.paths["node1"]), self.directory / "lab.toml", self.directory / "node2.log", link, pipe, folder, "/dev/zero", "/nowhere/node1.log"):
            self.paths["node1"] = path
            self.assertEqual(self.status(client), 404, path)

    def test_device_file_as_console_is_refused(self):
        client = self.serve()
        device = self.directory / "device" / "node1.log"
        device.parent.mkdir()
        try:
            os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
            os.close(os.open(device, os.O_RDONLY))
        except PermissionError:
            self.skipTest("devices can be made or opened by root alone, and not everywhere")
        self.paths["node1"] = device
        self.enter(stand_in_lab.lab(self.directory, self.paths))
        self.assertEqual(self.status(client), 404)

    def test_console_owned_by_another_user_is_refused(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give a file away")
        client = self.serve()
        self.enter(stand_in_lab.lab(self.directory, self.paths))
        self.assertEqual(self.status(client), 200)
        os.chown(self.paths["node1"], 65534, 65534)
        self.assertEqual(self.status(client), 404)

    def test_reading_a_console_needs_the_allow_option_and_the_access_token(self):
        """If other users may read the pages, consoles need --allow consoles and the token."""
        self.enter(stand_in_lab.lab(self.directory, self.paths))
        client = self.serve("allow+=reading", "allow+=faults")
        self.assertEqual((self.status(client, X_Weft_Token=client.token), client.get("/api/fabric")["consoles"]), (403, False))
        client = self.serve("allow+=reading", "allow+=consoles")
        self.assertGreater(len(client.token), 20)
        self.assertEqual(self.status(client), 403)
        self.assertEqual(self.status(client, X_Weft_Token=client.token[:-1]), 403)
        self.assertEqual(self.status(client, X_Weft_Token=client.token), 200)
        # The permission to read consoles does not permit changes.
        self.assertEqual(client.post("/api/link", {"link": "sm", "settings": {"state": "down"}})[0], 403)


class WebServerChanges(unittest.TestCase):
    def test_requests_that_change_the_lab_need_the_allow_option_and_the_access_token(self):
        with daemon.weftd(WEFTD) as (_, directory), daemon.web(WEFT, directory, "allow+=faults", "interval:=0.2") as address:
            client = Client(address)
            pull = {"link": "sm", "settings": {"state": "down"}}
            self.assertGreater(len(client.token), 20)
            self.assertNotIn(client.token.encode(), client.ask("GET", "/")[2])
            for headers in ({"X_Weft_Token": ""}, {"X_Weft_Token": client.token[:-1]}, {"X_Weft_Token": "\xe4"}, {"Origin": "http://evil.example"}, {"Origin": "null"},
                            {"Origin": f"https://{client.where}"}, {"Host": "evil.example", "Origin": "http://evil.example"}):
                self.assertEqual(client.post("/api/link", pull, **headers)[0], 403, headers)
            self.assertEqual(client.post("/api/capture", {"link": "sm", "seconds": 1})[0], 403)
            daemon.await_that("a sample", lambda: client.get("/api/live")["there"])
            self.assertNotIn("sm/1-switch1/3", client.get("/api/live")["down"])
            self.assertEqual(client.post("/api/link", pull)[0], 200)
            daemon.await_that("a link that is down", lambda: "sm/1-switch1/3" in client.get("/api/live")["down"])
            self.assertEqual(client.post("/api/card", {"host": "node1", "fault": "catastrophic", "count": 1})[0], 200)
            self.assertEqual(client.get("/api/fabric")["hosts"][0]["name"], "node1")
            # The page gets the list of permitted actions, so that it offers no others.
            self.assertEqual([client.get("/api/fabric")[key] for key in ("allowed", "locked")], [[], True])
            shown = json.loads(client.ask("GET", "/api/fabric", X_Weft_Token=client.token)[2])
            self.assertEqual([shown[key] for key in ("allowed", "locked")], [["faults"], False])
            # Requests that weftd refuses, and malformed ones, return 400.
            for path, body in (("/api/link", {"link": "nowhere", "settings": {"state": "up"}}), ("/api/link", {"link": "sm", "settings": {"loss": "9"}}),
                               ("/api/card", {"host": "node1", "fault": "a-headache", "count": 1}), ("/api/card", {"host": "node1", "fault": "catastrophic", "count": True}),
                               ("/api/card", {"host": "node1", "fault": "catastrophic", "count": -1}), ("/api/link", "no json"), ("/api/link", b"\xff\xfe"),
                               ("/api/link", []), ("/api/link", {"link": "sm"}), ("/api/link", {**pull, "more": 1}), ("/api/link", "[" * 4000)):
                self.assertEqual(client.post(path, body)[0], 400, (path, body))
            self.assertEqual(client.post("/api/link", "x" * 5000)[0], 413)

    def test_capture_file_can_be_downloaded(self):
        with daemon.weftd(WEFTD) as (_, directory), daemon.web(WEFT, directory, "allow+=captures") as address:
            client = Client(address)
            self.assertEqual(client.post("/api/link", {"link": "sm", "settings": {"state": "down"}})[0], 403)
            for seconds in (0, -1, 61, 1e9):
                self.assertEqual(client.post("/api/capture", {"link": "sm", "seconds": seconds})[0], 400)
            with daemon.process("/bin/sh", "-c", f"while :; do '{WEFT}' --socket-dir '{directory}' sm sweep; done", stdout=subprocess.DEVNULL):
                status, body = client.post("/api/capture", {"link": "sm", "seconds": 1})
            self.assertEqual(status, 200)
            file = directory / "got.pcap"
            file.write_bytes(body)
            decoded = subprocess.run(["tshark", "-r", file, "-Y", "infiniband.mad"], capture_output=True, text=True, check=True).stdout
            self.assertIn("SubnGet", decoded)
            self.assertEqual(list(pathlib.Path(directory).glob("web-*")), [])

    def test_server_reconnects_to_a_restarted_weftd(self):
        with daemon.weftd(WEFTD) as (running, directory), daemon.web(WEFT, directory, "interval:=0.2") as address:
            client = Client(address)
            daemon.await_that("a sample", lambda: client.get("/api/live")["there"])
            running.terminate()
            daemon.await_that("its absence", lambda: not client.get("/api/live")["there"])
            self.assertEqual(client.ask("GET", "/api/fabric")[0], 503)
            self.assertIn(b"weft_up 0.0", client.ask("GET", "/metrics")[2])
            gone = client.get("/api/live")
            self.assertGreater(gone["moment"], 0)
            last = client.get("/api/log")[-1]["number"]
            running.wait()
            with daemon.weftd(WEFTD, daemon.fat_tree(2, 1, 4, 2, 1), directory):
                daemon.await_that("the other fabric", lambda: "node4/1-leaf2/2" in client.get("/api/live").get("rates", {}))
                self.assertGreater(client.get("/api/live")["version"], gone["version"])
                # The log lines of the new weftd follow those of the old one.
                daemon.await_that("lines of its log", lambda: client.get(f"/api/log?after={last}"))
                numbers = [line["number"] for line in client.get("/api/log")]
                self.assertEqual(numbers, list(range(1, len(numbers) + 1)))

    def test_weft_web_reports_that_no_weftd_is_running(self):
        done = subprocess.run([daemon.WEB, "/nonexistent", f"weft={WEFT}"], capture_output=True, text=True, check=False, timeout=daemon.TIME_LIMIT)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no weftd serves /nonexistent", done.stderr)


if __name__ == "__main__":
    cases.main(sys.argv[:1])
