# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Controls traffic endpoints in guests, for tests. Each endpoint owns a QP, sends and receives on command, and checks every byte. weft_traffic.ko
provides them in guests with weft's modules, and the program weft-traffic (tools/tests/traffic) in guests with Debian's in-tree stack; both take the
same commands and print the same output."""
import contextlib
import json
import os
import re

from lab.fabric import Fabric
from lab.waiting import DeadlineExceeded, wait_until

CONTROL = "/sys/kernel/debug/weft_traffic/control"
MODULES = ("weft_kern", "weft_core", "weft_mlx4", "weft_traffic")


class Refused(Exception):
    """A command failed; the message holds what the module and the shell said."""


def parsed_events(answer):
    return {name: int(count) for name, count in re.findall(r"\[([^:\]]+): (\d+)\]", answer[""])}


class Node:
    """A guest with weft's modules, and the objects that it has been asked to open."""

    in_kernel = True    # it has what only kernel modules have: fast registration, masked atomics, draining, events

    def __init__(self, guest):
        self.guest = guest
        self._next = 0

    def load(self, *names):
        self.guest.insmod(*(f"/share/{name}.ko" for name in names or MODULES))
        self.guest.run("mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug")

    def unload(self):
        self.guest.run(["rmmod", *reversed(MODULES)])

    def shell(self, text):
        """Returns a shell command that gives a command line to the module, prints its answer, and has its status."""
        return f"if echo '{text}' > {CONTROL}; then cat {CONTROL}; else cat {CONTROL}; false; fi"

    def command(self, text, timeout=90):
        """Gives the module a command line; returns its answer's words as a dict, and as text under ''. By the guest's agent, without a process: a test
        gives hundreds."""
        status = self.guest.put(CONTROL, f"{text}\n", timeout, check=False).status
        return self._words(text, status and os.strerror(status), self.guest.get(CONTROL, timeout).decode(errors="replace"))

    def start(self, text):
        """Begins a command of the module's and does not wait; the result, called, does, and gives the answer as command() does."""
        process = self.guest.spawn(self.shell(text))
        return lambda timeout=90: self._answer(text, process, timeout)

    def events(self):
        """Returns the number of events of the devices and their ports so far, by name."""
        return parsed_events(self.command("events"))

    def _answer(self, text, process, timeout):
        try:
            ran = process.wait(timeout, check=False)
        except DeadlineExceeded:
            process.kill()
            raise
        return self._words(text, ran.err or "failed" if ran.status else "", ran.out)

    def _words(self, text, problem, said):
        if problem:
            raise Refused(f"{self.guest.name}: {text}: {said}{problem}")
        answer = dict(re.findall(r"(\w+)=(\S+)", said))
        status = re.search(r"status=(.*?)(?: \w+=|$)", said.strip())
        if status:
            answer["status"] = status.group(1).strip()
        answer[""] = said.strip()
        return answer

    def open(self, **options):
        number = self._next % 64
        self._next += 1
        return Endpoint(self, number, options)

    def wait_active(self, timeout=30, port=1):
        """Waits until the port is ACTIVE and has its LID."""
        def active():
            try:
                endpoint = self.open(type="ud", port=port)
            except Refused:    # no device at the moment
                return False
            state = endpoint.answer["state"], endpoint.answer["lid"]
            endpoint.close()
            return state[0] == "4" and state[1] != "0"
        wait_until(f"{self.guest.name}'s port to be ACTIVE", active, timeout * self.guest.slowness)


class StockNode(Node):
    """The same on the stack of Debian's kernel, by its verbs library."""

    in_kernel = False

    def load(self, *names):
        self.guest.run(f"modprobe -a {' '.join(names or ('mlx4_ib',))} ib_uverbs")
        self.serve()

    def serve(self):
        """Starts the program, once the drivers are loaded: Debian's, or weft's with user verbs."""
        self.guest.put("/tmp/weft-traffic", self._program.read_bytes())
        self.guest.run("chmod +x /tmp/weft-traffic && mkfifo /tmp/commands /tmp/answers")
        self.guest.wait_for("test -e /dev/infiniband/uverbs0", what="the verbs' device")
        self._server = self.guest.spawn("/tmp/weft-traffic /tmp/commands /tmp/answers")

    def unload(self):
        self._server.kill()

    def __init__(self, guest, program):
        super().__init__(guest)
        self._program = program

    def shell(self, text):
        return f"echo '{text}' > /tmp/commands && grep -a . /tmp/answers > /tmp/answer; cat /tmp/answer; grep -q ^ok /tmp/answer"

    def command(self, text, timeout=90):
        # Other work of the peer's program may take longer than this command itself.
        return self.start(text)(timeout)


class Endpoint:
    def __init__(self, node, number, options):
        self.node = node
        self.number = number
        self.answer = node.command(f"open id={number} " + " ".join(f"{k}={v}" for k, v in options.items()))

    def __getattr__(self, name):
        """Any of the module's commands: endpoint.send(count=4, size=100). timeout is in seconds, and for this side only."""
        def call(timeout=90, **options):
            words = " ".join(f"{k}={v}" for k, v in options.items())
            return self.node.command(f"{name} id={self.number} {words}", timeout)
        return call

    def start(self, command):
        """As Node.start(), of this endpoint."""
        name, _, words = command.partition(" ")
        return self.node.start(f"{name} id={self.number} {words}")

    def events(self):
        """Returns the number of events of this endpoint's queues so far, by name."""
        return parsed_events(self.state())

    @property
    def address(self):
        """Returns the address that a peer connects to; for XRC the target, and the SRQ that requests name."""
        return {name: self.answer[name] for name in ("lid", "qpn", "target", "srqn") if name in self.answer}

    @property
    def memory(self):
        """Returns address and key of its receive region, for peers."""
        return {"addr": self.answer["addr"], "rkey": self.answer["rkey"]}

    def join(self, other, **options):
        """Connects both ways."""
        for one, two in ((self, other), (other, self)):
            one.connect(**two.address, **options)


def event_delay(sender, receiver, count=1):
    """Sends messages at once to a receiver that does nothing but wait for its event: microseconds from the last of them to that."""
    sender.post(count=1, size=64)
    receiver.post(count=count, size=64)
    receiver.arm()
    # The sender waits until the receiver requests the messages, so a slow guest does not matter.
    sent = sender.start(f"send after=1 count={count} batch={count} seed=5")
    delay = int(receiver.delay(count=count)["us"])
    assert sent()["done"] == str(count)
    assert receiver.receive(count=count, size=64, seed=5)["good"] == str(count)
    return delay


def peer(lab, guest, stock):
    """Returns the second of two nodes, on weft's stack or on Debian's; its guest must have a kernel for that stack."""
    return StockNode(guest, lab.program("weft-traffic")) if stock else Node(guest)


def peer_kernel(stock):
    """Returns the options of lab.guest() for the guest of such a node."""
    return {"kernel": "stock"} if stock else {}


def peer_kernels(stock):
    """Returns the argument about such a node for lab.fabric.Fabric."""
    return {"node2": "stock"} if stock else None


@contextlib.contextmanager
def pair(lab, stock_peer=False, **options):
    """Yields two guests with active ports on a fabric: (node, node, fabric). Both have weft's driver, or the second has Debian's."""
    fabric = FaultyFabric(lab, kernel_of=peer_kernels(stock_peer))
    with lab.boot(lab.guest("node1", cards=fabric.sockets[:1], **options),
                  lab.guest("node2", cards=fabric.sockets[1:], **peer_kernel(stock_peer), **options)) as guests:
        nodes = [Node(guests[0]), peer(lab, guests[1], stock_peer)]
        for node in nodes:
            node.load()
        for node in nodes:
            node.wait_active()
        yield *nodes, fabric


class FaultyFabric(Fabric):
    """A fabric into whose cards faults can be injected, with the faults of `weft card fault`."""

    def link(self, name, **settings):
        self.weft("link", "set", name, *(f"{k}={v}" for k, v in settings.items()))

    def fault(self, host, kind, count=1):
        """Makes the next operations of this kind fail on a host's card."""
        self.weft("card", "fault", host, kind, "--count", count)

    def random_faults(self, host, seed, one_in):
        self.weft("card", "random-faults", host, "--seed", seed, "--one-in", one_in)

    def asked(self, host):
        """Returns the number of requests to a host's card so far: doorbells, commands, by name."""
        return json.loads(self.weft("--json", "counters", "--cards"))[host]

    def struck(self, host):
        """Returns how often each kind of fault has occurred."""
        return json.loads(self.weft("--json", "card", "fault", host, "interrupt", "--count", 0))
