# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs a lab over several hosts. Each place of the lab file is a part of the fabric with its guests, and runs on a host of its own (remote_place.py).
This module starts the places, and presents them as one lab to `weft run` and `weft lab`.
"""
import contextlib
import dataclasses
import ipaddress
import os
import pathlib
import secrets
import sys
import threading
import time

import channel
import hosts_file
import running
import serving
import stack
import starters
import whole
from lab import kernels
from lab.errors import LabError, printable
from labs import interruption, no_host
from place_connection import Place
from place_guest import RemoteGuest
from place_plan import has_places, make_plan
from place_server import PlacedServer
from remote_place import ALIVE_INTERVAL, LONGEST_LAB, MOST_PORTS, PROTOCOL, SILENCE
from running import GUEST_DIED, KERNEL_REPORT, REFUSED
from weftd_process import is_served

KEY_BYTES = 32
PORTS_TIMEOUT = 90    # seconds until places have found ports for their trunks
SERVE_TIMEOUT = 90    # seconds until weftd serves all places
END_TIMEOUT = 60      # seconds that places have to end and to send their logs
MOST_NOTES = 100      # that were not reported yet
KILL_SECONDS = 15     # that the starter's programs have to exit after the places have ended
PORT_ATTEMPTS = 100
REMEDY_FOR_ADDRESS = "write one after the host in the file of --hosts, or as the place's address in the lab file"
REMEDY_FOR_SLURM = "write one as the place's address in the lab file"


def wanted(args):
    """Returns whether the lab runs on several hosts."""
    return bool(args.hosts or args.slurm)


class PlacedLab:
    """A lab over several hosts. Created, started and closed on the main thread, like a labs.Lab."""

    def __init__(self, directory, logs, args, settings, report, command):
        """command: "up" or "run"."""
        self.directory = directory
        self.logs = logs
        self.guests = {}
        self.places = []
        self.logs_wanted = args.logs is not None
        self.reported = set()       # by verify()
        self.stopping = threading.Event()
        self.weftd = _NoDaemon()
        self._args = args
        self._settings = settings
        self._report = report
        self._command = command
        self._changed = threading.Condition(threading.RLock())
        self._notes = []
        self._starter = None
        self._whole = None
        self._closed = False
        self._begun = time.monotonic()

    def report(self, text):
        self._report(f"[{time.monotonic() - self._begun:5.1f} s] {text}")

    def missing(self):
        """Returns what is missing of the logs, in words, after close()."""
        return [text for place in self.places for text in place.missing()]

    # -- start ----------------------------------------------------------------------------------

    def up(self, check=lambda _: None):
        """Starts all places and their guests. check(names of hosts): called before any guest boots; it may raise an exception."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.logs.mkdir(parents=True, exist_ok=True)
        settings = self._settings_for_others()
        text, plan = self._plan()
        self._starter.start(self._receive, self._end)
        for place in self.places:
            threading.Thread(target=self._keep_alive, args=(place,), daemon=True).start()
        self._await("the hosts to answer", self._starter.connect_timeout, lambda place: place.hello)
        self._check_versions()
        peers = self._find_addresses()
        key = secrets.token_bytes(KEY_BYTES)
        for place in self.places:
            place.try_to_send({"start": {"name": place.name, "places": 0 if has_places(text) else len(plan), "lab": text, "peers": peers, "key": channel.to_text(key), "settings": settings,
                                         "bare": bool(self._args.bare), "managed": any(place.manages for place in plan), "restart": not self._args.no_restart,
                                         "line": self._starter.longest, "command": self._command}})
        self._await("weftd to serve all places", SERVE_TIMEOUT, lambda place: place.guests is not None)
        hosts = [(host, place) for place in self.places for host in place.guests]
        check([host for host, _ in hosts])
        self.guests = {host: RemoteGuest(host, place) for host, place in hosts}
        self._serve_whole()
        for place in self.places:
            place.try_to_send({"boot": True})
        self._await("the guests", None, lambda place: place.up)

    def _serve_whole(self):
        """Serves the control socket of the whole lab."""
        path = self.directory / serving.CONTROL
        if is_served(path):
            raise LabError(f"another weftd serves {self.directory}", "end it, or choose another --socket-dir")
        topology = whole.Topology(self.places)
        for place in self.places:
            place.topology = topology
        self._whole = whole.Socket(path, whole.MOST_CLIENTS, lambda client: whole.serve_client(topology, client))

    def _settings_for_others(self):
        """Returns the guests' settings. Files have the same paths on all hosts, and those of this command's directory become absolute."""
        settings = dataclasses.asdict(self._settings)
        for name in ("modules", "initrd", "share"):
            if settings[name]:
                settings[name] = os.path.abspath(settings[name])
        if settings["kernel"] not in kernels.VARIANTS:
            settings["kernel"] = os.path.abspath(settings["kernel"])
        return settings

    def _plan(self):
        """Reads the lab and the hosts, and makes the starter; returns (the text of the lab file, its places)."""
        args = self._args
        lines = hosts_file.read(args.hosts) if args.hosts else None
        count = int(len(lines) if lines else args.nodes or starters.nodes_of(os.environ) or 0)
        if not count:
            raise LabError("the number of hosts is not known", "give it by --nodes, or call this in an allocation of Slurm")
        if args.lab:
            data, lab_file = pathlib.Path(args.lab).read_bytes(), args.lab
            if len(data) > LONGEST_LAB:
                raise LabError(f"{args.lab} is longer than {LONGEST_LAB >> 20} MiB")
            try:
                text = data.decode()
            except UnicodeDecodeError:
                raise LabError(f"{args.lab} is not text in UTF-8") from None
        else:
            # The name must not be one that a user would give a file, because the directory may belong to the user.
            text, lab_file = stack.host_in_each_place(args.card or stack.default_model(self._settings, args.bare) or "mlx4", count), self.directory / ".weft-places.toml"
            lab_file.write_text(text, encoding="utf-8")
        try:
            plan = make_plan(args.weftd, lab_file, 0 if has_places(text) else count)
        finally:
            if not args.lab:
                lab_file.unlink(missing_ok=True)
        weft = args.remote_weft or "weft"
        if lines:
            assigned = hosts_file.assign(lines, [place.name for place in plan], args.hosts)
            self._starter = starters.Ssh(args.ssh or "ssh -o BatchMode=yes", weft, [assigned[place.name] for place in plan])
        elif count != len(plan):
            raise LabError(f"the lab has {len(plan)} places, and there are {count} nodes")
        else:
            self._starter = starters.Slurm(args.srun or "srun", weft, len(plan))
        self.places = [Place(number, place, host, self._starter, self._changed, self.report, self._take_note, self.logs)
                       for number, (place, host) in enumerate(zip(plan, self._starter.hosts))]
        return text, plan

    def _check_versions(self):
        for place in self.places:
            # Slurm chooses the host.
            if self._args.slurm:
                place.host = printable(place.hello["node"])
            if (place.hello["protocol"], place.hello["version"]) != (PROTOCOL, self._args.version or ""):
                raise LabError(f"{place.label()}: its weft has version {printable(place.hello['version'])}, and this one {self._args.version}", "install the same version on all hosts")

    def _find_addresses(self):
        """Determines where each place listens for trunks."""
        for place in self.places:
            given = self._starter.address(place.number)
            place.address = given[0] or place.plan.address or place.hello["address"]
            place.port = given[1] or (place.plan.port if not given[0] or given[0] == place.plan.address else None)
        listening = [place for place in self.places if place.plan.listening]
        known = [ipaddress.ip_address(place.address).is_loopback for place in self.places if place.address]
        remedy = REMEDY_FOR_SLURM if isinstance(self._starter, starters.Slurm) else REMEDY_FOR_ADDRESS
        for place in listening:
            if not place.address:
                raise LabError(f"{place.label()}: its address is not known", remedy)
            if ipaddress.ip_address(place.address).is_loopback and not all(known):
                raise LabError(f"{place.label()}: the other hosts cannot reach its address {place.address}", remedy)
            if place.plan.listening > MOST_PORTS:
                raise LabError(f"the place {place.name} has too many trunks")
        # Several places may run on one host, and a port that one has found is free until its weftd listens.
        unknown = [place for place in listening if not place.port]
        for _ in range(PORT_ATTEMPTS):
            for place in unknown:
                place.try_to_send({"reserve": place.plan.listening, "address": place.address})
            self._await("ports for the trunks", PORTS_TIMEOUT, lambda place: place.port or place not in listening)
            again = [place for place in unknown if self._overlaps(place, listening)]
            if not again:
                break
            # One at a time, since the others keep theirs.
            unknown = again[:1]
            unknown[0].port = None
        else:
            raise LabError(f"{unknown[0].label()}: there are no free ports for its trunks")
        return [f"{place.name}={hosts_file.together(place.address, place.port)}" for place in listening]

    @staticmethod
    def _overlaps(place, others):
        """Returns whether another place with the same address has one of a place's ports."""
        return any(other is not place and other.address == place.address and place.port < other.port + other.plan.listening and other.port < place.port + place.plan.listening
                   for other in others)

    def _await(self, what, seconds, condition):
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            with self._changed:
                self._raise_failure()
                missing = [place for place in self.places if not condition(place)]
                if not missing:
                    return
                if deadline and time.monotonic() > deadline:
                    raise LabError(f"waited {seconds} s for {what}: {', '.join(place.label() for place in missing)}")
                self._changed.wait(0.5)
            interruption.check()
            self._check_silence()

    def _raise_failure(self):
        failed = [place for place in self.places if place.failure]
        if failed:
            first = min(failed, key=lambda place: place.failed_at)
            said = [text for line in self._starter.said() if (text := printable(line)) not in first.failure]
            raise LabError("\n".join([f"{first.label()}: {first.failure}", *said]))

    def _check_silence(self):
        for place in self.places:
            if place.is_silent() and not place.failure:
                place.fail(f"nothing has arrived from it for {SILENCE} s")

    def _keep_alive(self, place):
        while not self._closed and not place.gone:
            time.sleep(ALIVE_INTERVAL)
            place.try_to_send({"alive": True})

    def _receive(self, number, line):
        self.places[number].receive(line)

    def _end(self, number, reason):
        self.places[number].end(reason)
        self.weftd.notify()

    def _take_note(self, text):
        with self._changed:
            self._notes[:] = [*self._notes, text][-MOST_NOTES:]
        self.weftd.notify()

    # -- while it runs --------------------------------------------------------------------------

    def look_after(self, report=None):
        """Raises LabError if a place has failed. report(text) gets what places have reported."""
        with self._changed:
            notes, self._notes[:] = list(self._notes), []
            for text in notes:
                (report or self.report)(text)
            self._raise_failure()
        self._check_silence()

    def place_of(self, host):
        guest = self.guests.get(host)
        if not guest:
            raise no_host(host, self.guests)
        return guest._place

    def verify(self, report):
        """Asks all places for reports of kernels, guests that have exited and consoles that are incomplete; returns the status as of `weft lab
        check`."""
        def once(text):
            self.reported.add(text)
            report(text)

        statuses = [place.ask_for_status({"check": True}, once) for place in self.places]
        return next((status for status in (KERNEL_REPORT, GUEST_DIED) if status in statuses), next((status for status in statuses if status), 0))

    def restart(self, names, report):
        for name in names:
            self.place_of(name)
        for place in self.places:
            if hosts := [name for name in names if self.place_of(name) is place]:
                place.ask_for_status({"restart": hosts}, report)

    # -- end ------------------------------------------------------------------------------------

    def close(self):
        """Ends all places, and copies their logs. Whatever a failed place leaves behind is removed by its own host."""
        if self._whole:
            self._whole.close()
        if self._closed or not self._starter:
            return
        try:
            for place in self.places:
                place.ending = True
                if not place.is_silent():
                    place.try_to_send({"down": True})
            deadline = time.monotonic() + END_TIMEOUT
            with self._changed:
                # A place without a first message has no logs. It ends when its input is closed.
                while not all(place.ended or place.gone or place.hello is None or place.is_silent() for place in self.places) and time.monotonic() < deadline:
                    self._changed.wait(0.5)
            for place in self.places:
                if place.hello is not None and not place.ended:
                    place.fail("it has not ended in time, and logs may be missing")     # unless it has failed already
        finally:
            self._closed = True
            # A program that waits in a queue or for a connection does not notice that its input was closed.
            self._starter.finish(KILL_SECONDS if any(place.hello for place in self.places) else 0)
            for place in self.places:
                place.streams.break_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.close()


class _NoDaemon:
    """Stands for the weftd of a labs.Lab, of which a Server wants to know when it has exited."""

    def __init__(self):
        self.notify = lambda: None


def verify(lab, _printed=None):
    """Does the same as running.verify() for the guests of all places."""
    status = lab.verify(lambda text: print(printable(f"weft run: {text}"), file=sys.stderr))
    return 0 if status == REFUSED and not lab.logs_wanted else status


def up(args, settings):
    return serving.up(args, settings, lambda *given: PlacedLab(*given, "up"), PlacedServer)


def run(args, settings):
    made = []

    def lab_of(*given):
        made.append(PlacedLab(*given, "run"))
        return made[0]

    missing = []
    try:
        status = running.run(args, settings, lab_of, verify)
    finally:
        # The lab has ended, and its places have sent their logs.
        for lab in made:
            missing += lab.missing()
        for text in missing:
            if text in made[0].reported:
                continue
            print(printable(f"weft run: {text}"), file=sys.stderr)
    return status or (REFUSED if missing and args.logs else 0)
