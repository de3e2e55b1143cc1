#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests the process of `weft lab` and `weft run`: refused commands, lost connections, signals, time limits, and its messages and exit status."""
import contextlib
import errno
import io
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import types
import unittest
import unittest.mock

from session_folder import SESSION, Folder  # sets the paths of the modules below

import labs
import place_plan
import repeating
import running
from lab import errors, process, shared_time, timed_places
from lab.errors import LabError
from labs import GuestSettings


class RefusedCommands(Folder):
    def fails(self, *words):
        weftd = self.write("weftd")
        done = subprocess.run([sys.executable, SESSION, self.folder, words[0], f"weftd={weftd}", *words[1:]], capture_output=True,
                              text=True, check=False, stdin=subprocess.DEVNULL, timeout=60)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return done.stderr

    def test_missing_script_is_refused(self):
        self.assertIn("there is no script /none", self.fails("run", "script=/none"))

    def test_script_may_be_a_pipe_or_an_empty_file_but_not_a_directory(self):
        self.assertIn(f"there is no script {self.folder}", self.fails("run", f"script={self.folder}"))
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        for script in (pipe, "/dev/null"):
            running.check_script(types.SimpleNamespace(script=str(script)))

    def test_invalid_memory_option_is_refused(self):
        for command in (["up"], ["run", "--", "true"]):
            for memory, said in (("abc", "weft: --memory: 'abc' is not an amount of memory: write it as 768M or 2G\n"),
                                 ("64M", "weft: --memory: 64M of memory are too little for a guest: give it 192M or more\n")):
                self.assertEqual(self.fails(command[0], f"memory={memory}", *command[1:]), said)

    def test_missing_directory_of_the_share_option_is_refused(self):
        self.assertIn("--share /none does not exist", self.fails("run", "share=/none", "--", "true"))

    def test_lab_commands_are_refused_if_no_lab_is_up(self):
        for words in (["shell", "host=node1", "--", "true"], ["restart", "--", "node1"], ["console", "host=node1"], ["check"], ["down"]):
            done = subprocess.run([sys.executable, SESSION, self.folder, *words], capture_output=True, text=True, check=False,
                                  stdin=subprocess.DEVNULL, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (1, f"weft: no lab is up in {self.folder}: `weft lab up` starts one\n"))

    def test_card_option_sets_the_card_model_of_both_hosts_of_the_default_lab(self):
        """With --card the lab has two hosts with cards of that model, and the user's lab.toml is unchanged."""
        self.write("lab.toml", "the user's")
        weftd = self.write("weftd", '#!/bin/sh\necho "weftd: $(grep -c \'model = "mlx5"\' "$4") cards"\nexit 1\n')
        weftd.chmod(0o755)
        done = subprocess.run([sys.executable, SESSION, self.folder, "run", f"weftd={weftd}", "card=mlx5", f"logs={self.folder / 'logs'}", "--", "true"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, "weft: weftd: 2 cards\n"))
        self.assertEqual((self.folder / "lab.toml").read_text(), "the user's")

    def test_error_message_of_a_weftd_that_fails_to_start_is_reported(self):
        """weftd's own error is reported, and no temporary directory remains."""
        weftd = self.write("weftd", "#!/bin/sh\necho 'weftd: lab.toml:3: no such thing'\nexit 1\n")
        weftd.chmod(0o755)
        logs = self.folder / "logs"
        done = subprocess.run([sys.executable, SESSION, self.folder, "run", f"weftd={weftd}", f"logs={logs}", "--", "true"], capture_output=True,
                              text=True, check=False, stdin=subprocess.DEVNULL, timeout=60, env={**os.environ, "TMPDIR": str(self.folder)})
        self.assertEqual((done.returncode, done.stderr), (1, "weft: weftd: lab.toml:3: no such thing\n"))
        self.assertEqual([path.name for path in self.folder.glob("weft-*")], [])


class BrokenLabConnection(Folder):
    """Failures of the lab's process, of input and of the host are reported in one line each, and without a traceback."""

    # The last two represent all commands that pass on one message.
    COMMANDS = (["shell", "host=node1", "--", "true"], ["console", "host=node1"], ["check"])

    def run_session(self, *words, **more):
        return subprocess.run([sys.executable, "-B", SESSION, self.folder, *words], capture_output=True, text=True, check=False,
                              **{"stdin": subprocess.DEVNULL, "timeout": 60, **more})

    def serve(self, answer, remove=False):
        """Serves lab.sock for one client: answer(connection). Then closes the socket, and removes it on request."""
        path = self.folder / "lab.sock"
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(path))
        listener.listen()

        def serve():
            with listener:
                client, _ = listener.accept()
                # Close the connection last, so that the client does not see its end before the end of the lab.
                listener.close()
                if remove:
                    path.unlink()
                with client, contextlib.suppress(ConnectionError):
                    answer(client)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        return thread

    def assert_one_line(self, done, text, status=1):
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(text, done.stderr)

    def test_lab_process_that_closes_the_connection_is_reported_as_killed(self):
        """The process closes the connection at once, without reading the request, after the request, or after a part of an answer."""
        for answer in (lambda _: None, lambda client: client.recv(1, socket.MSG_PEEK), lambda client: client.recv(65536),
                       lambda client: (client.recv(65536), client.sendall(b'{"status"'))):
            for words in self.COMMANDS:
                with self.subTest(words):
                    thread = self.serve(answer)
                    done = self.run_session(*words)
                    thread.join(60)
                    self.assert_one_line(done, f"weft: no lab is up in {self.folder}, since its process was killed: `weft lab up` starts one\n")

    def test_lab_down_succeeds_if_the_lab_process_is_killed_meanwhile(self):
        self.serve(lambda _: None)
        self.assert_one_line(self.run_session("down"), f"weft lab: the former lab in {self.folder} has ended, since its process was killed\n", 0)
        self.assertFalse((self.folder / "lab.sock").exists())

    def test_lab_that_stops_during_a_command_is_reported(self):
        self.write("lab-ended", "weftd ended with status 0; its log is LOG")
        self.serve(lambda _: None, remove=True)
        self.assert_one_line(self.run_session("check"), f"weft: no lab is up in {self.folder}, since weftd ended with status 0; its log is LOG: `weft lab up` starts one\n")

    def test_command_suggests_a_retry_if_the_running_lab_closes_the_connection(self):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(listener.close)
        listener.bind(str(self.folder / "lab.sock"))
        listener.listen()
        threading.Thread(target=lambda: listener.accept()[0].close(), daemon=True).start()
        self.assert_one_line(self.run_session("check"), f"weft: the lab in {self.folder} closed the connection before it answered: try again\n")

    def test_invalid_reply_on_the_lab_socket_is_reported(self):
        for garbage in (b"\xff\xfe garbage that is longer than a header\n", b"[1, 2]\n" + bytes(20), b"[" * 100000 + b"\n", bytes(12), b'{"status": "x"}\n'):
            for words in self.COMMANDS:
                with self.subTest((garbage[:10], words)):
                    thread = self.serve(lambda client, garbage=garbage: (client.recv(65536), client.sendall(garbage), client.shutdown(socket.SHUT_WR), client.recv(65536)))
                    done = self.run_session(*words)
                    thread.join(60)
                    self.assertRegex(done.stderr, "is not a lab's: end the program that serves it|no lab is up")
                    self.assert_one_line(done, str(self.folder))

    def test_shortage_of_file_descriptors_is_reported(self):
        # After it has read its modules, the program has one descriptor in addition to the standard streams.
        program = f"import resource, runpy, sys; sys.path[:0] = [{str(SESSION.parent)!r}]; it = runpy.run_path({str(SESSION)!r}); resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))\n" \
                  "with it['reported']('weft'): it['in_words'](it['main'])"
        done = subprocess.run([sys.executable, "-Bc", program, self.folder, "up", f"weftd={self.write('weftd')}"], capture_output=True, text=True, check=False, timeout=60)
        self.assert_one_line(done, "weft: Too many open files: raise the limit of open files with `ulimit -n`\n")

    def test_traceback_of_an_unexpected_exception_is_written_to_a_file(self):
        program = f"import runpy, sys; sys.path[:0] = [{str(SESSION.parent)!r}]; it = runpy.run_path({str(SESSION)!r})\ndef fail(): raise ZeroDivisionError('why')\nwith it['reported']('weft'): it['in_words'](fail)"
        done = subprocess.run([sys.executable, "-Bc", program], capture_output=True, text=True, check=False, timeout=60, env={**os.environ, "TMPDIR": str(self.folder)})
        (kept,) = self.folder.glob("weft-traceback-*")
        self.assertEqual((done.returncode, done.stderr), (1, f"weft: ZeroDivisionError: why: this is a defect of weft; please report it with {kept}\n"))
        self.assertIn("Traceback", kept.read_text())

    def test_script_that_is_not_utf8_is_passed_to_the_guest_unchanged(self):
        """A script that is not UTF-8 reaches the guest unchanged, from a file and from standard input."""
        script = b"echo caf\xe9 # \xff\n"
        args = types.SimpleNamespace(on=[], script=str(self.write("script", script)), words=[])
        self.assertEqual(process.to_bytes(running.scripts_of(args, ["node1"])["node1"]), script)
        args.script = "-"
        with unittest.mock.patch.object(running.sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(script))):
            self.assertEqual(process.to_bytes(running.scripts_of(args, ["node1"])["node1"]), script)

    def test_broken_connection_is_not_mistaken_for_closed_standard_output(self):
        for error, text in ((BrokenPipeError(errno.EPIPE, "Broken pipe"), "weft: Broken pipe: another program has closed a connection"),
                            (BrokenPipeError(), "weft: : another program has closed a connection")):
            with unittest.mock.patch.object(errors, "output_is_closed", return_value=False), unittest.mock.patch.object(errors.signal, "signal"), \
                 self.assertRaises(SystemExit) as caught, errors.reported("weft"):
                raise error
            self.assertEqual(caught.exception.code, text)


class EarlyExitOfWeftd(Folder):
    """A weftd that ends before it serves the lab is reported with its signal or status, and with the end of its log."""

    CASES = (("exit 0", "weft: weftd ended with status 0 before it served the lab\n"), ("exit 3", "weft: weftd ended with status 3 before it served the lab\n"),
             ("kill -KILL $$", "weft: weftd was killed by SIGKILL before it served the lab\n"),
             ("echo begun; kill -BUS $$", "weft: weftd was killed by SIGBUS before it served the lab\nbegun\n"),
             ("kill -35 $$", "weft: weftd was killed by signal 35 before it served the lab\n"))

    def run_weftd(self, script, *options):
        weftd = self.write("weftd", f"#!/bin/sh\nulimit -c 0\n{script}\n")
        weftd.chmod(0o755)
        return subprocess.run([sys.executable, "-B", SESSION, self.folder, "run", f"weftd={weftd}", *options, "--", "true"], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=60, env={**os.environ, "TMPDIR": str(self.folder)})

    def test_exit_of_weftd_during_start_is_reported(self):
        for script, said in self.CASES:
            with self.subTest(script):
                done = self.run_weftd(script)
                self.assertEqual((done.returncode, done.stderr), (1, said))

    def test_exit_of_weftd_in_a_run_with_virtual_time_is_reported(self):
        lab = types.SimpleNamespace(directory=self.folder)
        for logged, status, said in (("", -9, "weftd was killed by SIGKILL"), ("a\nb", -11, "weftd was killed by SIGSEGV\na\nb"), ("", 1, "weftd ended with status 1"),
                                     ("x ends: node1 has left", 1, "node1 has left")):
            self.write("weftd.log", logged)
            self.assertEqual(shared_time._reason(lab, types.SimpleNamespace(returncode=status)), said)


class AnotherDaemon(Folder):
    """Files in a lab's directory that a killed weftd has left behind, or that belong to another running weftd."""

    def session(self, *words, **more):
        return subprocess.run([sys.executable, SESSION, self.folder, *words], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=60, **more)

    def listen(self, name):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(listener.close)
        listener.bind(str(self.folder / name))
        listener.listen()
        return listener

    def weftd(self, script):
        weftd = self.write("weftd", f"#!/bin/sh\n{script}\n")
        weftd.chmod(0o755)
        return weftd

    def test_stale_socket_is_replaced(self):
        self.listen("control.sock").close()
        done = self.session("up", f"weftd={self.weftd('echo reached; exit 1')}")
        self.assertEqual((done.returncode, done.stderr), (1, "weft lab: reached\n"))
        self.assertFalse((self.folder / "control.sock").exists())

    def test_lab_up_fails_and_keeps_the_control_socket_if_another_weftd_listens_on_it(self):
        self.listen("control.sock")
        for words in (("up", f"weftd={self.weftd('exit 1')}"),):
            done = self.session(*words)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, "did not start serves .*shutdown")
        self.assertTrue((self.folder / "control.sock").exists())

    def test_lab_commands_report_why_the_previous_lab_ended(self):
        self.write("lab-ended", "weftd was killed by SIGKILL; its log is LOG")
        for words in (("shell", "host=node1", "--", "true"), ("down",)):
            self.assertEqual(self.session(*words).stderr,
                             f"weft: no lab is up in {self.folder}, since weftd was killed by SIGKILL; its log is LOG: `weft lab up` starts one\n")
        self.session("up", f"weftd={self.weftd('exit 1')}")
        self.assertNotIn("SIGKILL", self.session("down").stderr)

    def test_unwritable_log_directory_is_reported(self):
        self.write("file")
        done = self.session("up", f"weftd={self.weftd('exit 1')}", f"logs={self.folder / 'file/logs'}")
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("Traceback", done.stderr)
        self.assertIn("file/logs: Not a directory", done.stderr)

    def test_weft_exits_silently_when_its_output_pipe_is_closed(self):
        # Without a buffer, Python does not detect that a closed pipe has truncated a write.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        lines = subprocess.Popen([sys.executable, SESSION, self.folder, "topology", "kind=ring", "switches:=4000"], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, env=environment)
        lines.stdout.readline()
        lines.stdout.close()
        self.assertEqual(lines.stderr.read(), "")
        lines.stderr.close()
        self.assertEqual(lines.wait(60), 1)


class Terminated(Folder):
    SCRIPT = """
import os, signal, threading, types
import serving
class Dies:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
signal.signal(signal.SIGTERM, serving._leave)
server = serving.Server(types.SimpleNamespace(look_after=lambda _: None, weftd=types.SimpleNamespace(), stopping=threading.Event()), PATH)
Dies()
server.serve()
print("ended")
"""

    def test_sigterm_during_a_python_finalizer_stops_the_lab(self):
        """Python drops the exception that a handler raises while a finalizer runs."""
        script = f"import pathlib, sys\nsys.path[:0] = {sys.path[:2]!r}\nPATH = pathlib.Path({str(self.folder / 'lab.sock')!r})\n{self.SCRIPT}"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=30)
        self.assertEqual(done.stdout, "ended\n", done.stderr)

    def test_interrupted_command_exits_with_128_plus_the_signal(self):
        """A lab's process accepts the connection and does not answer."""
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.folder / "lab.sock"))
            listener.listen()
            listener.settimeout(60)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                command = subprocess.Popen([sys.executable, SESSION, self.folder, "check"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                with listener.accept()[0]:
                    command.send_signal(number)
                    said = command.communicate(timeout=60)[1]
                self.assertEqual((command.returncode, said), (128 + number, "weft: interrupted\n"))

    def test_interrupted_script_exits_with_128_plus_the_signal(self):
        script = f"import sys\nsys.path[:0] = {sys.path[:2]!r}\nfrom lab import errors\nwith errors.reported('script'):\n    print('here', flush=True); input()"
        for number in (signal.SIGINT, signal.SIGTERM):
            with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as command:
                command.stdout.readline()
                command.send_signal(number)
                self.assertEqual(command.stderr.read(), "script: interrupted\n")
                self.assertEqual(command.wait(30), 128 + number)


class ChecksBeforeBoot(unittest.TestCase):
    def test_unknown_host_is_reported_before_a_guest_boots(self):
        lab = labs.Lab(pathlib.Path("/none"), pathlib.Path("/none"), None, None, GuestSettings(), True, lambda _: None)
        booted = []
        with contextlib.ExitStack() as stack:
            for name, stand_in in (("_fabric", lambda: labs.Fabric([{"name": "node1"}], True)), ("_start_guests", lambda *each: booted.append(each))):
                stack.enter_context(unittest.mock.patch.object(lab, name, stand_in))
            for owner, name in ((labs, "is_served"), (labs.Daemon, "start"), (labs.pathlib.Path, "mkdir"), (labs.pathlib.Path, "unlink")):
                stack.enter_context(unittest.mock.patch.object(owner, name, return_value=False))
            stack.enter_context(unittest.mock.patch.object(labs, "open", unittest.mock.mock_open(), create=True))
            args = types.SimpleNamespace(on=["node3"], script=None, words=["true"])
            with self.assertRaisesRegex(LabError, "there is no host node3: there is node1"):
                lab.up(lambda hosts: running.scripts_of(args, hosts))
        self.assertEqual(booted, [])


class LabTimeout(Folder):
    """The error of a lab in virtual time that does not finish refers to the consoles."""

    def run_with(self, logs):
        lab = types.SimpleNamespace(directory=self.folder / "lab")
        self.write("lab/console-node1.log", "spins")
        with unittest.mock.patch("lab.shared_time.run", side_effect=LabError("no end; waited for node1")), self.assertRaises(LabError) as caught:
            repeating._run(lab, lambda: 2, logs)
        return str(caught.exception)

    def test_logs_are_written_to_the_given_directory_after_a_timeout(self):
        said = self.run_with(self.folder / "logs")
        self.assertIn("waited for node1", said)
        self.assertEqual((self.folder / "logs/console-node1.log").read_text(), "spins")

    def test_timeout_error_reports_the_log_directory(self):
        said = self.run_with(None)
        kept = pathlib.Path(said.rpartition("logs in ")[2])
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", kept], check=True))
        self.assertEqual((kept / "console-node1.log").read_text(), "spins")

    def test_time_limit_of_a_lab_grows_with_the_number_of_its_guests(self):
        limits = []
        lab = types.SimpleNamespace(directory=self.folder / "lab")
        for guests in (1, 16, 128):
            with unittest.mock.patch("lab.shared_time.run", side_effect=lambda lab, timeout: limits.append(timeout())):
                repeating._run(lab, lambda guests=guests: guests, None)
        self.assertEqual(limits, [600, 600, 4800])


class TimedPlaces(Folder):
    """Labs with several places in virtual time."""

    def events_of(self, link, trunks):
        """Returns the places and settings of `--at '4 link set LINK loss=0 rate=x'`. trunks: between the place a, with node1, b and leaf1, and the place b, with far
        and a-b."""
        places = object.__new__(repeating.Places)
        places._plan = [place_plan.PlannedPlace(name, None, None, 0, hosts, False, switches, dict.fromkeys(trunks, name == "a"))
                        for name, hosts, switches in (("a", {"node1", "b"}, {"leaf1"}), ("b", {"far", "a-b"}, set()))]
        return [(each["place"], list(each["settings"])) for _, each in places.event(*repeating.event(f"4 link set {link} loss=0 rate=x"))]

    def test_change_of_a_trunk_is_made_at_both_places_by_each_of_its_names(self):
        """The faults are those of the place that comes first, also if the link is named by a host at the other one."""
        for link in ("far", "far/1", "leaf1/3", "far/1-leaf1/3"):
            with self.subTest(link):
                self.assertEqual(self.events_of(link, ["far/1-leaf1/3"]), [("a", ["loss", "rate"]), ("b", ["rate"])])
        for link in ("node1", "leaf1", "leaf1/4"):
            with self.subTest(link):
                self.assertEqual(self.events_of(link, ["far/1-leaf1/3"]), [("a", ["loss", "rate"])])

    def test_end_of_a_name_with_a_hyphen_is_not_the_name_of_another_node(self):
        self.assertEqual(self.events_of("b/2", ["leaf1/1-a-b/2"]), [("a", ["loss", "rate"])])
        self.assertEqual(self.events_of("a-b/2", ["leaf1/1-a-b/2"]), [("a", ["loss", "rate"]), ("b", ["rate"])])

    def test_host_with_several_trunks_needs_a_port(self):
        with self.assertRaisesRegex(LabError, "far has several links: name a port, as in far/1"):
            self.events_of("far", ["far/1-leaf1/1", "far/2-leaf1/2"])

    def test_place_that_has_ended_waits_for_the_others(self):
        """A guest may compute for a long time in the round in which another place has reached the time of --timeout."""
        self.write("weftd-0.log", "")
        self.write("weftd-1.log", "12:00:00.000 info    weftd: place b: ends: a scheduled event requests it\n")
        polls = iter([None] * 8)
        weftds = [types.SimpleNamespace(poll=lambda: next(polls, 0)), types.SimpleNamespace(poll=lambda: 0)]
        keepers = {"node2": types.SimpleNamespace(poll=lambda: 0)}
        with unittest.mock.patch.object(timed_places, "GRACE", 0):
            timed_places._await_end(types.SimpleNamespace(directory=self.folder), weftds, keepers, 60)
        self.assertEqual(next(polls, "ended"), "ended")

    def test_error_in_weftd_is_the_reason_although_the_server_only_notices_a_lost_place(self):
        self.write("weftd-0.log", "12:00:00.000 info    weftd: rounds: the lab ends after 0 rounds: place b has left the lab, in the round until 0.000000001 s\n")
        self.write("weftd-1.log", "12:00:00.000 error   weftd: ends: File name too long: /b\n")
        weftds = [types.SimpleNamespace(returncode=1)] * 2
        self.assertEqual(timed_places._reason(types.SimpleNamespace(directory=self.folder), [["a"], ["b"]], weftds), "File name too long: /b")


if __name__ == "__main__":
    unittest.main()
