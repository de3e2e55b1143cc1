# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Guest tests that must fail, and how."""
from lab import cache, kernels
from lab.testing import Skip, test


@test(kernels=("plain",))
def passes(lab):
    """The control."""
    with lab.guest() as node1:
        assert node1.run("echo hello").out == "hello\n"


@test(kernels=("plain",))
def asserts_wrongly(lab):
    with lab.guest() as node1:
        assert node1.run("echo hello").out == "planted assertion"


@test(kernels=("plain",))
def has_a_failing_command(lab):
    with lab.guest() as node1:
        node1.run("echo planted command; exit 3")


@test(kernels=("plain",))
def ignores_a_kernel_report(lab):
    with lab.guest(share=cache.TREE / "build/selftest" / kernels.find("plain").release) as node1:
        node1.run("insmod /share/planted_warning_test.ko")


@test(kernels=("plain",), timeout=12)
def hangs(lab):
    with lab.guest() as node1:
        node1.run("sleep 1000", timeout=2000)


@test(kernels=("plain",))
def panics(lab):
    with lab.guest() as node1:
        node1.run("echo c >/proc/sysrq-trigger")


@test(kernels=("plain",))
def dies(lab):
    import os
    os._exit(0)


@test(kernels=("plain",))
def skips(lab):
    raise Skip("planted reason")
