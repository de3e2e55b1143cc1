#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that `weft lab` restarts weftd after it has exited, in a lab without guests.

    restart_test.py WEFT WEFTD
"""
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from daemon import TIME_LIMIT, await_that, weft_in_a_tree

HERE = pathlib.Path(__file__).resolve().parent
SESSION = HERE.parent / "session/weft-session"
MOST_RESTARTS = 10      # the limit in the manual page
LAB = """
[[switch]]
name = "s1"
ports = 8
[[host]]
name = "a"
model = "endpoint"
[[host]]
name = "b"
model = "endpoint"
[[link]]
ends = ["a", "s1"]
[[link]]
ends = ["b", "s1"]
"""


class WeftdRestart(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-again-")))
        self.folder.chmod(0o700)
        self.lab = self.folder / "lab.toml"
        self.lab.write_text(LAB)
        self.addCleanup(self.weft, "lab", "down", status=None)

    def weft(self, *words, status=0):
        done = subprocess.run([WEFT, "--socket-dir", self.folder, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=TIME_LIMIT)
        if status is not None:
            self.assertEqual(done.returncode, status, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def up(self, *options, weftd=None):
        done = subprocess.run([sys.executable, SESSION, self.folder, "up", f"weftd={weftd or WEFTD}", f"lab={self.lab}", *options],
                              capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=TIME_LIMIT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stderr

    def pid(self):
        """Returns the ID of the process that serves the lab's control socket, or None."""
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(str(self.folder / "control.sock"))
            except OSError:
                return None
            return struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]

    def kill(self, number=signal.SIGKILL):
        before = self.pid()
        os.kill(before, number)
        return await_that("another weftd", lambda: (now := self.pid()) and now != before and now)

    def shown(self):
        """Returns the lab's nodes and links once all that should be up have LIDs."""
        def settled():
            fabric = json.loads(self.weft("--json", "fabric", "show"))
            ports = [port for host in fabric["hosts"] for port in host["ports"]]
            up = {link["name"]: link["settings"]["state"] == "up" for link in fabric["links"]}
            if all(port["lid"] for port in ports if up[port["link"]]) and all(link["up"] == up[link["name"]] for link in fabric["links"]):
                return {"hosts": fabric["hosts"], "links": fabric["links"], "guids": [node["guid"] for node in fabric["switches"]]}
            return None
        return await_that("the subnet to be managed", settled)

    def test_links_guids_and_lids_are_unchanged_after_kills_of_weftd(self):
        """Links, GUIDs and LIDs are the same after each of several kills, also of a lab that was changed while it ran."""
        self.up()
        self.weft("link", "set", "a", "loss=0.25", "delay=1ms")
        self.weft("sm", "corrupt-replies", "--one-in", "1000000")
        self.assertIn("+ host c", self.weft("lab", "apply", self.more()))
        self.weft("link", "down", "b")
        self.lab.write_text("not a lab any more")
        before = self.shown()
        for number in (signal.SIGKILL, signal.SIGABRT, signal.SIGKILL):
            self.kill(number)
            self.assertEqual(self.shown(), before)
        said = self.weft("lab", "check", status=126)
        self.assertEqual(said.count("weftd was killed by SIGKILL"), 2, said)
        self.assertEqual(said.count("weftd was killed by SIGABRT"), 1, said)
        self.assertIn("Counters start from zero", said)
        self.assertEqual(self.weft("lab", "check"), "")
        self.assertEqual(len(list(self.folder.glob("weftd-*.log"))), 3)
        self.assertIn("was started again", (self.folder / "lab.log").read_text())

    def more(self):
        more = self.folder / "more.toml"
        more.write_text(LAB.replace('[[host]]\nname = "a"', '[[host]]\nname = "c"\nmodel = "endpoint"\n[[host]]\nname = "a"') + '[[link]]\nends = ["c", "s1"]\n')
        return more

    def test_weftd_that_crashes_too_often_is_not_restarted(self):
        self.up()
        for _ in range(MOST_RESTARTS):
            self.kill()
        os.kill(self.pid(), signal.SIGKILL)
        await_that("the lab to end", lambda: not (self.folder / "lab.sock").exists())
        self.assertIn(f"it ended {MOST_RESTARTS + 1} times in a row within 10 s and is not started again", self.weft("lab", "check", status=1))

    def test_lab_stops_if_weftd_crashes_at_each_restart(self):
        """The lab stops if every new weftd crashes at its start, and the reason is reported."""
        weftd = self.folder / "weftd"
        weftd.write_text(f'#!/bin/sh\n[ -e "{self.folder}/broken" ] && {{ echo "weftd: it is broken"; kill -SEGV $$; }}\nexec "{WEFTD}" "$@"\n')
        weftd.chmod(0o755)
        self.up(weftd=weftd)
        (self.folder / "broken").touch()
        os.kill(self.pid(), signal.SIGKILL)
        await_that("the lab to end", lambda: not (self.folder / "lab.sock").exists())
        said = self.weft("lab", "check", status=1)
        self.assertRegex(said, rf"weftd was killed by SIGSEGV( \(with a core dump.*\))?; its log is {self.folder}/weftd\.log; it ended {MOST_RESTARTS + 1} times")
        self.assertEqual((self.folder / "weftd.log").read_text(), "weftd: it is broken\n")

    def test_crashed_weftd_is_restarted_even_if_the_lab_file_was_removed(self):
        self.up()
        before = self.shown()
        self.lab.unlink()
        self.kill()
        self.assertEqual(self.shown(), before)

    def test_weftd_is_restarted_after_an_exit_with_an_error(self):
        weftd = self.folder / "weftd"
        weftd.write_text(f'#!/bin/sh\n"{WEFTD}" "$@" &\ntrap "kill $!" TERM\nwait $!\nwait $!\nexit 3\n')
        weftd.chmod(0o755)
        self.up(weftd=weftd)
        self.kill()
        self.assertIn("weftd ended with status 3 and was started again", self.weft("lab", "check", status=126))

    def test_core_dump_of_weftd_is_saved_next_to_its_log(self):
        """weftd runs with the hard limit of core dumps, and the dump is kept next to its log unless the host's core_pattern has another place for it."""
        weftd = self.folder / "weftd"
        weftd.write_text(f'#!/bin/sh\nulimit -S -c >"{self.folder}/soft"; ulimit -H -c >"{self.folder}/hard"\n'
                         f'[ -e "{self.folder}/broken" ] && {{ rm "{self.folder}/broken"; kill -ABRT $$; }}\nexec "{WEFTD}" "$@"\n')
        weftd.chmod(0o755)
        self.up(weftd=weftd)
        self.assertEqual((self.folder / "soft").read_text(), (self.folder / "hard").read_text())
        (self.folder / "broken").touch()
        self.kill()
        kept = sorted(path.name for path in self.folder.glob("weftd-*"))
        in_working_directory = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip() == "core"
        dumped = in_working_directory and (self.folder / "hard").read_text().strip() != "0"
        self.assertEqual(kept, ["weftd-1.log", *(["weftd-2.core"] if dumped else []), "weftd-2.log", "weftd-state.json"])

    def test_weftd_crash_ends_a_lab_that_was_started_with_the_no_restart_option(self):
        self.up("no_restart:=true")
        os.kill(self.pid(), signal.SIGKILL)
        await_that("the lab to end", lambda: not (self.folder / "lab.sock").exists())
        self.assertIn(f"no lab is up in {self.folder}, since weftd was killed by SIGKILL", self.weft("lab", "check", status=1))

    def kill_session(self):
        """Kills the lab's own process, which leaves its socket behind."""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.folder / "lab.sock"))
            os.kill(struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0], signal.SIGKILL)
            self.assertEqual(client.recv(1), b"")

    def test_new_lab_can_be_started_after_the_lab_process_was_killed(self):
        """Clients report the kill, `weft lab up` starts a new lab, and `weft lab down` removes what is left."""
        self.up()
        former = self.pid()
        self.kill_session()
        said = f"weft: no lab is up in {self.folder}, since its process was killed: `weft lab up` starts one\n"
        for words in (("check",), ("shell", "a", "true"), ("restart", "a")):
            self.assertEqual(self.weft("lab", *words, status=1), said)
        self.assertEqual(self.up(), f"weft lab: the former lab in {self.folder} has ended, since its process was killed\n")
        self.assertNotIn(self.pid(), (None, former))
        self.assertEqual(self.weft("lab", "check"), "")

        self.kill_session()
        self.assertEqual(self.weft("lab", "down"), f"weft lab: the former lab in {self.folder} has ended, since its process was killed\n")
        self.assertEqual(self.pid(), None)
        self.assertFalse((self.folder / "lab.sock").exists())
        self.assertEqual(self.weft("lab", "down", status=1), f"weft: no lab is up in {self.folder}: `weft lab up` starts one\n")

    def test_weft_shutdown_command_stops_the_lab(self):
        self.up()
        self.weft("shutdown")
        await_that("the lab to end", lambda: not (self.folder / "lab.sock").exists())
        self.assertIn("since weftd ended with status 0", self.weft("lab", "check", status=1))

    def test_links_guids_and_lids_are_unchanged_after_an_upgrade_of_weftd(self):
        self.up()
        self.weft("link", "down", "b")
        before, first = self.shown(), self.pid()
        self.assertIn(f"weftd was replaced by {WEFTD}", self.weft("lab", "upgrade", "--weftd", WEFTD))
        self.assertNotEqual(self.pid(), first)
        self.assertEqual(self.shown(), before)
        self.assertEqual(self.weft("lab", "check"), "")

    def test_previous_weftd_binary_is_started_again_after_a_failed_upgrade(self):
        self.up()
        self.weft("link", "down", "b")
        before = self.shown()
        for script, reason in (("echo 'weftd: no such option'; exit 1", "weftd: no such option"), ("exit 0", "weftd ended with status 0 before it served the lab"),
                               ("echo begun; ulimit -c 0; kill -SEGV $$", "weftd was killed by SIGSEGV before it served the lab\nbegun")):
            other = self.folder / "other"
            other.write_text(f"#!/bin/sh\n[ $1 != --version ] || exec echo weftd 9\n{script}\n")
            other.chmod(0o755)
            self.assertIn(f"{other} does not serve the lab: {reason}: the former weftd was started again",
                          self.weft("lab", "upgrade", "--weftd", other, status=1))
            self.assertEqual(self.shown(), before)

    def test_upgrade_to_a_program_that_is_not_weftd_is_refused_before_weftd_is_stopped(self):
        self.up()
        first = self.pid()
        for program, reason in (("/bin/true", "/bin/true is not a weftd"), ("/etc/passwd", "/etc/passwd cannot be executed: Permission denied")):
            self.assertIn(reason, self.weft("lab", "upgrade", "--weftd", program, status=1))
        self.assertEqual(self.pid(), first)

    def test_weft_capture_and_weft_top_exit_with_an_error_if_weftd_is_killed(self):
        """A capture and `weft top` exit with an error and do not hang."""
        self.up()
        self.shown()
        printed = self.folder / "printed"
        output = self.enterContext(open(printed, "w"))
        clients = {words: subprocess.Popen([WEFT, "--socket-dir", self.folder, *words], stdin=subprocess.DEVNULL, stdout=output,
                                           stderr=subprocess.PIPE, text=True)
                   for words in (("capture", "a", "-w", str(self.folder / "a.pcapng")), ("top", "--count", "1000", "--interval", "0.1"))}
        self.addCleanup(lambda: [(client.kill(), client.wait(), client.stderr.close()) for client in clients.values()])
        self.assertIn("capturing", clients["capture", "a", "-w", str(self.folder / "a.pcapng")].stderr.readline())
        await_that("weft top to be connected", lambda: printed.stat().st_size)
        self.kill()
        for words, client in clients.items():
            self.assertEqual(client.wait(TIME_LIMIT), 1, words)
            self.assertIn("weftd has ended", client.stderr.read(), words)


if __name__ == "__main__":
    given, WEFTD = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    with weft_in_a_tree(given) as WEFT:
        unittest.main(argv=sys.argv[:1] + sys.argv[3:])
