# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests `weft run` and `weft lab` with guests in jobs of a real Slurm, whose nodes are network namespaces of this host (cluster.py)."""
import contextlib
import os
import pathlib
import shlex
import signal
import sys
import time

from lab.testing import Skip, test

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import cluster  # noqa: E402
from daemon import await_that  # noqa: E402


def in_cluster(lab, function, count=2, programs=cluster.SLURM_PROGRAMS):
    """Calls function(user) with a Slurm of some nodes."""
    if reason := cluster.missing(*programs):
        raise Skip(reason)

    def work():
        with contextlib.ExitStack() as stack:
            nodes = cluster.Cluster(stack, count)
            user = cluster.User(nodes, lab.program("weft"), ("--kernel", lab.kernel), lab.slowness)
            try:
                nodes.start_slurm()
                function(user)
                user.assert_nothing_is_left()
            finally:
                user.copy_logs(lab.directory)

    cluster.inside(work)


def names(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@test(kernels=(), also=("um-debug",), timeout=240)
def guests_of_a_slurm_job_ping_each_other(lab):
    """`weft run` and `weft lab up` run guests on the nodes of a job that srun makes, and of one that exists. Statuses, logs and captures are those of
    one host."""
    def work(user):
        logs = lab.directory / "run"
        done = user.call(*user.words("run", "--logs", logs, "--on", "node2", "--", "ping -c 1 -W 20 10.1.0.1 | grep -o ' 0% packet loss'; exit 7", count=2))
        assert (done.returncode, done.stdout) == (7, " 0% packet loss\n"), (done.returncode, done.stdout, done.stderr)
        assert {"node1.log", "node2.log", "p1/weftd.log", "p2/weftd.log"} <= names(logs), names(logs)
        user.assert_nothing_is_left()

        # In an allocation: a lab in the background, whose commands are those of one host.
        logs = lab.directory / "lab"
        capture = lab.directory / "p2.pcapng"
        at = f"{user.weft} --socket-dir {user.directory}"
        script = user.cluster.folder / "script"
        script.write_text("\n".join((
            "#!/bin/sh", "set -e",
            shlex.join(user.words("lab", "up", "--logs", str(logs))),
            f"{at} lab shell node1 'ping -c 1 -W 20 10.1.0.2; hostname'",
            f"{at}/p2 capture node2 --write {capture} --seconds 0.5",
            f"{at} lab check",
            f"{at} lab down",
            "exit 5", "")))
        script.chmod(0o755)
        done = user.call("salloc", "--quiet", "--nodes=2", script)
        assert done.returncode == 5 and " 0% packet loss" in done.stdout and "\nnode1\n" in done.stdout, (done.returncode, done.stdout, done.stderr)
        assert capture.stat().st_size > 0
        assert {"node1.log", "node2.log", "p1/weftd.log", "p2/weftd.log"} <= names(logs), names(logs)
        user.assert_nothing_is_left()

        # In a batch script. The command's status becomes that of the user.
        script.write_text("#!/bin/sh\n" + shlex.join(user.words("run", "--quiet", "--logs", str(lab.directory / "batch-logs"), "--", "ping -c 1 -W 20 10.1.0.1 >&2 && hostname; exit 3")) + "\n")
        output = lab.directory / "batch"
        done = user.call("sbatch", "--wait", "--nodes=2", f"--output={output}", script)
        assert done.returncode == 3, (done.returncode, done.stderr, output.read_text())
        assert {"node1: node1", "node2: node2"} <= set(output.read_text().splitlines()), output.read_text()

    in_cluster(lab, work)


@test(kernels=(), also=("um-debug",), timeout=240)
def guests_on_four_slurm_nodes_run_a_command_and_stop_on_ctrl_c(lab):
    """All guests of four hosts reach each other. Ctrl-C ends the command, the guests and the job."""
    def work(user):
        pings = " && ".join(f"ping -c 1 -W 20 10.1.0.{number} >/dev/null" for number in range(1, 5))
        done = user.call(*user.words("run", "--quiet", "--", f"{pings} && hostname", count=4))
        assert (done.returncode, sorted(done.stdout.splitlines())) == (0, [f"node{number}: node{number}" for number in range(1, 5)]), (done.returncode, done.stdout, done.stderr)
        user.assert_nothing_is_left()
        with user.running(*user.words("run", "--on", "node2", "--logs", lab.directory / "logs", "--", "echo ready; sleep 1000", count=2)) as running:
            await_that("the command", lambda: "ready" in running.out() or running.poll() is not None or time.sleep(0.2))
            os.killpg(running.pid, signal.SIGINT)
            assert user.ends(running) == 130, running.err()
        assert {"node1.log", "node2.log"} <= names(lab.directory / "logs")

    in_cluster(lab, work, 4)
