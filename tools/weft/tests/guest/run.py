# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""`weft run`: machines, for one command."""
import signal
import subprocess

from lab import kernels
from lab.testing import test
from lab.waiting import wait_until

# One host has what the command line says, the other a kernel of its own: which is Debian's, taken as any file with a folder of modules.
LAB = """
[[switch]]
name = "leaf"
[[host]]
name = "left"
[[host]]
name = "right"
boot = {{ kernel = "{kernel}", modules = "{modules}", append = "weft.told=right", memory = "640M" }}
[[link]]
ends = ["left", "leaf"]
[[link]]
ends = ["right", "leaf"]
"""
SCRIPT = """
uname -r
#@ left
ping -c 1 -W 20 10.1.0.2 | grep -o ' 0% packet loss'
cat /share/word
echo gone >&2
exit 7
#@ right
grep -o 'weft.told=[a-z]*' /proc/cmdline
findmnt -no FSTYPE /usr/lib/modules
until ip neighbour show dev ib0 | grep -q 10.1.0.1; do sleep 0.1; done
"""


@test(kernels=("stock",), timeout=150)
def run_gives_back_what_machines_say(lab):
    """A kernel from a file, with its modules, shares a lab with Debian's; output, errors and status come back by machine, and nothing stays but the consoles."""
    stock = kernels.find("stock")
    file = lab.directory / "lab.toml"
    file.write_text(LAB.format(kernel=stock.image, modules=stock.modules))
    share = lab.directory / "share"
    share.mkdir()
    (share / "word").write_text("shared\n")
    logs = lab.directory / "logs"
    done = subprocess.run([lab.program("weft"), "run", "--lab", file, "--share", share, "--logs", logs, "--script", "-"], input=SCRIPT,
                          capture_output=True, text=True, check=False)
    said = sorted(done.stdout.splitlines())
    expected = [f"left: {stock.release}", "left:  0% packet loss", "left: shared", f"right: {stock.release}", "right: weft.told=right", "right: ext4"]
    assert said == sorted(expected), done.stdout + done.stderr
    assert done.returncode == 7, done.stderr
    assert "left: gone\n" in done.stderr and "right: 10.1.0.2 on ib0" in done.stderr, done.stderr
    assert {"left.log", "right.log", "weftd.log"} == {path.name for path in logs.iterdir()}
    assert _started(lab) == []


@test(kernels=("stock",), timeout=60)
def run_ends_on_ctrl_c(lab):
    """Ctrl-C while a machine boots ends it, weftd and the sockets, with the status that a shell has for it."""
    command = subprocess.Popen([lab.program("weft"), "run", "--bare", "--logs", lab.directory / "logs", "--", "sleep", "inf"],
                               stderr=subprocess.PIPE, text=True)
    said = command.stderr.readline()
    assert "boots" in said, said
    wait_until("a machine to run", lambda: _started(lab), 20)
    command.send_signal(signal.SIGINT)
    rest = command.communicate(timeout=30)[1]
    assert command.returncode == 130, rest
    assert "weft run: interrupted" in rest, rest
    assert _started(lab) == []


def _started(lab):
    """The command lines of QEMU and weftd that name this test's folder, as its logs and its lab file are there."""
    lines = subprocess.run(["ps", "-eo", "args", "ww"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in lines if str(lab.directory) in line and ("qemu" in line or "weftd --socket-dir" in line)]
