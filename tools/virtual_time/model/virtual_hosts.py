#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Models virtual time over several hosts: estimates how long a lab in virtual time would take if its places ran on several hosts.

weft does not implement virtual time over several hosts. This program reads traces of labs in virtual time on one host (record_traces.py), divides their
places over hosts, and simulates how the hosts keep their clocks consistent. Documentation/virtual-time-hosts.rst explains the model and its limits.

    virtual_hosts.py TRACE...                       # a table: real seconds for each virtual second
    virtual_hosts.py --break-even TRACE...          # with which messages and cables several hosts are as fast as one
"""
import argparse
import collections
import dataclasses
import heapq
import json
import math
import pathlib
import sys

NEVER = math.inf
PROMISES, WINDOWS, LIMITS = "promises", "windows", "limits"
PROTOCOLS = (PROMISES, WINDOWS, LIMITS)
METRES_PER_NS = 1 / 5        # light in a cable
SECOND = 1_000_000_000
MOST_MESSAGES = 30_000


class CausalityError(Exception):
    """A host has executed an event before an earlier packet from another host has reached it."""


@dataclasses.dataclass(frozen=True)
class Trace:
    """A part of a run in virtual time. Times and costs are in nanoseconds. slices: (virtual time, place, real cost) of each event; packets: (virtual time at
    which it was sent, place that sent it, place that receives it) of each packet on a cable between two places. Places are numbered from 0."""

    load: str
    delay: int
    places: int
    begin: int
    end: int
    slices: tuple
    packets: tuple

    @property
    def duration(self):
        return self.end - self.begin

    @property
    def cost(self):
        """Returns the real time of all events, which is the time of a run on one host."""
        return sum(cost for _, _, cost in self.slices)


@dataclasses.dataclass(frozen=True)
class Costs:
    """Real time of messages between hosts. latency: from the start of sending to the end of receiving; cpu: what a message costs its sender, and again
    its receiver; a packet on a trunk costs the same in addition to the event that has sent it."""

    latency: int
    cpu: int = 2000


@dataclasses.dataclass(frozen=True)
class Result:
    """real: how long the simulated part of the run takes; virtual: the length of this part, which is shorter than the trace if the limit of messages has been
    reached; busy: the real time in which the busiest host executes events; messages: number of messages; finish: real time at which each host has
    executed all its events."""

    real: float
    virtual: float
    busy: float
    messages: int
    order: tuple = ()

    @property
    def ratio(self):
        """Returns real seconds for each virtual second."""
        return self.real / self.virtual

    @property
    def waiting(self):
        """Returns the part of the real time that is not spent with events of the busiest host, which is the cost of the synchronisation."""
        return 1 - self.busy / self.real if self.real else 0.0


def read(file):
    """Reads a trace: a line of JSON, followed by a line "s TIME PLACE COST" for each event, and "p TIME FROM TO" for each packet."""
    first, *lines = pathlib.Path(file).read_text().splitlines()
    parts = collections.defaultdict(list)
    for line in lines:
        kind, *numbers = line.split()
        parts[kind].append(tuple(int(number) for number in numbers))
    return Trace(slices=tuple(parts["s"]), packets=tuple(parts["p"]), **json.loads(first))


def write(trace, file):
    head = {name: getattr(trace, name) for name in ("load", "delay", "places", "begin", "end")}
    pathlib.Path(file).write_text("".join([json.dumps(head) + "\n", *("s %d %d %d\n" % each for each in trace.slices),
                                           *("p %d %d %d\n" % each for each in trace.packets)]))


class _Host:
    """One host: its events in the order of their times, and the packets that it sends to other hosts."""

    def __init__(self, number):
        self.number = number
        self.events = []        # (time, cost, [hosts that get a packet])
        self.neighbours = set()
        self.position = 0
        self.real = 0.0
        self.busy = 0.0
        self.order = []

    @property
    def next(self):
        return self.events[self.position][0] if self.position < len(self.events) else NEVER

    def execute(self, costs):
        """Executes the next event; returns (its time, the hosts to which it sends packets)."""
        time, cost, to = self.events[self.position]
        self.position += 1
        self.real += cost + costs.cpu * len(to)
        self.busy += cost
        self.order.append(time)
        return time, to


def divide(trace, count):
    """Returns the trace's events as `count` hosts, which get equal numbers of consecutive places. All events of a host at one time are one
    event, so the order in which a trace lists them has no influence."""
    if trace.places % count:
        raise ValueError(f"{trace.places} places cannot be divided evenly over {count} hosts")
    each = trace.places // count
    hosts = [_Host(number) for number in range(count)]
    at = [collections.defaultdict(lambda: [0, []]) for _ in range(count)]
    for time, place, cost in trace.slices:
        at[place // each][time][0] += cost
    for time, source, target in trace.packets:
        if source // each != target // each:
            # A cable's packet leaves at the end of the sender's event, which may be one that the trace has charged to another place.
            at[source // each][time][1].append(target // each)
            hosts[source // each].neighbours.add(target // each)
            hosts[target // each].neighbours.add(source // each)
    for host, events in zip(hosts, at):
        host.events = [(time - trace.begin, cost, sorted(to)) for time, (cost, to) in sorted(events.items())]
    # A host without packets in this trace is nevertheless connected: to the first host, as in the star of places of `weft lab up --hosts`.
    for host in hosts[1:]:
        if not host.neighbours:
            host.neighbours.add(0)
            hosts[0].neighbours.add(host.number)
    return hosts


def distances(hosts, lookahead):
    """Returns the shortest time after which an event of one host can affect another, for each pair. From a host to itself, it is the time for a packet to
    another host and an answer."""
    far = [[0 if a is b else lookahead if b.number in a.neighbours else NEVER for b in hosts] for a in hosts]
    for via in range(len(hosts)):
        for a in range(len(hosts)):
            for b in range(len(hosts)):
                far[a][b] = min(far[a][b], far[a][via] + far[via][b])
    for a in range(len(hosts)):
        far[a][a] = min((far[a][b] + far[b][a] for b in range(len(hosts)) if b != a), default=NEVER)
    return far


class _Flight:
    """Checks that no host executes an event before it has received all packets that arrive no later than the event."""

    def __init__(self, hosts, delay):
        self._delay = delay
        self._due = [[] for _ in hosts]      # (virtual time of arrival, real time at which the host has received it) of each packet
        self._executed = [-1 for _ in hosts]

    def send(self, time, target, received):
        arrival = time + self._delay
        if arrival <= self._executed[target]:
            raise CausalityError(f"host {target} was at {self._executed[target]} when a packet for {arrival} was sent to it")
        heapq.heappush(self._due[target], (arrival, received))

    def execute(self, host, time, real):
        """Must be called before an event. real: the current real time."""
        self._executed[host] = max(self._executed[host], time)
        while self._due[host] and self._due[host][0][0] <= time:
            arrival, received = heapq.heappop(self._due[host])
            if received > real:
                raise CausalityError(f"host {host} executes an event at {time}, and has not received a packet for {arrival}")


def by_windows(hosts, delay, lookahead, costs, protocol):
    """Simulates rounds. In each, every host sends all others the time of its next event, with the packets of the last round, and executes
    the events below a limit. With WINDOWS, the limit is the earliest next event of all hosts plus the lookahead. With LIMITS, each host has its own limit: the
    earliest sum of another host's next event and the distance from that host; and, once it has sent a packet, the time until an answer to it. Returns
    the number of messages."""
    far = distances(hosts, lookahead)
    flight = _Flight(hosts, delay)
    others = len(hosts) - 1
    messages = 0
    while (earliest := min(host.next for host in hosts)) < NEVER:
        planned = [host.next for host in hosts]
        sent = []
        for host in hosts:
            limit = earliest + lookahead
            if protocol == LIMITS:
                limit = min((planned[other.number] + far[other.number][host.number] for other in hosts if other is not host), default=NEVER)
            while host.next < limit:
                flight.execute(host.number, host.next, NEVER)
                time, to = host.execute(costs)
                if to:
                    sent.append((time, to))
                    if protocol == LIMITS:
                        limit = min(limit, time + far[host.number][host.number])
        for time, to in sent:
            for target in to:
                flight.send(time, target, 0)
        if others:
            ends = [host.real + costs.cpu * others for host in hosts]       # of sending
            for host in hosts:
                last = max(ends[other.number] - costs.cpu + costs.latency for other in hosts if other is not host)
                host.real = max(ends[host.number], last) + costs.cpu * (others - 1)
            messages += len(hosts) * others
    return messages


class Promises:
    """Simulates null messages. A host promises each neighbour the earliest time at which a packet can still reach it: the earlier of its own next event and
    the promises that it has got, plus the lookahead. A host executes events below all promises that it has got. A packet is a promise for its time
    of arrival."""

    def __init__(self, hosts, delay, lookahead, costs):
        self._hosts, self._lookahead, self._costs = hosts, lookahead, costs
        self._flight = _Flight(hosts, delay)
        self._got = [dict.fromkeys(host.neighbours, 0) for host in hosts]
        self._given = [dict.fromkeys(host.neighbours, 0) for host in hosts]
        self._arriving = [[] for _ in hosts]
        self._acts = []                     # (real time, host)
        self._planned = [NEVER] * len(hosts)    # the real time of each host's next act
        self.messages = 0

    def run(self, most_messages):
        """Runs until all events have been executed, or that number of messages has been sent; returns the virtual time that all hosts have reached."""
        for host in self._hosts:
            self._plan(host, 0)
        while any(host.next < NEVER for host in self._hosts) and self.messages < most_messages:
            when, number = heapq.heappop(self._acts)
            if when == self._planned[number]:
                self._planned[number] = NEVER
                self._act(self._hosts[number], when)
        return min(min(host.next, self._promised(host)) if host.next < NEVER else NEVER for host in self._hosts)

    def _promised(self, host):
        return min(self._got[host.number].values(), default=NEVER)

    def _plan(self, host, when):
        when = max(when, host.real)
        if when < self._planned[host.number]:
            self._planned[host.number] = when
            heapq.heappush(self._acts, (when, host.number))

    def _act(self, host, when):
        host.real = when
        arriving = self._arriving[host.number]
        while arriving and arriving[0][0] <= when:
            _, _, source, promise = heapq.heappop(arriving)
            self._got[host.number][source] = max(self._got[host.number][source], promise)
            host.real += self._costs.cpu
        if host.next < self._promised(host):
            self._flight.execute(host.number, host.next, host.real)
            time, to = host.execute(self._costs)
            for target in to:
                self._flight.send(time, target, self._send(host, target, max(self._given[host.number][target], time + self._lookahead)))
            self._promise(host, self._lookahead)    # not after each event, because that would cost more than it gives
            self._plan(host, host.real)
        else:
            self._promise(host, 1)
            if arriving:
                self._plan(host, arriving[0][0])

    def _promise(self, host, least):
        bound = min(host.next, self._promised(host))
        for target in sorted(host.neighbours):
            if bound + self._lookahead >= self._given[host.number][target] + least:
                host.real += self._costs.cpu
                self._send(host, target, bound + self._lookahead)

    def _send(self, host, target, promise):
        """Sends a message, for which the sender's time has been spent already; returns when it has reached the receiver."""
        self.messages += 1
        self._given[host.number][target] = promise
        when = host.real - 2 * self._costs.cpu + self._costs.latency
        heapq.heappush(self._arriving[target], (when, self.messages, host.number, promise))
        self._plan(self._hosts[target], when)
        return when


def simulate(trace, count, costs, protocol, lookahead=None, most_messages=MOST_MESSAGES):
    """Simulates a trace on `count` hosts; returns a Result. lookahead: at most the trace's delay, which is the default."""
    lookahead = trace.delay if lookahead is None else lookahead
    if not 0 < lookahead <= trace.delay:
        raise ValueError("the lookahead must be positive and at most the delay of the cables")
    hosts = divide(trace, count)
    virtual = trace.duration
    if protocol == PROMISES:
        promises = Promises(hosts, trace.delay, lookahead, costs)
        virtual = min(virtual, promises.run(most_messages))
        messages = promises.messages
    else:
        messages = by_windows(hosts, trace.delay, lookahead, costs, protocol)
    return Result(max(host.real for host in hosts), max(virtual, 1), max(host.busy for host in hosts), messages, tuple(tuple(host.order) for host in hosts))


def break_even(trace, count, costs, protocol, limit):
    """Returns the shortest lookahead, to 10 %, with which the lab needs at most `limit` real seconds for a virtual second; None if the trace's delay is too short."""
    if simulate(trace, count, costs, protocol).ratio > limit:
        return None
    low, high = 1.0, float(trace.delay)
    while high / low > 1.1:
        middle = math.sqrt(low * high)
        if simulate(trace, count, costs, protocol, middle).ratio > limit:
            low = middle
        else:
            high = middle
    return high


def scaled(trace, factor):
    """Returns the trace with other costs, as of a faster or slower host."""
    return dataclasses.replace(trace, slices=tuple((time, place, round(cost * factor)) for time, place, cost in trace.slices))


def share_of_messages(trace, count, costs, protocol):
    """Returns the part of the real time that is caused by messages. The rest of the waiting time is that for hosts with more work."""
    free = simulate(trace, count, Costs(0, 0), protocol)
    return 1 - free.real / simulate(trace, count, costs, protocol).real


def _table(traces, args):
    """Prints a line for each trace, number of hosts and latency. "waiting" and "messages" are shares of the real time, with windows."""
    print(f"{'load':6} {'cable':>7} {'hosts':>5} {'message':>8} {'1 host':>9}" + "".join(f" {name:>9}" for name in PROTOCOLS) + f" {'waiting':>8} {'messages':>8}")
    for trace in traces:
        alone = trace.cost / trace.duration
        for count in args.hosts:
            for latency in args.latency:
                costs = Costs(round(latency * 1000), round(args.cpu * 1000))
                results = [simulate(trace, count, costs, protocol, most_messages=args.messages) for protocol in PROTOCOLS]
                print(f"{trace.load:6} {_cable(trace.delay):>7} {count:5} {latency:5g} us {alone:9.3g}" + "".join(f" {result.ratio:9.3g}" for result in results)
                      + f" {results[1].waiting:8.0%} {share_of_messages(trace, count, costs, WINDOWS):8.0%}")


def _cable(delay):
    metres = delay * METRES_PER_NS
    return f"{metres / 1000:.3g} km" if metres >= 1000 else f"{metres:.3g} m"


def longest_message(trace, count, cpu, protocol):
    """Returns the longest time of a message, to 5 %, with which the lab is as fast on `count` hosts as on one; 0 if there is none, at most a second."""
    low, high = 2.0 * cpu + 1, float(SECOND)
    if simulate(trace, count, Costs(low, cpu), protocol).real > trace.cost:
        return 0
    while high / low > 1.05:
        middle = math.sqrt(low * high)
        if simulate(trace, count, Costs(middle, cpu), protocol).real > trace.cost:
            high = middle
        else:
            low = middle
    return low


def _break_evens(traces, args):
    """Prints when several hosts are as fast as one: with windows, how long a message may take; with promises, how long the cables must be."""
    print(f"{'load':6} {'cable':>7} {'hosts':>5} {'windows: message at most':>25}" + "".join(f"   promises, {latency:g} us: cable at least" for latency in args.latency))
    for trace in traces:
        for count in args.hosts:
            cpu = round(args.cpu * 1000)
            cables = [break_even(trace, count, Costs(round(latency * 1000), cpu), PROMISES, trace.cost / trace.duration) for latency in args.latency]
            print(f"{trace.load:6} {_cable(trace.delay):>7} {count:5} {longest_message(trace, count, cpu, WINDOWS) / 1000:22.0f} us"
                  + "".join(f" {_cable(each) if each else 'none':>35}" for each in cables))


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", metavar="TRACE", help="a file that record_traces.py has written")
    parser.add_argument("--hosts", type=int, nargs="+", default=[2, 4], metavar="N", help="numbers of hosts; each must divide the number of places")
    parser.add_argument("--latency", type=float, nargs="+", default=[12, 25, 43], metavar="US", help="microseconds of a message between hosts")
    parser.add_argument("--cpu", type=float, default=2, metavar="US", help="microseconds of CPU time for sending, and again for receiving a message")
    parser.add_argument("--factor", type=float, default=1, help="multiply the costs of all events, as for a faster or slower host")
    parser.add_argument("--messages", type=int, default=MOST_MESSAGES, help="end a simulation of promises after so many messages")
    parser.add_argument("--break-even", action="store_true", help="print with which messages and cables several hosts are as fast as one; best with traces of the longest cable")
    args = parser.parse_args(argv)
    traces = [scaled(read(file), args.factor) for file in args.traces]
    (_break_evens if args.break_even else _table)(traces, args)


if __name__ == "__main__":
    main(sys.argv[1:])
