#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests `weft lab join` with weftds that were started without `weft lab up`.

    joining_test.py WEFT WEFTD [TEST...]
"""
import json
import os
import pathlib
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import daemon

WEFT, WEFTD = sys.argv[1:3]
LAB = """name = "joined"
trunk-key-file = "trunk.key"
[[place]]
name = "p1"
[[place]]
name = "p2"
[[switch]]
name = "s1"
place = "p1"
[[switch]]
name = "s2"
place = "p2"
[[host]]
name = "h1"
model = "endpoint"
[[host]]
name = "h2"
model = "endpoint"
[[link]]
ends = ["h1", "s1"]
[[link]]
ends = ["h2", "s2"]
[[link]]
ends = ["s1", "s2"]
"""
TRUNK = "s1/2-s2/2"


def free_port():
    with socket.socket() as end:
        end.bind(("127.0.0.1", 0))
        return end.getsockname()[1]


class JoinedDaemons(unittest.TestCase):
    """p1 is reached through its directory, p2 through a command."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-joined-")))
        self.program = self.enterContext(daemon.weft_in_a_tree(WEFT))
        shutil.copy(WEFTD, self.program.parent / "weftd")
        (self.folder / "lab.toml").write_text(LAB)
        (self.folder / "trunk.key").write_bytes(secrets.token_bytes(32))
        (self.folder / "trunk.key").chmod(0o600)
        self.peer = f"p1=127.0.0.1:{free_port()}"
        self.running = {}

    def start(self, name):
        directory = self.folder / name
        directory.mkdir(mode=0o700, exist_ok=True)
        (directory / "control.sock").unlink(missing_ok=True)
        self.running[name] = self.enterContext(daemon.process(
            WEFTD, "--socket-dir", directory, "--lab", self.folder / "lab.toml", "--place", name, "--peer", self.peer, stderr=subprocess.DEVNULL))
        daemon.await_that(f"{name} to serve", (directory / "control.sock").is_socket)

    def words(self, *where):
        return [self.program, "--socket-dir", self.folder / "whole", "lab", "join", self.folder / "lab.toml", *where]

    def command(self, name):
        return f"{name}={shlex.join(map(str, (self.program, '--socket-dir', self.folder / name, 'lab', 'pipe')))}"

    def join(self, command=None):
        joined = self.enterContext(daemon.process(*self.words(f"p1={self.folder / 'p1'}", command or self.command("p2")), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        self.addCleanup(joined.stderr.close)
        self.assertRegex(joined.stdout.readline(), r"^weft lab join: serves .*/whole until Ctrl-C\n")
        return joined

    def weft(self, *words, status=0):
        done = subprocess.run([self.program, "--socket-dir", self.folder / "whole", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=daemon.TIME_LIMIT)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def fabric(self):
        return json.loads(self.weft("--json", "fabric", "show"))

    def links(self):
        return {link["name"]: link["up"] for link in self.fabric()["links"]}

    def test_joined_daemons_are_shown_and_changed_as_one_fabric(self):
        for name in ("p1", "p2"):
            self.start(name)
        joined = self.join()
        daemon.await_that("a subnet over both places", lambda: all(switch["lid"] for switch in self.fabric()["switches"]))
        shown = self.fabric()
        self.assertEqual([(host["name"], host["place"]) for host in shown["hosts"]], [("h1", "p1"), ("h2", "p2")])
        daemon.await_that("all links", lambda: all(self.links().values()))
        self.assertEqual(sorted(self.links()), ["h1/1-s1/1", "h2/1-s2/1", TRUNK, "sm/1-s1/3"])
        self.weft("link", "down", TRUNK)
        self.assertFalse(self.links()[TRUNK])
        # Both halves have been changed.
        for name in ("p1", "p2"):
            done = subprocess.run([self.program, "--json", "--socket-dir", self.folder / name, "fabric", "show"], capture_output=True, text=True, check=True)
            self.assertEqual([link["settings"]["state"] for link in json.loads(done.stdout)["links"] if link["name"] == TRUNK], ["down"], name)
        self.weft("link", "up", TRUNK)
        self.assertIn("s2/1", self.weft("counters"))
        capture = self.folder / "h1.pcapng"
        with daemon.process(self.program, "--socket-dir", self.folder / "whole", "capture", "h1", "-w", capture, stderr=subprocess.PIPE, text=True) as running:
            def packets_are_captured():
                self.weft("sm", "sweep")
                return any(file.stat().st_size > 1000 for file in pathlib.Path(tempfile.gettempdir()).glob("weft-captures-*/*"))
            daemon.await_that("packets in the capture", packets_are_captured)
            running.send_signal(signal.SIGINT)
            running.wait(daemon.TIME_LIMIT)
            running.stderr.close()
        self.assertEqual(capture.read_bytes()[:4], bytes.fromhex("0a0d0d0a"))
        self.assertGreater(capture.stat().st_size, 1000)
        refused = self.weft("capture", "h2", "-w", self.folder / "h2.pcapng", status=1)
        self.assertIn("place p2: it is reached through a command", refused)
        joined.send_signal(signal.SIGINT)
        self.assertEqual(joined.wait(daemon.TIME_LIMIT), 0)
        self.assertFalse((self.folder / "whole/control.sock").exists())

    def test_daemon_that_is_killed_is_missing_until_it_is_started_again(self):
        for name in ("p1", "p2"):
            self.start(name)
        self.join()
        for name in ("p2", "p1"):
            self.running[name].kill()
            self.running[name].wait()
            daemon.await_that("a missing place", lambda name=name: [each["place"] for each in self.fabric()["missing"]] == [name])
            self.start(name)
            daemon.await_that("all places", lambda: self.fabric()["missing"] == [])

    def children(self, joined):
        return [child for task in pathlib.Path(f"/proc/{joined.pid}/task").iterdir() for child in (task / "children").read_text().split()]

    def ask(self, client, command):
        client.sendall(json.dumps({"command": command}).encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            answer += client.recv(1 << 16)
        return json.loads(answer)

    def client(self):
        client = self.enterContext(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        client.settimeout(daemon.TIME_LIMIT)
        client.connect(str(self.folder / "whole/control.sock"))
        return client

    def test_connection_of_an_earlier_client_is_not_used_after_its_daemon_was_started_again(self):
        for name in ("p1", "p2"):
            self.start(name)
        joined = self.join()
        self.assertEqual(self.fabric()["missing"], [])
        (child,) = self.children(joined)
        self.running["p2"].kill()
        self.running["p2"].wait()
        daemon.await_that("the command of p2 to end", lambda: pathlib.Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
        self.start("p2")
        daemon.await_that("p2", lambda: subprocess.run([self.program, "--socket-dir", self.folder / "p2", "counters"], capture_output=True, check=False).returncode == 0)
        self.assertEqual(self.fabric()["missing"], [])

    def test_line_that_a_command_prints_is_not_taken_for_an_answer(self):
        for name in ("p1", "p2"):
            self.start(name)
        self.join(self.command("p2").replace("=", "=sh -c 'echo Welcome; exec \"$@\"' sh ", 1))
        client = self.client()
        for _ in range(3):
            # The answer to the former request is not taken for the answer to this one.
            self.assertEqual([(each["place"], each["reason"]) for each in self.ask(client, "counters").get("missing", ())], [("p2", "its answer is not understood")])

    def test_commands_of_connected_clients_are_ended_with_weft_lab_join(self):
        for name in ("p1", "p2"):
            self.start(name)
        joined = self.join(self.command("p2").replace("=", "=sh -c '\"$@\"; sleep 1000' sh ", 1))
        self.assertTrue(self.ask(self.client(), "counters")["ok"])
        children = self.children(joined)
        self.assertTrue(children)
        joined.terminate()
        self.assertEqual(joined.wait(daemon.TIME_LIMIT), 0)
        daemon.await_that("the commands to end", lambda: not any(os.path.exists(f"/proc/{child}") for child in children))

    def test_daemons_that_do_not_answer_are_reported_at_the_start(self):
        self.start("p1")
        (self.folder / "p2").mkdir()
        joined = self.join()
        self.assertEqual([each["place"] for each in self.fabric()["missing"]], ["p2"])
        joined.terminate()
        self.assertIn("weft lab join: place p2 (", joined.communicate()[1])

    def test_commands_of_a_client_are_ended_with_weft_lab_join(self):
        for name in ("p1", "p2"):
            self.start(name)
        # This command does not end with its input.
        joined = self.join(self.command("p2").replace("=", "=sh -c '\"$@\"; sleep 1000' sh ", 1))
        self.assertEqual(self.fabric()["missing"], [])
        children = pathlib.Path(f"/proc/{joined.pid}/task/{joined.pid}/children").read_text().split()
        self.assertTrue(children)
        joined.terminate()
        self.assertEqual(joined.wait(daemon.TIME_LIMIT), 0)
        daemon.await_that("the commands to end", lambda: not any(os.path.exists(f"/proc/{child}") for child in children))

    def test_wrong_places_are_refused(self):
        for where, said in ((["p1=/tmp"], "it is not given how to reach the weftd of p2"), (["p1=/tmp", "p3=/tmp"], "has no place p3: it has p1, p2"),
                            (["p1=/tmp", "p1=/tmp"], "the place p1 is given twice"), (["p1=/tmp", "p2"], "'p2' is not PLACE=DIRECTORY or PLACE=COMMAND"),
                            (["p1=/tmp", "p2= "], "'p2= ' is not PLACE=DIRECTORY"), (["p1=/tmp", "p2=ssh 'x"], "a command is not understood"),
                            (["p1=/tmp", f"p2={self.folder}/none"], "none' is neither a directory nor a program"), (["p1=/tmp", f"p2=no-such-program {'x' * 300}"], "neither a directory nor a program")):
            with self.subTest(where=where):
                done = subprocess.run(self.words(*where), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, said in done.stderr), (1, True), done.stderr)
        self.assertFalse((self.folder / "whole").exists())

    def test_directory_that_another_daemon_serves_is_refused(self):
        self.start("p1")
        done = subprocess.run([self.program, "--socket-dir", self.folder / "p1", "lab", "join", self.folder / "lab.toml", "p1=/tmp", "p2=/tmp"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, "another weftd serves" in done.stderr), (1, True), done.stderr)

    def test_directory_of_a_place_is_not_served_while_its_daemon_does_not_run(self):
        (self.folder / "p1").mkdir()
        done = subprocess.run([self.program, "--socket-dir", self.folder / "p1/../p1", "lab", "join", self.folder / "lab.toml", f"p1={self.folder / 'p1'}", "p2=/tmp"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=daemon.TIME_LIMIT)
        self.assertEqual((done.returncode, "its directory is the one that weft lab join would serve" in done.stderr), (1, True), done.stderr)

    def test_pipe_passes_requests_and_ends_with_its_input(self):
        self.start("p1")
        pipe = [self.program, "--socket-dir", self.folder / "p1", "lab", "pipe"]
        done = subprocess.run(pipe, input='{"command": "counters"}\n', capture_output=True, text=True, check=True, timeout=daemon.TIME_LIMIT)
        self.assertTrue(json.loads(done.stdout)["ok"])
        done = subprocess.run([*pipe[:2], self.folder / "nothing", *pipe[3:]], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, "no weftd serves" in done.stderr), (1, True), done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
