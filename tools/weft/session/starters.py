# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Defines starters, which start the program of each place (`weft lab place`) on its host and are connected to the program's standard input and
output. There are two starters: one uses ssh, the other Slurm's srun. A starter has these members:

    hosts                     contains a name of each place's host, for messages
    longest                   is the maximum length in bytes of a line that a place may send
    connect_timeout           is the number of seconds in which all places must send their first message, or None if there is no limit
    start(receive, ended)     starts the programs. receive(number, line) is called on other threads for each line of a place, and
                              ended(number, reason) once after the last line
    send(number, message)     sends a message to a place, or raises channel.Closed if the program has exited
    said()                    returns messages of the scheduler itself, as lines, which may explain why places have failed
    address(number)           returns the numeric address and the port that the user has given for the place's trunks, each None if not given
    finish(seconds)           closes the programs' standard input, waits until they have exited, and terminates those that have not

start() and finish() are called on the main thread, because the kernel terminates ssh when the thread that started it exits.
"""
import collections
import contextlib
import os
import re
import shlex
import subprocess
import threading
import time

import channel
from lab.errors import LabError, exit_in_words

PLACE_COMMAND = ("lab", "place")
MOST_ERRORS = 20        # lines of standard error that are kept
LONGEST_ERROR = 500     # characters of one
LABEL = re.compile(rb" *([0-9]{1,6}): ?")
# slurmstepd forwards longer lines in several pieces, between which srun may print lines of other tasks.
SRUN_LINE = 900
COMMAND_NOT_FOUND = 127
KILL_TIMEOUT = 5        # seconds
# ssh reports a host that does not answer when its TCP connection has failed, by default after 127 s on Linux.
SSH_TIMEOUT = 180


class _Program:
    """ssh or srun. on_line(bytes) is called for each line of its standard output, and on_end() once after the last one, or when it has exited."""

    def __init__(self, words, on_line, on_end, dies_with_launcher=True):
        """dies_with_launcher: it gets SIGTERM if this process is killed."""
        self._errors = collections.deque(maxlen=MOST_ERRORS)
        # Ctrl-C is for the program that starts this one, which then ends the lab.
        try:
            self._process = subprocess.Popen([*(["setpriv", "--pdeathsig", "TERM"] if dies_with_launcher else []), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                             process_group=0)
        except OSError as error:
            raise LabError(f"{words[0]}: {error.strerror}") from None
        self._writer = channel.Writer(self._process.stdin)
        self._said = threading.Thread(target=self._read_errors, daemon=True)
        self._said.start()
        self._reader = threading.Thread(target=self._read, args=(on_line,), daemon=True)
        self._reader.start()
        threading.Thread(target=self._watch, args=(on_end,), daemon=True).start()

    def send(self, message):
        self._writer.send(message)

    def close_input(self, seconds):
        self._writer.finish(seconds)

    def _read(self, on_line):
        with contextlib.suppress(OSError, ValueError):
            while line := self._process.stdout.readline(channel.LONGEST_LINE + 16):
                on_line(line)

    def _watch(self, on_end):
        while self._reader.is_alive() and self._process.poll() is None:
            self._reader.join(0.5)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(KILL_TIMEOUT)
        # Processes that have inherited the streams may still have them open. They see the end of their input.
        self._reader.join(1)
        self._said.join(1)
        on_end()
        self._writer.finish(0)

    def _read_errors(self):
        with contextlib.suppress(OSError, ValueError):
            while line := self._process.stderr.readline(LONGEST_ERROR):
                if text := line.decode(errors="replace").strip():
                    self._errors.append(text)

    def reason(self, name, keep=lambda line: line):
        """Returns why it has exited, in words. keep(line): the part of a line of standard error that matters, or an empty text."""
        status = self._process.poll()
        ended = "closed its output" if status is None else exit_in_words(status)
        said = [text for line in list(self._errors) if (text := keep(line))]
        hint = []
        if status == COMMAND_NOT_FOUND:
            hint = ["--remote-weft sets the path of weft there"]
        return "\n".join([f"{name} {ended}", *said, *hint])

    def said(self):
        """Returns the last lines of its standard error."""
        return list(self._errors)

    def finish(self, deadline):
        """Waits until the deadline, then terminates it. srun and ssh need time to end what they have started, so SIGKILL comes later."""
        for stop, seconds in ((lambda: None, deadline - time.monotonic()), (self._process.terminate, KILL_TIMEOUT), (self._process.kill, KILL_TIMEOUT)):
            stop()
            try:
                self._process.wait(max(0.0, seconds))
                return
            except subprocess.TimeoutExpired:
                pass


def words_of(command, option):
    """Splits a command of an option as a shell does."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise LabError(f"{option}: {error}") from None
    if not words:
        raise LabError(f"{option} needs a command")
    return words


class Ssh:
    """One ssh for each host."""

    longest = channel.LONGEST_LINE
    connect_timeout = SSH_TIMEOUT

    def __init__(self, command, weft, lines):
        """command: ssh and its options; weft: the program on the hosts; lines: a hosts_file.Line for each place."""
        self._command = words_of(command, "--ssh")
        self._weft = weft
        self._lines = lines
        self._programs = []
        self.hosts = [line.host for line in lines]

    def address(self, number):
        return self._lines[number].address, self._lines[number].port

    def said(self):
        return []

    def start(self, receive, ended):
        # A shell splits the words on the other host.
        remote = shlex.join([self._weft, *PLACE_COMMAND])

        for number, line in enumerate(self._lines):
            def end(number=number):
                ended(number, self._programs[number].reason(os.path.basename(self._command[0])))

            # end() needs the entry, which does not exist before the program has been started.
            ready = threading.Event()
            self._programs.append(_Program([*self._command, line.host, remote], lambda data, number=number: receive(number, data),
                                           lambda end=end, ready=ready: (ready.wait(), end())))
            ready.set()

    def send(self, number, message):
        self._programs[number].send(message)

    def finish(self, seconds):
        deadline = time.monotonic() + seconds
        for program in self._programs:
            program.close_input(max(0.0, deadline - time.monotonic()))
        for program in self._programs:
            program.finish(deadline)


class Slurm:
    """One srun, whose tasks are the places; a task's rank is the number of its place. Each task gets all messages, and ignores those for others."""

    longest = SRUN_LINE
    connect_timeout = None      # a job may wait in a queue

    def __init__(self, command, weft, count):
        self._command = words_of(command, "--srun")
        self._weft = weft
        self._program = None
        self.hosts = [f"task {number}" for number in range(count)]
        self._count = count

    def address(self, number):
        return None, None

    def said(self):
        """Returns the lines of srun and slurmstepd, such as that the job was cancelled, without those of the tasks."""
        lines = self._program.said() if self._program else []
        parts = [(label, line[label.end():] if label else line) for line in lines for label in [LABEL.match(line.encode())]]
        # srun labels the lines of slurmstepd with one of its tasks.
        return [line for label, line in parts if not label or line.startswith("slurmstepd")]

    def start(self, receive, ended):
        def on_line(data):
            label = LABEL.match(data)
            # Without a label, it is not a line of a task. A rank that does not exist is not trusted.
            if label and int(label[1]) < self._count:
                receive(int(label[1]), data[label.end():])

        ready = threading.Event()

        def on_end():
            ready.wait()
            for number in range(self._count):
                def keep(line, number=number):
                    label = LABEL.match(line.encode())
                    return line if not label else line[label.end():] if int(label[1]) == number else ""
                ended(number, self._program.reason(os.path.basename(self._command[0]), keep))

        # After SIGTERM, srun kills the tasks at once, which then cannot remove their files. If this process is killed, the tasks see the end of their
        # input, and srun exits after them.
        self._program = _Program([*self._command, f"--nodes={self._count}", f"--ntasks={self._count}", "--ntasks-per-node=1", "--kill-on-bad-exit=1", "--label",
                                  "--input=all", self._weft, *PLACE_COMMAND, "--slurm"], on_line, on_end, dies_with_launcher=False)
        ready.set()

    def send(self, number, message):
        self._program.send({**message, "to": number})

    def finish(self, seconds):
        deadline = time.monotonic() + seconds
        if self._program:
            self._program.close_input(seconds)
            self._program.finish(deadline)


def nodes_of(environment):
    """Returns the number of nodes of the Slurm job in which this process runs, or None."""
    for name in ("SLURM_JOB_NUM_NODES", "SLURM_NNODES"):
        if environment.get(name, "").isdecimal():
            return int(environment[name])
    return None
