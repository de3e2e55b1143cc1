# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Checks whether the routes of a subnet can deadlock. A packet occupies a buffer of a virtual lane on one link while it waits for the next
link. The service level of its path and the tables of the switches select the lane. If buffers wait for one another in a loop, packets can block one
another forever (Dally and Seitz).

The functions take a callable, text(*words), which runs a program on a node and returns its output.
"""
import re


def tables(text):
    """{GUID of a switch: {LID: port}}, as they are in the switches."""
    found = {}
    for block in re.split(r"^Unicast lids", text("/usr/sbin/dump_lfts"), flags=re.MULTILINE)[1:]:
        guid = int(re.search(r"guid 0x(\w+)", block)[1], 16)
        found[guid] = {int(lid, 16): int(port) for lid, port in re.findall(r"^(0x\w{4}) (\d+)", block, re.MULTILINE)}
    return found


class Subnet:
    """Nodes and links in the output of ibnetdiscover."""

    def __init__(self, net):
        self.lids = {}      # {GUID of a switch: LID}
        self.around = {}    # {GUID of a switch: {port: (GUID of a switch, its port) or None for a host}}
        self.hosts = []     # (GUID of the switch, port of the switch, LID of the host)
        for block in re.split(r"^Switch", net, flags=re.MULTILINE)[1:]:
            guid = int(re.search(r'"S-(\w+)"', block)[1], 16)
            self.lids[guid] = int(re.search(r" lid (\d+) lmc", block)[1])
            ports = self.around[guid] = {}
            for port, kind, peer, peer_port, lid in re.findall(r'^\[(\d+)\]\s+"(\w)-(\w+)"\[(\d+)\].* lid (\d+) ', block, re.MULTILINE):
                ports[int(port)] = (int(peer, 16), int(peer_port)) if kind == "S" else None
                if kind != "S":
                    self.hosts.append((guid, int(port), int(lid)))


def one_lane(*_):
    return 0


def selected_lanes(text, subnet):
    """Returns a function with the arguments of one_lane(): the lane that the SL of the path, as the subnet administration gives it, has at a switch."""
    levels = {}
    for block in text("saquery", "-p").split("PathRecord dump")[1:]:
        fields = dict(re.findall(r"(\w+)\.+(\S+)", block))
        levels[int(fields["slid"], 0), int(fields["dlid"], 0)] = int(fields["sl"], 0)
    lanes = {}
    for switch, ports in subnet.around.items():
        for port in ports:
            for inwards, outwards, row in re.findall(r"in +(\d+), out +(\d+): ([|\d ]+)", text("smpquery", "sl2vl", str(subnet.lids[switch]), str(port))):
                lanes[switch, int(inwards), int(outwards)] = [int(lane) for lane in re.findall(r"\d+", row)]
    return lambda switch, inwards, outwards, source, destination: lanes[switch, inwards, outwards][levels[source, destination]]


def waits_of(lfts, subnet, lane):
    """{(switch, port, lane): those for which it waits}, of the routes between all hosts. lane: one_lane, or what selected_lanes() returns."""
    waits = {}
    for start, first, source in subnet.hosts:
        for end, last, destination in subnet.hosts:
            at, entered, before = start, first, None
            for _ in range(len(subnet.around) + 1):
                port = lfts[at][destination]
                if at == end and port == last:
                    break
                link = (at, port, lane(at, entered, port, source, destination))
                waits.setdefault(link, set())
                if before:
                    waits[before].add(link)
                before = link
                at, entered = subnet.around[at][port]
            else:
                raise AssertionError(f"no route from LID {source} to LID {destination}")
    return waits


def has_loop(waits):
    """Returns whether links wait for one another in a loop."""
    waited_by = {link: [] for link in waits}
    for link, others in waits.items():
        for other in others:
            waited_by[other].append(link)
    # Repeatedly remove links that wait for no other link, because they cannot be part of a loop.
    counts = {link: len(others) for link, others in waits.items()}
    free = [link for link, count in counts.items() if not count]
    for link in free:
        for other in waited_by[link]:
            counts[other] -= 1
            if not counts[other]:
                free.append(other)
    return len(free) < len(waits)
