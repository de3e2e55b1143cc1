#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests the commands for the whole fabric of a lab over several hosts. Each host is simulated by a directory (stand_in_place.py), with a real
weftd. The nodes are endpoints, so there are no guests.

    whole_test.py WEFT WEFTD [TEST...]
"""
import contextlib
import errno
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import unittest.mock
import urllib.request

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "session"), str(HERE.parents[2] / "scripts")]

import daemon  # noqa: E402
import whole  # noqa: E402
from channel import Closed  # noqa: E402
from daemon import TIME_LIMIT, await_that  # noqa: E402
from stand_in_place import VERSION  # noqa: E402

WEFT, WEFTD = map(os.path.abspath, sys.argv[1:3])
SESSION = HERE.parent / "session/weft-session"
STAND_IN = HERE / "stand_in_place.py"
LIMIT = whole.TIME_LIMIT + 3    # seconds that a command may take if a place does not answer


def lab(count):
    """Returns a ring of switches (or two of them with one link) with two hosts each, and with a place for each switch."""
    lines = ['name = "whole"', '[sm]', 'place = "p1"']
    for number in range(1, count + 1):
        lines += [f'[[place]]\nname = "p{number}"', f'[[switch]]\nname = "s{number}"\nports = 8\nplace = "p{number}"']
    for number in range(1, 2 * count + 1):
        lines += [f'[[host]]\nname = "h{number}"\nmodel = "endpoint"', f'[[link]]\nends = ["h{number}", "s{(number + 1) // 2}"]']
    for number in range(1, count + 1 if count > 2 else count):
        lines += [f'[[link]]\nends = ["s{number}", "s{number % count + 1}"]']
    return "\n".join([*lines, ""])


LATE = object()     # an answer that does not come
SHOWN = {"seed": "1", "hosts": [], "switches": [], "links": [], "trunks": [], "subnet_manager": None, "subnet_managers": None,
         "ethernet": {"switches": [], "attachments": [], "links": []}}


class Connection:
    """A connection to a weftd that gives these answers, by command."""

    def __init__(self, answers):
        self._answers = answers
        self._request = None
        self.requests = []
        self.closed = threading.Event()

    def send(self, data):
        self._request = json.loads(data)
        self.requests.append(self._request)

    def line(self, most):
        answer = self._answers.get(self._request["command"])
        if answer is LATE:
            self.closed.wait()
            raise Closed
        if callable(answer):
            answer = answer(self._request)
        if isinstance(answer, bytes):
            return answer
        return json.dumps({"ok": False, "error": "no"} if answer is None else {"ok": True, "result": answer}).encode() + b"\n"

    def close(self):
        self.closed.set()


class Place:
    """A place whose weftd gives these answers, with _ in place of the dot of a command."""

    def __init__(self, name, hosts, switches, **answers):
        self.connections = []
        self.name, self.host, self.remote_logs = name, f"n{name}", "/logs"
        self.plan = types.SimpleNamespace(hosts=hosts, switches=switches, trunks={}, ethernets={}, manages=False)
        self._answers = {command.replace("_", "."): answer for command, answer in answers.items()}

    def label(self):
        return self.name

    def open_control(self):
        self.connections.append(Connection(self._answers))
        return self.connections[-1]


class UntrustedDaemon(unittest.TestCase):
    """A place may answer anything. The others are shown as they are."""

    COUNTS = {"xmit_packets": 1}

    def ask(self, places, **request):
        view = whole.View(whole.Topology(places))
        self.addCleanup(view.close)
        return json.loads(view.handle(json.dumps(request).encode()))

    def test_daemon_that_sends_an_invalid_reply_is_reported_as_missing(self):
        good = Place("a", ["h1"], ["s1"], counters={"h1/1": self.COUNTS})
        for answer in (b"x\n", b"[]\n", b"", b'{"ok": true}\n', b"[" * 60000 + b"\n", {"h2/1": 5}, {"h2/1": {"xmit_packets": "1"}}, {"h2/1": {"xmit_packets": True}}, b'{"ok": 1, "result": {}}\n',
                       b'{"ok": false, "error": 7}\n'):
            with self.subTest(answer=answer if len(answer) < 100 else "long"):
                got = self.ask([good, Place("b", ["h2"], ["s2"], counters=answer)], command="counters")
                self.assertEqual((got["ok"], got["result"], [missing["place"] for missing in got["missing"]]), (True, {"h1/1": self.COUNTS}, ["b"]))

    def test_counters_that_a_daemon_sends_for_nodes_of_another_daemon_are_ignored(self):
        liar = Place("b", ["h2"], ["s2"], counters={"h1/1": {"xmit_packets": 9}, "h2/1": self.COUNTS}, counters_cards={"h1": {}, "h2": {}})
        for places in ([Place("a", ["h1"], ["s1"], counters={"h1/1": self.COUNTS}, counters_cards={"h1": {"x": 1}}), liar], [liar, Place("a", ["h1"], ["s1"], counters={"h1/1": self.COUNTS}, counters_cards={"h1": {"x": 1}})]):
            self.assertEqual(self.ask(places, command="counters")["result"], {"h1/1": self.COUNTS, "h2/1": self.COUNTS})
            self.assertEqual(self.ask(places, command="counters.cards")["result"], {"h1": {"x": 1}, "h2": {}})

    def test_control_characters_from_a_daemon_do_not_reach_the_terminal(self):
        got = self.ask([Place("a", ["h1"], ["s1"], card_fault=b'{"ok": false, "error": "\\u001b[2J"}\n')], command="card.fault", host="h1")
        self.assertEqual((got["ok"], "\x1b" in got["error"]), (False, False))

    def test_connection_to_a_daemon_that_does_not_start_a_capture_in_time_is_closed(self):
        started = {"links": ["x"]}
        for link, answers in (("all", {"capture_start": started}), ("all", {}), ("h2", {"capture_start": started})):
            with self.subTest(link=link, **answers), unittest.mock.patch.object(whole, "TIME_LIMIT", 1):
                show = {"fabric_show": SHOWN | {"links": [{"name": "h2/1-s2/1", "ends": ["h2/1", "s2/1"], "up": True, "settings": {}}]}}
                late = Place("b", ["h2"], ["s2"], capture_start=LATE, **show)
                got = self.ask([Place("a", ["h1"], ["s1"], fabric_show=SHOWN, **answers), late], command="capture.start", link=link, file="/capture")
                self.assertEqual((got["ok"], late.connections[0].closed.is_set()), (link == "all" and bool(answers), True))

    def test_trunk_change_that_one_daemon_refuses_is_undone_at_the_other_daemon(self):
        link = {"name": "s1/1-s2/1", "ends": ["s1/1", "s2/1"], "up": True, "settings": {"mtu": "4096", "loss": "0%", "state": "up", "speed": "QDR"}}
        shown = SHOWN | {"links": [link]}
        places = [Place("a", ["h1"], ["s1"], fabric_show=shown, link_set=link, link_down=link), Place("b", ["h2"], ["s2"], fabric_show=shown)]
        for place, listens in zip(places, (True, False)):
            place.plan.trunks = {link["name"]: listens}
        for request, restored in (({"command": "link.set", "settings": {"mtu": "2048", "loss": "5%"}}, {"mtu": "4096", "loss": "0%"}), ({"command": "link.down"}, {"state": "up"})):
            with self.subTest(request):
                got = self.ask(places, link=link["name"], **request)
                self.assertEqual((got["ok"], got["error"]), (False, "b: no"))
                self.assertEqual(places[0].connections[-1].requests[-1], {"command": "link.set", "link": link["name"], "settings": restored})
        # If the first half cannot be asked for its former settings, the error names what has changed.
        places[0] = Place("a", ["h1"], ["s1"], link_down=link)
        places[0].plan.trunks = {link["name"]: True}
        self.assertEqual(self.ask(places, link=link["name"], command="link.down")["error"], "b: no; a has done what was requested")

    def test_faults_of_a_trunk_are_set_only_at_the_listening_end(self):
        link = {"name": "s1/1-s2/1", "ends": ["s1/1", "s2/1"], "up": True, "settings": {}}
        places = [Place("a", ["h1"], ["s1"], link_set=link), Place("b", ["h2"], ["s2"], fabric_show=SHOWN | {"links": [link]})]
        for place, listens in zip(places, (True, False)):
            place.plan.trunks = {link["name"]: listens}
        for setting in ("delay", "loss", "cm_loss", "cm_duplication", "cm_lateness", "cm_delay", "cm_corruption"):
            self.assertTrue(self.ask(places, command="link.set", link=link["name"], settings={setting: "1%"})["ok"], setting)

    def ethernet_places(self):
        """Returns two places with a segment for one host each. Each place has a half of the trunk between them."""
        name = "lan@a/b-lan@b/a"
        half = {"name": name, "ends": name.split("-"), "up": True, "settings": {"state": "up", "delay": "0ms"}}
        places = []
        for number, (place, up, delay) in enumerate((("a", True, "5ms"), ("b", False, "0ms")), 1):
            ends = [f"h{number}/eth0", f"lan/{number}"]
            link = {"name": "-".join(ends), "ends": ends, "up": True, "settings": {}}
            shown = {"switches": [{"name": "lan", "addresses": 3 * number}], "attachments": [{"name": ends[0], "guest": True, "socket": "x"}],
                     "links": [link, half | {"up": up, "settings": {"state": "up" if up else "down", "delay": delay}}]}
            counts = {port: self.COUNTS for port in (*ends, *half["ends"])}
            sample = {"columns": ["xmit_frames"], "ports": {port: [number] for port in counts}, "links": {link["name"]: True, name: up}, "attached": [name]}
            places.append(Place(place, [f"h{number}"], [], counters=counts, link_down=half, link_set=half, fabric_show=SHOWN | {"ethernet": shown},
                                fabric_sample=sample_of("h", 1, ports={}, cards={}, ethernet=sample)))
            places[-1].plan.ethernets = {"lan": [number]}
            places[-1].plan.trunks = {name: place == "a"}
        return name, places

    def test_segment_and_its_trunks_at_two_daemons_are_shown_once(self):
        name, places = self.ethernet_places()
        shown = self.ask(places, command="fabric.show")["result"]["ethernet"]
        self.assertEqual(shown["switches"], [{"name": "lan", "addresses": 6}])
        self.assertEqual([each["name"] for each in shown["attachments"]], ["h1/eth0", "h2/eth0"])
        links = {link["name"]: link for link in shown["links"]}
        self.assertEqual(sorted(links), ["h1/eth0-lan/1", "h2/eth0-lan/2", name])
        # The half of the place that listens has the faults, and both must be up.
        self.assertEqual((links[name]["up"], links[name]["settings"]), (False, {"state": "down", "delay": "5ms"}))
        sample = self.ask(places, command="fabric.sample")["result"]["ethernet"]
        self.assertEqual(sample["ports"], {"h1/eth0": [1], "lan/1": [1], "lan@a/b": [1], "h2/eth0": [2], "lan/2": [2], "lan@b/a": [2]})
        self.assertEqual((sample["links"][name], sample["attached"]), (False, [name]))
        for link in (name, "lan@b/a"):
            for place in places:
                place.connections.clear()
            self.assertTrue(self.ask(places, command="link.down", link=link)["ok"])
            self.assertTrue(self.ask(places, command="link.set", link=link, settings={"delay": "1ms"})["ok"])
            asked = [[request["command"] for connection in place.connections for request in connection.requests if request["command"].startswith("link")] for place in places]
            self.assertEqual(asked, [["link.down", "link.set"], ["link.down"]])

    def test_counters_that_a_daemon_sends_for_ports_of_a_segment_at_another_daemon_are_ignored(self):
        _, places = self.ethernet_places()
        forged = {port: {"xmit_packets": 9} for port in ("h1/eth0", "lan/1", "lan/7", "lan@a/b", "lan@b/a")}
        places[1]._answers["counters"] = forged
        counters = self.ask(places, command="counters")["result"]
        self.assertEqual(counters, {"h1/eth0": self.COUNTS, "lan/1": self.COUNTS, "lan@a/b": self.COUNTS, "lan@b/a": {"xmit_packets": 9}})

    def test_links_that_a_daemon_reports_for_another_daemon_are_ignored(self):
        name, places = self.ethernet_places()
        false = {"up": False, "settings": {"state": "down"}}
        cable = {"name": "h1/1-s1/1", "ends": ["h1/1", "s1/1"]}
        for place in places:
            place.plan.switches = ["s1"] if place.name == "a" else ["s2"]
        third = Place("c", ["h3"], ["s3"], fabric_show=SHOWN | {
            "links": [cable | false], "ethernet": {"switches": [], "attachments": [], "links": [{"name": each, "ends": each.split("-")} | false for each in ("h1/eth0-lan/1", name)]}},
            fabric_sample=sample_of("h3", 1, ports={}, cards={}, down=[cable["name"], name], ethernet={
                "columns": ["xmit_frames"], "ports": {}, "links": {"h1/eth0-lan/1": False, "lan/2-x/1": False, name: False}, "attached": ["h1/eth0-lan/1"]}))
        places[0]._answers["fabric.show"] = places[0]._answers["fabric.show"] | {"links": [cable | {"up": True, "settings": {}}]}
        for half in places:
            half._answers["fabric.sample"]["ethernet"]["links"][name] = True
        for order in ([*places, third], [third, *places]):
            shown = self.ask(order, command="fabric.show")["result"]
            self.assertEqual([(each["name"], each["up"]) for each in shown["links"]], [(cable["name"], True)])
            self.assertEqual(next(each for each in shown["ethernet"]["links"] if each["name"] == "h1/eth0-lan/1")["up"], True)
            sample = self.ask(order, command="fabric.sample")["result"]
            self.assertEqual((sample["down"], sample["ethernet"]["links"]), ([], {"h1/eth0-lan/1": True, "h2/eth0-lan/2": True, name: True}))
            self.assertEqual(sample["ethernet"]["attached"], [name])

    def test_capture_of_a_segment_is_refused_if_one_of_its_daemons_refuses_it(self):
        _, places = self.ethernet_places()
        places.append(Place("c", ["h3"], ["s3"], fabric_show=SHOWN))
        places[0]._answers["capture.start"] = {"links": ["h1/eth0-lan/1"]}
        places[1]._answers["capture.start"] = b'{"ok": false, "error": "the disk is full"}\n'
        got = self.ask(places, command="capture.start", link="lan", file="/capture")
        self.assertEqual((got["ok"], got.get("error")), (False, "the disk is full"))
        self.assertFalse(any(request["command"] == "capture.start" for connection in places[2].connections for request in connection.requests))
        places[1]._answers["capture.start"] = {"links": ["h2/eth0-lan/2"]}
        got = self.ask(places, command="capture.start", link="lan", file="/capture")
        self.assertEqual((got["ok"], got["result"]), (True, {"links": ["h1/eth0-lan/1", "h2/eth0-lan/2"]}))

    def test_size_limit_of_a_capture_is_reported_to_remote_clients(self):
        places = [Place("a", ["h1"], ["s1"], capture_start={"links": ["x"]}, capture_stop={"packets": 3, "full": True})]
        places[0].fetch = lambda *_, **__: None
        for remote, limit in ((True, whole.MOST_CAPTURE), (False, None)):
            view = whole.View(whole.Topology(places), remote=remote)
            self.addCleanup(view.close)
            for request in ({"command": "capture.start", "link": "all", "file": "/capture"}, {"command": "capture.stop"}):
                got = json.loads(view.handle(json.dumps(request).encode()))
            self.assertEqual((got["result"]["full"], got["result"].get("limit")), (True, limit))

    def test_invalid_control_requests_are_refused(self):
        for request in ({"command": 1}, {}, {"command": "link.set", "link": 1}, {"command": "link.down"}, {"command": "card.fault", "host": []}, {"command": "log", "after": "x"},
                        {"command": "capture.start", "link": "all", "file": "relative"}, {"command": "capture.start", "link": "all", "file": 1}, {"command": "none"}):
            with self.subTest(request):
                got = self.ask([Place("a", ["h1"], ["s1"])], **request)
                self.assertEqual((got["ok"], bool(got["error"])), (False, True))


MANAGER = {"node": "sm", "state": "master", "sweeps": 1, "complete": True}


def sample_of(host, generation, sent=0, **members):
    """Returns a complete sample of a place with one host."""
    return {"time": 1, "generation": generation, "columns": ["xmit_packets"], "ports": {f"{host}/1": [sent]}, "down": [], "guests": [], "subnet_manager": None,
            "cards": {host: {"commands": sent}},
            "ethernet": {"columns": ["xmit_frames"], "ports": {f"{host}/eth0": [0]}, "links": {f"{host}/eth0-lan/1": True}, "attached": []}, **members}


def changes_of(since, generation, ports, **members):
    return {"time": 2, "generation": generation, "since": since, "ports": ports, "subnet_manager": None, "cards": {}, "ethernet": {"ports": {}}, **members}


class Samples(unittest.TestCase):
    """A place is asked only for what has changed since its last answer, and so is the whole lab."""
    maxDiff = None

    def start(self, *answers):
        """answers: of each place, its answers one after another."""
        self.places = [Place(f"p{number}", [f"h{number}"], [], fabric_sample=lambda _, each=iter(each): next(each)) for number, each in enumerate(answers, 1)]
        self.view = whole.View(whole.Topology(self.places))
        self.addCleanup(self.view.close)

    def ask(self, since=0, **request):
        got = json.loads(self.view.handle(json.dumps({"command": "fabric.sample", "since": since, "cards": True, **request}).encode()))
        self.assertTrue(got["ok"], got)
        return got["result"]

    def asked(self, place):
        """Returns the generations for which a place was asked."""
        return [request["since"] for request in self.places[place].connections[0].requests]

    def test_changes_from_all_daemons_are_merged_and_only_changes_are_sent_to_the_client(self):
        self.start([sample_of("h1", 5), changes_of(5, 6, {"h1/1": [7]}), changes_of(6, 7, {}), changes_of(7, 8, {}, down=["x"], cards={"h1": {"commands": 3}})],
                   [sample_of("h2", 50), changes_of(50, 51, {}), changes_of(51, 52, {}, subnet_manager=MANAGER), changes_of(52, 53, {}, ethernet={"ports": {"h2/eth0": [4]}, "attached": ["e"]})])
        first = self.ask()
        self.assertEqual((first["ports"], first["cards"]), ({"h1/1": [0], "h2/1": [0]}, {"h1": {"commands": 0}, "h2": {"commands": 0}}))
        self.assertNotIn("since", first)
        second = self.ask(first["generation"])
        self.assertEqual((second["since"], second["ports"], second["cards"], second["ethernet"]), (first["generation"], {"h1/1": [7]}, {}, {"ports": {}}))
        self.assertFalse({"columns", "down", "guests"} & second.keys())
        third = self.ask(second["generation"])
        self.assertEqual((third["ports"], third["subnet_manager"]), ({}, MANAGER))
        fourth = self.ask(third["generation"])
        self.assertEqual((fourth["ports"], fourth["down"], fourth["cards"], fourth["ethernet"]),
                         ({}, ["x"], {"h1": {"commands": 3}}, {"ports": {"h2/eth0": [4]}, "attached": ["e"]}))
        self.assertEqual((self.asked(0), self.asked(1)), ([0, 5, 6, 7], [0, 50, 51, 52]))

    def test_client_without_the_last_sample_gets_a_complete_sample_instead_of_changes(self):
        self.start([sample_of("h1", 5), *(changes_of(number, number + 1, {}) for number in range(5, 8))])
        first = self.ask()
        for since in (0, first["generation"] - 1, first["generation"] + 100):
            self.assertEqual(self.ask(since)["columns"], ["xmit_packets"])
        # The place was asked for changes all the same.
        self.assertEqual(self.asked(0), [0, 5, 6, 7])

    def test_first_request_for_card_counters_returns_all_of_them_instead_of_changes(self):
        self.start([{name: value for name, value in sample_of("h1", 5).items() if name != "cards"}, sample_of("h1", 6)])
        first = self.ask(cards=False)
        self.assertEqual(self.ask(first["generation"])["cards"], {"h1": {"commands": 0}})
        self.assertEqual(self.asked(0), [0, 0])

    def test_daemon_that_answers_after_a_failure_is_asked_for_changes_since_its_last_answer(self):
        self.start([sample_of("h1", 5), changes_of(5, 6, {}), changes_of(6, 7, {})], [sample_of("h2", 50), None, changes_of(50, 52, {"h2/1": [1]})])
        first = self.ask()
        second = self.ask(first["generation"])
        self.assertEqual((second["ports"], [each["place"] for each in second["missing"]]), ({"h1/1": [0]}, ["p2"]))
        self.assertNotIn("since", second)       # there are fewer ports
        third = self.ask(second["generation"])
        self.assertEqual((third["ports"], third["missing"]), ({"h1/1": [0], "h2/1": [1]}, []))
        self.assertEqual(self.asked(1), [0, 50, 50])

    def test_daemon_that_sends_invalid_or_unexpected_changes_is_reported_as_missing(self):
        long_names = {f"{number:05}": 0 for number in range(3000)}
        for answer in (changes_of(5, 6, {"h1/9": [1]}), changes_of(5, 6, {"h1/1": [1, 2]}), changes_of(5, 6, {"h1/1": [1 << 64]}), changes_of(5, 6, {"h1/1": [-1]}),
                       changes_of(4, 6, {}), changes_of(5, 6, {}, cards={"h9": {}}), changes_of(5, 6, {}, cards={"h1": long_names}), changes_of(5, 6, {}, ethernet={}),
                       changes_of(5, 6, {}, ethernet={"ports": {"x": [1]}}), changes_of("5", 6, {}), {**sample_of("h1", 6), "columns": None},
                       {**sample_of("h1", 6), "ethernet": {"ports": {}}}):
            with self.subTest(answer=str(answer)[:200]):
                self.start([sample_of("h1", 5), answer])
                self.ask()
                self.assertEqual([each["place"] for each in self.ask()["missing"]], ["p1"])

    def test_card_counters_of_unknown_hosts_are_not_stored(self):
        self.start([sample_of("h1", 5, cards={"h1": {"commands": 1}, **{f"x{number}": {} for number in range(9)}}),
                    changes_of(5, 6, {}, cards={"h1": {"commands": 2}}), changes_of(6, 7, {}, cards={"x1": {"y" * 1000: 1}})])
        self.ask()
        self.assertEqual(self.ask()["cards"], {"h1": {"commands": 2}})
        self.assertEqual([sorted(sample["cards"]) for sample in self.view._samples.values()], [["h1"]])
        self.assertEqual([each["place"] for each in self.ask()["missing"]], ["p1"])

    def test_unknown_json_members_in_a_reply_of_a_daemon_are_not_stored(self):
        self.start([sample_of("h1", 5), *(changes_of(number, number + 1, {}, **{f"extra{number}": "x" * 1000}) for number in range(5, 10))])
        for _ in range(6):
            self.assertFalse([name for name in self.ask() if name.startswith("extra")])
        self.assertLess(len(json.dumps([*self.view._samples.values()])), 1000)

    def test_invalid_sample_requests_are_refused(self):
        self.start([sample_of("h1", 5)])
        for request in ({"since": "x"}, {"since": True}, {"since": None}, {"cards": 1}):
            got = json.loads(self.view.handle(json.dumps({"command": "fabric.sample", **request}).encode()))
            self.assertEqual((got["ok"], "'since' must be" in got["error"]), (False, True))


class LabOnSeveralHosts(unittest.TestCase):
    maxDiff = None

    def start(self, count):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-whole-")))
        self.directory, self.hosts = self.folder / "lab", self.folder / "hosts"
        self.directory.mkdir(mode=0o700)
        (self.folder / "tmp").mkdir()
        names = [f"n{number}" for number in range(1, count + 1)]
        for name in names:
            (self.hosts / name).mkdir(parents=True)
        programs = {"weft": f'"{sys.executable}" -B "{STAND_IN}" weft', "weftd": f'"{WEFTD}"'}
        for program, command in programs.items():
            path = self.hosts / program
            path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            path.chmod(0o755)
        (self.folder / "hosts.txt").write_text("".join(f"{name} 127.0.0.1\n" for name in names))
        (self.folder / "lab.toml").write_text(lab(count))
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SSH_", "SLURM_"))}
        self.environment = {**environment, "WEFT_HOSTS": str(self.hosts), "TMPDIR": str(self.folder / "tmp")}
        self.addCleanup(self.end)
        done = self.session("up", f"weftd={WEFTD}", f"version={VERSION}", "bare:=true", f"hosts={self.folder / 'hosts.txt'}", f"ssh={sys.executable} -B {STAND_IN} ssh",
                            f"remote_weft={self.hosts / 'weft'}", f"lab={self.folder / 'lab.toml'}")
        self.assertEqual(done.returncode, 0, done.stderr)

    def session(self, *words):
        return subprocess.run([sys.executable, "-B", str(SESSION), str(self.directory), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              env=self.environment, timeout=2 * TIME_LIMIT)

    def end(self):
        for number in self.weftds().values():
            with contextlib.suppress(OSError):
                os.kill(number, signal.SIGCONT)
        self.session("down")

    def weftds(self):
        """Returns the process ID of the weftd of each place."""
        found = {}
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_text(errors="replace").split("\0")
                if words[0] == WEFTD and any(word.startswith(str(self.hosts)) for word in words):
                    found[next(word.partition("=")[2] for word in words if word.startswith("--place="))] = int(path.parent.name)
        return found

    def where(self, host):
        """Returns the options and the environment of weft on the host on which the lab was started, or on that of a place."""
        if host:
            return [], {**self.environment, "XDG_RUNTIME_DIR": str(self.hosts / host / "run")}
        return ["--socket-dir", str(self.directory)], self.environment

    def weft(self, *words, host=None, ok=True):
        """Runs weft on the host on which the lab was started, or on the host of a place, where no option names a directory."""
        where, environment = self.where(host)
        done = subprocess.run([WEFT, *where, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=environment, timeout=TIME_LIMIT)
        if ok:
            self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def show(self, host=None):
        return json.loads(self.weft("--json", "fabric", "show", host=host).stdout)

    def link(self, name, host=None):
        return next(link for link in self.show(host)["links"] if link["name"] == name)

    def await_subnet(self):
        """Waits until all links are up, and all ports have LIDs."""
        def complete():
            shown = self.show()
            lids = [port["lid"] for node in shown["hosts"] for port in node["ports"]] + [node["lid"] for node in shown["switches"]]
            return all(link["up"] for link in shown["links"]) and all(lids) and shown
        return await_that("a complete subnet", complete)

    def part(self, place, *words):
        """Runs weft for one place."""
        return json.loads(subprocess.run([WEFT, "--json", "--socket-dir", str(self.directory / place), *words], capture_output=True, text=True, check=True, timeout=TIME_LIMIT).stdout)

    def test_weft_commands_show_the_daemons_on_two_hosts_as_one_fabric(self):
        self.start(2)
        shown = self.await_subnet()
        with self.subTest("description"):
            self.assertEqual([node["name"] for node in shown["hosts"]], ["h1", "h2", "h3", "h4"])
            self.assertEqual([node["name"] for node in shown["switches"]], ["s1", "s2"])
            self.assertEqual(sorted(link["name"] for link in shown["links"]), ["h1/1-s1/1", "h2/1-s1/2", "h3/1-s2/1", "h4/1-s2/2", "s1/3-s2/3", "sm/1-s1/4"])
            self.assertEqual(self.link("s1/3-s2/3")["ends"], ["s1/3", "s2/3"])
            lids = [port["lid"] for node in shown["hosts"] for port in node["ports"]]
            self.assertEqual(len(set(lids)), 4)
            self.assertEqual(shown["missing"], [])
            text = self.weft("fabric", "show").stdout
            for line in ("switch s2", "host   h4", "link   s1/3-s2/3", "subnet manager on sm: master"):
                self.assertIn(line, text)
            self.assertNotIn("missing", text)
            self.assertIn("<svg", self.weft("fabric", "show", "--svg", "-").stdout)
        for host in ("n1", "n2"):
            with self.subTest("from a place", host=host):
                of_place = self.show(host)
                self.assertEqual([node["name"] for node in of_place["hosts"]], ["h1", "h2", "h3", "h4"])
                self.assertEqual(of_place["missing"], [])
                self.assertIn("weft lab down", self.weft("shutdown", host=host, ok=False).stderr)
        with self.subTest("a place alone"):
            self.assertEqual([node["name"] for node in self.part("p2", "fabric", "show")["hosts"]], ["h3", "h4"])
        with self.subTest("counters"):
            for host in (None, "n2"):
                counters = json.loads(self.weft("--json", "counters", host=host).stdout)
                self.assertEqual(sorted(counters), ["h1/1", "h2/1", "h3/1", "h4/1", "s1/1", "s1/2", "s1/3", "s1/4", "s2/1", "s2/2", "s2/3", "sm/1"])
                self.assertGreater(counters["s2/3"]["xmit_packets"], 0)
            self.assertEqual(sorted(json.loads(self.weft("--json", "counters", "s1/3-s2/3").stdout)), ["s1/3", "s2/3"])
            self.assertEqual(sorted(json.loads(self.weft("--json", "counters", "h3").stdout)), ["h3/1"])
            self.assertIn("there is no port, node or link 'h9'", self.weft("counters", "h9", ok=False).stderr)
            self.assertEqual(sorted(json.loads(self.weft("--json", "counters", "--cards").stdout)), ["h1", "h2", "h3", "h4"])
        with self.subTest("links"):
            self.check_links()
        with self.subTest("subnet manager"):
            sweeps = self.show()["subnet_manager"]["sweeps"]
            self.weft("sm", "sweep", host="n2")
            await_that("a sweep", lambda: self.show()["subnet_manager"]["sweeps"] > sweeps)
        with self.subTest("log"):
            lines = json.loads(self.weft("--json", "log").stdout)["lines"]
            self.assertEqual({line["place"] for line in lines}, {"p1", "p2"})
            self.assertEqual([line["number"] for line in lines], list(range(1, len(lines) + 1)))
            self.assertRegex(self.weft("log", "link").stdout, r"p2/link: ")
        with self.subTest("captures"):
            self.check_captures()
        with self.subTest("top"):
            table = self.weft("top", "--count", "1", "--interval", "0.2").stdout
            self.assertIn("links 6 up, 0 down", table)
            self.assertIn("h4/1-s2/2", table)
        with self.subTest("web"):
            for host in (None, "n2"):
                self.check_web(host)

    def get(self, address, path):
        with urllib.request.urlopen(address + path, timeout=TIME_LIMIT) as answer:
            return answer.read().decode()

    @contextlib.contextmanager
    def web(self, host=None):
        """Yields the address of `weft web`, on the host on which the lab was started or on that of a place."""
        directory = next((self.hosts / host / "run").glob("weft-place-*/lab")) if host else self.directory
        with daemon.web(WEFT, directory, "interval:=0.2") as address:
            yield address

    def check_web(self, host):
        with self.web(host) as address:
            await_that("a sample", lambda: json.loads(self.get(address, "api/live"))["there"])
            self.assertEqual([node["name"] for node in json.loads(self.get(address, "api/fabric"))["hosts"]], ["h1", "h2", "h3", "h4"])
            self.assertEqual(json.loads(self.get(address, "api/live"))["missing"], [])
            self.assertTrue(json.loads(self.get(address, "api/subnet?node=s2"))["routes"])
            metrics = self.get(address, "metrics")
            for line in ('weft_place_up{host="n1",place="p1"} 1.0', 'weft_place_up{host="n2",place="p2"} 1.0', 'weft_link_up{link="s1/3-s2/3"} 1.0', 'weft_sm_state{state="master"} 1.0'):
                self.assertIn(line, metrics)
            self.assertIn('weft_port_transmit_bytes_total{link="s1/3-s2/3",port="s2/3"}', metrics)

    def check_links(self):
        """Settings of any link can be changed from any host. Those of a trunk are as on one link."""
        for host, name, delay in ((None, "h4", "3ms"), ("n1", "h4/1-s2/2", "4ms"), ("n2", "h1/1", "5ms")):
            self.weft("link", "set", name, f"delay={delay}", host=host)
            link = next(link for link in self.show()["links"] if name == link["name"] or any(end.split("/")[0] == name.split("/")[0] for end in link["ends"]))
            self.assertEqual(link["settings"]["delay"], delay)
            self.weft("link", "set", name, "delay=0ms", host=host)
        trunk = "s1/3-s2/3"
        for name in (trunk, "s2/3"):
            self.weft("link", "set", name, "delay=2ms", "mtu=1024", host="n2")
            halves = [next(link["settings"] for link in self.part(place, "fabric", "show")["links"] if link["name"] == trunk) for place in ("p1", "p2")]
            self.assertEqual([(half["delay"], half["mtu"]) for half in halves], [("2ms", "1024"), ("0ms", "1024")])
            self.assertEqual(self.link(trunk)["settings"]["delay"], "2ms")
            self.weft("link", "set", name, "delay=0ms", "mtu=4096")
        for down, up in (("n1", "n2"), ("n2", None)):
            self.weft("link", "down", trunk, host=down)
            await_that("the link to go down", lambda: not self.link(trunk)["up"])
            self.assertEqual(self.link(trunk)["settings"]["state"], "down")
            self.weft("link", "up", trunk, host=up)
            await_that("the link to come up", lambda: self.link(trunk)["up"])
        self.assertIn("there is no link, port or node 'h9'", self.weft("link", "down", "h9", ok=False).stderr)
        self.assertIn("s2 has several links", self.weft("link", "down", "s2", ok=False).stderr)
        self.assertIn("n2 (place p2): a link has no 'colour'", self.weft("link", "set", "h4", "colour=red", ok=False).stderr)

    def check_captures(self):
        for link, host in (("h4", None), ("s1/3-s2/3", None), ("all", None), ("all", "n2")):
            path = self.folder / f"capture-{host}.pcapng"
            where, environment = self.where(host)
            capture = subprocess.Popen([WEFT, *where, "capture", link, "-w", str(path)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
            try:
                self.assertIn("capturing", capture.stderr.readline())
                sweeps = self.show()["subnet_manager"]["sweeps"]
                self.weft("sm", "sweep")
                await_that("a sweep", lambda of=sweeps: self.show()["subnet_manager"]["sweeps"] > of)
            finally:
                capture.send_signal(signal.SIGINT)
                said = capture.communicate(timeout=TIME_LIMIT)[1]
            self.assertEqual(capture.returncode, 0, said)
            packets, interfaces, _ = read_capture(path)
            self.assertGreater(packets, 0, link)
            self.assertEqual(int(said.split()[0]), packets)
            self.assertFalse([*self.directory.rglob("capture-*"), *(self.folder / "tmp").glob("weft-capture-*")])
            if link == "all":
                self.assertEqual(len(interfaces), 7)    # a trunk is recorded at both places

    def test_weft_commands_show_four_daemons_as_one_fabric_and_report_a_silent_daemon(self):
        self.start(4)
        self.await_subnet()
        weftds = self.weftds()
        self.assertEqual(sorted(weftds), ["p1", "p2", "p3", "p4"])
        with self.subTest("stopped"):
            os.kill(weftds["p3"], signal.SIGSTOP)
            try:
                begun = time.monotonic()
                for host in (None, "n4"):
                    shown = self.show(host)
                    self.assertEqual([(place["place"], place["host"]) for place in shown["missing"]], [("p3", "n3")])
                    self.assertIn("has not answered within", shown["missing"][0]["reason"])
                    self.assertEqual([node["name"] for node in shown["switches"]], ["s1", "s2", "s4"])
                    self.assertIn("s2/4-s3/3", [link["name"] for link in shown["links"]])
                self.assertLess(time.monotonic() - begun, 2 * LIMIT)
                counters = self.weft("counters")
                self.assertRegex(counters.stdout, "(?m)^s4/1 ")
                self.assertNotRegex(counters.stdout, "(?m)^s3/")
                self.assertEqual(counters.stderr.splitlines(), ["missing: place p3 (n3): it has not answered within 2 s"])
                top = self.weft("top", "--count", "2", "--interval", "0.3").stdout
                self.assertIn("missing: place p3 (n3)", top)
                with self.web() as address:
                    await_that("a sample", lambda: json.loads(self.get(address, "api/live"))["there"])
                    self.assertEqual([place["place"] for place in json.loads(self.get(address, "api/live"))["missing"]], ["p3"])
                    # The topology with the missing place does not change from sample to sample, so rates are known.
                    def steady():
                        before = json.loads(self.get(address, "api/live"))
                        time.sleep(0.6)
                        now = json.loads(self.get(address, "api/live"))
                        return now["number"] > before["number"] and now["version"] == before["version"]
                    await_that("a topology that does not change", steady)
                    metrics = self.get(address, "metrics")
                    self.assertIn('weft_place_up{host="n3",place="p3"} 0.0', metrics)
                    self.assertIn('weft_place_up{host="n4",place="p4"} 1.0', metrics)
                self.weft("link", "set", "h8", "loss=0.5")      # at p4
                failed = self.weft("link", "set", "h5", "loss=0.5", ok=False)
                self.assertEqual(failed.returncode, 1)
                self.assertIn("n3 (place p3)", failed.stderr)
            finally:
                os.kill(weftds["p3"], signal.SIGCONT)
        await_that("the place to answer", lambda: not self.show()["missing"])
        with self.subTest("killed"):
            os.kill(weftds["p2"], signal.SIGKILL)
            # It is started again, with the same lab.
            await_that("another weftd", lambda: self.weftds().get("p2", weftds["p2"]) != weftds["p2"])
            shown = self.await_subnet()
            self.assertEqual(shown["missing"], [])


class Sockets(unittest.TestCase):
    def test_clients_are_accepted_again_after_there_were_too_many_open_files(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-whole-")))
        accept, failed = socket.socket.accept, threading.Event()

        def failing(listener):
            if not failed.is_set():
                failed.set()
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            return accept(listener)
        with unittest.mock.patch("socket.socket.accept", failing):
            served = whole.Socket(folder / "control.sock", 1, lambda client: client.sendall(client.recv(100)))
            self.addCleanup(served.close)
            self.assertTrue(failed.wait(TIME_LIMIT))
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                client.settimeout(TIME_LIMIT)
                client.connect(str(folder / "control.sock"))
                client.sendall(b"x")
                self.assertEqual(client.recv(100), b"x")


def block(kind, body):
    length = struct.pack("=I", len(body) + 12)
    return struct.pack("=I", kind) + length + body + length


class MergedCaptures(unittest.TestCase):
    def test_packets_of_several_captures_are_merged_in_order_of_their_time_stamps(self):
        """weftd takes the time of a packet before it waits for the file, so that a capture itself may be out of order by a little."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name, links, times in (("one", (b"a", b"b"), (1, 4, 5 << 32)), ("two", (b"c",), (2, 3, 6 << 32)), ("empty", (), ())):
            packets = [struct.pack("=IIIII", number % len(links), time >> 32, time & 0xffffffff, 4, 4) + name[:1].encode() * 4 for number, time in enumerate(times)]
            (folder / name).write_bytes(block(0x0a0d0d0a, bytes(16)) + b"".join(block(1, link * 8) for link in links) + b"".join(block(6, body) for body in packets))
        # The end of this one was never written.
        with open(folder / "two", "ab") as file:
            file.write(block(6, bytes(24))[:-6])
        whole.merge_captures([folder / "one", folder / "empty", folder / "two"], folder / "merged")
        count, interfaces, times = read_capture(folder / "merged")
        self.assertEqual((count, times), (6, [1, 2, 3, 4, 5 << 32, 6 << 32]))
        self.assertEqual(sorted(interfaces), [b"a" * 8, b"b" * 8, b"c" * 8])


def read_capture(path):
    """Returns the number of packets of a pcapng file, the names of its interfaces, and the times."""
    interfaces, times = [], []
    with open(path, "rb") as file:
        for kind, body in whole._blocks(file):
            if kind == 1:
                interfaces.append(body)
            elif kind == 6:
                number, high, low = struct.unpack_from("=III", body)
                assert number < len(interfaces)
                times.append(high << 32 | low)
    return len(times), interfaces, times


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
