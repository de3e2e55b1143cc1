# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Requests the state of the lab from weftd once per interval, and stores the latest results. All viewers of `weft web` share these results, so that
more viewers do not cost weftd more."""
import array
import asyncio
import collections
import contextlib
import json
import time

import sampling     # of ../session

LONGEST_ANSWER = 64 << 20
ANSWER_TIMEOUT = 10         # seconds
KEPT = 600                  # samples
LOG_KEPT = 1000             # lines
FABRIC_AGE = 2              # seconds for which a description is valid
SETTINGS_AGE = 10           # seconds after which links' settings are read again, if no log line has reported a change
SUBNET_AGE = 2              # seconds for which the subnet manager's view of a node is valid
SUBNETS_KEPT = 64           # nodes
NO_ERRORS = {"xmit_packets", "rcv_packets", "xmit_data", "rcv_data", "multicast_xmit_packets", "multicast_rcv_packets", "xmit_wait",
             "xmit_frames", "rcv_frames", "xmit_bytes", "rcv_bytes", "rcv_group_frames"}
# Settings of a link that are normal; others are injected faults.
USUAL = {"state": "up", "delay": "0ms", "jitter": "0ms",
         "loss": "0", "duplication": "0", "reordering": "0", "corruption": "0", "silent_corruption": "0",
         "cm_loss": "0", "cm_duplication": "0", "cm_corruption": "0", "cm_lateness": "0"}


class Refused(Exception):
    """weftd has refused a request; the message is its reason."""


class Gone(Exception):
    """No weftd is running."""


class Control:
    """A connection to the control socket."""

    def __init__(self, directory):
        self._path = str(directory / "control.sock")
        self._streams = None
        self._lock = asyncio.Lock()

    async def ask(self, command, **arguments):
        async with self._lock:
            try:
                return await asyncio.wait_for(self._ask({"command": command, **arguments}), ANSWER_TIMEOUT)
            except (OSError, EOFError, ValueError, asyncio.TimeoutError) as error:
                self.close()
                raise Gone(f"no weftd serves {self._path} ({error or 'no answer'})") from None
            except asyncio.CancelledError:
                # A response may be in transit, and would be taken for that of the next request.
                self.close()
                raise

    async def _ask(self, request):
        if not self._streams:
            self._streams = await asyncio.open_unix_connection(self._path, limit=LONGEST_ANSWER)
        reader, writer = self._streams
        writer.write(json.dumps(request).encode() + b"\n")
        await writer.drain()
        line = await reader.readline()
        if not line.endswith(b"\n"):
            raise EOFError("it has gone")
        answer = json.loads(line)
        if not answer["ok"]:
            raise Refused(answer["error"])
        return answer["result"]

    def close(self):
        if self._streams:
            self._streams[1].close()
            self._streams = None


class Series:
    """Stores rates of many objects over time in little memory, as numbers of four bytes."""

    def __init__(self, names, width):
        self.width = width
        self.place = {name: number for number, name in enumerate(names)}
        self._samples = collections.deque(maxlen=KEPT)

    def add(self, moment, rows):
        values = array.array("f")
        for row in rows:
            values.extend(row)
        self._samples.append((moment, values))

    def of(self, name):
        """Returns [[time, value, ...], ...] of one object."""
        first = self.place[name] * self.width
        return [[moment, *(round(value, 2) for value in values[first:first + self.width])] for moment, values in self._samples]


class Watch:
    """The latest data. `number` is incremented with each sample, `version` with each change of the topology."""

    def __init__(self, directory, interval):
        self.control = Control(directory)
        self.interval = interval
        self.number = 0
        self.version = 0
        self.there = False
        self.sample = self.cards = self.fabric = None
        self.rates = {}                     # link, Ethernet links last: [bit/s and packets/s of either end, errors, errors/s]
        self.links = self.hosts = None      # Series
        self.faulty = {}                    # link: {setting: value} of the settings that are not normal
        self.moment = None                  # real time of the latest sample, in seconds
        self.content = 0                    # incremented with each sample or description that differs from the one before
        self.card_columns = []
        self.log = collections.deque(maxlen=LOG_KEPT)
        self._lines = self._last_line = 0
        self._subnets = collections.OrderedDict()   # node: (time, configuration by the subnet manager)
        self._fabric_taken = float("-inf")
        self._fabric_lock = asyncio.Lock()

    async def run(self):
        while True:
            begun = time.monotonic()
            try:
                await self._sample()
                self.there = True
            except (Gone, Refused, KeyError, TypeError, ValueError):
                # Another daemon may follow, with log lines and counters of its own.
                self.there, self._last_line, self.sample, self.cards, self.fabric = False, 0, None, None, None
            self.number += 1
            await asyncio.sleep(max(0.05, self.interval - (time.monotonic() - begun)))

    async def _sample(self):
        before, cards_before = self.sample, self.cards
        answer = await self.control.ask("fabric.sample", cards=True, since=before.get("generation", 0) if before else 0)
        sample = sampling.merged(before, answer)
        cards = sample["cards"]
        # The ports and cards that have changed; None if all may have.
        changed = {*answer["ports"], *answer["ethernet"]["ports"]} if "since" in answer else None
        changed_cards = answer["cards"].keys() if "since" in answer else cards.keys()
        if self.fabric is None or self._changed(sample, cards, complete=changed is None):
            await self.describe(0)
            self._subnets.clear()
            self.version += 1
            self.links = Series([link["name"] for link in self.all_links()], 5)
            self.card_columns = sorted({name for counts in cards.values() for name in counts})
            self.hosts = Series(cards, len(self.card_columns))
            before = cards_before = changed = None
            changed_cards = cards.keys()
        seconds = sample["time"] - before["time"] if before else 0
        self._rate(before, sample, seconds, changed)
        moment = time.time()
        self.links.add(moment, ((*row[:4], row[5]) for row in self.rates.values()))
        still = (0,) * len(self.card_columns)
        self.hosts.add(moment, ([_rate(cards_before[host][name], counts[name], seconds) if cards_before and name in counts and name in cards_before.get(host, ()) else 0
                                 for name in self.card_columns] if host in changed_cards else still for host, counts in cards.items()))
        if changed is None or changed or changed_cards or any(sample.get(name) != before.get(name) for name in ("down", "guests", "subnet_manager", "missing")) or (
                sample["ethernet"] != before["ethernet"]):
            self.content += 1
        self.sample, self.cards, self.moment = sample, cards, moment
        log = await self.control.ask("log", after=self._last_line)
        for line in log["lines"]:
            self._lines += 1
            # A daemon that was restarted numbers its lines from one again, but clients of this object see increasing numbers.
            self.log.append({**line, "number": self._lines})
        self._last_line = log["last"]
        await self.describe(0 if any(line["part"] == "link" for line in log["lines"]) else max(SETTINGS_AGE, 5 * self.interval))
        faulty = {link["name"]: {name: value for name, value in link["settings"].items() if value != USUAL.get(name, value)}
                  for link in self.all_links()}
        self.faulty = {name: unusual for name, unusual in faulty.items() if unusual}

    async def describe(self, age=FABRIC_AGE):
        """Returns "fabric.show", at most `age` seconds old."""
        async with self._fabric_lock:
            if self.fabric is None or time.monotonic() - self._fabric_taken >= age:
                self.fabric = await self.control.ask("fabric.show")
                self._fabric_taken = time.monotonic()
                self.content += 1
        return self.fabric

    def all_links(self):
        """Returns InfiniBand links, followed by Ethernet links."""
        return [*self.fabric["links"], *self.fabric["ethernet"]["links"]] if self.fabric else []

    def down(self):
        """Returns the links that carry no traffic: InfiniBand links that are not trained, and Ethernet links that are unplugged or have nothing
        attached."""
        ethernet = self.sample["ethernet"]
        attached = set(ethernet["attached"])
        return [*self.sample["down"], *(link for link, up in ethernet["links"].items() if not up or link not in attached)]

    def segment_names(self):
        return {segment["name"] for segment in self.fabric["ethernet"]["switches"]} if self.fabric else set()

    def node_names(self):
        fabric = self.fabric
        names = {node["name"] for kind in ("hosts", "switches") for node in fabric[kind]} if fabric else set()
        return names | ({fabric["subnet_manager"]["node"]} if fabric and fabric["subnet_manager"] else set())

    def counters(self, wanted, ethernet=False):
        """Returns the names of the counters of the linked ports, and the latest values of those for which wanted() is true, by name."""
        sample = self.sample["ethernet"] if ethernet else self.sample
        return {"columns": sample["columns"], "ports": {port: values for port, values in sample["ports"].items() if wanted(port)}}

    async def subnet(self, node):
        """Returns "fabric.subnet" of a node, which is cached because it is expensive."""
        kept = self._subnets.get(node)
        if not kept or time.monotonic() - kept[0] >= SUBNET_AGE:
            kept = self._subnets[node] = (time.monotonic(), await self.control.ask("fabric.subnet", node=node))
            self._subnets.move_to_end(node)
            while len(self._subnets) > SUBNETS_KEPT:
                self._subnets.popitem(last=False)
        return kept[1]

    def _changed(self, sample, cards, complete):
        """Returns True if the series belong to another topology. The description may be newer than they are, because other functions request it, too.
        complete: the ports of the sample may not be those of the sample before."""
        links = self.all_links()
        if complete and {end for link in links for end in link["ends"]} != {*sample["ports"], *sample["ethernet"]["ports"]}:
            return True
        return list(self.links.place) != [link["name"] for link in links] or list(self.hosts.place) != list(cards)

    def _rate(self, before, sample, seconds, changed):
        # InfiniBand counts words of four bytes, and an Ethernet port counts bytes.
        former = {} if changed is None else self.rates
        self.rates = _rates(self.fabric["links"], before, sample, seconds, "xmit_data", 32, "xmit_packets", former, changed)
        self.rates |= _rates(self.fabric["ethernet"]["links"], before and before["ethernet"], sample["ethernet"], seconds, "xmit_bytes", 8, "xmit_frames",
                             former, changed)

    def close(self):
        with contextlib.suppress(OSError):
            self.control.close()


def _rates(links, before, sample, seconds, data, bits_each, packets, former, changed):
    """Returns link: [bit/s and packets/s of either end, errors, errors/s], for links whose ports count data as `data` and packets as `packets`. former: the
    rates before, of links whose ports are idle unless they are in `changed`."""
    column = {name: number for number, name in enumerate(sample["columns"])}
    data, packets = column[data], column[packets]
    errors = [number for name, number in column.items() if name not in NO_ERRORS]
    rates = {}
    for link in links:
        if (row := former.get(link["name"])) and changed.isdisjoint(link["ends"]):
            rates[link["name"]] = [0, 0, 0, 0, row[4], 0] if any(row[:4]) or row[5] else row
            continue
        bits, sent, count, new = [0, 0], [0, 0], 0, 0
        for side, end in enumerate(link["ends"]):
            now = sample["ports"].get(end)
            if not now:
                continue
            wrong = sum(now[number] for number in errors)
            count += wrong
            if then := before and before["ports"].get(end):
                bits[side] = _rate(then[data], now[data], seconds) * bits_each
                sent[side] = _rate(then[packets], now[packets], seconds)
                new += _rate(sum(then[number] for number in errors), wrong, seconds)
        rates[link["name"]] = [round(bits[0]), round(bits[1]), round(sent[0], 1), round(sent[1], 1), count, round(new, 1)]
    return rates


def _rate(before, after, seconds):
    """Returns the rate of a counter that only increases. A daemon that was restarted counts from zero; the rate is then 0."""
    return (after - before) / seconds if seconds > 0 and after > before else 0
