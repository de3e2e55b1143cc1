# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Contains guest tests with injected failures, which scripts/test-selftest runs. Each failure must be reported as described there."""
import subprocess

from lab.testing import Skip, test


@test(kernels=("stock",))
def guest_test_without_a_defect_passes(lab):
    """A test without a defect passes."""
    with lab.guest() as node1:
        assert node1.run("echo hello").out == "hello\n"


@test(kernels=("stock",))
def failed_assertion_fails_the_test(lab):
    with lab.guest() as node1:
        assert node1.run("echo hello").out == "injected assertion"


@test(kernels=("stock",))
def failing_command_fails_the_test(lab):
    with lab.guest() as node1:
        node1.run("echo injected command; exit 3")


@test(kernels=("stock",))
def kernel_warning_in_the_guest_log_fails_the_test(lab):
    with lab.guest() as node1:
        node1.run("echo WARNING: CPU: 0 injected >/dev/kmsg")


@test(kernels=("stock",), timeout=12)
def command_that_hangs_fails_the_test(lab):
    with lab.guest() as node1:
        node1.run("sleep 1000", timeout=2000)


@test(kernels=("stock",))
def kernel_panic_fails_the_test(lab):
    with lab.guest() as node1:
        node1.run("echo c >/proc/sysrq-trigger")


@test(kernels=("stock",))
def death_of_the_test_process_fails_the_test(lab):
    import os
    os._exit(0)


def leave_process():
    subprocess.Popen(["sleep", "86399"], start_new_session=True)


@test(kernels=("stock",))
def process_in_another_session_fails_the_test(lab):
    leave_process()


@test(kernels=("stock",), timeout=1)
def process_in_another_session_is_killed_with_the_test(lab):
    leave_process()
    while True:
        pass


@test(kernels=("stock",))
def skipped_guest_test_is_reported_as_skipped(lab):
    raise Skip("injected reason")
