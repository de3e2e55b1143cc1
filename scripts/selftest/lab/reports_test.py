# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that reports of a kernel are found, and that its other messages are ignored."""
import re
import unittest

from lab import cache, reports

COMPLAINTS = (
    "BUG: KASAN: use-after-free in injected+0x3/0x10 [injected]",
    "BUG: kernel NULL pointer dereference, address: 0000000000000008",
    "BUG: sleeping function called from invalid context at kernel/locking/mutex.c:580",
    "BUG: workqueue leaked lock or atomic: kworker/0:1/0x00000001/12",
    "WARNING: CPU: 1 PID: 77 at drivers/x.c:10 f+0x1/0x2",
    "WARNING: possible circular locking dependency detected",
    "WARNING: suspicious RCU usage",
    "INFO: task insmod:55 blocked for more than 60 seconds.",
    "INFO: trying to register non-static key.",
    "rcu: INFO: rcu_preempt self-detected stall on CPU",
    "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [insmod:60]",
    "kernel BUG at lib/list_debug.c:56!",
    "general protection fault, probably for non-canonical address 0xdead000000000108: 0000 [#1] PREEMPT SMP",
    "list_del corruption. prev->next should be ffff8880, but was 0",
    "refcount_t: underflow; use-after-free.",
    "UBSAN: array-index-out-of-bounds in x.c:1:2",
    "ODEBUG: free active (active state 0) object type: work_struct",
    "kmemleak: 2 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    "Kernel panic - not syncing: Fatal exception",
    "unregister_netdevice: waiting for ib0 to become free. Usage count = 2",
    "BUG kmalloc-64 (Tainted: G    B): Poison overwritten",
    "irq 24: nobody cared (try booting with the \"irqpoll\" option)",
    "weft_mlx4 0000:01:00.0: DMA-API: device driver frees DMA memory with wrong function",
    "insmod: page allocation failure: order:9, mode:0xcc0",
    "NOHZ tick-stop error: local softirq work is pending, handler #08!!!",
    "softirq: huh, entered softirq 3 NET_RX 0000 with preempt_count 00000101, exited with 00000100?",
    "note: kworker/0:1[12] exited with preempt_count 1",
    "destroy_workqueue: weft_events has the following busy pwq",
    "DMAR: [DMA Write NO_PASID] Request device [01:00.0] fault addr 0x1000 [fault reason 0x05] PTE Write access is not set",
    "weft_ipoib: disagrees about version of symbol ib_unregister_client",
    "INFO: lockdep is turned off.",
    "weft_core: weft0: weft_ipoib left 1 QP behind",
    "weft_core: weft0: weft_mad left 2 event handlers behind",
    "weft_core: weft0: no memory to add it to ipoib",
    "weft_core: weft0: event 10 of port 3, which it does not have",
    "weft_uverbs: the device does not give back an object of kind 4, which is lost",
    "weft_mlx4 0000:01:00.0: QP 0x48: its requests were not all flushed: -110",
    "weft_ipoib: ib0: the device kept sends and receives",
)
REMARKS = (
    "Debug: BUG lists are at /sys",
    "weft_kern: loading out-of-tree module taints kernel.",
    "mlx4_core 0000:01:00.0: command 0x4 timed out",
    "Kernel command line: console=ttyS0 oops=panic panic=-1",
    "    # pass: 1 BUG",
    "NMI watchdog: Perf NMI watchdog permanently disabled",
    "RCU restricting CPUs from NR_CPUS=64 to nr_cpu_ids=2.",
    "weft_core: weft0: a client does not take it: -12",
    "a program says that weft_core: weft0: weft_ipoib left 1 QP behind",
)


class Reports(unittest.TestCase):
    def test_weft_log_messages_that_reports_py_searches_for_occur_in_the_sources(self):
        """If the wording of a message changed, its pattern would no longer match, and no other test would fail."""
        sources = "".join(path.read_text() for room in ("core", "hw", "ulp") for path in (cache.TREE / room).rglob("*.[ch]*"))
        for form in reports.OWN:
            with self.subTest(form):
                self.assertIn('"' + form.replace("\n", "\\n") + '"', sources)

    def test_kernel_reports_are_found_in_a_log(self):
        for line in COMPLAINTS:
            with self.subTest(line):
                self.assertEqual(len(reports.find(f"[    1.000000] before\n[   12.345678] {line}\n[   12.4] Call Trace:\n")), 1)

    def test_log_messages_that_are_no_kernel_reports_are_ignored(self):
        for line in REMARKS:
            with self.subTest(line):
                self.assertEqual(reports.find(f"[    1.000000] {line}\n"), [])

    def test_kernel_report_extends_to_its_end_trace_line(self):
        log = "[ 1.0] WARNING: CPU: 0 PID: 1 at x\n[ 1.1] Call Trace:\n[ 1.2]  f+0x1\n[ 1.3] ---[ end trace 0 ]---\n[ 1.4] other\n"
        self.assertEqual(reports.find(log), ["WARNING: CPU: 0 PID: 1 at x\nCall Trace:\n f+0x1\n---[ end trace 0 ]---"])

    def test_consecutive_kernel_reports_are_found_separately(self):
        one = "[ 1.0] WARNING: CPU: 0 PID: 1 at x\n[ 1.1] f\n[ 1.2] g\n[ 1.3] ---[ end trace 0 ]---\n"
        self.assertEqual(len(reports.find(one + one)), 2)

    def test_every_leaked_object_is_a_separate_report(self):
        """Together, the objects can have more lines than are kept of one report."""
        objects = [f'unreferenced object 0x{number:016x} (size 256):\n  comm "modprobe", pid 51\n  backtrace:\n    [<0>] f+0x1/0x2' for number in range(40)]
        counted = "kmemleak: 40 new suspected memory leaks (see /sys/kernel/debug/kmemleak)"
        self.assertEqual(reports.find("\n".join(f"[ 1.0] {line}" for line in "\n".join((counted, *objects)).splitlines())), [counted, *objects])

    def test_lockdep_warnings_of_uml_page_faults_in_interrupts_are_ignored(self):
        """A report from a handler that enables interrupts is not ignored."""
        lines = ["WARNING: CPU: 0 PID: 96 at kernel/locking/lockdep.c:4381 lockdep_hardirqs_on_prepare+0x3eb/0x6d0", reports.ENABLED_IN_HANDLER,
                 "CPU: 0 PID: 96 Comm: rmmod", reports.IN_FAULT, "irq event stamp: 61838", "---[ end trace 0000000000000000 ]---"]
        text = "\n".join(f"[   40.530000] {line}" for line in lines)
        self.assertEqual(reports.find(text), [])
        self.assertEqual(len(reports.find(text.replace(reports.IN_FAULT, "Call Trace:"))), 1)
        self.assertEqual(len(reports.find(text.replace("hardirq_context", "softirq_context"))), 1)

    def test_kernel_reports_that_a_test_allows_are_ignored(self):
        self.assertEqual(reports.find("[ 1.0] WARNING: CPU: 0 PID: 1 at x\n", [re.compile("at x$")]), [])
