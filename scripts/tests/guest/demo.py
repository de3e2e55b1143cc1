# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that the demonstration (`make demo`) completes with each card, and prints its results."""
import re
import subprocess

from lab import cache
from lab.testing import test


PROGRAMS = (("ibv_rc_pingpong", r"[\d.]+ usec"), ("ib_write_bw", r"[\d.]+ MB/s"), ("rping", "connected"), ("ib_send_bw -R", r"[\d.]+ MB/s"))


@test(kernels=("stock",), timeout=240)
def demo_completes_and_prints_its_summary(lab):
    """make demo SHELL=1 pings, measures, runs programs, accepts commands for both guests and the fabric, and exits with status 0."""
    done = subprocess.run(["make", "-C", cache.TREE, "demo", "SHELL=1"], input="hostname\nnode2 hostname\nweft counters node2/1\nexit\n",
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    summary, _, dialogue = done.stdout.partition("It works:")
    assert summary.count(" 0% packet loss") == 2, summary
    assert re.search(r"^  first ping +\d+ s after the start \(.*boot \d+ s.*\)$", dialogue, re.MULTILINE), dialogue
    for program, said in PROGRAMS:
        assert re.search(rf"^  {program} +{said}", dialogue, re.MULTILINE), dialogue
    assert [line for line in dialogue.splitlines() if line in ("node1", "node2")] == ["node1", "node2"], dialogue
    assert "node2/1" in dialogue, dialogue


@test(kernels=(), also=("stock",), timeout=240)
def demo_completes_with_mthca(lab):
    """make demo CARD=mthca pings and runs the programs with an InfiniHost in node1."""
    done = subprocess.run(["make", "-C", cache.TREE, "demo", "CARD=mthca"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"ib0: .* mtu 2044 ", done.stdout), done.stdout
    for program, said in (*PROGRAMS, ("kernel logs", "clean")):
        assert re.search(rf"^  {program} +{said}", done.stdout, re.MULTILINE), done.stdout


@test(kernels=(), also=("stock",), timeout=240)
def demo_completes_with_mlx5(lab):
    """make demo CARD=mlx5 runs the programs between Debian's stack on a ConnectX-5 and weft's on a ConnectX-2."""
    done = subprocess.run(["make", "-C", cache.TREE, "demo", "CARD=mlx5"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for program, said in (*PROGRAMS, ("kernel logs", "clean")):
        assert re.search(rf"^  {program} +{said}", done.stdout, re.MULTILINE), done.stdout


@test(kernels=(), also=("stock",), timeout=240)
def demo_completes_with_amso1100(lab):
    """make demo CARD=amso1100 connects card to card, and siw to a card."""
    done = subprocess.run(["make", "-C", cache.TREE, "demo", "CARD=amso1100"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for line in ("card to card +connected by rdma_cm, 16 exchanges whole", "rping over siw +connected by rdma_cm, 10 exchanges whole", "kernel logs +clean"):
        assert re.search(rf"^  {line}", done.stdout, re.MULTILINE), done.stdout
