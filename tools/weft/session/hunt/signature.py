# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Computes the signature of a kernel report: the kind of the report, and the functions at the top of the stack. Two reports with the same
signature are counted as one bug."""
import itertools
import pathlib
import re

from lab.errors import LabError
from lab.reports import LEAK, message

KNOWN = pathlib.Path(__file__).resolve().parent / "known.txt"
FRAMES = 4
MAPPED = "DMA-API: Mapped at:"
CQ_REMAINS = "Destroy of kernel CQ shouldn't fail"
QP_REMAINS = re.compile(r"^(\S+): ib_qp_destroy failed$", re.MULTILINE)
STILL_ATTACHED = "ib_detach_mcast failed"
FRAME = re.compile(r"^\s*(?:\[<[0-9a-f]+>\]\s*)?(?P<maybe>\? )?(?P<name>[a-zA-Z_][\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+")
# Functions that report errors, which are on the stack between the defect and the message.
REPORTING = re.compile(r"(?:show_stack|dump_stack|print_|kasan_|__asan_|__kasan|panic|segv|sig_handler|hard_handler|hard_sig|relay_signal|fatal_sig|bad_segv"
                       r"|__warn|warn_slowpath|report_bug|lock_acquire|__lock_acquire|validate_chain|check_|mark_lock|get_signal|userspace|set_signals|unblock"
                       r"|__schedule|schedule|block_signals|do_op|debug_dma|refcount_warn|__refcount_|dma_map|_printk|vprintk|memset|memcpy|memmove)\w*")


DIRECTORY = re.compile(r"^(WARNING at )[^ :]*/")
# The second line of a warning of lib/refcount.c or kernel/workqueue.c, which describes the error.
DESCRIPTIONS = ("refcount_t: ", "workqueue: WQ_MEM_RECLAIM ")
# The stack of a report of kmemleak is that of the allocation, and begins with allocation functions.
ALLOCATING = re.compile(r"_*(?:kmem|kmalloc|kzalloc|kcalloc|krealloc|kvmalloc|kmemdup|kstrdup|kvasprintf|kasprintf|vmalloc|vzalloc|slab_|alloc_skb|netdev_alloc|napi_alloc|"
                        r"pcpu_alloc|alloc_percpu|alloc_pages|get_free_pages)\w*")


def _kind(line):
    """Returns the first line of a report without the parts that differ between runs: addresses, numbers, names of files and processes."""
    # Code that was built outside the kernel's tree has an absolute path.
    # Linux 7.3 prints the file before the CPU.
    kind = re.sub(r"^WARNING: (?:CPU: .* at )?(?:/[^ :]*/)?([^ :]+):\d+ .*", r"WARNING at \1", line)
    kind = re.sub(r"^(?:BUG|INFO|WARNING|Kernel panic - not syncing): ", "", kind)
    kind = re.sub(r" (?:in|at addr|by task) .*", "", kind)
    kind = re.sub(r"\b0x[0-9a-f]+\b|\b[0-9a-f]{8,}\b", "N", kind)
    return re.sub(r"[0-9]+", "N", kind).strip(" :.")


def of(report):
    """Returns the signature of a report of lab.reports: its kind and the top of its stack."""
    lines = report.splitlines()
    # For a leaked mapping, the stack that created it is more useful than the stack that detected it.
    stack = report.partition(MAPPED)[2].splitlines() or lines
    frames = [match for match in map(FRAME.match, stack) if match and not REPORTING.fullmatch(match["name"].partition(".")[0])]
    if report.startswith(LEAK):
        frames = [frame for frame in frames if not ALLOCATING.fullmatch(frame["name"].partition(".")[0])]
    certain = [frame for frame in frames if not frame["maybe"]]
    names = list(dict.fromkeys(frame["name"].partition(".")[0] for frame in certain or frames))
    kind = _kind(next((line for line in lines[:2] if line.startswith(DESCRIPTIONS)), lines[0]))
    if lines[-1].startswith(STILL_ATTACHED):
        kind = f"{STILL_ATTACHED}, {kind}"
    return f"{kind}: {', '.join(names[:FRAMES])}" if names else kind


def with_mapping(report, console):
    """Returns a report of dma-debug with the stack of the mapping, which follows the report on the console."""
    if "dma_debug_device_change" not in report:
        return report
    rest = [message(line) for line in console.partition(report.splitlines()[0])[2].partition(MAPPED)[2].splitlines()[1:]]
    return "\n".join((report, MAPPED, *itertools.takewhile(FRAME.match, rest)))


def with_detachment(report, console):
    """Returns a report about a CQ that IPoIB cannot destroy with the reason, if it is that the QP is still attached to a multicast group, because detaching
    it failed. A CQ that remains for another reason has another signature."""
    if CQ_REMAINS not in report:
        return report
    before = "\n".join(map(message, console.partition(report.splitlines()[0])[0].splitlines()))
    interfaces = QP_REMAINS.findall(before)[-1:]
    return f"{report}\n{STILL_ATTACHED}" if interfaces and f"{interfaces[0]}: {STILL_ATTACHED} (result = -" in before else report


def known(more=None, scenario=None):
    """Returns a list of (beginning of a signature, page that describes it), including those in a file of the user, if it exists. Without a scenario,
    the list has the reports of all scenarios."""
    return [(begin, page) for only, begin, page in _rows(more) if only != "+" and only in ("", f"+{scenario or only[1:]}")]


def belonging():
    """Returns a similar list of leaked objects that belong to another leaked object, which is described on the same page."""
    return [(begin, page) for only, begin, page in _rows(None) if only == "+"]


def _rows(more):
    """Returns a list of (mark at the beginning of the line, beginning of a signature, page)."""
    rows = []
    for file in (KNOWN, more) if more and more.exists() else (KNOWN,):
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            line = line.strip()
            only, _, line = line.partition(" ") if line.startswith("+") else ("", "", line)
            page, _, begin = line.partition(" ")
            if not page or page.startswith("#"):
                continue
            if not begin:
                raise LabError(f"{file}:{number}: a line has a page, a blank and the beginning of a signature")
            rows.append((only, begin, page))
    return rows


def without_directory(signature):
    """Returns a signature without the directory of the file of a warning. It depends on how a module was built: warnings of modules that are built outside the
    kernel's tree have an absolute path."""
    return DIRECTORY.sub(r"\1", signature)


def page_of(signature, table):
    """Returns the page that describes a known report, or None."""
    signature = without_directory(signature)
    return next((page for begin, page in table if signature.startswith(without_directory(begin))), None)


def same(one, other):
    return without_directory(one) == without_directory(other)
