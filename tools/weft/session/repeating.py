# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Implements `weft run --deterministic`: a lab in virtual time, in which the same seed gives an identical run, down to the last packet. The actions
of the options --at, --capture and --timeout are scheduled before the run starts, so that they happen at the same virtual time in each run."""
import contextlib
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import place_plan
import stack
import whole
from guest_setup import Setup
from lab import own_uml, shared_time, timed_places
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


class Places:
    """The places of a lab, which this number of weftds run (--processes)."""

    def __init__(self, weftd, file, processes):
        if not file:
            raise LabError("--processes needs --lab with a lab file that has places", "see weft-lab.toml(5)")
        done = subprocess.run([weftd, "--time-server", "--plan", "json", "--lab", file], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise LabError(done.stderr.strip().removeprefix("weftd: "))
        self._plan = place_plan.read_plan(done.stdout)
        self.names = [place.name for place in self._plan]
        self.processes = processes
        if processes > len(self.names):
            raise LabError(f"--processes {processes}: the lab has only {len(self.names)} places, and a weftd runs at least one")

    def _ends(self, trunk):
        """Returns the ports of a trunk. Its name is "node/port-node/port", and names of nodes may contain "-"."""
        nodes = frozenset().union(*(place.hosts | place.switches for place in self._plan))
        pairs = ((trunk[:at], trunk[at + 1:]) for at, character in enumerate(trunk) if character == "-")
        return next((pair for pair in pairs if all(end.rpartition("/")[0] in nodes for end in pair)), ())

    def _halves(self, link):
        """Returns the names of the places at which a link is; two if it is a trunk, of which the first listens. link: the name of a link, port or node."""
        hosts = frozenset().union(*(place.hosts for place in self._plan))
        found = []
        for place in self._plan:
            for trunk in (trunk for trunk, listens in place.trunks.items() if listens):
                ends = self._ends(trunk)
                if link == trunk or link in ends or (link in hosts and any(end.rpartition("/")[0] == link for end in ends)):
                    found.append((place.name, next(each.name for each in self._plan if each is not place and trunk in each.trunks)))
        if len(found) > 1:
            raise LabError(f"--at: {link} has several links: name a port, as in {link}/1")
        if found:
            return found[0]
        for place in self._plan:
            nodes = place.hosts | place.switches
            if any(link == node or link.startswith(f"{node}/") for node in nodes):
                return (place.name,)
        raise LabError(f"--at: there is no link, port or node '{link}'")

    def event(self, at, request):
        """Returns the events for a scheduled request: it belongs to the place of its link or card, and that of a trunk's link to both places, except faults."""
        noun = str(request.get("command")).partition(".")[0]
        if request.get("command") == "shutdown":
            return [(at, request)]
        if noun == "link":
            places = self._halves(str(request.get("link")))
            settings = request.get("settings")
            if len(places) == 2 and isinstance(settings, dict):
                both = {name: value for name, value in settings.items() if name not in whole.FAULTS}
                requests = [(places[0], request)] + ([(places[1], {**request, "settings": both})] if both else [])
            else:
                requests = [(place, request) for place in places]
        elif noun == "card":
            requests = [(place.name, request) for place in self._plan if request.get("host") in place.hosts]
        elif noun == "sm":
            requests = [(place.name, request) for place in self._plan if place.manages]
        else:
            requests = []
        if not requests:
            raise LabError(f"--at: {json.dumps(request)} belongs to no place of the lab", "in a lab with several places, events are those of links, cards and the subnet manager")
        return [(at, {**each, "place": place}) for place, each in requests]


def _run(lab, guests, logs, places=None):
    """Runs the lab; guests: a function that returns the number of its guests. Its logs are always kept: in the requested directory, or, if the lab did not finish, in one that the error message contains."""
    try:
        if places:
            return timed_places.run(lab, places.names, places.processes, lambda: time_limit(guests()))
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


def _merge_captures(directory, places, target):
    """A place that has been lost before the lab began has no capture."""
    whole.merge_captures([path for place in places.names if (path := directory / f"{place}.pcap").exists()], target)


def run(args, settings):
    check_script(args)
    seed = args.seed if args.seed is not None else random.randrange(LARGEST_SEED)
    places = Places(args.weftd, args.lab, args.processes) if args.processes else None
    events = [event(text) for text in args.at or ()]
    if places:
        events = [each for at, request in events for each in places.event(at, request)]
        if args.capture:
            args.capture.write_bytes(b"")       # an error is reported before the run
    directory = pathlib.Path(tempfile.mkdtemp(prefix="weft-run-"))
    if places and args.capture:
        events[:0] = [(0, {"command": "capture.start", "link": "all", "file": str(directory / f"{place}.pcap"), "place": place}) for place in places.names]
    elif args.capture:
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
        captured = places and args.capture
        try:
            done = _run(lab, lambda: len(scripts), args.logs, places)
        except BaseException:
            if captured:
                with contextlib.suppress(LabError, OSError):
                    _merge_captures(directory, places, args.capture)
            raise
        if captured:
            _merge_captures(directory, places, args.capture)
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
