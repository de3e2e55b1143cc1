# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Implements `weft run`, which starts a lab, runs one command in its guests, and stops the lab. weft passes on the command's output, and exits with
its status."""
import contextlib
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import stack
import streams
from lab import DeadlineExceeded, GuestDied
from lab.errors import SIGNALLED, LabError, printable
from lab.waiting import wait_until
from labs import Lab, interruption, no_host, together

PART = re.compile(r"^#@[ \t]*(.*)$")
REFUSED, KERNEL_REPORT, TIMED_OUT, GUEST_DIED = 1, 125, 124, 126
# Signals that the kernel sends to a program because of a defect in it.
CRASHES = {int(number): number.name for number in (signal.SIGILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV, signal.SIGSYS)}
SCRIPT = "/run/weft-script"     # in a guest
NO_LIMIT = 1e6      # seconds, if there is no --timeout
GRACE = 10      # seconds that commands have to exit after a signal


def parts_of(script, hosts):
    """Splits a script by host: the lines before the first line `#@ HOST…` are for all hosts, and the lines after such a line for the hosts in it."""
    parts = {host: [] for host in hosts}
    whose = list(hosts)
    for number, line in enumerate(script.splitlines(), 1):
        begins = PART.match(line)
        if not begins:
            for host in whose:
                parts[host].append(line)
            continue
        whose = begins[1].split()
        unknown = [host for host in whose if host not in parts]
        if unknown or not whose:
            raise LabError(f"line {number} of the script: there is no host {' '.join(unknown) or 'named'}", f"there is {', '.join(parts)}")
    return {host: "\n".join(lines) + "\n" for host, lines in parts.items() if "".join(lines).strip()}


def crash_of(status):
    """Returns the name of the signal that killed a defective program, by its exit status; None if it exited for another reason."""
    return CRASHES.get(status - SIGNALLED)


class Printer:
    """Writes the output of guests. If there are several, each line begins with its guest's name, and lines are whole."""

    def __init__(self, several, out, err):
        self._several = several
        self._streams = (out, err)
        self._rest = {}
        self._lock = threading.Lock()

    def write(self, name, *taken):
        with self._lock:
            for number, data in enumerate(taken):
                if self._several:
                    *lines, self._rest[name, number] = (self._rest.get((name, number), b"") + data).split(b"\n")
                    data = b"".join(name.encode() + b": " + line + b"\n" for line in lines)
                self._streams[number].write(data)
                self._streams[number].flush()

    def finish(self, name):
        """Writes the last line of a guest that did not end it with a line feed."""
        for number in range(len(self._streams)):
            if self._rest.get((name, number)):
                self.write(name, *(b"\n" if number == each else b"" for each in range(len(self._streams))))


def scripts_of(args, hosts):
    """Returns the script of each host."""
    unknown = [host for host in args.on or () if host not in hosts]
    if unknown:
        raise no_host(unknown[0], hosts)
    chosen = args.on or hosts
    if args.script:
        # Bytes that are not UTF-8 reach the guest as they are.
        source = (sys.stdin.buffer.read() if args.script == "-" else pathlib.Path(args.script).read_bytes()).decode(errors="surrogateescape")
        scripts = {host: script for host, script in parts_of(source, hosts).items() if host in chosen}
    else:
        command = shlex.join(args.words) if len(args.words) > 1 else args.words[0]
        scripts = {host: command for host in hosts if host in chosen}
    if not scripts:
        raise LabError("the script contains no commands")
    return scripts


def _start(guest, script, alone, from_input):
    """Starts a script. If it is the only one, it has the caller's standard input or terminal."""
    guest.put(SCRIPT, script)
    if not alone or from_input:
        return guest.spawn(f"exec bash {SCRIPT}")
    if streams.Terminal.there():
        return guest.start_program(["bash", SCRIPT], streams.Terminal.size(), streams.Terminal.environment())
    return guest.start_program(["bash", SCRIPT])


def _collect(guest, process, deadline, timeout, printer):
    """Prints the output of the script until it exits; returns its status."""
    ended = False
    while not ended:
        try:
            guest.wait_for_event("the command's end", process.is_ready, max(0.0, deadline - time.monotonic()) / guest.slowness)
        except DeadlineExceeded:
            raise DeadlineExceeded(f"{guest.name}: waited {timeout:g} s for the command's end") from None
        ended = process.status is not None
        printer.write(guest.name, *process.drain())
    printer.finish(guest.name)
    return process.status


def _pass_on_signal(processes, report):
    """Passes the received signal on to the commands, and waits until they exit; a second signal does not wait."""
    report(f"{signal.Signals(interruption.number).name}: passed on; send it again to end the lab immediately")
    interruption.forget()
    for process in processes.values():
        if process.status is None:
            process.kill(interruption.number)
    try:
        wait_until("the commands to end", lambda: interruption.check() or all(process.status is not None for process in processes.values()), GRACE)
    except DeadlineExceeded:
        pass


def verify(lab, printed=None):
    """Prints the reports of the guests' kernels; returns the exit status for them, or 0. printed: what was printed since a guest has died; None: all are
    expected to be alive."""
    if printed is None:
        together(lab.guests.values(), lambda guest: guest.sync_log())
    return report_kernels(lab.guests.values(), printed or "")


def execute(lab, args, scripts, printer_of, verify_lab=verify):
    """Runs the scripts in a lab that is up; returns the first status, in the order of hosts, that is not 0."""
    printer = printer_of(len(scripts) > 1)
    processes = {host: _start(lab.guests[host], script, len(scripts) == 1, args.script == "-") for host, script in scripts.items()}
    timeout = args.timeout or NO_LIMIT
    deadline = time.monotonic() + timeout
    lab.report(f"runs in {', '.join(scripts)}")
    with contextlib.ExitStack() as stack:
        if len(scripts) == 1 and args.script != "-":
            (process,) = processes.values()
            if streams.Terminal.there():
                stack.enter_context(streams.Terminal(process.resize))
            streams.feed(process.guest.changed, process.window.space, lambda: process.status is not None, process.give)
        try:
            statuses = together([lab.guests[host] for host in scripts],
                                lambda guest: _collect(guest, processes[guest.name], deadline, timeout, printer), lambda: lab.look_after(_warn))
        except KeyboardInterrupt:
            _pass_on_signal(processes, lab.report)
            raise
    lab.report("has run")
    if status := verify_lab(lab):
        return status
    for host in scripts:
        crash = crash_of(statuses[lab.guests[host]])
        if crash:
            print(f"weft run: the command on {host} was ended by {crash}", file=sys.stderr)
    status = next((status for status in (statuses[lab.guests[host]] for host in scripts) if status != 0), 0)
    incomplete = report_incomplete_logs(lab.guests.values(), args.logs)
    return status or incomplete


def _warn(text):
    """Reports a restart of weftd, even with --quiet."""
    print(printable(f"weft run: {text}"), file=sys.stderr, flush=True)


def report_kernels(guests, printed=""):
    """Prints the reports of the guests' kernels that are not in `printed`; returns the exit status for all reports, or 0."""
    status = 0
    for guest in guests:
        if found := guest.new_reports():
            status = KERNEL_REPORT
            if any(report not in printed for report in found):
                print(printable(f"weft run: the kernel of {guest.name} reported:\n" + "\n".join(found)), file=sys.stderr)
    return status


def check_script(args):
    if args.script and args.script != "-" and (not (script := pathlib.Path(args.script)).exists() or script.is_dir()):
        raise LabError(f"there is no script {args.script}")


def incomplete_logs(guests):
    """Returns (guest, message) for each guest whose console could not be written."""
    return [(guest, f"{guest.log} does not contain the whole console of {guest.name}: {guest.console_error()}") for guest in guests if guest.console_error()]


def report_incomplete_logs(guests, asked_for):
    """Reports each guest whose console could not be written completely. Returns 1 if there are any and the user has requested the logs, else 0."""
    incomplete = incomplete_logs(guests)
    for _, text in incomplete:
        print(printable(f"weft run: {text}"), file=sys.stderr)
    return REFUSED if incomplete and asked_for else 0


def make_lab(directory, logs, args, settings, report):
    card = None if args.lab else args.card or stack.default_model(settings, args.bare)
    return Lab(directory, logs, args.weftd, args.lab, settings, args.bare, report, card, not args.no_restart)


def run(args, settings, lab_of=make_lab, verify_lab=verify):
    """lab_of, verify_lab: replacements of make_lab() and verify() for other kinds of labs."""
    check_script(args)
    # A temporary directory keeps the paths of sockets short. Logs are kept only if the user has requested them, or after a failure.
    directory = pathlib.Path(tempfile.mkdtemp(prefix="weft-run-"))
    logs = args.logs or directory / "logs"
    keeping = args.logs is None

    def report(text):
        if not args.quiet:
            print(printable(text), file=sys.stderr, flush=True)

    status = None
    scripts = {}
    try:
        with lab_of(directory, logs, args, settings, report) as lab:
            try:
                # A missing host is reported before any guest boots.
                lab.up(lambda hosts: scripts.update(scripts_of(args, hosts)))
                status = execute(lab, args, scripts, lambda several: Printer(several, sys.stdout.buffer, sys.stderr.buffer), verify_lab)
            except GuestDied as error:
                # Its console shows whether its kernel crashed. The consoles are removed with the lab.
                print(printable(f"weft run: {error}"), file=sys.stderr)
                status = verify_lab(lab, str(error)) or GUEST_DIED
    except LabError as error:
        # The message refers to a console log, which is moved.
        kept = keeping and not interruption.came and _keep(logs)
        raise LabError(str(error).replace(str(logs), str(kept)) if kept else str(error)) from None
    except DeadlineExceeded as error:
        print(printable(f"weft run: {error}"), file=sys.stderr)
        status = TIMED_OUT
    except BrokenPipeError:
        raise   # the reader has closed the output
    except Exception:
        # This is a defect of weft or an error of the host. The consoles show what the guests did before it.
        if keeping and not interruption.came:
            with contextlib.suppress(OSError):      # the file system may be full, which the first error reports
                _keep(logs)
        raise
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print("weft run: interrupted", file=sys.stderr)
        status = SIGNALLED + interruption.number
    finally:
        # A message has referred the user to the log of each weftd that has crashed.
        if keeping and status is not None and (status or any(logs.rglob("weftd-*.log"))) and not interruption.came:
            _keep(logs)
        subprocess.run(["rm", "-rf", directory], check=False)
    return status


def _keep(logs):
    """Copies the logs to a directory that stays, and returns it; None if no guest has booted."""
    if all(file.name == "weftd.log" for file in logs.rglob("*") if not file.is_dir()):
        return None
    kept = pathlib.Path(tempfile.mkdtemp(prefix="weft-logs-"))
    shutil.copytree(logs, kept, dirs_exist_ok=True)
    print(f"weft run: logs are kept in {kept}", file=sys.stderr)
    return kept
