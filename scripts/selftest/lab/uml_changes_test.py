# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests which changes scripts/uml/apply makes to a source tree of Linux, which trees it refuses, and which configurations scripts/uml/build refuses. The
trees contain only the text that is changed."""
import os
import pathlib
import subprocess
import tempfile
import unittest

from lab import cache

APPLY = cache.TREE / "scripts/uml/apply"
BUILD = cache.TREE / "scripts/uml/build"
REGISTERS = "arch/x86/um/os-Linux/registers.c"
READ = "\tif (ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &iov) == 0)\n"
SET = READ.replace("GETREGSET", "SETREGSET")
TLB = "arch/um/kernel/tlb.c"
FLUSH = "void force_flush_all(void)\n{\n\tfor_each_vma(vmi, vma)\n\t\tfix_range(mm);\n}\n"
DRIVERS = [f'source "drivers/infiniband/hw/{name}/Kconfig"\n' for name in ("mlx4", "mlx5", "mthca")]
KCONFIG = "drivers/infiniband/Kconfig"
STACK = "arch/um/kernel/stacktrace.c"
EXITS = "arch/um/drivers/virtio_uml.c"
INTERRUPTS = "arch/um/include/asm/Kbuild"
UBSAN = "lib/Kconfig.ubsan"
ALIGNMENT = "config UBSAN_ALIGNMENT\n\tdefault !HAVE_EFFICIENT_UNALIGNED_ACCESS\n"
FAULTS = "mm/memory.c"
WHEEL = "kernel/time/timer.c"
QUEUE = "kernel/workqueue.c"
# The files that are compiled with the changed might_sleep().
SLEEPING = ("kernel/locking/mutex.c", "kernel/locking/rwsem.c", "kernel/sched/build_utility.c",
            *(f"mm/{name}.c" for name in ("page_alloc", "slab_common", "slub", "util", "vmalloc")))
TEXTS = {
    "arch/um/Makefile": "",
    "arch/um/kernel/Makefile": "obj-y = irq.o\n",
    INTERRUPTS: "generic-y += hw_irq.h\ngeneric-y += irq_work.h\n",
    STACK: "#include <asm/stacktrace.h>\n\nstatic void save_addr(void *data)\n{\n}\n\nstatic const struct stacktrace_ops dump_ops = {\n};\n\n\tdump_trace(tsk, &dump_ops, trace);\n",
    KCONFIG: "if !UML\n" + "".join(DRIVERS) + "endif # !UML\n",
    EXITS: "module_exit(virtio_uml_exit);\n__uml_exitcall(virtio_uml_exit);\n",
    "arch/um/Kconfig": "",
    "include/linux/timer.h": "",
    FAULTS: "void __might_fault(const char *file, int line)\n{\n\t__might_sleep(file, line);\n}\n",
    WHEEL: ("#include <linux/slab.h>\n\nstatic int calc_wheel_index(unsigned long expires)\n{\n\tunsigned long delta = expires - clk;\n\tunsigned int idx;\n"
            "}\n"),
    QUEUE: "#include <linux/workqueue.h>\n\n\tworker->current_func(work);\n",
    **dict.fromkeys((*SLEEPING, "kernel/locking/Makefile", "kernel/sched/Makefile", "mm/Makefile"), ""),
}
OLD, MIDDLE, NEW = "6.1", "6.12", "7.3"
# The texts that depend on the version.
OF_VERSION = {
    OLD: {REGISTERS: READ, TLB: FLUSH, UBSAN: ALIGNMENT},
    MIDDLE: {REGISTERS: READ, TLB: "", UBSAN: ALIGNMENT},
    NEW: {REGISTERS: "unsigned long host_fp_size;\n", TLB: "", UBSAN: ALIGNMENT},
}
PROC = "fs/proc/Kconfig"
MERGE = """#!/bin/bash
shift 2
cat "$@" | awk -F= '/^CONFIG_/ {last[$1] = $0} END {for (k in last) print last[k]}' >.config
"""
# Takes the place of make. The configuration does not have the options in $DROPPED, and has those in $ADDED.
MAKE = """#!/bin/bash
case $* in
*olddefconfig*)
	sed -i '/=n$/d' .config
	for option in $DROPPED; do sed -i "/^CONFIG_$option=/d" .config; done
	for option in $ADDED; do echo "CONFIG_$option=y" >>.config; done ;;
*vmlinux*) touch vmlinux ;;
esac
"""


class UmlChanges(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-uml-")))

    def tree(self, version, texts):
        tree = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        number, level = version.split(".")
        for name, text in {"Makefile": f"VERSION = {number}\nPATCHLEVEL = {level}\n", **TEXTS, **texts}.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text)
        return tree

    def apply(self, tree):
        return subprocess.run([APPLY, tree], capture_output=True, text=True, check=False)

    def test_changes_to_a_kernel_source_depend_on_its_version(self):
        for version, texts in OF_VERSION.items():
            tree = self.tree(version, texts)
            done = self.apply(tree)
            text = {name: (tree / name).read_text() for name in (*TEXTS, *texts)}
            with self.subTest(version):
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(SET in text[REGISTERS], version != NEW, "the size of the registers")
                self.assertEqual("mmap_read_lock(mm);" in text[TLB], version == OLD, "the lock of force_flush_all()")
                self.assertEqual(text[UBSAN] == ALIGNMENT, version == OLD, "the check of alignment")
                self.assertCountEqual(text[KCONFIG].partition("endif # !UML\n")[2].splitlines(keepends=True), DRIVERS)
                self.assertNotIn("__uml_exitcall", text[EXITS])
                self.assertNotIn("irq_work", text[INTERRUPTS])
                self.assertIn("follow_frames(tsk, trace);", text[STACK])
                for name, call in ((FAULTS, "might_resched();"), (WHEEL, "um_perturb_expiry(expires);"), (QUEUE, "um_perturb_work();")):
                    self.assertIn(call, text[name])
                self.assertTrue((tree / "arch/um/kernel/perturb.c").is_file() and (tree / "include/linux/um_perturb.h").is_file())
                self.assertTrue((tree / "arch/um/kernel/irq_work.c").is_file() and (tree / "arch/um/kernel/frames.h").is_file())

    def test_kernel_source_with_different_text_is_refused_with_the_name_of_the_file(self):
        for version, texts in OF_VERSION.items():
            needed = {**TEXTS, **texts}
            for name in (INTERRUPTS, STACK, KCONFIG, EXITS, FAULTS, QUEUE, *((REGISTERS,) if version != NEW else ()), *((TLB,) if version == OLD else (UBSAN,))):
                done = self.apply(self.tree(version, {**texts, name: needed[name].replace("_", "-").replace("!UML", "!UM")}))
                with self.subTest(f"{name} of {version}"):
                    self.assertEqual(done.returncode, 1)
                    self.assertRegex(done.stderr, rf"^scripts/\S+: {name} (does not have|has not|has no) ")

    def test_kernel_source_of_another_version_is_refused(self):
        for version in ("5.10", "6.6", "6.11", "6.2"):
            done = self.apply(self.tree(version, OF_VERSION[OLD]))
            with self.subTest(version):
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(f"no changes for Linux {version}", done.stderr)

    def test_directory_without_a_kernel_source_is_refused(self):
        done = self.apply(self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{self.folder} is not a source of Linux", done.stderr)

    def build(self, version, texts, **environment):
        """Runs scripts/uml/build with a program that takes the place of make."""
        tree = self.tree(version, {**OF_VERSION[version], "scripts/kconfig/merge_config.sh": MERGE, "bin/make": MAKE, **texts})
        for name in ("scripts/kconfig/merge_config.sh", "bin/make"):
            (tree / name).chmod(0o755)
        return subprocess.run([BUILD, tree, f"{tree}-built"], capture_output=True, text=True, check=False,
                              env={**os.environ, "PATH": f"{tree}/bin:{os.environ['PATH']}", "DROPPED": "", "ADDED": "", **environment})

    def test_kernel_configuration_that_lacks_a_requested_option_is_refused(self):
        texts = {PROC: "config PROC_SYSCTL\n"}
        done = self.build(MIDDLE, texts)
        self.assertEqual(done.returncode, 0, done.stderr)
        for lacking, environment in (("KASAN=y", {"DROPPED": "KASAN"}), ("PROC_SYSCTL=y", {"DROPPED": "PROC_SYSCTL"}), ("SLUB_TINY=n", {"ADDED": "SLUB_TINY"})):
            done = self.build(MIDDLE, texts, **environment)
            with self.subTest(lacking):
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"the configuration did not accept: CONFIG_{lacking}\n", done.stderr)

    def test_kernel_option_that_newer_versions_have_under_another_name_is_accepted(self):
        done = self.build(NEW, {PROC: "config SYSCTL\n"}, DROPPED="PROC_SYSCTL")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.build(NEW, {PROC: "config SYSCTL\n"}, DROPPED="PROC_SYSCTL SYSCTL")
        self.assertRegex(done.stderr, "the configuration did not accept: CONFIG_SYSCTL=y")


if __name__ == "__main__":
    unittest.main()
