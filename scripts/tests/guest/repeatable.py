# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that two runs of a User-Mode Linux guest with the same seed are identical."""
import pathlib
import shutil

from lab import kernels, uml
from lab.testing import test
from lab.waiting import wait_until

# Output that depends on chance, on time, on addresses and on the order of execution.
SCRIPT = """
cat /proc/sys/kernel/random/boot_id
head -c 64 /dev/urandom | od -An -tx1
for i in 1 2 3 4 5; do (sleep 0.$i; echo $i $RANDOM) & done
wait
cat /proc/self/maps /proc/uptime
date +%s.%N
ps -eo pid,ppid,stat,comm
"""


def _run(lab, number, seed):
    """Returns the guest's output, and its console."""
    folder = lab.directory / f"run-{number}"
    own = folder / "work/node1"
    for each in (own, folder / "state"):
        each.mkdir(parents=True)
    (own / "script").write_text(SCRIPT)
    log = folder / "console.log"
    keeper = uml.start(kernels.find(lab.kernel), uml.repeatable_words("node1", seed, "work"), memory="384M", log=log, state=pathlib.Path("state"),
                       repeatable_in=folder)
    try:
        wait_until("the machine's end", lambda: keeper.poll() is not None, 100)
    finally:
        uml.end(keeper)
    assert (own / "status").read_text() == "0\n", log.read_text(errors="replace")
    said = (own / "out").read_text()
    shutil.rmtree(own)
    return said, log.read_text()


@test(kernels=("um-debug",), timeout=330)
def same_seed_gives_an_identical_guest_run(lab):
    """With the same seed, random numbers, addresses, processes, times and the kernel's log are identical. With another seed they differ."""
    seed = lab.seed & 0xffff
    first, again, other = (_run(lab, number, each) for number, each in enumerate((seed, seed, seed + 1)))
    assert len(first[0].splitlines()) > 20, first[0]
    assert first == again, f"the first:\n{first[0]}\nthe second:\n{again[0]}"
    assert first[0].splitlines()[:5] != other[0].splitlines()[:5], "the seed has no effect"
