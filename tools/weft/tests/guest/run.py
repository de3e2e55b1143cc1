# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that `weft run` starts guests, runs one command in them, returns its output and status, and stops the guests, also on Ctrl-C."""
import hashlib
import os
import pathlib
import random
import shutil
import signal
import subprocess

from lab import kernels
from lab.testing import test
from lab.waiting import wait_until

# One host uses the kernel of the command line, the other one a kernel from the lab file: Debian's, given as a file and a folder of modules.
LAB = """
[[switch]]
name = "leaf"
[[host]]
name = "left"
[[host]]
name = "right"
boot = {{ kernel = "{kernel}", modules = "{modules}", initrd = "{initrd}", append = "weft.told=right", memory = "640M" }}
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
dmesg | grep -o 'ACPI table found in initrd.*aml'
until ip neighbour show dev ib0 | grep -q 10.1.0.1; do sleep 0.1; done
"""


# An ACPI table in an initramfs is visible after the files are gone (Linux, Documentation/admin-guide/acpi/initrd_table_override.rst).
TABLE = "kernel/firmware/acpi/weft.aml"


def _folder_with_a_table(directory):
    """Returns a folder with an empty SSDT (ACPI 6.5, 5.2.6), which consists of a header whose bytes add up to 0."""
    header = b"SSDT" + (36).to_bytes(4, "little") + b"\x02\0WEFT  NOTHING " + (1).to_bytes(4, "little") + b"WEFT" + (1).to_bytes(4, "little")
    path = directory / "tables" / TABLE
    path.parent.mkdir(parents=True)
    path.write_bytes(header[:9] + bytes([-sum(header) & 255]) + header[10:])
    return directory / "tables"


@test(kernels=("stock",), timeout=150)
def weft_run_returns_output_and_exit_status_of_guests(lab):
    """A guest with a kernel, modules and an initramfs from files shares a lab with one on Debian's kernel. weft run returns the output of each and
    the exit status of the failed one, and leaves only the logs behind."""
    stock = kernels.find("stock")
    file = lab.directory / "lab.toml"
    initrd = lab.directory / "initrd"
    subprocess.run(["cpio", "--quiet", "-o", "-H", "newc", "-O", initrd], input=f"{TABLE}\n", text=True, check=True, cwd=_folder_with_a_table(lab.directory))
    file.write_text(LAB.format(kernel=stock.image, modules=stock.modules, initrd=initrd))
    share = lab.directory / "share"
    share.mkdir()
    (share / "word").write_text("shared\n")
    logs = lab.directory / "logs"
    done = subprocess.run([lab.program("weft"), "run", "--lab", file, "--share", share, "--logs", logs, "--script", "-"], input=SCRIPT,
                          capture_output=True, text=True, check=False, env=_marked(lab))
    said = sorted(done.stdout.splitlines())
    expected = [f"left: {stock.release}", "left:  0% packet loss", "left: shared", f"right: {stock.release}", "right: weft.told=right", "right: ext4",
                f"right: ACPI table found in initrd [{TABLE}"]
    assert said == sorted(expected), done.stdout + done.stderr
    assert done.returncode == 7, done.stderr
    assert "left: gone\n" in done.stderr and "right: 10.1.0.2 on ib0" in done.stderr, done.stderr
    assert {"left.log", "right.log", "weftd.log"} == {path.name for path in logs.iterdir()}
    assert _started(lab) == []


@test(kernels=("um-debug",), timeout=120)
def weft_run_boots_user_mode_linux_guests_with_the_linux_or_the_weft_stack(lab):
    """With a User-Mode Linux kernel, weftd serves the cards by vhost-user. The guests load the kernel's own modules or weft's, and ping each other."""
    for stack in ("linux", "weft"):
        done = subprocess.run([lab.program("weft"), "run", "--quiet", "--kernel", lab.kernel, "--stack", stack, "--on", "node1", "--",
                               "ping -c 1 -W 20 10.1.0.2 | grep -o ' 0% packet loss'; uname -r; lsmod | grep -oE '^(mlx4_ib|weft_mlx4) '"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=_marked(lab))
        driver = "weft_mlx4" if stack == "weft" else "mlx4_ib"
        assert (done.returncode, done.stdout) == (0, f" 0% packet loss\n{kernels.find(lab.kernel).release}\n{driver} \n"), done.stdout + done.stderr
    assert _started(lab) == []


@test(kernels=("stock",), timeout=120)
def ctrl_c_stops_weft_run_and_its_guests(lab):
    """Ctrl-C while a guest boots stops the guest and weftd, and weft run exits with status 130."""
    command = subprocess.Popen([lab.program("weft"), "run", "--bare", "--logs", lab.directory / "logs", "--", "sleep", "inf"],
                               stderr=subprocess.PIPE, text=True, env=_marked(lab))
    said = []
    while not said or "boots" not in said[-1]:      # it may have to make an initramfs first
        said.append(command.stderr.readline())
        assert said[-1], said
    wait_until("a machine to run", lambda: _started(lab), 20)
    command.send_signal(signal.SIGINT)
    rest = command.communicate(timeout=60 * lab.slowness)[1]
    assert command.returncode == 130, rest
    assert "weft run: interrupted" in rest, rest
    assert _started(lab) == []


@test(kernels=("stock",), timeout=120)
def weft_run_forwards_standard_input_and_sigint_to_the_command(lab):
    """A command in one guest reads the caller's standard input. Ctrl-C first signals the command, and weft run exits with status 130."""
    command = subprocess.Popen([lab.program("weft"), "run", "--bare", "--quiet", "--on", "node1", "--logs", lab.directory / "logs", "--",
                                "trap 'echo caught; exit 7' INT; read -r line; echo \"got $line\"; sum=$(sha256sum); echo \"$sum\"; while :; do sleep 0.1; done"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_marked(lab))
    data = random.Random(1).randbytes(1 << 20)
    command.stdin.write(b"hello\n" + data)
    command.stdin.close()
    assert command.stdout.readline() == b"got hello\n"
    assert command.stdout.readline().split()[0].decode() == hashlib.sha256(data).hexdigest()
    command.send_signal(signal.SIGINT)
    out, err = command.stdout.read(), command.stderr.read()
    assert command.wait(60 * lab.slowness) == 130, err
    assert out == b"caught\n", out
    assert _started(lab) == []


@test(kernels=("stock",), timeout=120)
def weft_run_on_the_weft_stack_loads_no_rdma_modules_of_linux(lab):
    """With --stack weft the guests have weft's modules and none of Linux's RDMA modules, reach each other, and modprobe loads the modules again with
    those that they need."""
    done = subprocess.run([lab.program("weft"), "run", "--stack", "weft", "--on", "node1", "--quiet", "--logs", lab.directory / "logs", "--",
                           "ping -c 1 -W 20 10.1.0.2 | grep -o ' 0% packet loss'; lsmod | grep -oE '^(weft_mlx4|weft_ipoib|ib_core|mlx4_core) '; ibv_devices | grep -o mlx4_0; "
                           "rmmod weft_ipoib weft_mlx4 && modprobe weft_ipoib && modprobe weft_mlx4 && modprobe weft_mlx4 && ip -o link show ib0 | grep -o ib0"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=_marked(lab))
    assert sorted(done.stdout.split("\n")) == sorted([" 0% packet loss", "weft_mlx4 ", "weft_ipoib ", "mlx4_0", "ib0", ""]), done.stdout + done.stderr
    assert done.returncode == 0, done.stderr
    assert _started(lab) == []


PROGRAM = """
#include <stdio.h>
#include <unistd.h>
int main(int count, char **words)
{
	(void)words;
	puts(WORD);
	fflush(stdout);
	return count > 1 ? pause() : 0;
}
"""


# tcpdump gives up its privileges, so it needs its user in the guest.
CAPTURE = """
ip link set lo up
tcpdump -i lo -c 1 -w /tmp/lo.pcap 2>/tmp/tcpdump.log &
until grep -q listening /tmp/tcpdump.log; do sleep 0.1; done
ping -c 1 127.0.0.1 >/dev/null
wait $! && grep '^1 packet captured' /tmp/tcpdump.log
"""
# As fault-injection.rst describes.
CRASH = """
echo /share/core.%e > /proc/sys/kernel/core_pattern; ulimit -c unlimited; bash -c 'kill -SEGV $$'
test $? = 139
"""


@test(kernels=("stock",), timeout=120)
def guest_loads_modules_and_runs_programs_from_the_shared_directory(lab):
    """A guest on the stock kernel has the modules of virtual network devices, and loads one more from the shared directory as weft.1 describes. A program in
    the shared directory that is rebuilt on the host runs in its new form, under another name also while the former one runs. Files are copied into the guest
    by tar, tcpdump captures packets, and the core file of a program that crashes is written to the shared directory."""
    share = lab.directory / "share"
    share.mkdir()
    shutil.copy(kernels.find("stock").modules / "kernel/drivers/net/geneve.ko", share)
    file = lab.directory / "lab.toml"
    file.write_text('[[switch]]\nname = "leaf"\n[[host]]\nname = "node1"\n[[link]]\nends = ["node1", "leaf"]\n')
    directory = lab.socket_path("control.sock").parent

    def weft(*words, given=b""):
        done = subprocess.run([lab.program("weft"), "--socket-dir", directory, *words], input=given, capture_output=True, check=False)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout.decode()

    def build(word, program):
        subprocess.run(["gcc", "-static", "-x", "c", f'-DWORD="{word}"', "-o", program, "-"], input=PROGRAM, text=True, check=True)

    weft("lab", "up", "--bare", "--lab", file, "--share", share, "--logs", lab.directory)
    try:
        weft("lab", "shell", "node1", "modprobe -a ipvlan vxlan wireguard && ip link add vx type vxlan id 1 dstport 4789 && ip link add wg type wireguard")
        weft("lab", "shell", "node1", "! modprobe -q geneve && cp /share/geneve.ko /lib/modules/$(uname -r) && depmod && modprobe geneve && "
             "ip link add gen type geneve id 1 remote 10.9.9.9")
        archive = subprocess.run(["tar", "c", "-C", lab.directory, file.name], capture_output=True, check=True).stdout
        weft("lab", "shell", "node1", "tar", "x", "-C", "/tmp", given=archive)
        assert weft("lab", "shell", "node1", "cat", f"/tmp/{file.name}") == file.read_text()
        weft("lab", "shell", "node1", CAPTURE)
        weft("lab", "shell", "node1", CRASH)
        assert (share / "core.bash").read_bytes().startswith(b"\x7fELF")
        build("one", share / "program")
        assert weft("lab", "shell", "node1", "/share/program") == "one\n"
        weft("lab", "shell", "node1", "setsid /share/program stay >/run/said 2>&1 </dev/null & until grep -q one /run/said; do sleep 0.1; done")
        # Under another name while the former version runs, and under the same name after that.
        build("two", share / "other")
        assert weft("lab", "shell", "node1", "/share/other") == "two\n"
        weft("lab", "shell", "node1", "pkill -x program && while pgrep -x program; do sleep 0.1; done")
        # Overwritten, as by cp(1).
        (share / "program").write_bytes((share / "other").read_bytes())
        assert weft("lab", "shell", "node1", "/share/program") == "two\n"
    finally:
        weft("lab", "down")


def _marked(lab):
    """Returns an environment by which _started() finds the processes of this test."""
    return {**os.environ, "WEFT_TEST_FOLDER": str(lab.directory)}


def _started(lab):
    """Returns the command lines of the QEMUs and weftds that this test has started."""
    mark = f"WEFT_TEST_FOLDER={lab.directory}".encode()
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark not in (process / "environ").read_bytes().split(b"\0"):
                continue
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:     # the process has exited meanwhile
            continue
        if any("qemu" in word or word.endswith("/weftd") for word in words):
            found.append(" ".join(words))
    return found
