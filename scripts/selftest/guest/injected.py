# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Guest tests with injected failures, for scripts/test-selftest: each must be reported as described there."""
from lab.testing import Skip, test


@test(kernels=("stock",))
def passes(lab):
    """The control."""
    with lab.guest() as node1:
        assert node1.run("echo hello").out == "hello\n"


@test(kernels=("stock",))
def fails_an_assertion(lab):
    with lab.guest() as node1:
        assert node1.run("echo hello").out == "injected assertion"


@test(kernels=("stock",))
def runs_a_failing_command(lab):
    with lab.guest() as node1:
        node1.run("echo injected command; exit 3")


@test(kernels=("stock",))
def ignores_a_kernel_report(lab):
    with lab.guest() as node1:
        node1.run("echo WARNING: CPU: 0 injected >/dev/kmsg")


@test(kernels=("stock",), timeout=12)
def hangs(lab):
    with lab.guest() as node1:
        node1.run("sleep 1000", timeout=2000)


@test(kernels=("stock",))
def panics(lab):
    with lab.guest() as node1:
        node1.run("echo c >/proc/sysrq-trigger")


@test(kernels=("stock",))
def dies(lab):
    import os
    os._exit(0)


@test(kernels=("stock",))
def skips(lab):
    raise Skip("injected reason")
