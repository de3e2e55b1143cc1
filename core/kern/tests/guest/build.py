# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that the build of modules rejects language features that a module cannot have, gives the reason, and rebuilds only what has changed."""
import subprocess

from lab import cache, kernels
from lab.testing import test

MODULE = '#include <kern/module.h>\n\nKERN_MODULE_INFO("Injected");\n'

# Injected defects, and the message with which the build must fail.
DEFECTS = {
    "dynamic initialisation of a global":
        'extern "C" int source();\nint injected;\nstatic int begun = injected = source();\nint *keep() { return &begun; }\n',
    "needs a C++ runtime that a kernel module does not have: abort":
        "#include <optional>\nint injected(std::optional<int> value);\nint injected(std::optional<int> value) { return value.value(); }\n",
    "needs a C++ runtime that a kernel module does not have: _Znwm":
        "int *injected();\nint *injected() { return new int(3); }\n",
    "objtool warnings are errors":
        'extern "C" void injected();\nextern "C" void injected() { asm volatile("push %rax"); }\n',
    "unused variable":
        "void injected();\nvoid injected() { int never_used; }\n",
    "undefined!":
        'extern "C" void weft_nowhere();\nvoid injected();\nvoid injected() { weft_nowhere(); }\n',
    "needs the kernel's own symbols, which core/kern alone may (rule 1 of Documentation/architecture.rst): msleep":
        'extern "C" void msleep(unsigned int ms);\nvoid injected();\nvoid injected() { msleep(1); }\n',
}


class Tree:
    """A source tree of one module, with the build of this one."""

    def __init__(self, directory, source):
        self.root = directory
        (directory / "core/kern/linux").mkdir(parents=True)
        (directory / "core/injected").mkdir()
        for name in ("scripts", "include", "core/kern/linux/layout.c"):
            (directory / name).symlink_to(cache.TREE / name)
        (directory / "Kbuild").write_text((cache.TREE / "Kbuild").read_text())
        (directory / "core/injected/Kbuild").write_text(
            "obj-m += weft_injected.o\nweft_injected-y += core/injected/module.o core/injected/defect.o core/injected/other.o\n")
        (directory / "core/injected/module.c").write_text(MODULE)
        (directory / "core/injected/defect.cpp").write_text(source)
        (directory / "core/injected/own.hpp").write_text("#pragma once\nint other();\n")
        (directory / "core/injected/other.cpp").write_text('#include "own.hpp"\nint other() { return 1; }\n')

    def build(self, kdir, *arguments):
        done = subprocess.run([self.root / "scripts/make/kbuild/run", kdir, *arguments, "modules"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout


@test(kernels=("stock",), also=("plain", "debug"), timeout=300)
def module_build_rejects_cpp_features_that_modules_do_not_support(lab):
    """Each injected defect fails the build every time it is built, with the reason."""
    kdir = kernels.find(lab.kernel).kdir
    for number, (reason, source) in enumerate(DEFECTS.items()):
        tree = Tree(lab.directory / f"injected{number}", source)
        for _ in range(2):
            status, output = tree.build(kdir)
            assert status != 0 and reason in output, f"{reason}: status {status}\n{output}"


@test(kernels=("stock",), also=("plain",), timeout=120)
def build_after_a_header_change_compiles_only_the_sources_that_include_it(lab):
    """A second build does nothing. A build after a header was touched compiles only the sources that include it. No build changes the source tree."""
    kernel = kernels.find(lab.kernel)
    tree = Tree(lab.directory / "tree", "int injected();\nint injected() { return 1; }\n")
    before = sorted(tree.root.rglob("*"))
    status, output = tree.build(kernel.kdir)
    assert status == 0, output
    assert (tree.root / "build/modules" / kernel.release / "weft_injected.ko").exists()
    assert [path for path in sorted(tree.root.rglob("*")) if tree.root / "build" not in (path, *path.parents)] == before
    assert tree.build(kernel.kdir) == (0, "")
    (tree.root / "core/injected/own.hpp").touch()
    status, output = tree.build(kernel.kdir)
    assert status == 0 and "other.o" in output and "injected/defect.o" not in output, output


@test(kernels=("stock",), also=("plain",), timeout=60)
def module_build_reports_why_a_kernel_tree_is_unusable(lab):
    """For a KDIR that cannot be used, the build prints one line with the reason and the remedy."""
    tree = Tree(lab.directory / "tree", "")
    empty = lab.directory / "empty"
    empty.mkdir()
    unprepared = lab.directory / "unprepared"
    unprepared.mkdir()
    (unprepared / "Makefile").write_text("")
    poor = lab.directory / "poor"
    for name, text in (("Makefile", ""), ("Module.symvers", ""), ("include/config/auto.conf", "CONFIG_MODULES=y\n"),
                       ("include/generated/utsrelease.h", '#define UTS_RELEASE "6.1.0"\n')):
        (poor / name).parent.mkdir(parents=True, exist_ok=True)
        (poor / name).write_text(text)
    for kdir, said in (("", "apt-get install linux-headers-amd64"), (lab.directory / "nowhere", "is not a kernel tree"),
                       (empty, "is not a kernel tree"), (unprepared, "make modules_prepare"), (poor, "lacks CONFIG_PCI")):
        status, output = tree.build(kdir)
        assert status != 0 and said in output and output.count("\n") == 1, f"{kdir}: status {status}\n{output}"
