# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Serves the control socket of a lab that runs on several hosts. It accepts the same requests as weftd's control socket, passes each request on to
the weftds that it concerns, and merges their answers into the answer that a single weftd would give for the whole lab. Therefore clients such as
`weft top` need no change.

The program that starts the lab (places.py) serves this socket, because this program has a connection to every place, and the lab does not outlive it.
The programs that run the places (remote_place.py) serve a socket on their hosts, too, and pass its requests on to the program that has started the
lab.

The entry "missing": [{"place", "host", "reason"}] of an answer lists the places that have not answered in time.
"""
import contextlib
import functools
import heapq
import itertools
import json
import os
import pathlib
import queue
import re
import shutil
import socket
import struct
import tempfile
import threading
import time

import sampling
from channel import Closed, Violation, bytes_of, to_text
from lab.errors import LabError, in_one_line, printable

TIME_LIMIT = 2              # seconds for the answers of all places
RETRY_TIME = 0.1            # seconds until a client is accepted, after this has failed
MOST_REQUEST = 1 << 20      # bytes of a request, as for weftd
MOST_ANSWER = 16 << 20      # bytes of a place's answer
MOST_PASSED = 256 << 20     # bytes of an answer that is passed on
MOST_CLIENTS = 32           # of one socket
MOST_CLIENTS_OF_PLACE = 4   # whose requests a place passes on
MOST_REASON = 300           # characters
MOST_PACKET = 1 << 20       # bytes of a block of a capture
MOST_CAPTURE = 64 << 20     # bytes of each place in a capture that was started on the host of a place
CAPTURE_ROOM = 1 << 20      # that a file may be longer
CAPTURE_PIECE = 1 << 20     # bytes that are read at a time
# The settings of a link that add up if both halves of a trunk have them. Only the listening half gets them, as from the lab file.
FAULTS = {"delay", "jitter", "loss", "duplication", "reordering", "corruption", "silent_corruption", "cm_loss", "cm_duplication", "cm_lateness", "cm_delay",
          "cm_corruption"}
# They would change or end a part of the lab without the others.
REFUSED = {
    "lab.apply": "this is not possible in a lab over several hosts: end it, and start it again",
    "shutdown": "this would end one place of a lab over several hosts: `weft lab down` ends the lab",
}
FIRST_END = re.compile(r"[^/]+/\w+")      # of a link, whose name is that of its ends: node1/1-leaf1/3
NO_STANDARD_OUTPUT = "a capture of a lab over several hosts cannot be written to standard output; write it into a file"
numbers = itertools.count(1)      # of captures


class Refused(Exception):
    """The request cannot be fulfilled; the message is the answer's reason."""


# -- what places answer --------------------------------------------------------------------------

class Optional:
    def __init__(self, shape):
        self.shape = shape


NUMBER = (int, float)
SETTINGS = {str: str}
LINK = {"name": str, "ends": [str], "up": bool, "settings": SETTINGS, "captured_packets": Optional(int)}
PORT = {"name": str, "link": Optional(str), "up": bool, "lid": Optional(int)}
MANAGER = {"node": str, "state": str, "sweeps": int, "complete": bool}
COUNTS = {str: NUMBER}
SHOWN = {
    "seed": str,
    "hosts": [{"name": str, "number": Optional(int), "guid": str, "model": str, "socket": Optional(str), "bus": Optional(str), "guest": bool, "boot": dict, "faults": COUNTS,
               "armed": COUNTS, "ports": [PORT], "ethernet": Optional(dict)}],
    "switches": [{"name": str, "guid": str, "lid": int, "ports": [PORT]}],
    "links": [LINK],
    "trunks": [{"name": str, "end": str, "role": str, "address": str, "connected": bool, "ethernet": Optional(str), "peer": Optional(str), "reason": Optional(str), "refusal": Optional(str),
                "connections": int, "refused": int, "violations": int}],
    "subnet_manager": Optional(MANAGER), "subnet_managers": Optional([MANAGER]),
    "lids": Optional({str: [int]}),
    "ethernet": {"switches": [{"name": str, "addresses": int}], "attachments": [{"name": str, "guest": bool, "socket": Optional(str)}], "links": [LINK]},
}
# What has not changed since the generation "since" is missing; see sampling.merged().
SAMPLE = {
    "time": NUMBER, "generation": Optional(int), "since": Optional(int),
    "columns": Optional([str]), "ports": {str: [NUMBER]}, "down": Optional([str]), "guests": Optional([str]), "subnet_manager": Optional(MANAGER),
    "cards": Optional({str: COUNTS}),
    "ethernet": {"columns": Optional([str]), "ports": {str: [NUMBER]}, "links": Optional({str: bool}), "attached": Optional([str])},
}
LOG = {"last": int, "lines": [{"number": int, "time": str, "level": str, "part": str, "text": str}]}
ANSWERS = {"fabric.show": SHOWN, "fabric.sample": SAMPLE, "counters": {str: COUNTS}, "counters.cards": {str: COUNTS}, "log": LOG,
           "link.set": LINK, "link.up": LINK, "link.down": LINK, "capture.start": {"links": [str]}, "capture.progress": {"packets": int, "full": bool},
           "capture.stop": {"packets": int, "full": bool}}


def fits(value, shape):
    """Returns whether an answer has the types that its readers expect. A place may send anything. Other fields of an object are permitted."""
    if isinstance(shape, Optional):
        return value is None or fits(value, shape.shape)
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(each, shape[0]) for each in value)
    if not isinstance(shape, dict):
        return isinstance(value, shape) and (shape is bool or not isinstance(value, bool))
    if not isinstance(value, dict):
        return False
    if str in shape:
        return all(fits(each, shape[str]) for each in value.values())
    return all(fits(value.get(name), each) for name, each in shape.items())


class Pending:
    """An answer that may still come."""

    def __init__(self):
        self.done = threading.Event()
        self.since = time.monotonic()
        self.result = self.refused = self.missing = None    # one of them, when it is done

    def finish(self, **how):
        self.__dict__.update(how)
        self.done.set()


class Member:
    """The weftd of one place, for one client, which has its own connection to it because a connection owns its captures. place: has a name, a label() and
    open_control(), which returns a connection with send(bytes), line(most) and close(), or raises Closed. Its attribute `reusable` is False if its next line
    may not be the answer to the next request."""

    def __init__(self, place):
        self.place = place
        self.lids = self.cursor = None
        self._pending = None
        self._requests = None
        self._connection = None
        self._closed = False

    def begin(self, request):
        """Sends a request; returns what will have its answer. Requests follow one another, so one is not sent while a former one has no answer."""
        if (former := self._pending) and not former.done.is_set():
            pending = Pending()
            pending.finish(missing=f"it has not answered a request for {time.monotonic() - former.since:.0f} s")
            return pending
        self._pending = pending = Pending()
        if not self._requests:
            self._requests = queue.SimpleQueue()
            threading.Thread(target=self._run, daemon=True).start()
        self._requests.put((request, pending))
        return pending

    def _run(self):
        while given := self._requests.get():
            request, pending = given
            try:
                pending.finish(**self._ask(request))
            except (Closed, OSError):
                self._drop()
                pending.finish(missing="its weftd does not run, or its connection is closed")

    def _ask(self, request):
        connection = self._connection
        if not connection:
            self._connection = connection = self.place.open_control()
            if self._closed:
                raise Closed
        connection.send(json.dumps(request).encode() + b"\n")
        line = connection.line(MOST_ANSWER)
        if not line:
            raise Closed
        try:
            answer = json.loads(line)
            json.dumps(answer, allow_nan=False, ensure_ascii=False).encode()    # weft refuses numbers and texts with which this fails
            if answer["ok"] is True and fits(answer["result"], ANSWERS.get(request["command"], dict)):
                return {"result": answer["result"]}
            if answer["ok"] is False and isinstance(answer["error"], str):
                return {"refused": answer["error"][:MOST_REASON]}
        except (ValueError, KeyError, TypeError, RecursionError):
            pass
        # What follows may be the answer to this request, for example after a line that a command has printed.
        connection.reusable = False
        self._drop()
        return {"missing": "its answer is not understood"}

    def _drop(self):
        connection, self._connection = self._connection, None
        if connection:
            connection.close()

    def abandon(self):
        """Closes the connection, which ends what weftd does for it: a capture that it starts later than it is waited for ends at once."""
        self._drop()

    def close(self):
        self._closed = True
        self._drop()        # a thread that waits for an answer gets none
        if self._requests:
            self._requests.put(None)


class Reader:
    """Reads a stream in pieces of a given size, as read_frame() does, or in lines."""

    def __init__(self, stream):
        self._stream = stream
        self._rest = b""

    def read(self, size):
        while len(self._rest) < size and (data := self._stream.receive()):
            self._rest += data
        result, self._rest = self._rest[:size], self._rest[size:]
        return result

    def is_empty(self):
        """Returns whether all that has been received has been read."""
        return not self._rest

    def line(self, most):
        """Returns the next line; b"" if there is none, or if it is too long."""
        pieces = [self._rest]
        size = len(self._rest)
        while b"\n" not in pieces[-1]:
            data = self._stream.receive()
            size += len(data)
            if not data or size > most:
                return b""
            pieces.append(data)
        line, _, self._rest = b"".join(pieces).partition(b"\n")
        return line + b"\n"


# -- the lab as a whole --------------------------------------------------------------------------

class Topology:
    """Which place has which node, and the two places of each trunk. It does not change while the lab runs."""

    def __init__(self, places):
        self.places = places
        self.owner = {node: place for place in places for node in (*place.plan.hosts, *place.plan.switches)}
        self.halves = {}        # trunk: [places, of which the first listens]
        for place in places:
            for segment, ports in place.plan.ethernets.items():
                # A segment at several places has no owner, but its ports have, and so have the ends of its trunks, as in lan@p1/p2.
                self.owner[segment] = None if segment in self.owner else place
                self.owner |= {f"{segment}/{port}": place for port in ports} | {f"{segment}@{place.name}": place}
            for trunk, listens in place.plan.trunks.items():
                self.halves.setdefault(trunk, []).insert(0 if listens else 1, place)
        self.managers = [place for place in places if place.plan.manages]

    def has(self, place, name):
        """Returns whether a port or node may be one of this place. Trunks and subnet managers have no owner."""
        return self.owner.get(name, self.owner.get(name.rpartition("/")[0], place)) is place

    def has_link(self, place, name):
        """Returns whether a link may be one of this place: one of its half trunks, or a link whose first end is there. Both ends of other links are at one place."""
        if name in self.halves:
            return place in self.halves[name]
        end = FIRST_END.match(name)
        return not end or self.has(place, end[0])

    def stands_in(self, place, port, answering):
        """Returns whether a port is the end of a trunk at another place, which does not answer. This place's half has a port with the same name."""
        owner = self.owner.get(port.rpartition("/")[0])
        return owner not in answering and any(trunk.startswith(f"{port}-") or trunk.endswith(f"-{port}") for trunk in place.plan.trunks)


class View:
    """Handles the requests of one client. remote: the client is on the host of a place, which may be one that others control."""

    def __init__(self, topology, remote=False):
        self.topology = topology
        self.members = {place: Member(place) for place in topology.places}
        self._remote = remote
        self._captures = {}         # place: the name of its file on its host
        self._capture = None        # where the user wants it
        self._copy = None           # until the host of a place has read it
        self._log_last = 0
        self._samples = {}          # place: its last sample
        self._sample_given = None   # the last one that the client has got
        self._generations = sampling.generations()
        self._missing = {}
        self._commands = {
            "fabric.show": self._show, "fabric.sample": self._sample, "fabric.subnet": self._subnet, "counters": self._counters, "counters.cards": self._cards, "log": self._log,
            "link.set": self._link, "link.up": self._link, "link.down": self._link, "card.fault": self._card, "card.random_faults": self._card,
            "sm.sweep": self._master, "sm.renumber": self._master, "sm.corrupt-replies": self._master, "sm.enable": self._manager, "sm.disable": self._manager,
            "capture.start": self._start_capture, "capture.progress": self._capture_progress, "capture.stop": self._stop_capture, "capture.read": self._read_capture}

    def handle(self, line):
        """Returns the answer to a request; both are lines."""
        answer = {"ok": False}
        self._missing = {}
        try:
            request = json.loads(line)
            if not isinstance(request, dict) or not isinstance(request.get("command"), str):
                raise Refused("a request is a JSON object with a 'command' on a line of its own")
            if "id" in request:
                answer["id"] = request["id"]
            command = request["command"]
            if command in REFUSED:
                raise Refused(REFUSED[command])
            if command not in self._commands:
                raise Refused(f"there is no command '{command[:64]}'")
            answer |= {"result": self._commands[command]({**request, "id": None}), "ok": True}
        except Refused as error:
            answer["error"] = printable(str(error))
        except (ValueError, RecursionError):
            answer["error"] = "a request is a JSON object on a line of its own"
        except (LabError, OSError) as error:
            answer["error"] = printable(f"the capture could not be copied: {in_one_line(error)}")
        if self._missing:
            answer["missing"] = self._missing_places()
        return json.dumps(answer).encode() + b"\n"

    def _missing_places(self):
        return [{"place": place.name, "host": place.host, "reason": printable(reason)[:MOST_REASON]} for place, reason in self._missing.items()]

    def _ask(self, requests):
        """Sends {place: request}; returns ({place: result}, {place: why it has refused}). Notes the places that do not answer in time."""
        pending = {place: self.members[place].begin(request) for place, request in requests.items()}
        deadline = time.monotonic() + TIME_LIMIT
        results, refused = {}, {}
        for place, each in pending.items():
            each.done.wait(max(0, deadline - time.monotonic()))
            if each.result is not None:
                results[place] = each.result
            elif each.refused is not None:
                refused[place] = each.refused
            else:
                self._missing[place] = each.missing or f"it has not answered within {TIME_LIMIT} s"
        return results, refused

    def _ask_all(self, request):
        return self._ask(dict.fromkeys(self.topology.places, request))

    def _ask_some(self, places, request):
        """Returns the results of places which all must answer."""
        results, refused = self._ask(dict.fromkeys(places, request))
        self._must_have(places, results, refused)
        return results

    def _must_have(self, places, results, refused):
        for place, reason in refused.items():
            raise Refused(reason if len(self.topology.places) == 1 else f"{place.label()}: {reason}")
        for place in places:
            if place not in results:
                done = [each.label() for each in results]
                raise Refused(f"{place.label()}: {self._missing[place]}" + (f"; {', '.join(done)} has done what was requested" if done else ""))

    # -- descriptions ---------------------------------------------------------------------------

    def _show(self, request):
        results, refused = self._ask_all({"command": "fabric.show", "lids": True})
        for place, reason in refused.items():
            self._missing[place] = reason
        topology, managers, lids = self.topology, [], {}
        merged = {"seed": "", "hosts": [], "switches": [], "links": [], "trunks": [], "subnet_manager": None,
                  "ethernet": {"switches": [], "attachments": [], "links": []}}
        for place, shown in results.items():
            merged["seed"] = merged["seed"] or shown["seed"]
            for kind in ("hosts", "switches"):
                merged[kind] += [{**node, "place": place.name} for node in shown[kind] if topology.has(place, node["name"])]
            merged["trunks"] += [{**trunk, "place": place.name} for trunk in shown["trunks"]]
            merged["ethernet"]["attachments"] += [each for each in shown["ethernet"]["attachments"] if topology.has(place, each["name"])]
            managers += [{**manager, "place": place.name} for manager in shown.get("subnet_managers") or ()]
            lids |= shown.get("lids") or {}
        for host in merged["hosts"]:
            for number, port in enumerate(host["ports"], 1):
                known = lids.get(host["guid"], [])
                if not port.get("lid") and number < len(known):
                    port["lid"] = known[number]
        merged["links"] = list(self._merge_links({place: shown["links"] for place, shown in results.items()}).values())
        merged["ethernet"]["links"] = list(self._merge_links({place: shown["ethernet"]["links"] for place, shown in results.items()}).values())
        merged["ethernet"]["switches"] = self._merge_segments(shown["ethernet"]["switches"] for shown in results.values())
        merged["subnet_managers"] = managers
        merged["subnet_manager"] = next((each for each in managers if each["state"] == "master"), next(iter(managers), None))
        merged["places"] = [{"name": place.name, "host": place.host, "answers": place in results} for place in topology.places]
        merged["missing"] = self._missing_places()
        return merged

    def _merge_links(self, links):
        """Returns the links by name. The two halves of a trunk, which have the same name and ends, are one link, with the faults of the listening half."""
        merged = {}
        for place, some in links.items():
            for link in some:
                name = link["name"]
                if not self.topology.has_link(place, name):
                    continue
                halves = self.topology.halves.get(name, ())
                other = merged.get(name)
                if place in halves and other:
                    first, second = (link, other) if halves[0] is place else (other, link)
                    merged[name] = self._merge_halves(first, second)
                elif other is None:
                    merged[name] = {**link, "place": place.name}
        return merged

    @staticmethod
    def _merge_segments(parts):
        """Returns the Ethernet segments. Each place that has a part of a segment has learned addresses by itself."""
        merged = {}
        for segment in itertools.chain.from_iterable(parts):
            known = merged.setdefault(segment["name"], segment)
            merged[segment["name"]] = max(known, segment, key=lambda each: each["addresses"])
        return list(merged.values())

    @staticmethod
    def _merge_halves(first, second):
        result = {**first, "up": first["up"] and second["up"], "settings": {**second["settings"], **first["settings"]}}
        if second["settings"].get("state") == "down":
            result["settings"]["state"] = "down"
        return result

    def _sample(self, request):
        """Asks the places only for what has changed since their last samples, and answers the same."""
        since = request.get("since", 0)
        cards = request.get("cards", False)
        if not isinstance(since, int) or isinstance(since, bool) or not isinstance(cards, bool):
            raise Refused("'since' must be a number, and 'cards' true or false")
        samples, given = self._samples, self._sample_given
        if given and cards != ("cards" in given):
            samples, given = {}, None
        merged = self._merge_samples(samples, cards)
        merged["generation"] = next(self._generations)
        self._sample_given = merged
        changes = sampling.changes(given, merged) if given and given["generation"] == since else None
        return merged if changes is None else changes

    def _merge_samples(self, samples, cards):
        """Returns the sample of the whole lab. samples: the last ones of the places, to which their answers refer."""
        results, refused = self._ask({place: {"command": "fabric.sample", "cards": cards, "since": samples.get(place, {}).get("generation") or 0}
                                      for place in self.topology.places})
        for place, reason in refused.items():
            self._missing[place] = reason
        for place, answer in list(results.items()):
            try:
                sample = sampling.merged(samples.get(place), answer)
            except ValueError:
                self._missing[place] = "its answer is not understood"
                del results[place]
                samples = {each: kept for each, kept in samples.items() if each is not place}     # the next request is for a complete sample
                continue
            if sample is answer and sample.get("cards"):
                # A place may name any cards. Only those of its hosts are kept, and later answers cannot add others, so that the sample does not grow.
                sample = {**sample, "cards": {host: counts for host, counts in sample["cards"].items() if self.topology.owner.get(host) is place}}
            results[place] = sample
        # A place that has not answered in time may answer the next request.
        self._samples = {**samples, **results}
        topology = self.topology
        # The clocks of hosts differ, so the time is this one's.
        merged = {"time": time.monotonic(), "columns": [], "ports": {}, "down": [], "guests": [], "subnet_manager": None,
                  "ethernet": {"columns": [], "ports": {}, "links": {}, "attached": []}, **({"cards": {}} if cards else {})}
        for place, sample in results.items():
            for mine, theirs in ((merged, sample), (merged["ethernet"], sample["ethernet"])):
                mine["columns"] = mine["columns"] or theirs["columns"]
                if mine["columns"] != theirs["columns"] or any(len(values) != len(mine["columns"]) for values in theirs["ports"].values()):
                    self._missing[place] = "its counters are not those of the others"
                    continue
                mine["ports"] |= {port: values for port, values in theirs["ports"].items() if topology.has(place, port) or topology.stands_in(place, port, results)}
            own = functools.partial(topology.has_link, place)
            merged["down"] = list(dict.fromkeys([*merged["down"], *filter(own, sample["down"])]))
            merged["guests"] += [guest for guest in sample["guests"] if topology.has(place, guest)]
            links = merged["ethernet"]["links"]
            links |= {link: up and links.get(link, True) for link, up in sample["ethernet"]["links"].items() if own(link)}
            merged["ethernet"]["attached"] = list(dict.fromkeys([*merged["ethernet"]["attached"], *filter(own, sample["ethernet"]["attached"])]))
            if cards:
                merged["cards"] |= sample.get("cards") or {}
            manager = sample.get("subnet_manager")
            if manager and (not merged["subnet_manager"] or manager["state"] == "master"):
                merged["subnet_manager"] = manager
        merged["missing"] = self._missing_places()
        return merged

    def _counters(self, request):
        results, refused = self._ask_all(request)
        if not results:
            raise Refused(next(iter(refused.values()), "no place answers"))
        return {port: values for place, counters in results.items() for port, values in counters.items()
                if self.topology.has(place, port)}

    def _cards(self, request):
        results, _ = self._ask_all(request)
        return {host: values for place, cards in results.items() for host, values in cards.items() if self.topology.has(place, host)}

    def _subnet(self, request):
        name = request.get("node")
        shown = self._show({})
        guid = next((node["guid"] for kind in ("hosts", "switches") for node in shown[kind] if node["name"] == name), None)
        managers = {self._place_of(each["place"]): {"command": "fabric.subnet", "node": name, **({"guid": guid} if guid else {})} for each in shown["subnet_managers"]}
        results, refused = self._ask(managers)
        if not results and refused:
            raise Refused(next(iter(refused.values())))
        # Only the master knows the subnet.
        empty = {"ports": {}, "routes": {}}
        return next((result for result in results.values() if result.get("ports")), empty)

    def _place_of(self, name):
        return next(place for place in self.topology.places if place.name == name)

    def _log(self, request):
        """Numbers the lines of all places together. A client that asks for the lines after the last one of its former answer gets the new ones."""
        after = request.get("after", 0)
        going_on = isinstance(after, int) and after == self._log_last and after > 0
        part = {"part": request["part"]} if "part" in request else {}
        for member in self.members.values():
            member.cursor = member.cursor if going_on and member.cursor else 0
        results, refused = self._ask({place: {"command": "log", "after": member.cursor, **part} for place, member in self.members.items()})
        if not results and refused:
            raise Refused(next(iter(refused.values())))
        lines = []
        for place, log in results.items():
            # A weftd that was started again begins with the number 1.
            restarted = log["last"] < self.members[place].cursor
            self.members[place].cursor = 0 if restarted else log["last"]
            lines += [{**line, "place": place.name} for line in log["lines"]]
        lines.sort(key=lambda line: line["time"])
        first = self._log_last + 1 if going_on else 1
        for number, line in enumerate(lines, first):
            line["number"] = number
        self._log_last = first + len(lines) - 1
        return {"last": self._log_last, "lines": lines}

    # -- changes --------------------------------------------------------------------------------

    def _find_link(self, name):
        """Returns the name of a link and its places. name: as weftd accepts it."""
        if not isinstance(name, str):
            raise Refused("'link' must be given, as a string")
        if name in self.topology.halves:
            return name, self.topology.halves[name]
        shown = self._show({})
        links = shown["links"] + shown["ethernet"]["links"]
        found = [link for link in links if link["name"] == name or name in link["ends"]] or [
            link for link in shown["links"] if any(end.rpartition("/")[0] == name for end in link["ends"])]
        if len(found) > 1:
            raise Refused(f"{name} has several links: name a port, as in {name}/1")
        if not found:
            raise Refused(f"there is no link, port or node '{name}'" + "".join(f"; {place.label()} does not answer" for place in self._missing))
        real = found[0]["name"]
        if real in self.topology.halves:
            return real, self.topology.halves[real]
        owner = self.topology.owner
        places = [owner[node] for end in found[0]["ends"] if owner.get(node := end.rpartition("/")[0])]
        return real, places[:1] or [self._place_of(found[0]["place"]) if "place" in found[0] else self.topology.places[0]]

    def _link(self, request):
        name, places = self._find_link(request.get("link"))
        self._missing = {}
        request = {**request, "link": name}
        requests = dict.fromkeys(places, request)
        settings = request.get("settings")
        if len(places) == 2 and isinstance(settings, dict):
            other = {key: value for key, value in settings.items() if key not in FAULTS}
            requests = {places[0]: request, **({places[1]: {**request, "settings": other}} if other else {})}
        # The listening half first: if it refuses a setting, nothing has changed.
        former = self._link_at(places[0], name) if len(requests) == 2 else None
        results = {}
        for place, each in requests.items():
            found, refused = self._ask({place: each})
            if refused and results and not self._restore_link(places[0], former, settings):
                raise Refused(f"{place.label()}: {refused[place]}; {places[0].label()} has done what was requested")
            results |= found
            self._must_have([*results, place], results, refused)
        if len(places) == 2 and len(results) == 1 and (link := self._link_at(places[1], name)):
            results[places[1]] = link
        return next(iter(self._merge_links({place: [link] for place, link in results.items()}).values()))

    def _link_at(self, place, name):
        """Returns a link as a place shows it, or None."""
        found, _ = self._ask({place: {"command": "fabric.show"}})
        return next((link for shown in found.values() for link in shown["links"] + shown["ethernet"]["links"] if link["name"] == name), None)

    def _restore_link(self, place, former, settings):
        """Gives a link its former settings again, or its former state if there are no settings; returns whether the place has done it."""
        if not former:
            return False
        names = settings if isinstance(settings, dict) else ("state",)
        restored = {name: former["settings"][name] for name in names if name in former["settings"]}
        return place in self._ask({place: {"command": "link.set", "link": former["name"], "settings": restored}})[0]

    def _card(self, request):
        place = self.topology.owner.get(request.get("host")) if isinstance(request.get("host"), str) else None
        if not place:
            raise Refused(f"there is no host '{request.get('host')}'")
        return self._ask_some([place], request)[place]

    def _manager(self, request):
        if not self.topology.managers:
            raise Refused("this lab has no subnet manager")
        # Otherwise, the one on standby would take over from one that is disabled.
        return next(iter(self._ask_some(self.topology.managers, request).values()))

    def _master(self, request):
        if not self.topology.managers:
            raise Refused("this lab has no subnet manager")
        samples, _ = self._ask(dict.fromkeys(self.topology.managers, {"command": "fabric.sample"}))
        masters = [place for place, sample in samples.items() if (manager := sample.get("subnet_manager")) and manager["state"] == "master"]
        place = (masters or self.topology.managers)[0]
        return self._ask_some([place], request)[place]

    # -- captures -------------------------------------------------------------------------------

    def _start_capture(self, request):
        if self._remote:
            request = {**request, "most_bytes": MOST_CAPTURE}
        if not isinstance(request.get("file"), str) or not os.path.isabs(request["file"]):
            raise Refused("'file' must be an absolute path")
        if request.get("at_once"):
            raise Refused(NO_STANDARD_OUTPUT)
        if self._captures:
            raise Refused("this connection has a capture already")
        link = request.get("link")
        several = link == "all" or self._is_segment(link)
        if several:
            # A segment may be at several places.
            places = [place for place in self.topology.places if link in place.plan.ethernets] or self.topology.places
        else:
            link, places = self._find_link(link)
            places = places[:1]     # either half of a trunk has the packets of both directions
            self._missing = {}
        names = {place: f"capture-{next(numbers)}.pcapng" for place in places}
        results, refused = self._ask({place: {**request, "link": link, "file": f"{place.remote_logs}/{name}"} for place, name in names.items()})
        for place in names.keys() - results.keys() - refused.keys():
            self.members[place].abandon()
        if refused and (several or not results):
            self._captures = {place: names[place] for place in results}
            self._discard()
            raise Refused(next(iter(refused.values())))
        if not results:
            raise Refused("; ".join(f"{place.label()}: {reason}" for place, reason in self._missing.items()))
        self._captures = {place: names[place] for place in results}
        self._capture = self._own_copy() if self._remote else pathlib.Path(request["file"])
        return {"links": sorted({name for result in results.values() for name in result["links"]})}

    def _own_copy(self):
        """Returns a new file, which the host of a place reads afterwards."""
        self._forget_copy()
        number, path = tempfile.mkstemp(prefix="weft-capture-")
        os.close(number)
        self._copy = pathlib.Path(path)
        return self._copy

    def _forget_copy(self):
        if self._copy:
            self._copy.unlink(missing_ok=True)
            self._copy = None

    def _read_capture(self, request):
        """Returns a part of the finished capture of a client on the host of a place."""
        offset = request.get("offset")
        if not self._copy or self._captures or not isinstance(offset, int) or not 0 <= offset < 1 << 53:
            raise Refused("there is no capture to read")
        with open(self._copy, "rb") as file:
            file.seek(offset)
            data = file.read(CAPTURE_PIECE)
        if not data:
            self._forget_copy()
        return {"bytes": to_text(data)}

    def _is_segment(self, name):
        """Returns whether a name is that of an Ethernet segment, whose links may be at several places."""
        return isinstance(name, str) and any(segment["name"] == name for segment in self._show({})["ethernet"]["switches"])

    def _capture_progress(self, request):
        return self._sum(self._ask(dict.fromkeys(self._captures, request))[0])

    @staticmethod
    def _sum(results):
        return {"packets": sum(each["packets"] for each in results.values()), "full": any(each["full"] for each in results.values())}

    def _stop_capture(self, request):
        captures = self._captures
        results, _ = self._ask(dict.fromkeys(captures, request))
        if captures and not results:
            raise Refused("; ".join(f"{place.label()}: {reason}" for place, reason in self._missing.items()) or "no place has stopped its capture")
        self._captures = {}
        limit = {"limit": MOST_CAPTURE + CAPTURE_ROOM} if self._remote else {}
        copies = [copy for place in results if (copy := place.fetch(captures[place], remove=True, **limit))]
        try:
            if len(copies) == 1:
                shutil.move(copies[0], self._capture)
            elif copies:
                merge_captures(copies, self._capture)
        finally:
            for copy in copies:
                pathlib.Path(copy).unlink(missing_ok=True)
        # The client reports why the capture is not complete.
        return self._sum(results) | ({"limit": MOST_CAPTURE} if self._remote else {})

    def _discard(self):
        captures, self._captures = self._captures, {}
        for place in self._ask(dict.fromkeys(captures, {"command": "capture.stop"}))[0]:
            with contextlib.suppress(LabError, OSError):
                if copy := place.fetch(captures[place], remove=True):
                    pathlib.Path(copy).unlink()

    def close(self):
        """The client has disconnected, which ends its capture."""
        try:
            if self._captures:
                with contextlib.suppress(Refused, LabError, OSError):
                    self._stop_capture({"command": "capture.stop"})
        finally:
            self._forget_copy()
            for member in self.members.values():
                member.close()


# -- captures of several places -------------------------------------------------------------------

_SECTION, _INTERFACE, _PACKET = 0x0a0d0d0a, 1, 6


def _blocks(file):
    """Yields (type, body) of the blocks of a pcapng file that weftd has written, with this host's order of bytes. An incomplete end is ignored."""
    while len(head := file.read(8)) == 8:
        kind, length = struct.unpack("=II", head)
        if not 12 <= length <= MOST_PACKET or length % 4:
            raise LabError("a capture of a place is not valid")
        body = file.read(length - 8)
        if len(body) < length - 8:
            return
        yield kind, body[:-4]


def merge_captures(paths, target):
    """Writes the packets of several captures into one file, in the order of their times. The interfaces of each get new numbers."""
    with contextlib.ExitStack() as stack, open(target, "wb") as merged:
        def write(kind, body):
            length = struct.pack("=I", len(body) + 12)
            merged.write(struct.pack("=I", kind) + length + body + length)

        interfaces = itertools.count()

        def packets(file):
            known = []
            for kind, body in _blocks(file):
                if kind == _INTERFACE:
                    known.append(next(interfaces))
                    write(kind, body)
                elif kind == _PACKET:
                    if len(body) < 12 or (numbers := struct.unpack_from("=III", body))[0] >= len(known):
                        raise LabError("a capture of a place is not valid")
                    number, high, low = numbers
                    yield high << 32 | low, struct.pack("=I", known[number]) + body[4:]

        write(_SECTION, struct.pack("=IHHq", 0x1a2b3c4d, 1, 0, -1))
        for _, body in heapq.merge(*(packets(stack.enter_context(open(path, "rb"))) for path in paths), key=lambda packet: packet[0]):
            write(_PACKET, body)


# -- the sockets ----------------------------------------------------------------------------------

class Socket:
    """A control socket. serve(client): called on a thread for each of at most `most` clients."""

    def __init__(self, path, most, serve):
        self._path = pathlib.Path(path)
        self._path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self._path))
        self._listener.listen()
        self._free = threading.Semaphore(most)
        self._serve = serve
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                if self._closed:
                    return
                time.sleep(RETRY_TIME)      # there are too many open files, for example
                continue
            if not self._free.acquire(blocking=False):
                client.close()
                continue
            try:
                threading.Thread(target=self._run, args=(client,), daemon=True).start()
            except RuntimeError:
                self._free.release()
                client.close()

    def _run(self, client):
        try:
            with client, contextlib.suppress(Closed, LabError, OSError):
                self._serve(client)
        finally:
            self._free.release()

    def close(self):
        self._closed = True
        self._path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def serve_client(topology, client):
    """Serves a client of a socket of this host."""
    view = View(topology)
    try:
        requests = client.makefile("rb")
        while (line := requests.readline(MOST_REQUEST)).endswith(b"\n"):
            client.sendall(view.handle(line))
    finally:
        view.close()


def serve_stream(topology, stream, reader):
    """Serves a client whose requests a place passes on. reader: reads lines of the stream."""
    view = View(topology, remote=True)
    try:
        while line := reader.line(MOST_REQUEST):
            stream.send(view.handle(line))
    except Closed:
        pass
    finally:
        view.close()
        stream.close()


class Passing:
    """Passes the requests of a client on the host of a place on to the program that has started the lab. That one cannot write a client's capture, so
    this one reads it and writes the file."""

    def __init__(self, client, stream):
        self._client = client
        self._stream = stream
        self._answers = Reader(stream)
        self._path = None       # of the running capture

    def serve(self):
        requests = self._client.makefile("rb")
        try:
            while (line := requests.readline(MOST_REQUEST)).endswith(b"\n"):
                command, path = self._read(line)
                answer = self._ask(line)
                if not answer:
                    return
                if b'"ok": true' in answer and command == "capture.start":
                    self._path = path
                elif b'"ok": true' in answer and command == "capture.stop":
                    answer = self._copy_or(answer)
                self._client.sendall(answer)
        finally:
            if self._path and self._ask(b'{"command": "capture.stop"}\n'):
                self._copy_or(b"")
            self._stream.close()

    @staticmethod
    def _read(line):
        try:
            request = json.loads(line)
            return request.get("command"), request.get("file")
        except (ValueError, AttributeError, RecursionError):
            return None, None

    def _ask(self, line):
        self._stream.send(line)
        return self._answers.line(MOST_PASSED)

    def _copy_or(self, answer):
        """Writes the capture; returns the answer, or another one if this has failed."""
        path, self._path = self._path, None
        try:
            self._copy(path)
            return answer
        except (OSError, KeyError, TypeError, ValueError, Violation) as error:
            return json.dumps({"ok": False, "error": printable(f"the capture could not be copied: {in_one_line(error)}")}).encode() + b"\n"

    def _copy(self, path):
        if not path:
            return
        offset = 0
        with open(path, "wb") as file:
            while data := bytes_of(json.loads(self._ask(json.dumps({"command": "capture.read", "offset": offset}).encode() + b"\n"))["result"], "bytes", CAPTURE_PIECE):
                file.write(data)
                offset += len(data)
