# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Finds kernel reports (warnings, sanitizer and lockdep reports) in a log. A test that causes one fails."""
import re

STAMP = re.compile(r"^\[\s*\d+\.\d+\](?:\[\s*[TC]\d+\])? ?")

# The first line of a report. Patterns are anchored to the start of a message if the words could also be quoted elsewhere.
STARTS = re.compile(r"""
      ^BUG:\s | ^kernel\ BUG\ at | ^Oops | ^Kernel\ panic | ^general\ protection\ fault | ^traps:.*kernel
    | ^WARNING:\s | ^={3,}\[\ BUG | ^UBSAN:\s | ^ODEBUG:\s | ^refcount_t:\s
    | ^INFO:\ (?:task|possible|trying|rcu|suspicious|NMI) | ^rcu:\ INFO:\s | ^watchdog:\s.*(?:lockup|stuck)
    | ^list_(?:add|del)\ corruption | ^slab\ error | ^=+\sBUG | ^BUG\ \S+\ \(
    | ^kmemleak:\ \d+\ new\ suspected | ^unreferenced\ object
    | DMA-API:\ .*(?:device\ driver|cacheline|leaked|exceed|overlapping|mapping\ error) | ^unregister_netdevice:\ waiting
    | ^NETDEV\ WATCHDOG | nobody\ cared | page\ allocation\ failure | ^Out\ of\ memory | ^slab-out-of-bounds
    | ^Unable\ to\ handle | ^invalid\ opcode | ^stack\ segment | ^double\ fault | ^PANIC: | ^weft-guest:\s
    | ^kobject\ \(.*something\ is\ seriously\ wrong | ^genirq:\ Flags\ mismatch | ^softirq:\ huh, | ^NOHZ\ tick-stop\ error | ^note:\ .*\ exited\ with\s
    | returned\ with\ (?:preemption\ imbalance|disabled\ interrupts) | ^timer:\ .*preempt\ leak | ^ref_tracker:\s
    | init\ suspiciously\ returned | ^kmem_cache_destroy\ .*still\ has\ objects | ^destroy_workqueue:\s
    | ^(?:DMAR:|AMD-Vi:)\ .*(?:fault|IO_PAGE_FAULT) | disagrees\ about\ version\ of\ symbol
    | ^INFO:\ lockdep\ is\ turned\ off
""", re.VERBOSE)

# Formats, as in the sources, of messages of weft's own modules about a defect in them or in a driver.
OWN = (
    "%s: %s left %u %s%s behind\n",
    "%s: cannot %s from within a callback\n",
    "%s: no memory to add it to %s\n",
    "%s: event %d of port %u, which it does not have\n",
    "%s: %s on port %u, which it does not have\n",
    "%s: its driver does not set %s, which is mandatory\n",
    "%s: port %u does not use exactly one protocol of its device's node_type\n",
    "the device does not give back an object of kind %u, which is lost\n",
    "QP %#x: its requests were not all flushed: %d\n",
    "%s: the device kept %s\n",
    "the card keeps its receive buffers\n",
)
CONVERSION = re.compile(r"%[#0-9l]*[a-z]")


def _expression(form):
    """Returns a format as a regular expression. Each message starts with the module's name; for a device, with the names of the driver and the
    device."""
    return ".+".join(map(re.escape, CONVERSION.split(form.rstrip("\n"))))


OWN_STARTS = re.compile(r"^weft_\w+(?: \S+)?: (?:" + "|".join(map(_expression, OWN)) + r")$")
ENDS = re.compile(r"^---\[ end |^={10,}$|^Rebooting|^\s*(?:ok|not ok) \d+")
LONGEST = 90    # maximum number of lines shown of one report
LEAK = "unreferenced object"    # kmemleak reports each object in a paragraph without a last line

# User-Mode Linux maps kernel memory lazily, and takes the fault with interrupts enabled, also in an interrupt handler. Lockdep reports that, rarely.
# A report of a handler that enables interrupts itself has the same first lines, but is not from within the handler of a fault.
ENABLED_IN_HANDLER = "DEBUG_LOCKS_WARN_ON(lockdep_hardirq_context())"
IN_FAULT = "Received SIGSEGV in SIGSEGV handler, aborting stack trace!"


def message(line):
    """Returns a console line without its time stamp."""
    return STAMP.sub("", line.rstrip("\r\n"))


def _is_fault_of_uml(lines):
    return len(lines) > 1 and lines[1] == ENABLED_IN_HANDLER and IN_FAULT in lines


def find(text, allowed=()):
    """Returns the texts of the reports in a part of a console log. allowed: compiled patterns; a report with a match in its first line is omitted,
    because the test provokes it on purpose."""
    found = []
    current = None
    for line in text.splitlines():
        words = message(line)
        if current is not None and words.startswith(LEAK) and current[0].startswith((LEAK, "kmemleak: ")):
            current = None
        if current is not None:
            # KASAN and lockdep print lines of '=' at both ends, and further lines of lockdep look like the start of a report.
            if ENDS.match(words) and len(current) > 2:
                if words.startswith("---"):
                    current.append(words)
                current = None
            elif len(current) < LONGEST:
                current.append(words)
                continue
            else:
                current = None
                continue
        elif (STARTS.search(words) or OWN_STARTS.search(words)) and not any(pattern.search(words) for pattern in allowed):
            current = [words]
            found.append(current)
    return ["\n".join(lines).rstrip() for lines in found if not _is_fault_of_uml(lines)]
