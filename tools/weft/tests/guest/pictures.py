# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests `weft web` in a browser with running guests, and regenerates the pictures of the documents from a running lab and the demonstration."""
import contextlib
import subprocess

from lab import cache
from lab.testing import test

PROGRAM = cache.TREE / "tools/weft/tests/pictures.py"
CONSOLE = cache.TREE / "tools/weft/tests/guest_console.py"
FOLDER = cache.TREE / "build/test/pictures"
LAB = """
[[switch]]
name = "spine"
[[switch]]
name = "leaf1"
[[switch]]
name = "leaf2"
""" + "".join(f'[[host]]\nname = "node{number}"\n[[link]]\nends = ["node{number}", "leaf{(number + 1) // 2}"]\n' for number in range(1, 5)) + "".join(
    f'[[link]]\nends = ["leaf{number}", "spine"]\n' for number in (1, 2))
TRAFFIC = (("node1", "ping -f -s 1000 10.1.0.4"), ("node2", "ping -f -s 1000 10.1.0.3"), ("node3", "ping -i 0.2 10.1.0.1"))


def run(program, *words):
    done = subprocess.run(["/usr/bin/python3", "-B", program, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


def made(*words):
    run(PROGRAM, *words, FOLDER)


@contextlib.contextmanager
def up(lab, *options):
    """Yields the command `weft` with the socket directory of a lab that is up."""
    weft = (str(lab.program("weft")), "--socket-dir", str(lab.socket_path("control.sock").parent))
    subprocess.run([*weft, "lab", "up", *options, "--logs", lab.directory / "logs"], check=True)
    try:
        yield weft
    finally:
        subprocess.run([*weft, "lab", "down"], check=True)


@test(kernels=(), also=("stock",), timeout=300)
def pictures_of_a_lab_are_generated(lab):
    """`weft web`, `weft top` and a capture show four guests that exchange packets; the files are in build/test/pictures."""
    file = lab.directory / "lab.toml"
    file.write_text(LAB)
    with up(lab, "--lab", file) as weft, contextlib.ExitStack() as traffic:
        for host, command in TRAFFIC:
            running = traffic.enter_context(subprocess.Popen([*weft, "lab", "shell", host, command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL))
            traffic.callback(running.terminate)
        made("lab", weft[0], weft[2])


@test(kernels=(), also=("stock",), timeout=200)
def console_button_shows_the_console_of_a_guest(lab):
    """In a browser, the console button of a host shows the same text as `weft lab console`, and new output of the guest."""
    with up(lab) as weft:
        run(CONSOLE, weft[0], weft[2])


@test(kernels=(), also=("stock",), timeout=600)
def recording_of_the_demo_is_generated(lab):
    """`make demo` is recorded on a terminal, as an animation and for asciinema."""
    made("demo")
