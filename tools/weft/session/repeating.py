# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Implements `weft run --deterministic`: a lab in virtual time, in which the same seed gives an identical run, down to the last packet. The actions
of the options --at, --capture and --timeout are scheduled before the run starts, so that they happen at the same virtual time in each run."""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import stack
from guest_setup import Setup
from lab import own_uml, shared_time
from lab.errors import LabError, printable
from running import KERNEL_REPORT, GUEST_DIED, REFUSED, TIMED_OUT, Printer, check_script, scripts_of

DEFAULT_KERNEL = "um"
LARGEST_SEED = 0xFFFFFFFF
MOST_SECONDS = 600      # seconds of real time for up to 16 guests; a lab with N times as many guests gets N times as long
GUESTS_OF_MOST_SECONDS = 16


def _request(what):
    """Returns the request to weftd for a change like "link set node1 loss=0.1" or "card fault node1 command-nth count=7"."""
    noun, verb, *rest = what.split()
    if noun not in ("card", "sm"):
        request = {"command": f"{noun}.{verb}"}
        if noun == "link":
            request["link"], *rest = rest
        if rest:
            request["settings"] = dict(setting.split("=", 1) for setting in rest)
        return request
    request = {"command": f"{noun}.{verb.replace('-', '_') if noun == 'card' else verb}"}
    for name in ("host", "fault")[:{"fault": 2, "random-faults": 1}.get(verb, 0)]:
        request[name], *rest = rest
    return {**request, **{name.replace("-", "_"): int(value, 0) for name, value in (setting.split("=", 1) for setting in rest)}}


def event(text):
    """Returns (seconds, request) for an argument of --at: "2.5 link down node1", "3 link set node1 loss=0.1", "4 card fault node1 interrupt",
    "5 sm renumber", or a time and a request as on the control socket."""
    when, _, what = text.partition(" ")
    try:
        seconds = float(when)
        if what.lstrip().startswith("{"):
            return seconds, json.loads(what)
        return seconds, _request(what)
    except ValueError:
        raise LabError(f"--at {text!r} is not a time and a change", 'an example is "2.5 link down node1"') from None


def _kernel(settings):
    name = DEFAULT_KERNEL if settings.kernel == "stock" else settings.kernel
    return own_uml.named(name)


def time_limit(guests):
    """Returns the seconds of real time after which a lab with this number of guests is ended."""
    return MOST_SECONDS * max(1, guests / GUESTS_OF_MOST_SECONDS)


def _run(lab, guests, logs):
    """Runs the lab; guests: a function that returns the number of its guests. Its logs are always kept: in the requested directory, or, if the lab did not finish, in one that the error message contains."""
    try:
        return shared_time.run(lab, lambda: time_limit(guests()))
    except LabError as error:
        logs = logs or pathlib.Path(tempfile.mkdtemp(prefix="weft-logs-"))
        raise LabError(f"{error}; logs in {logs}") from None
    finally:
        if logs:
            keep(lab, logs)


def keep(lab, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for log in lab.directory.glob("*.log"):
        (folder / log.name).write_bytes(log.read_bytes())


def run(args, settings):
    check_script(args)
    seed = args.seed if args.seed is not None else random.randrange(LARGEST_SEED)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="weft-run-"))
    events = [event(text) for text in args.at or ()]
    if args.capture:
        events.insert(0, (0, {"command": "capture.start", "link": "all", "file": str(args.capture.absolute())}))
    if args.timeout:
        events.append((args.timeout, {"command": "shutdown"}))
    try:
        scripts = {}
        kernel = _kernel(settings)
        setup = Setup(args.stack, kernel, directory / "modules") if args.stack and not args.bare else None

        def of(fabric):
            scripts.update(scripts_of(args, [host["name"] for host in shared_time.hosts_of(fabric)]))
            before = setup.scripts(fabric) if setup else {}
            return {host: before.get(host, "") + scripts.get(host, "true\n") for host in {**before, **scripts}}

        if args.card:
            args.lab = directory / "lab.toml"
            args.lab.write_text(stack.two_hosts(args.card))
        lab = shared_time.Lab(directory / "lab", args.weftd, kernel, of, seed, lab_file=args.lab, share=settings.share,
                              modules=setup and setup.modules, events=tuple(events), append=settings.append, log_level="trace" if args.logs else "info")
        if not args.quiet:
            print(f"seed {seed:#x}", file=sys.stderr, flush=True)
        done = _run(lab, lambda: len(scripts), args.logs)
    finally:
        subprocess.run(["rm", "-rf", directory], check=False)
    printer = Printer(len(scripts) > 1, sys.stdout.buffer, sys.stderr.buffer)
    for host in scripts:
        printer.write(host, done.out[host].encode(), done.err[host].encode())
        printer.finish(host)
    return _status(done, scripts)


def _status(done, scripts):
    """Prints the errors; returns the exit status, as for any other `weft run`."""
    cut_short = [host for host in scripts if done.status[host] is None]
    if cut_short:
        print(f"weft run: {cut_short[0]} did not finish: {done.reason}", file=sys.stderr)
    elif done.failed:
        print(f"weft run: the scripts have ended, and then the lab failed: {done.reason}", file=sys.stderr)
    for host, found in done.reports.items():
        if found:
            print(printable(f"weft run: the kernel of {host} reported:\n" + "\n".join(found)), file=sys.stderr)
    if any(done.reports.values()):
        return KERNEL_REPORT
    if done.reason.startswith(shared_time.EVENT_REFUSED):
        return REFUSED
    if cut_short and done.reason == shared_time.TIME_IS_UP:
        return TIMED_OUT
    if cut_short or done.failed:
        return GUEST_DIED
    return next((done.status[host] for host in scripts if done.status[host]), 0)
