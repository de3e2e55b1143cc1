# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Generates random schedules for a scenario. A scenario consists of a table of actions, from which the steps of a schedule are chosen at random, and
of a shell script with a function for each action, which guests run.

Each action is chosen depending on the state that its host would have if all earlier steps had succeeded, so most steps are possible. If a step is not
possible because an earlier one has failed, its command fails, and this failure is ignored.
"""
import dataclasses
import hashlib
import pathlib
import random
import typing

from hunt import walk
from hunt.schedule import FABRIC, SETTINGS, Schedule, Step
from lab.errors import LabError
from stack import IN_TREE, LINUX

HERE = pathlib.Path(__file__).resolve().parent
HOSTS = ("node1", "node2")
STEPS = 80          # on both hosts
BEGIN = 4.0         # seconds; by then ib0 is up
LONGEST_PAUSE = 0.5
FAILS = 0.6         # probability that a step has a failing allocation
FAULTS = 0.15       # probability that a step is a fault of the fabric, a card or the subnet manager
ANY = 0.2           # probability that pages are counted as well
LONGEST_FAULT = 3.0     # seconds
LONGEST_OUTAGE = 15.0   # seconds, after which connections have failed
# Seconds after a failure in which the driver may still remove and register the device: mlx4_core looks for failures every five seconds.
UNTIL_RESET = 10.0
ALLOCATIONS = (20, 60, 250)     # the largest number of the failing one: the creation of an interface allocates some 230 objects


class CommonState:
    """The part of a host's state that all scenarios have: the state if all steps generated for it had succeeded."""

    def __init__(self):
        self.now = BEGIN
        self.bound = True
        self.running = set()        # programs that have been started and not killed
        self._reset_until = 0.0

    def begin(self, host):
        """Is called with the name of the host whose state it is."""

    def has_umad(self):
        return self.bound

    def may_remove(self):
        return MANAGER not in self.running

    def expect_reset(self):
        """Records that a fault which begins now makes the driver reset the card. Returns False if the device must not be removed."""
        if not self.may_remove():
            return False
        self._reset_until = self.now + LONGEST_FAULT + UNTIL_RESET
        return True

    def may_be_reset(self):
        return self.now < self._reset_until


class State(CommonState):
    """The state for the scenarios ipoib and connected."""

    def __init__(self, _):
        super().__init__()
        self.children = {}      # interface: P_Key

    def interfaces(self):
        return ["ib0", *self.children]


@dataclasses.dataclass(frozen=True)
class Action:
    """generate(rng, state): returns the step's words, or None if the state does not permit it; updates the state. may_fail: an allocation of the step may
    fail."""

    weight: int
    generate: typing.Callable
    may_fail: bool = True


def _bind(_, state):
    if state.bound:
        return None
    state.bound = True
    return ("bind",)


def _unbind(_, state):
    if not state.bound or not state.may_remove():
        return None
    state.bound = False
    state.children.clear()
    return ("unbind",)


def _add(name, interface):
    def generate(rng, state):
        pkey = rng.choice(PKEYS)
        child = interface.format(pkey)
        if not state.bound or child in state.children:
            return None
        state.children[child] = pkey
        return (name, pkey)
    return Action(4, generate)


def _delete(name, interface):
    def generate(rng, state):
        pkey = rng.choice(PKEYS)
        if state.children.pop(interface.format(pkey), None) is None:
            return None
        return (name, pkey)
    return Action(3, generate)


def _on_interface(name, *values):
    def generate(rng, state):
        if not state.bound:
            return None
        return (name, rng.choice(state.interfaces()), *((rng.choice(values),) if values else ()))
    return generate


MANAGER = "manager"     # OpenSM. When its device disappears, it repeats a failing call without a pause, so the device of a running one is not removed.


# The weight of starting OpenSM. Some steps make OpenSM repeat a call without a pause, so that the virtual time stands still and the run does not end: seed 1
# of ipoib, with a weight of 1. Until the cause is known, only schedules written by hand start OpenSM.
MANAGES = 0


def _manage(_, state):
    """Starts OpenSM, to which weft's subnet manager hands over. When OpenSM is killed, weft's subnet manager takes over again."""
    if MANAGER in state.running or not state.has_umad() or state.may_be_reset():
        return None
    state.running.add(MANAGER)
    return ("manage",)


def _terminate(rng, state):
    if not state.running:
        return None
    kind = rng.choice(sorted(state.running))
    state.running.remove(kind)
    return ("terminate", kind)


PKEYS = ("8001", "8002", "8003")    # the subnet manager gives the first to all ports, and the others to none
BY_SYSFS, BY_NETLINK = "ib0.{}", "p{}"
IPOIB = (
    Action(6, _bind), Action(1, _unbind),
    _add("create_child", BY_SYSFS), _delete("delete_child", BY_SYSFS), _add("add_link", BY_NETLINK), _delete("delete_link", BY_NETLINK),
    Action(4, _on_interface("up")), Action(2, _on_interface("down")), Action(1, _on_interface("mtu", "2044", "1500", "600")),
    Action(1, _on_interface("address")), Action(1, _on_interface("flush")), Action(MANAGES, _manage), Action(2, _terminate),
)
# The actions of ipoib, and connections with packets that need them. Interfaces are set up and connected often, because an unbound card loses all settings.
CONNECTED = (
    *IPOIB,
    Action(8, _on_interface("connect")), Action(2, _on_interface("mode", "connected", "datagram")), Action(1, _on_interface("mtu", "65520", "9000", "2044")),
    Action(8, _on_interface("send", "100", "5000", "60000")), Action(1, lambda rng, _: ("stop", rng.choice(("KILL", "INT")))),
)
CALLS = 400     # random calls in a round of the program that makes them


class VerbsState(CommonState):
    """The same for the scenario verbs. running: the kinds of programs that have been started and not killed."""

    def __init__(self, card):
        super().__init__()
        self.card = card
        self.driver = IN_TREE[card]
        self.users = {self.driver: set(), **USERS}
        self.loaded = set(self.users)

    def has(self, module):
        return self.bound and {self.driver, module} <= self.loaded

    def may_bind(self):
        """The only module of an mthca card is the one of its PCI driver."""
        return self.card != "mthca" or self.driver in self.loaded

    def has_umad(self):
        return self.has("ib_umad")

    def may_remove(self):
        """ib_mthca cannot take a device from the programs that use it: its removal waits until they have exited."""
        return super().may_remove() and (self.card != "mthca" or not self.running & USERS["ib_uverbs"])

    def may_use_verbs(self):
        """The programs that use verbs do not know the parameters of mlx5_ib."""
        return self.card == "mlx4" or (self.card == "mthca" and not self.may_be_reset())


ROUNDS = {"verbs": CALLS, "mads": 1000, "short": 100}     # the calls of a round of the programs that call at random
PROGRAMS = {"mads": "malformed"}    # the steps that start programs of a kind, if they do not have its name


def _program(kind, module):
    """Starts a program that uses a module's node."""
    def generate(rng, state):
        if not state.has(module) or kind in state.running or (module == "ib_uverbs" and not state.may_use_verbs()):
            return None
        state.running.add(kind)
        return (PROGRAMS.get(kind, kind), *((str(rng.randrange(1 << 32)), str(ROUNDS[kind] * rng.randint(1, 3))) if kind in ROUNDS else ()))
    return generate


def _starve(rng, state):
    return ("starve", rng.choice(sorted(state.running))) if state.running else None


def _disconnect(_, state):
    if not state.bound or not state.may_bind() or not state.may_remove():
        return None
    state.bound = False
    return ("disconnect",)


def _connect(_, state):
    if state.bound or not state.may_bind():
        return None
    state.bound = True
    return ("connect",)


def _unload(rng, state):
    """The card's driver needs ib_uverbs, which therefore cannot be unloaded before it, nor while a program has its node open."""
    module = rng.choice(sorted(state.users))
    if module not in state.loaded or (module == "ib_uverbs" and state.driver in state.loaded) or (module == state.driver and not state.may_remove()):
        return None
    if module == state.driver or not state.running & state.users[module]:
        state.loaded.remove(module)
    return ("unload", module)


def _load(rng, state):
    module = rng.choice(sorted(state.users))
    if module in state.loaded:
        return None
    state.loaded |= {module, "ib_uverbs"} if module == state.driver else {module}
    # A PCI driver that is loaded binds the card.
    state.bound |= module == state.driver and state.card == "mthca"
    return ("load", module)


# The modules that are unloaded in addition to the card's driver, and the kinds of programs that have their nodes open.
USERS = {"ib_umad": {"discover", "query", "mads", "short", MANAGER}, "ib_uverbs": {"verbs", "objects"}}
# The table has the step malformed instead of mads, because mlx4_ib fails at some path bits (Documentation/reports/umad-path-bits.rst).
VERBS = (
    Action(6, _program("verbs", "ib_uverbs")), Action(4, _program("objects", "ib_uverbs")), Action(2, _program("discover", "ib_umad")),
    Action(2, _program("query", "ib_umad")), Action(4, _program("mads", "ib_umad")), Action(2, _program("short", "ib_umad")), Action(MANAGES, _manage), Action(8, _terminate), Action(4, _starve),
    Action(2, _disconnect), Action(8, _connect), Action(2, _unload), Action(8, _load),
)


class CmState(CommonState):
    """The same for the scenario cm."""

    def __init__(self, _):
        super().__init__()
        self.child = False
        self.running.add("serve")


def _cm_program(kind, step=None, needs_child=False, count=False):
    """Starts a program of a kind, if none runs: the server and the others are programs of a kind each."""
    def generate(rng, state):
        if kind in state.running or (needs_child and not state.child):
            return None
        state.running.add(kind)
        return (step or kind, str(rng.randrange(1, 1 << 32)), *((str(CALLS * rng.randint(1, 3)),) if count else ()))
    return generate


def _child(name, has):
    def generate(_, state):
        if not state.bound or state.child == has:
            return None
        state.child = has
        return (name,)
    return generate


def _card(name, has):
    def generate(_, state):
        if state.bound == has or not (has or state.may_remove()):
            return None
        state.bound = has
        state.child = False
        return (name,)
    return generate


def _on_ib0(name, *values):
    return lambda rng, state: (name, *((rng.choice(values),) if values else ())) if state.bound else None


CM = (
    Action(4, _cm_program("serve")), Action(10, _cm_program("connect")), Action(3, _cm_program("connect", "connect_child", needs_child=True)),
    Action(6, _cm_program("random", count=True)), Action(1, _cm_program("namespace", count=True)), Action(9, _terminate), Action(5, _starve),
    Action(3, _child("create_child", True)), Action(1, _child("delete_child", False)), Action(3, _on_ib0("up")), Action(1, _on_ib0("down")),
    Action(1, _on_ib0("no_address")), Action(3, _on_ib0("address", "1", "2", "9")), Action(1, _on_ib0("flush")),
    Action(2, _on_ib0("neighbour", "02:08", "12:34")), Action(1, _card("unbind", False)), Action(8, _card("rebind", True)), Action(MANAGES, _manage),
    # Unloading fails while a program has the node open.
    Action(1, lambda *_: ("unload",)), Action(2, lambda *_: ("load",)),
)
TARGET = HOSTS[0]     # the other host is the initiator


class ProtocolState(CommonState):
    """The same for the scenarios of protocols that have a target and an initiator. served: the target's disk is accessible."""

    def __init__(self, _):
        super().__init__()
        self.served = True
        self.loaded = True

    def begin(self, host):
        self.is_target = host == TARGET
        if not self.is_target:
            self.running.add("io")


def _on_target(generate):
    return lambda rng, state: generate(rng, state) if state.is_target else None


def _on_initiator(generate):
    return lambda rng, state: None if state.is_target else generate(rng, state)


def _step(*words):
    return lambda *_: words


def _bind_card(name, bound):
    def generate(_, state):
        if state.bound == bound or not (bound or state.may_remove()):
            return None
        state.bound = bound
        return (name,)
    return generate


def _modules(name, loaded):
    """Unloads or loads the modules of the host's part. A target that serves keeps its modules."""
    def generate(_, state):
        if state.loaded == loaded or (state.is_target and not loaded and state.served):
            return None
        state.loaded = loaded
        return (name,)
    return generate


def _serve(_, state):
    if not state.loaded:
        return None
    state.served = True
    return ("serve",)


def _withdraw(_, state):
    if not state.served:
        return None
    state.served = False
    return ("withdraw",)


def _io(rng, state):
    if "io" in state.running:
        return None
    state.running.add("io")
    return ("io", str(rng.randrange(1, 1 << 32)))


# The steps of all protocols. No allocation of the card's driver and of IPoIB fails, because other scenarios test them.
HOST_STEPS = (
    Action(3, _terminate), Action(MANAGES, _manage), Action(1, _modules("unload", False)), Action(8, _modules("load", True)),
    Action(1, _bind_card("unbind", False), False), Action(8, _bind_card("rebind", True), False), Action(1, _on_ib0("down"), False), Action(4, _on_ib0("up"), False),
    Action(1, _on_ib0("no_address"), False), Action(4, _on_ib0("address"), False), Action(1, _on_ib0("flush"), False),
)


def _protocol(target=(), initiator=()):
    """Returns the table of a protocol, given the steps that only it has: a weight and the name of a step."""
    return (
        Action(8, _on_target(_serve)), Action(3, _on_target(_withdraw)), *(Action(weight, _on_target(_step(name))) for weight, name in target),
        Action(10, _on_initiator(_step("login"))), Action(2, _on_initiator(_step("logout"))), Action(1, _on_initiator(_step("terminate", "login"))),
        Action(10, _on_initiator(_io)), Action(4, _on_initiator(_starve)), *(Action(weight, _on_initiator(_step(name))) for weight, name in initiator),
        *HOST_STEPS,
    )


class DatagramState(ProtocolState):
    """The same for the scenario rds, in which both hosts do the same."""

    def begin(self, host):
        self.is_target = False
        self.running.add("listen")


def _datagrams(kind, has_seed):
    def generate(rng, state):
        if kind in state.running:
            return None
        state.running.add(kind)
        return (kind, *((str(rng.randrange(1, 1 << 32)),) if has_seed else ()))
    return generate


RDS = (*HOST_STEPS, Action(8, _datagrams("listen", False)), Action(10, _datagrams("ask", True)), Action(6, _starve))
PROTOCOLS = {
    "nvme": _protocol(target=((2, "disable"), (1, "close_port")), initiator=((2, "reset"), (1, "rescan"))),
    "srp": _protocol(target=((2, "disable"), (2, "remove_initiator")), initiator=((1, "delete_disk"), (2, "rescan"))),
    "rds": RDS,
}
TABLES = {"ipoib": IPOIB, "verbs": VERBS, "connected": CONNECTED, "cm": CM, **PROTOCOLS}
STATES = {"ipoib": State, "verbs": VerbsState, "connected": State, "cm": CmState, **{name: ProtocolState for name in PROTOCOLS}, "rds": DatagramState}
# The step with which each host begins.
FIRST = {"ipoib": ("traffic",), "connected": ("traffic",), "cm": ("serve", "1"), **{name: ("begin",) for name in PROTOCOLS}}
# The scripts of a scenario, if they are not the one with its name.
SCRIPTS = {"connected": ("ipoib", "connected"), **{name: ("walk",) for name in walk.STEPS}, **{name: ("protocol", name) for name in PROTOCOLS if name != "rds"}}


def _scripts(name):
    return [HERE / f"{part}.sh" for part in SCRIPTS.get(name, (name,))]


def version(name):
    """Identifies the code that generates schedules and runs them in guests."""
    files = (HERE / ("walk.py" if name in walk.STEPS else "scenarios.py"), HERE / "guest.sh", *_scripts(name), *(() if name in walk.STEPS else (HERE / "perturbation.py",)))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def script(name):
    """The functions of a scenario's steps."""
    if name not in (*TABLES, *walk.STEPS):
        raise LabError(f"there is no scenario {name}", f"there is {', '.join((*TABLES, *walk.STEPS))}")
    return "".join(file.read_text() for file in _scripts(name))


# A fault: generate(rng, host, state, settings) returns the words of the step that causes it and of the one that removes it, which is None if the fault ends
# by itself; or None if the state does not permit the fault.


def _link_down(_, host, *__):
    return ("link", "down", host), ("link", "up", host)


def _outage(*arguments):
    """A link is down until the connections over it have failed. Afterwards their initiators have to connect again."""
    return _link_down(*arguments)


def _loss(rng, host, *_):
    return ("link", "set", host, f"loss={rng.choice((1, 10, 50))}%"), ("link", "set", host, "loss=0")


def _cm_faults(rng, host, *_):
    """Messages of the communication manager are lost, doubled, changed or late."""
    kinds = rng.sample(("cm_loss", "cm_duplication", "cm_corruption", "cm_lateness"), rng.randint(1, 3))
    return (("link", "set", host, *(f"{kind}={rng.choice((5, 20, 60))}%" for kind in kinds), f"cm_delay={rng.choice((1, 5, 40))}s"),
            ("link", "set", host, *(f"{kind}=0" for kind in kinds)))


def _renumber(*_):
    """All ports get other LIDs, as from a subnet manager that takes over without the tables of the former one."""
    return ("sm", "renumber"), None


def _corrupt_replies(rng, *_):
    """Replies of the subnet administration are malformed MADs."""
    return ("sm", "corrupt-replies", f"one-in={rng.choice((1, 3, 10))}", f"seed={rng.randrange(1, 1 << 32)}"), ("sm", "corrupt-replies", "one-in=0")


def _command(rng, host, state, settings):
    """A command of the driver fails. Drivers except ib_mthca may then reset the card: mlx4_core does so if the command should have closed an object."""
    if (settings["card"], settings["stack"]) != ("mthca", LINUX) and not state.expect_reset():
        return None
    return ("card", "fault", host, "command-nth", f"count={rng.randint(1, rng.choice((5, 60)))}"), ("card", "fault", host, "command-nth", "count=0")


def _card_fault(rng, host, _, settings):
    kind = rng.choice(HANDLED[settings["card"]] if settings["stack"] == LINUX else ALL_FAULTS)
    return ("card", "fault", host, kind), None


def _catastrophe(_, host, state, settings):
    """The card reports that it has failed, so its driver resets it and registers the device again. Linux's driver of mlx4 cards is left out: its removal, which
    follows at the latest in the check, then causes a known report of lockdep (Documentation/reports/mlx4-health-deadlock.rst). Afterwards lockdep is off."""
    if (settings["card"], settings["stack"]) == ("mlx4", LINUX) or not state.expect_reset():
        return None
    return ("card", "fault", host, "catastrophic"), None


# The faults of cards that Linux's drivers tolerate (Documentation/fault-injection.rst). They trust many values that a card gives them, and a lost command
# makes later commands fail. An event with another type or number (eqe-type, eqe-number) is a lost event: if it was the event of a CQ, the driver does not arm
# this CQ again, and whoever waits for one of its completions waits forever.
HANDLED = {"mlx4": ("interrupt", "command-twice"), "mlx5": ("interrupt",), "mthca": ("interrupt", "command-twice")}
# weft's drivers have to tolerate all faults. Those left out stop the card until it is reset, so the steps after them would have no effect.
ALL_FAULTS = ("cqe-number", "cqe-index", "cqe-opcode", "eqe-type", "eqe-number", "interrupt", "command-twice", "command-status")
COMMON = ((6, _link_down), (6, _loss), (1, _renumber), (2, _corrupt_replies), (2, _command), (2, _card_fault), (1, _catastrophe))
# Few faults of cards, because initiators need not connect again by themselves after one.
DISCONNECTING = ((6, _cm_faults), (6, _outage), (6, _link_down), (6, _loss), (2, _renumber), (2, _corrupt_replies), (1, _command), (1, _card_fault), (1, _catastrophe))
FAULT_TABLES = {"ipoib": COMMON, "verbs": COMMON, "connected": ((4, _cm_faults), *COMMON), "cm": ((8, _cm_faults), *COMMON),
                **{name: DISCONNECTING for name in PROTOCOLS}}
LONGEST = {_outage: LONGEST_OUTAGE}     # of the faults that may last longer than others


def _fault(rng, at, table, states, settings):
    """Returns the steps that inject a fault and remove it."""
    host = rng.choice(HOSTS)
    part = rng.random()
    (kind,) = rng.choices([kind for _, kind in table], [weight for weight, _ in table])
    end = round(at + 0.05 + part * (LONGEST.get(kind, LONGEST_FAULT) - 0.05), 3)
    begins, ends = kind(rng, host, states[host], settings) or (None, None)
    return [Step(when, FABRIC, words) for when, words in ((at, begins), (end, ends)) if words]


def _failure(rng):
    """Returns which allocation of a step fails; "" for none."""
    if rng.random() >= FAILS:
        return ""
    return ("any:" if rng.random() < ANY else "") + str(rng.randint(1, rng.choice(ALLOCATIONS)))


def generate(name, seed, **settings):
    """Returns the schedule of a seed."""
    if name in walk.STEPS:
        return walk.generate(name, seed, **settings)
    table = TABLES[name]
    rng = random.Random(f"{name} {seed}")
    chosen = {"card": SETTINGS["card"], "stack": SETTINGS["stack"], **settings}
    states = {host: STATES[name](chosen["card"]) for host in HOSTS}
    for host, state in states.items():
        state.begin(host)
    at = BEGIN
    steps = [Step(BEGIN, host, FIRST[name]) for host in HOSTS if name in FIRST]
    while len(steps) < STEPS:
        at = round(at + rng.uniform(0.01, LONGEST_PAUSE), 3)
        for state in states.values():
            state.now = at
        if rng.random() < FAULTS:
            steps += _fault(rng, at, FAULT_TABLES[name], states, chosen)
            continue
        host = rng.choice(HOSTS)
        (action,) = rng.choices(table, [action.weight for action in table])
        if words := action.generate(rng, states[host]):
            steps.append(Step(at, host, words, _failure(rng) if action.may_fail else ""))
    return Schedule(name, seed, tuple(sorted(steps, key=lambda step: step.at)), **settings)
