# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Starts a weftd without guests for one test, and clients of it such as `weft web`, and stops them afterwards."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

TIME_LIMIT = 60 * float(os.environ.get("WEFT_SLOWNESS", "1"))
WEB = pathlib.Path(__file__).resolve().parent.parent / "web/weft-web"


def await_that(what, condition):
    """Returns the first true value of condition()."""
    deadline = time.monotonic() + TIME_LIMIT
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain for {what}")
        time.sleep(0.02)
    return value


@contextlib.contextmanager
def weft_in_a_tree(program):
    """Copies the program weft into a directory like a source tree, and returns its path. weft finds the session relative to its own directory in a source
    tree, which is not the directory of a build with sanitizers."""
    with tempfile.TemporaryDirectory(prefix="weft-tree-") as tree:
        weft = pathlib.Path(tree) / "build/bin/weft"
        weft.parent.mkdir(parents=True)
        shutil.copy(program, weft)
        for name in ("tools", "scripts"):
            (pathlib.Path(tree) / name).symlink_to(pathlib.Path(__file__).resolve().parents[3] / name)
        yield weft


@contextlib.contextmanager
def process(*command, **options):
    with subprocess.Popen(command, stdin=options.pop("stdin", subprocess.DEVNULL), **options) as running:
        try:
            yield running
        finally:
            if running.stdout:
                running.stdout.close()      # no process reads it any more, and it may be full
            running.terminate()
            try:
                running.wait(TIME_LIMIT)
            except subprocess.TimeoutExpired:
                running.kill()


@contextlib.contextmanager
def weftd(program, lab=None, directory=None, events=(), **options):
    """Yields (process, socket directory) once it serves.

    events: requests with the times at which weftd executes them.
    options: of subprocess.Popen
    """
    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(directory or stack.enter_context(tempfile.TemporaryDirectory(prefix="weft-seen-")))
        directory.chmod(0o700)
        command = [program, "--socket-dir", str(directory), "--log-level", "info"]
        if lab:
            (directory / "lab.toml").write_text(lab)
            command += ["--lab", str(directory / "lab.toml")]
        if events:
            (directory / "events").write_text("".join(f"{json.dumps(event)}\n" for event in events))
            command += ["--events", str(directory / "events")]
        running = stack.enter_context(process(*command, stderr=subprocess.DEVNULL, **options))
        await_that("weftd to serve", lambda: (directory / "control.sock").is_socket() or running.poll() is not None)
        assert running.poll() is None, "weftd ended"
        yield running, directory


@contextlib.contextmanager
def web(weft, directory, *options):
    """Yields the address that `weft web` prints, with the token behind #."""
    with process(str(WEB), str(directory), f"weft={weft}", "port:=0", *options, stdout=subprocess.PIPE, text=True) as running:
        address = running.stdout.readline().strip()
        assert address.startswith("http://"), "weft web did not start"
        yield address


def fat_tree(leaves=12, spines=6, hosts=215, each=18, lines=3):
    """Returns a lab file with two tiers of switches."""
    parts = [f'[[switch]]\nname = "leaf{leaf + 1}"\nports = 36' for leaf in range(leaves)]
    parts += [f'[[switch]]\nname = "spine{spine + 1}"\nports = 40' for spine in range(spines)]
    parts += [f'[[host]]\nname = "node{host + 1}"' for host in range(hosts)]
    parts += [f'[[link]]\nends = ["node{host + 1}", "leaf{host // each + 1}"]' for host in range(hosts)]
    parts += [f'[[link]]\nends = ["leaf{leaf + 1}", "spine{spine + 1}"]' for leaf in range(leaves) for spine in range(spines) for _ in range(lines)]
    return "\n".join([*parts, '[sm]\nswitch = "spine1"', ""])
