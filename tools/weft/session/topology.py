# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Writes lab files for topologies: generates them from parameters, or converts ibnetdiscover's output on a real subnet."""
import collections
import dataclasses
import itertools
import math
import re
import sys

from lab.errors import LabError, printable

MOST_HOSTS = 19455       # maximum number for which weftd has default GUIDs
MOST_SWITCHES = 4096
MOST_PORTS = 254        # of a switch
PORTS = 36              # ports of a switch, without --ports
MOST_CARD_PORTS = 2
ENDPOINT = "endpoint"   # a model whose cards have one port
MOST_TEXT = 64 << 20    # maximum length of an ibnetdiscover file


@dataclasses.dataclass
class Node:
    name: str
    ports: int = 0      # of a switch: the number of ports that links use so far, or a larger given number
    guid: str | None = None


@dataclasses.dataclass
class Topology:
    """The contents of a lab file. Switches have as many ports as they need, and one of them has one more for the subnet manager."""

    title: str
    model: str | None = None    # of the hosts' cards
    switches: dict = dataclasses.field(default_factory=dict)
    hosts: dict = dataclasses.field(default_factory=dict)
    links: list = dataclasses.field(default_factory=list)      # (end, end, settings)

    def switch(self, name):
        return self.switches.setdefault(name, Node(name))

    def link(self, a, b):
        """Adds a link between two nodes, at the next free ports of switches."""
        ends = []
        for node in (a, b):
            if node.name in self.switches:
                node.ports += 1
                ends.append(f"{node.name}/{node.ports}")
            else:
                ends.append(node.name)
        self.links.append((*ends, ""))

    def populate(self, switches, hosts):
        """Adds hosts node1 and so on, spread evenly over the switches, with consecutive hosts next to each other."""
        for number in range(hosts):
            host = Node(f"node{number + 1}")
            self.hosts[host.name] = host
            self.link(host, switches[number * len(switches) // hosts])

    def split_hosts(self):
        """Replaces each host with more than one port by one host for each linked port, for a model whose cards have one port. Returns the number of
        the replaced hosts."""
        split = {name for name, host in self.hosts.items() if host.ports > 1}
        names = {}      # end of a link: name of the host for it
        seen = set()
        for end in sorted(end for link in self.links for end in link[:2]):
            name, _, port = end.partition("/")
            if name not in split:
                continue
            host, number = name, int(port)
            if name in seen:        # the first linked port has the name and the GUID of the host
                base = f"{name[:26]}-p{number}"
                host = next(each for each in itertools.chain([base], (f"{base}-{count}" for count in itertools.count(2)))
                            if each not in self.hosts and each not in self.switches)
                self.hosts[host] = Node(host, 1)
            seen.add(name)
            names[end] = host
        for name in split:
            self.hosts[name].ports = 1
        self.links = [(names.get(a, a), names.get(b, b), settings) for a, b, settings in self.links]
        return len(split)

    def text(self):
        if not self.switches:
            raise LabError("the topology has no switch")
        if len(self.hosts) > MOST_HOSTS or len(self.switches) > MOST_SWITCHES:
            raise LabError(f"{len(self.hosts)} hosts and {len(self.switches)} switches are too many", f"a lab has up to {MOST_HOSTS} and {MOST_SWITCHES}")
        widest = max(self.switches.values(), key=lambda node: node.ports)
        if widest.ports > MOST_PORTS:
            raise LabError(f"{widest.name} would have {widest.ports} ports", f"a switch has up to {MOST_PORTS}")
        first = next((node for node in self.switches.values() if node.ports < MOST_PORTS), None)
        if not first:
            raise LabError("no switch has a port left for the subnet manager")
        lines = [f"# {self.title}", f"# {len(self.switches)} switches, {len(self.hosts)} hosts, {len(self.links)} links"]
        for kind, nodes in (("switch", self.switches), ("host", self.hosts)):
            for node in nodes.values():
                lines += [f"[[{kind}]]", f'name = "{node.name}"']
                if node.guid:
                    lines.append(f'guid = "{node.guid}"')
                if kind == "host" and self.model:
                    lines.append(f'model = "{self.model}"')
                if kind == "switch":
                    lines.append(f"ports = {node.ports + (node is first)}")
                elif node.ports > 1:
                    lines.append(f"ports = {node.ports}")
        for a, b, settings in self.links:
            lines += ["[[link]]", f'ends = ["{a}", "{b}"]'] + ([settings] if settings else [])
        return "\n".join(lines) + f'\n[sm]\nswitch = "{first.name}"\n'


def fat_tree(hosts, ports, each=None, spines=None):
    """Returns a fat tree: half of a leaf's ports go down and half up, and there are as many spines as this needs, so that any half of the hosts can
    send to the other half at full rate. If `each` is given, there are `each` hosts at a leaf and the given number of spines, with a link from each
    leaf to each spine."""
    if each or spines:
        if not (each and spines):
            raise LabError("--each and --spines go together")
        topology = Topology(f"A fat tree for {hosts} hosts, {each} at each leaf, with {spines} spines")
        leaves = [topology.switch(f"leaf{number + 1}") for number in range(math.ceil(hosts / each))]
        topology.populate(leaves, hosts)
        for spine in [topology.switch(f"spine{number + 1}") for number in range(spines)]:
            for leaf in leaves:
                topology.link(leaf, spine)
        return topology
    topology = Topology(f"A fat tree for {hosts} hosts, of switches with {ports} ports")
    if hosts < ports:
        topology.populate([topology.switch("leaf1")], hosts)
        return topology
    down = ports // 2
    up = ports - down
    leaves = [topology.switch(f"leaf{number + 1}") for number in range(math.ceil(hosts / down))]
    if len(leaves) > ports:
        raise LabError(f"two levels of switches with {ports} ports reach {ports * down} hosts", "use larger switches (--ports)")
    # Each leaf has the same number of links to each spine.
    spines = min(count for count in range(1, up + 1) if up % count == 0 and len(leaves) * (up // count) <= ports)
    topology.populate(leaves, hosts)
    for spine in [topology.switch(f"spine{number + 1}") for number in range(spines)]:
        for leaf in leaves:
            for _ in range(up // spines):
                topology.link(leaf, spine)
    return topology


def ring(switches, hosts):
    topology = Topology(f"A ring of {switches} switches with {hosts} hosts")
    around = [topology.switch(f"switch{number + 1}") for number in range(switches)]
    topology.populate(around, hosts)
    for number in range(switches if switches > 2 else switches - 1):
        topology.link(around[number], around[(number + 1) % switches])
    return topology


def torus(size, hosts):
    """Returns a torus: a switch at each position of a grid, linked to the next one in each direction, and the last to the first."""
    topology = Topology(f"A torus of {'x'.join(map(str, size))} switches with {hosts} hosts")
    places = {place: topology.switch("switch" + "-".join(str(each + 1) for each in place))
              for place in itertools.product(*map(range, size))}
    topology.populate(list(places.values()), hosts)
    for place, switch in places.items():
        for axis, length in enumerate(size):
            # If there are only two, link them once and not twice.
            if length > 2 or place[axis] + 1 < length:
                topology.link(switch, places[place[:axis] + ((place[axis] + 1) % length,) + place[axis + 1:]])
    return topology


def dragonfly(hosts):
    """Returns a dragonfly: groups of fully connected switches, with one link between any two groups. It is the smallest balanced one with enough
    space (each switch has half as many hosts, and half as many links to other groups, as its group has switches)."""
    half = next(half for half in itertools.count(1) if half * 2 * half * (2 * half * half + 1) >= hosts)
    each = 2 * half
    groups = max(math.ceil(hosts / (half * each)), 2)
    topology = Topology(f"A dragonfly for {hosts} hosts: {groups} groups of {each} switches")
    members = [[topology.switch(f"group{group + 1}-{number + 1}") for number in range(each)] for group in range(groups)]
    topology.populate(list(itertools.chain(*members)), hosts)
    for group in members:
        for a, b in itertools.combinations(group, 2):
            topology.link(a, b)
    for a, b in itertools.combinations(range(groups), 2):
        # The links to other groups are distributed over the switches of a group in order: the link to group b is number b - 1 of group a, and the
        # link to group a is number a of group b.
        topology.link(members[a][(b - 1) % each], members[b][a % each])
    return topology


ID = r'"([^"]{1,64})"'
EXTERNAL = r"(?:\[ext \d+\])?"      # a port's number on the outside of its chassis
PORT_GUID = r"(?:\([0-9a-fA-F]+\))?"
NODE = re.compile(rf'(Switch|Ca|Hca|Rt)\s+(\d+)\s+{ID}\s*(?:#\s*"(.*)")?')
PORT = re.compile(rf'\[(\d+)\]{EXTERNAL}{PORT_GUID}\s+{ID}\s*\[(\d+)\]{EXTERNAL}{PORT_GUID}\s*(?:w=(\d+))?(?:\s*#.*?(\d+x)(\w+)?\s*$)?')
GUID = re.compile(r"[SHR]-([0-9a-fA-F]{1,16})")
# Lines that do not describe links: identities, and the headings of `ibnetdiscover --grouping`.
HEADING = re.compile(r"(vendid|devid|sysimgguid|switchguid|caguid|hcaguid|rtguid)=|Chassis \d+|Non-Chassis Nodes$")
# Lines that look like a node or a port, and are errors if they are malformed.
MEANT = re.compile(r"(Switch|Ca|Hca|Rt)\s|\[")
MOST_WARNINGS = 10          # of lines that are ignored
WIDTHS = ("1x", "4x", "8x", "12x")
SPEEDS = {"SDR": "SDR", "DDR": "DDR", "QDR": "QDR", "FDR10": "QDR", "FDR": "FDR", "EDR": "EDR"}
FASTEST = "EDR"
OWN_MANAGER = "weft SM"     # node description of a lab's subnet manager, which is omitted because the new lab has its own


def _name(description, fallback, taken):
    """Returns a lab's name for a node, derived from its node description."""
    wanted = re.sub(r"^MF\d+;([^:]*).*", r"\1", description or "").split()
    base = re.sub(r"[^A-Za-z0-9_.-]", "-", wanted[0]).lstrip(".")[:26] if wanted else ""
    base = base or fallback
    name = next(name for name in itertools.chain([base], (f"{base}-{number}" for number in itertools.count(2))) if name not in taken and name != "sm")
    taken.add(name)
    return name


@dataclasses.dataclass
class Line:
    """The line of a port. peer, other: the node at the other end, and its port."""
    number: int
    peer: str
    other: int
    width: str | None
    speed: str | None


class Reader:
    """Parses the output of ibnetdiscover, or a network of ibsim."""

    def __init__(self, source):
        self._source = source
        self._topology = Topology(f"From {source}")
        self._nodes = {}            # keyed by the name in the file; None: omitted
        self._taken = set()
        self._ports = {}            # (node, port): Line
        self._left_out = 0          # lines
        self._reduced = collections.Counter()

    def _fail(self, number, reason):
        raise LabError(f"{self._source}:{number}: {reason}", "the file must be the output of ibnetdiscover, or a network file of ibsim")

    def _warn(self, text):
        print(printable(f"weft: {text}"), file=sys.stderr)

    def _node(self, number, kind, count, key, description):
        """Parses the line of a node, and adds the node to the topology unless it is omitted; self._nodes has it, or None."""
        if key in self._nodes:
            self._fail(number, f"the node {key} is there twice")
        self._nodes[key] = None
        if kind == "Rt" or description == OWN_MANAGER:
            self._warn(f"{self._source}:{number}: {'a router' if kind == 'Rt' else 'the subnet manager of a lab'} is left out")
            return
        if kind == "Switch" and not 1 <= count <= MOST_PORTS:
            self._fail(number, f"a switch has 1 to {MOST_PORTS} ports")
        guid = GUID.fullmatch(key)
        if guid and not int(guid[1], 16):
            self._fail(number, "a GUID must not be 0")
        table = self._topology.switches if kind == "Switch" else self._topology.hosts
        name = _name(description or (None if guid else key), f"{'switch' if kind == 'Switch' else 'node'}{len(table) + 1}", self._taken)
        self._nodes[key] = table[name] = Node(name, count if kind == "Switch" else 1, f"0x{int(guid[1], 16):016x}" if guid else None)

    def lines(self, text):
        present = None
        for number, line in enumerate(text.splitlines(), 1):
            line = line.strip()
            if not line or line.startswith("#") or HEADING.match(line):
                continue
            if node := NODE.match(line):
                present = _key(node[3])
                self._node(number, node[1], int(node[2]), present, node[4])
            elif port := PORT.match(line):
                if not self._nodes:
                    self._fail(number, "a port comes before the first node")
                if self._nodes[present]:
                    width = f"{port[4]}x" if port[4] else port[5]
                    self._ports[self._nodes[present].name, int(port[1])] = Line(number, _key(port[2]), int(port[3]), width, port[6])
            elif MEANT.match(line):
                self._fail(number, f"'{line[:60]}' is neither a node nor a port")
            else:
                self._left_out += 1
                if self._left_out <= MOST_WARNINGS:
                    self._warn(f"{self._source}:{number}: '{line[:60]}' is left out")
        if self._left_out > MOST_WARNINGS:
            self._warn(f"{self._source}: {self._left_out - MOST_WARNINGS} more lines are left out")

    def _settings(self, line):
        """Returns the settings of a link for the lab file."""
        if line.width and line.width not in WIDTHS:
            self._reduced[f"of width {line.width}", "the width that a lab's links have"] += 1
        if line.width not in WIDTHS:
            return ""
        settings = f'width = "{line.width}"'
        if not line.speed:
            return settings
        speed = SPEEDS.get(line.speed, FASTEST)
        if speed != line.speed:
            self._reduced[f"of {line.speed}", speed + (", the fastest of a lab" if line.speed not in SPEEDS else "")] += 1
        return settings + f'\nspeed = "{speed}"'

    def _check_port(self, number, name, port):
        topology = self._topology
        if not 1 <= port <= (MOST_CARD_PORTS if name in topology.hosts else topology.switches[name].ports):
            self._fail(number, f"{name} has no port {port} in a lab")
        if name in topology.hosts:
            topology.hosts[name].ports = max(topology.hosts[name].ports, port)

    def links(self):
        for (name, own), line in self._ports.items():
            if line.peer not in self._nodes:
                self._fail(line.number, f"the node {line.peer} is not in the file")
            peer = self._nodes[line.peer]
            if not peer:
                continue
            back = self._ports.get((peer.name, line.other))
            node = back and self._nodes.get(back.peer)
            # ibsim accepts a link that is listed at one of its ends only.
            if back and (node is None or (node.name, back.other) != (name, own)) or not back and GUID.fullmatch(line.peer):
                self._fail(line.number, f"port {line.other} of {peer.name} does not name port {own} of {name}")
            self._check_port(line.number, name, own)
            if not back:
                self._check_port(line.number, peer.name, line.other)
            if not back or (name, own) < (peer.name, line.other):
                self._topology.links.append((f"{name}/{own}", f"{peer.name}/{line.other}", self._settings(line)))

    def topology(self):
        if not self._topology.switches:
            raise LabError(f"there is no switch in {self._source}", "the file must be the output of ibnetdiscover, or a network file of ibsim")
        for (what, instead), count in self._reduced.items():
            self._warn(f"{self._source}: {count} link{'s' if count > 1 else ''} {what}: {instead} instead")
        return self._topology


def _key(text):
    """Returns a node's name in the file, which is the same for the same GUID."""
    guid = GUID.fullmatch(text)
    return f"{text[0]}-{int(guid[1], 16):016x}" if guid else text


def read(text, source):
    """Returns the topology from the output of ibnetdiscover, or from a network of ibsim."""
    reader = Reader(source)
    reader.lines(text)
    reader.links()
    return reader.topology()


def _size(text):
    """AxBxC"""
    size = tuple(int(part) for part in re.fullmatch(r"(\d{1,4})(x\d{1,4}){0,2}", text) and text.split("x") or ())
    if not size or min(size) < 1 or math.prod(size) > MOST_SWITCHES:
        raise LabError(f"'{text}' is not the size of a torus", f"as in 8, 4x4 or 4x4x4, and up to {MOST_SWITCHES} switches")
    return size


def make(args):
    """`weft topology`: prints the lab file."""
    if args.kind == "import":
        try:
            with sys.stdin if args.file == "-" else open(args.file, encoding="utf-8", errors="replace") as file:
                text = file.read(MOST_TEXT + 1)
        except OSError as error:
            raise LabError(f"cannot read {args.file}: {error.strerror}") from None
        if len(text) > MOST_TEXT:
            raise LabError(f"{args.file} is larger than {MOST_TEXT >> 20} MiB")
        topology = read(text, "standard input" if args.file == "-" else args.file)
    elif args.kind == "fat-tree":
        topology = fat_tree(args.hosts, args.ports or PORTS, args.each, args.spines)
    elif args.kind == "ring":
        topology = ring(args.switches, args.switches if args.hosts is None else args.hosts)
    elif args.kind == "torus":
        size = _size(args.size)
        topology = torus(size, math.prod(size) if args.hosts is None else args.hosts)
    else:
        topology = dragonfly(args.hosts)
    topology.model = args.model
    if args.model == ENDPOINT and (split := topology.split_hosts()):
        print(f"weft: {split} host{'s have' if split > 1 else ' has'} more than one port: one host of the model {ENDPOINT} for each port instead", file=sys.stderr)
    try:
        sys.stdout.write(topology.text())
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise LabError(f"cannot write standard output: {error.strerror}") from None
    return 0
