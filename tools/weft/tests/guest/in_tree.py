# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests `weft run --deterministic --stack linux`, with which guests run the kernel's own RDMA stack in virtual time."""
import subprocess

from lab.testing import test

LIST = "cd /sys/class/net/ib0/device/driver && pwd -P; sort /proc/modules | cut -d ' ' -f 1 | paste -sd ' '\n"
PING = "ping -D -c 5 -i 0.1 10.1.0.2\n"
IN_TREE = {"ib_core", "ib_ipoib", "ib_umad", "ib_uverbs", "mlx4_core", "mlx4_ib"}


def _run(lab, *options, status=0):
    done = subprocess.run([lab.program("weft"), "run", "--deterministic", "--quiet", "--kernel", lab.kernel, "--seed", str(lab.seed & 0xFFFF), *options],
                          capture_output=True, text=True, check=False, timeout=90 * lab.slowness)
    assert done.returncode == status, done.stdout + done.stderr
    return done


@test(kernels=("um-debug",), also=("um",), timeout=120)
def guests_get_ib0_from_the_in_tree_drivers_of_their_kernel(lab):
    """Guests have ib0 with an address, on mlx4_ib of their kernel, before the command runs. A card for which the kernel has no driver is refused."""
    done = _run(lab, "--stack", "linux", "--on", "node1", "--", LIST + PING)
    driver, modules, *answers = done.stdout.splitlines()
    assert driver.endswith("/drivers/mlx4_core"), done.stdout
    assert set(modules.split()) >= IN_TREE and "weft_" not in modules, modules
    assert " 0% packet loss" in done.stdout, answers
    refused = _run(lab, "--stack", "linux", "--card", "mthca", "--", "true", status=1)
    assert "has no module ib_mthca, which --stack linux loads for mthca: use another --card" in refused.stderr, refused.stderr


@test(kernels=(), also=("um-debug", "um"), timeout=240)
def two_runs_with_the_same_seed_capture_identical_packets_with_either_stack(lab):
    """Two runs with the same seed print the same times and record the same packets, on Linux's stack and on weft's."""
    for stack in ("linux", "weft"):
        captures = [lab.directory / f"{stack}-{number}.pcap" for number in range(2)]
        said = [_run(lab, "--stack", stack, "--capture", capture, "--on", "node1", "--", PING).stdout for capture in captures]
        assert said[0] == said[1] and said[0].count("time=") == 5, said
        assert captures[0].stat().st_size > 10_000 and captures[0].read_bytes() == captures[1].read_bytes(), "the captures differ"
