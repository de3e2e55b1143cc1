#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that standard input, terminals and signals reach a command in a guest, as with `ssh`. The guest's agent runs as a process of this host."""
import contextlib
import errno
import fcntl
import os
import pathlib
import pty
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parents[2]
SESSION = TREE / "tools/weft/session"
sys.path[:0] = [str(SESSION), str(TREE / "scripts")]
sys.dont_write_bytecode = True

import serving  # noqa: E402
from lab import process  # noqa: E402
from lab.guest import Guest  # noqa: E402
from lab.waiting import wait_until  # noqa: E402

TIME_LIMIT = 60 * float(os.environ.get("WEFT_SLOWNESS", "1"))


def set_size(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def read_until(terminal, text):
    """Reads a terminal until this text has come. Raises OSError at the terminal's end, AssertionError if nothing comes."""
    seen = b""
    while text not in seen:
        if not select.select([terminal], [], [], TIME_LIMIT)[0]:
            raise AssertionError(f"{text} did not come, but {seen}")
        seen += os.read(terminal, 4096)


class AgentCase(unittest.TestCase):
    """A guest without a kernel. Its agent has a terminal as its serial line."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="weft-agent-")
        cls.addClassCleanup(cls.directory.cleanup)
        cls.program = pathlib.Path(cls.directory.name) / "agent"
        subprocess.run(["g++", "-std=c++20", "-o", cls.program, TREE / "scripts/lab/agent/agent.cpp"], check=True)

    def setUp(self):
        self.guest = Guest("node1", kernel=types.SimpleNamespace(variant="stock", native=False))
        self.addCleanup(self.guest.log.unlink)
        self.addCleanup(self.guest._errors.close)
        self.line, far = pty.openpty()
        self.agent = subprocess.Popen([self.program, os.ttyname(far)], stdin=subprocess.DEVNULL, start_new_session=True)
        self.guest._process = self.agent
        self.guest._agent, near = socket.socketpair()
        self.addCleanup(near.close)
        self.relays = [threading.Thread(target=self.relay, args=ends, daemon=True)
                       for ends in ((lambda: near.recv(65536), self.write_line), (self.read_line, near.sendall))]
        for relay in self.relays:
            relay.start()
        threading.Thread(target=self.guest._read_frames, args=(self.guest._agent,), daemon=True).start()
        self.addCleanup(self.end)
        self.guest.ready(TIME_LIMIT)
        os.close(far)

    def read_line(self):
        return os.read(self.line, 65536)

    def write_line(self, data):
        while data:
            data = data[os.write(self.line, data):]

    @staticmethod
    def relay(read, write):
        with contextlib.suppress(OSError):
            while data := read():
                write(data)

    def end(self):
        # A command has a separate session, which would outlive the agent.
        sessions = subprocess.run(["pgrep", "-P", str(self.agent.pid)], stdout=subprocess.PIPE, text=True, check=False).stdout.split()
        if sessions:
            subprocess.run(["pkill", "-KILL", "-s", ",".join(sessions)], check=False)
        self.agent.kill()
        self.agent.wait()
        self.guest._agent.shutdown(socket.SHUT_RDWR)
        self.guest._agent.close()
        # The terminal's number may be given to another one once it is closed, so that no thread may still read from it.
        for relay in self.relays:
            relay.join(TIME_LIMIT)
            self.assertFalse(relay.is_alive())
        os.close(self.line)

    def start(self, *words, **how):
        return self.guest.start_program(words, **how)

    def give_all(self, command, data):
        """Gives input as far as there is space for it."""
        for begin in range(0, len(data), process.INPUT_PIECE):
            piece = data[begin:begin + process.INPUT_PIECE]
            self.guest.wait_for_event("space for input", lambda: command.status is not None or command.window.space() >= len(piece), TIME_LIMIT)
            command.give(piece)


class GuestAgentStreams(AgentCase):
    def test_input_and_end_of_file_reach_the_command_unchanged(self):
        data = random.Random(1).randbytes(3 << 20)
        command = self.start("cat")
        self.give_all(command, data)
        command.give(b"")
        command.wait(TIME_LIMIT)
        self.assertEqual(command.raw, data)

    def test_amount_of_input_that_a_command_has_not_read_is_limited(self):
        command = self.start("sleep", "1000")
        given = 0
        with self.assertRaises(AssertionError):
            while True:
                deadline = time.monotonic() + 1
                while command.window.space() < process.INPUT_PIECE:
                    self.assertLess(time.monotonic(), deadline)
                    time.sleep(0.01)
                command.give(bytes(process.INPUT_PIECE))
                given += process.INPUT_PIECE
        self.assertLess(given, 1 << 20)
        # The agent continues to serve other commands.
        self.assertEqual(self.guest.run(["echo", "here"], TIME_LIMIT).out, "here\n")
        command.kill()
        self.assertEqual(command.wait(TIME_LIMIT, check=False).status, 137)

    def test_input_for_a_command_that_has_closed_its_standard_input_is_dropped(self):
        command = self.start("bash", "-c", "exec <&-; read -rt 1000 <> <(:)")
        self.give_all(command, bytes(1 << 20))
        command.kill(signal.SIGTERM)
        self.assertEqual(command.wait(TIME_LIMIT, check=False).status, 143)

    def test_terminal_has_the_requested_size_and_ctrl_c_sends_sigint(self):
        command = self.start("bash", "-c", "test -t 0 && test -t 1 && stty size; read -r; stty size; echo ready; exec sleep 1000", terminal=(31, 97), environment=("TERM=xterm",))
        command.wait_output("31 97\r\n", TIME_LIMIT)
        command.resize(40, 120)
        command.give(b"\r")
        # A shell that waits for a program lets the program handle Ctrl-C.
        command.wait_output("40 120\r\nready", TIME_LIMIT)
        command.give(b"\x03")
        self.assertEqual(command.wait(TIME_LIMIT, check=False).status, 130)

    def test_background_jobs_get_sighup_when_the_shell_on_the_terminal_exits(self):
        command = self.start("bash", "-c", "(trap 'touch %s/hung-up; exit' HUP; echo ready; while :; do sleep 0.1; done) & wait $!" % self.directory.name, terminal=(24, 80))
        command.wait_output("ready", TIME_LIMIT)
        command.kill(signal.SIGHUP)
        command.wait(TIME_LIMIT, check=False)
        wait_until("the job to be hung up", (pathlib.Path(self.directory.name) / "hung-up").exists, TIME_LIMIT)

    def test_endless_output_can_be_interrupted(self):
        command = self.start("yes")
        self.guest.wait_for_event("output", command.is_ready, TIME_LIMIT)
        command.kill(signal.SIGINT)
        while command.status is None:
            self.guest.wait_for_event("output, or the end", command.is_ready, TIME_LIMIT)
            command.drain()
        self.assertEqual(command.wait(TIME_LIMIT, check=False).status, 130)

    def test_commands_have_the_default_sigpipe_action(self):
        command = self.guest.run("yes | head -n 1 >/dev/null; echo ${PIPESTATUS[0]}", TIME_LIMIT)
        self.assertEqual(command.out, "141\n")


class LabShell(AgentCase):
    """`weft lab shell`, between its caller and the agent."""

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-shell-")))
        self.log = self.folder / "node1.log"
        self.server = serving.Server(types.SimpleNamespace(stopping=threading.Event(), guests={"node1": self.guest}, alive=lambda: True, log_of=lambda _: self.log), self.folder / "lab.sock")
        self.addCleanup(self.server.listener.close)
        threading.Thread(target=self.server.accept, daemon=True).start()

    def words(self, *words):
        return [sys.executable, "-B", SESSION / "weft-session", self.folder, "shell", f"host={words[0]}", "--", *words[1:]]

    def shell(self, *words, given=b""):
        return subprocess.run(self.words(*words), input=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIME_LIMIT, check=False)

    def is_running(self, mark):
        """Returns whether a process of the "guest" has this word on its command line."""
        return subprocess.run(["pgrep", "-f", f"[{mark[0]}]{mark[1:]}"], stdout=subprocess.DEVNULL, check=False).returncode == 0

    def test_standard_input_is_passed_to_the_command(self):
        data = random.Random(2).randbytes(300_000)
        done = self.shell("node1", "cat", given=data)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(done.stdout, data)

    def test_command_output_and_exit_status_are_returned(self):
        done = self.shell("node1", "printf '\\377out'; printf '\\376err' >&2; exit 3")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (3, b"\xffout", b"\xfeerr"))

    def test_arguments_that_are_not_utf8_reach_the_command_unchanged(self):
        done = self.shell("node1", "printf", "%s", b"caf\xe9 \xff")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"caf\xe9 \xff", b""))

    def test_crash_of_the_command_is_reported(self):
        """The status is 128+N, and one line has the signal. Signals that show no defect are not reported."""
        for name, number in (("SEGV", 11), ("ABRT", 6), ("BUS", 7)):
            done = self.shell("node1", f"ulimit -c 0; exec bash -c 'kill -{name} $$'")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (128 + number, b"", f"weft lab shell: the command on node1 was ended by SIG{name}\n".encode()))
        done = self.shell("node1", "kill -TERM $$")
        self.assertEqual((done.returncode, done.stderr), (143, b""))
        # A shell that reads commands reports the signal itself.
        done = self.shell("node1", given=b"ulimit -c 0; bash -c 'kill -SEGV $$'\n")
        self.assertEqual((done.returncode, done.stderr.count(b"\n")), (139, 1))
        self.assertNotIn(b"weft lab shell", done.stderr)

    def test_script_on_standard_input_runs_in_one_shell(self):
        done = self.shell("node1", given=b"x=2\nfor i in 1 2; do\n  echo $((i + x))\ndone\ncat <<END\nhere\nEND\nexit 5\n")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (5, b"3\n4\nhere\n", b""))

    def test_closed_standard_input_gives_end_of_file(self):
        done = subprocess.run(["bash", "-c", '"$@" <&-', "bash", *self.words("node1", "cat; echo end")], stdout=subprocess.PIPE, timeout=TIME_LIMIT, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, b"end\n"))

    def test_unknown_host_is_reported(self):
        done = self.shell("node9", "true")
        self.assertEqual((done.returncode, done.stderr), (1, b"weft: there is no host node9: there is node1\n"))

    def test_sigint_to_lab_shell_reaches_the_command_in_the_guest(self):
        running = subprocess.Popen(self.words("node1", "trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.1; done"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.assertEqual(running.stdout.readline(), b"ready\n")
        running.send_signal(signal.SIGINT)
        self.assertEqual(running.communicate(timeout=TIME_LIMIT)[0], b"caught\n")
        self.assertEqual(running.returncode, 7)

    def test_weft_exits_at_once_on_a_second_signal(self):
        running = subprocess.Popen(self.words("node1", "trap 'echo caught' INT TERM; echo ready; while :; do sleep 0.1; done"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.assertEqual(running.stdout.readline(), b"ready\n")
        running.send_signal(signal.SIGINT)
        self.assertEqual(running.stdout.readline(), b"caught\n")
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=TIME_LIMIT)
        self.assertEqual(running.returncode, 143)

    def test_command_gets_sighup_when_its_caller_exits(self):
        mark = f"hung-up-{os.getpid()}-{random.randrange(1 << 30)}"
        running = subprocess.Popen(self.words("node1", f"echo ready; exec -a {mark} sleep 1000"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.assertEqual(running.stdout.readline(), b"ready\n")
        wait_until("the command to run", lambda: self.is_running(mark), TIME_LIMIT)
        running.kill()
        running.communicate()
        wait_until("the command to end", lambda: not self.is_running(mark), TIME_LIMIT)

    def test_closed_output_pipe_stops_the_command(self):
        done = subprocess.run(["bash", "-c", '"$@" | head -n 1; exit ${PIPESTATUS[0]}', "bash", *self.words("node1", "yes")], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIME_LIMIT, check=False)
        self.assertEqual((done.stdout, done.stderr), (b"y\n", b""))
        self.assertEqual(self.shell("node1", "echo here").stdout, b"here\n")

    def test_slow_reader_gets_the_complete_output(self):
        """The output that waits in the lab's process exceeds the maximum size of a frame."""
        running = subprocess.Popen(self.words("node1", "for i in {1..40}; do head -c 100003 /dev/zero; sleep 0.02; done; echo end"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until("output to wait", lambda: any(process.is_full() for process in list(self.guest._processes.values())), TIME_LIMIT)
        out, err = running.communicate(timeout=TIME_LIMIT)
        self.assertEqual((running.returncode, err), (0, b""))
        self.assertEqual((len(out), out[-4:]), (40 * 100003 + 4, b"end\n"))

    def follow(self):
        """`weft lab console --follow`, which has printed the first line."""
        self.log.write_text("first\n")
        following = subprocess.Popen([sys.executable, "-B", SESSION / "weft-session", self.folder, "console", "host=node1", "follow:=true"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.addCleanup(following.kill)
        self.assertEqual(following.stdout.readline(), b"first\n")
        return following

    def test_console_command_follows_the_console_until_a_signal(self):
        following = self.follow()
        with open(self.log, "a") as log:
            log.write("second\n")
        self.assertEqual(following.stdout.readline(), b"second\n")
        following.send_signal(signal.SIGINT)
        self.assertEqual((following.communicate(timeout=TIME_LIMIT), following.returncode), ((b"", b""), 0))

    def test_console_command_follows_the_console_until_its_output_pipe_is_closed(self):
        following = self.follow()
        following.stdout.close()
        self.assertEqual((following.wait(TIME_LIMIT), following.stderr.read()), (0, b""))
        following.stderr.close()

    def test_console_command_follows_the_console_until_the_lab_ends(self):
        following = self.follow()
        self.server.listener.shutdown(socket.SHUT_RDWR)
        self.assertEqual((following.communicate(timeout=TIME_LIMIT), following.returncode), ((b"", b""), 0))

    def test_lab_accepts_clients_again_after_accept_failed_with_emfile(self):
        """accept() fails with EMFILE twice; the shell waits and then runs its command."""
        listener, failures = self.server.listener, [OSError(errno.EMFILE, "Too many open files")] * 2
        self.server.listener = types.SimpleNamespace(accept=lambda: self.fail_or_accept(failures, listener), close=listener.close)
        # The thread that accepts is still in the real listener's accept(), which this client ends.
        self.assertEqual(self.shell("node1", "true").returncode, 0)
        self.assertEqual(self.shell("node1", "echo", "hello").stdout, b"hello\n")
        self.assertEqual(failures, [])

    @staticmethod
    def fail_or_accept(failures, listener):
        if failures:
            raise failures.pop()
        return listener.accept()

    def test_command_fails_if_its_guest_was_killed(self):
        self.agent.kill()
        self.agent.wait()
        self.guest._agent.shutdown(socket.SHUT_RDWR)
        done = self.shell("node1", "true")
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertRegex(done.stderr, rb"^weft: node1 was killed by SIGKILL while waiting for the agent to read a command: "
                                      rb"`weft lab console node1` shows why, `weft lab restart node1` starts it again\n$")

    def test_command_fails_if_its_guest_is_removed(self):
        """A guest is closed, for instance, if `weft lab apply` removes its host."""
        running = subprocess.Popen(self.words("node1", "echo ready; exec cat"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(running.stdout.readline(), b"ready\n")
        self.guest._monitor = types.SimpleNamespace(close=lambda: None)
        self.guest._keep_log = True
        self.guest.close()
        _, err = running.communicate(b"more\n", timeout=TIME_LIMIT)
        self.assertEqual((running.returncode, err), (1, b"weft: node1 has been closed\n"))

    def test_stalled_guest_does_not_delay_other_guests(self):
        """The agent of a malicious guest does not read, so its port is full."""
        malicious = Guest("malicious", kernel=types.SimpleNamespace(variant="stock", native=False))
        self.addCleanup(malicious.log.unlink)
        self.addCleanup(malicious._errors.close)
        malicious._process = types.SimpleNamespace(poll=lambda: None, wait=lambda timeout: None)
        malicious._agent, far = socket.socketpair()
        self.addCleanup(malicious._agent.close)
        self.addCleanup(far.close)
        self.server.lab.guests["malicious"] = malicious
        clients = []
        for _ in range(16):     # all lines together exceed the socket's buffer
            clients.append(subprocess.Popen(self.words("malicious", "true", "x" * 100_000), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            self.addCleanup(clients[-1].wait)
            self.addCleanup(clients[-1].kill)
        wait_until("the port to be full", malicious._sending.locked, TIME_LIMIT)
        self.assertEqual(self.shell("node1", "echo here").stdout, b"here\n")

    def test_client_that_violates_the_protocol_is_disconnected(self):
        for frame in (process.HEADER.pack(process.INPUT_MOST + 1, 0, process.INPUT) + bytes(process.INPUT_MOST + 1), process.HEADER.pack(0, 0, 99),
                      process.HEADER.pack(1, 0, process.KILL) + b"x", process.HEADER.pack(0xffffffff, 0, process.INPUT)):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(self.folder / "lab.sock"))
                client.sendall(b'{"host": "node1", "words": ["sleep", "1000"]}\n' + frame)
                client.settimeout(TIME_LIMIT)
                _, kind, data = process.read_frame(client.makefile("rb"))
                self.assertEqual((kind, data), (process.EXIT, struct.pack("<I", 128 + signal.SIGHUP)))
        for line in (b"\n", b"{}\n", b"[1]\n", b'{"host": [], "words": 3}\n',
                     b'{"host": "node1", "words": [], "terminal": [-1, 80]}\n', b'{"host": "node1", "words": ["true"], "terminal": [1, 2, 3]}\n', b"\xff\n"):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(self.folder / "lab.sock"))
                client.sendall(line)
                client.settimeout(TIME_LIMIT)
                client.recv(4096)

    def test_terminal_is_restored_after_the_command(self):
        near, far = pty.openpty()
        self.addCleanup(os.close, near)
        set_size(near, 33, 101)
        before = termios.tcgetattr(near)
        environment = {**os.environ, "TERM": "vt100"}
        running = subprocess.Popen(self.words("node1"), stdin=far, stdout=far, stderr=far, env=environment, start_new_session=True,
                                   preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(far)
        seen = bytearray()

        def read():
            with contextlib.suppress(OSError):
                while data := os.read(near, 4096):
                    seen.extend(data)

        threading.Thread(target=read, daemon=True).start()

        def expect(text):
            wait_until(f"{text} on the terminal", lambda: text in seen, TIME_LIMIT)

        os.write(near, b"PS1='<''> '; echo \"$TERM $(stty size)\"\r")
        expect(b"vt100 33 101\r\n")
        set_size(near, 20, 60)
        os.kill(running.pid, signal.SIGWINCH)
        os.write(near, b"until [ \"$(stty size)\" = '20 60' ]; do sleep 0.1; done; echo re''sized\r")
        expect(b"resized\r\n")
        # Ctrl-C stops the job in the guest, but neither its shell nor the client.
        mark = f"terminal-{os.getpid()}-{random.randrange(1 << 30)}"
        os.write(near, f"(exec -a {mark} sleep 1000)\r".encode())
        wait_until("the job to run", lambda: self.is_running(mark), TIME_LIMIT)
        os.write(near, b"\x03")
        expect(b"^C")
        os.write(near, b"echo sta''tus $?; exit 9\r")
        expect(b"status 130\r\n")
        self.assertEqual(running.wait(TIME_LIMIT), 9)
        self.assertEqual(termios.tcgetattr(near), before)

    def test_terminal_is_restored_when_a_second_signal_ends_weft(self):
        near, far = pty.openpty()
        self.addCleanup(os.close, near)
        before = termios.tcgetattr(near)
        running = subprocess.Popen(self.words("node1", "trap '' HUP; trap 'echo cau''ght' TERM; echo re''ady; while :; do sleep 0.1; done"), stdin=far, stdout=far, stderr=far, start_new_session=True,
                                   preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(far)
        read_until(near, b"ready")
        self.assertNotEqual(termios.tcgetattr(near), before)
        running.send_signal(signal.SIGTERM)
        read_until(near, b"caught")
        running.send_signal(signal.SIGTERM)
        self.assertEqual(running.wait(TIME_LIMIT), 143)
        self.assertEqual(termios.tcgetattr(near), before)


class WeftRun(AgentCase):
    """`weft run` with one guest, whose agent is a process of this host, in a process of its own."""

    PROGRAM = """
import pathlib, signal, sys, types
sys.path[:0] = PATHS
import running, streams_test
from lab.errors import reported

class Guest(streams_test.AgentCase):
    program = pathlib.Path(AGENT)
    def runTest(self):
        guest = self.guest
        guest.sync_log, guest.new_reports = lambda: "", lambda: []
        class Lab:
            guests = {"node1": guest}
            def __init__(self, *_): pass
            def __enter__(self): return self
            def __exit__(self, *_): pass
            def up(self, check): check(["node1"])
            def report(self, text): pass
            def look_after(self, report): pass
        running.Lab, running.SCRIPT = Lab, FOLDER + "/script"
        args = types.SimpleNamespace(on=None, script=None, words=sys.argv[1:], logs=None, weftd=None, lab=None, bare=True, card=None, no_restart=None, timeout=None, quiet=True)
        running.interruption.watch(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        with reported("weft"):
            self.status = running.run(args, None)

case = Guest()
case.setUp()
try:
    case.runTest()
finally:
    case.doCleanups()
sys.exit(case.status)
"""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-run-test-")))

    def command(self, *words):
        head = f"PATHS = {[str(HERE), *sys.path[:2]]!r}\nAGENT = {str(self.program)!r}\nFOLDER = {str(self.folder)!r}\n"
        return [sys.executable, "-Bc", head + self.PROGRAM, *words]

    def on_terminal(self, *words):
        """Starts it on a terminal of its own, as an interactive user does; returns the process and the terminal's other side."""
        near, far = pty.openpty()
        self.addCleanup(os.close, near)
        set_size(near, 33, 101)

        def as_from_a_login():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            signal.signal(signal.SIGINT, signal.SIG_DFL)    # a test that runs in the background ignores SIGINT
        running = subprocess.Popen(self.command(*words), stdin=far, stdout=far, stderr=far, env={**os.environ, "TERM": "vt100"}, start_new_session=True,
                                   preexec_fn=as_from_a_login)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        os.close(far)
        return running, near

    def test_interactive_shell_gets_type_size_and_ctrl_c_of_the_callers_terminal(self):
        running, terminal = self.on_terminal("bash", "--norc")
        before = termios.tcgetattr(terminal)
        os.write(terminal, b"PS1='<''> '; echo \"$TERM $(stty size)\"\r")
        read_until(terminal, b"vt100 33 101\r\n")
        self.assertFalse(termios.tcgetattr(terminal)[3] & termios.ECHO, "the terminal is in raw mode")
        set_size(terminal, 20, 60)
        os.kill(running.pid, signal.SIGWINCH)
        os.write(terminal, b"until [ \"$(stty size)\" = '20 60' ]; do sleep 0.1; done; echo re''sized\r")
        read_until(terminal, b"resized\r\n")
        # Ctrl-C interrupts the job in the guest, and neither its shell nor weft. The job itself announces that it runs: if the shell did, it might get the
        # signal before it has put the job in the foreground, and would wait for it.
        os.write(terminal, b"(echo be''gun; exec sleep 1000)\r")
        read_until(terminal, b"begun\r\n")
        os.write(terminal, b"\x03")
        read_until(terminal, b"^C")
        os.write(terminal, b"echo sta''tus $?; exit 9\r")
        read_until(terminal, b"status 130\r\n")
        self.assertEqual(running.wait(TIME_LIMIT), 9)
        self.assertEqual(termios.tcgetattr(terminal)[3], before[3] | termios.ECHO)

    def test_exit_status_of_a_command_on_a_terminal_is_returned(self):
        """bash has status 127 for a command that is not found, and 126 for one that cannot be executed."""
        for words, status, said in ((["exit 5"], 5, b""), (["/nowhere"], 127, b"No such file or directory"), (["/etc/passwd"], 126, b"Permission denied"),
                                    (["exec bash -c 'ulimit -c 0; kill -SEGV $$'"], 139, b"weft run: the command on node1 was ended by SIGSEGV\r\n")):
            with self.subTest(words):
                running, terminal = self.on_terminal(*words)
                if said:
                    read_until(terminal, said)
                self.assertEqual(running.wait(TIME_LIMIT), status)

    def test_exit_status_of_a_command_without_a_terminal_is_returned(self):
        for word, status in (("/nowhere", 127), ("/etc/passwd", 126)):
            done = subprocess.run(self.command(word), stdin=subprocess.DEVNULL, capture_output=True, timeout=TIME_LIMIT, check=False)
            self.assertEqual((done.returncode, done.stdout), (status, b""), done.stderr)


class BackgroundTerminal(unittest.TestCase):
    def test_weft_reads_a_terminal_that_is_not_its_controlling_terminal(self):
        """Such a terminal has no foreground process group and does not stop a reader, so it is read."""
        near, far = pty.openpty()
        self.addCleanup(os.close, near)
        program = f"import sys; sys.path[:0] = {sys.path[:2]!r}; import streams, threading; done = threading.Event()\n" \
                  "streams.feed(threading.Condition(), lambda: 100, lambda: False, lambda data: (print(data, streams.Terminal.there()), done.set()))\ndone.wait(60)"
        running = subprocess.Popen([sys.executable, "-Bc", program], stdin=far, stdout=far, stderr=far, start_new_session=True)
        os.close(far)
        os.write(near, b"line\n")
        self.assertEqual(running.wait(TIME_LIMIT), 0)
        read_until(near, b"b'line\\n' True")

    def test_weft_in_the_background_does_not_read_the_terminal(self):
        """Reading would stop the job by SIGTTIN, so weft treats the input as empty."""
        near, far = pty.openpty()
        self.addCleanup(os.close, near)
        program = f"import sys; sys.path[:0] = {sys.path[:2]!r}; import streams, threading; given = []; done = threading.Event()\n" \
                  "streams.feed(threading.Condition(), lambda: 1, lambda: False, lambda data: (given.append(data), done.set()))\n" \
                  "done.wait(60); sys.stdout.write(f'{given} {streams.Terminal.there()}')"
        output = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "output"
        running = subprocess.Popen(["bash", "-mc", f'"$0" -Bc "$1" >{output} & wait', sys.executable, program], stdin=far, stdout=far, stderr=far, start_new_session=True,
                                   preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(far)
        self.assertEqual(running.wait(TIME_LIMIT), 0)
        self.assertEqual(output.read_text(), "[b''] False")


class TerminalResize(unittest.TestCase):
    PROGRAM = """
import os, signal, sys, threading
sys.path[:0] = PATHS
import streams
sending, done, calls = threading.Lock(), threading.Event(), []

def resized(rows, columns):
    with_lock = sending.acquire(timeout=5)
    calls.append((rows, columns, with_lock))
    if len(calls) == 1:
        os.kill(os.getpid(), signal.SIGWINCH)
    if len(calls) == 2:
        done.set()
    if with_lock:
        sending.release()

with streams.Terminal(resized):
    os.kill(os.getpid(), signal.SIGWINCH)
    done.wait(60)
print(calls)
"""

    def test_second_terminal_resize_waits_until_the_first_resize_is_sent(self):
        """The window changes again while the former change is sent to the guest, with the lock that frames to the guest need."""
        near, far = pty.openpty()
        self.addCleanup(os.close, near)
        set_size(near, 33, 101)
        running = subprocess.Popen([sys.executable, "-Bc", f"PATHS = {[str(HERE), *sys.path[:2]]!r}\n{self.PROGRAM}"], stdin=far, stdout=far, stderr=far,
                                   start_new_session=True)
        os.close(far)
        read_until(near, b"[(33, 101, True), (33, 101, True)]")
        self.assertEqual(running.wait(TIME_LIMIT), 0)


if __name__ == "__main__":
    unittest.main()
