# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Perturbs the scheduling of the guests' kernels at random. A kernel of scripts/uml/build does so if its command line has weft.perturb=
(scripts/uml/perturb.c). A perturbation is text as in a schedule's file: "sleeps=20 timers=10". It has the kinds of opportunities, each with their average
number of which the kernel takes one."""
import hashlib
import random
import re

from lab import own_kernel
from lab.errors import LabError

# The kinds, in the order of the kernel's option, and the numbers from which one is chosen.
KINDS = {"sleeps": (5, 20, 100), "timers": (2, 10, 50), "work": (2, 5, 20)}
USED = 0.7      # probability that a seed has a kind
OPTION = "UML_PERTURB"
LARGEST = 1000000000
NONE, HALF, ALL = MODES = ("none", "half", "all")   # which seeds of a hunt are perturbed


def parse(text):
    """Returns a perturbation in its usual form: the kinds in order, without those that never happen."""
    given = {}
    for word in text.split():
        kind, _, number = word.partition("=")
        if kind not in KINDS or kind in given or not re.fullmatch(r"[0-9]{1,10}", number) or int(number) > LARGEST:
            raise LabError(f"{word} does not perturb scheduling", 'an example is "perturb sleeps=20 timers=10 work=5"')
        given[kind] = int(number)
    return " ".join(f"{kind}={given[kind]}" for kind in KINDS if given.get(kind))


def generate(name, seed):
    """Returns the perturbation of a seed of a scenario. It has at least one kind."""
    rng = random.Random(f"perturbation {name} {seed}")
    chosen = {kind: rng.choice(numbers) for kind, numbers in KINDS.items() if rng.random() < USED}
    return parse(" ".join(f"{kind}={number}" for kind, number in (chosen or {"sleeps": KINDS["sleeps"][0]}).items()))


def perturbs(mode, seed):
    """Returns whether a hunt perturbs the run of a seed."""
    return mode == ALL or (mode == HALF and seed % 2 == 1)


def words(perturbation, seed, host):
    """Returns the words for the command line of a host's kernel. Hosts have different random numbers."""
    if not perturbation:
        return ()
    given = dict(word.split("=") for word in perturbation.split())
    own = int.from_bytes(hashlib.sha256(f"{seed} {host}".encode()).digest()[:8], "little")
    return (f"weft.perturb={','.join(map(str, (own, *(given.get(kind, 0) for kind in KINDS))))}",)


def supported(kernel):
    """Returns whether a kernel can perturb its scheduling."""
    return (own_kernel.configuration(kernel.kdir / ".config") or {}).get(OPTION) == "y"


def check(kernel):
    if not supported(kernel):
        raise LabError(f"the kernel {kernel.release} lacks CONFIG_{OPTION}, which perturbs scheduling", "use --kernel with a directory of scripts/uml/build")
