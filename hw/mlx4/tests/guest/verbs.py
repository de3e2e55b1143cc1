# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests every verb between two guests with weft's driver, and between weft's driver and Debian's, and checks every byte."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from lab.testing import test
from lab.waiting import wait_until
from traffic import Refused, event_delay, pair


def exchange(one, two, count, size, **options):
    """Messages from one to two, posted before and checked after."""
    two.post(count=count, size=size)
    sent = one.send(count=count, size=size, seed=7, **options)
    assert sent["done"] == str(count) and sent["failed"] == "0", sent[""]
    got = two.receive(count=count, size=size, seed=7)
    assert got["good"] == str(count), got[""]


def check_messages(node1, node2):
    for options, sizes in (({"type": "rc"}, (1, 64, 4096, 60000)), ({"type": "uc"}, (1, 4096, 60000)), ({"type": "ud"}, (1, 2048)),
                           ({"type": "rc", "srq": 1}, (100, 5000)), ({"type": "ud", "srq": 1}, (100,)),
                           ({"type": "xrc"}, (1, 100, 5000))):
        one, two = node1.open(**options), node2.open(**options)
        one.join(two)
        for size in sizes:
            count = min(32, 65536 // (size + 40))
            exchange(one, two, count, size)
            exchange(two, one, count, size, op="send_imm", batch=min(4, count), pieces=3)
            if size <= 128:
                exchange(one, two, count, size, inline=1, pieces=2)
                exchange(two, one, count, size, inline=1, batch=min(4, count))
        one.close()
        two.close()


def check_memory(node1, node2, **options):
    """The first reaches the second's."""
    one, two = node1.open(**options), node2.open(**options)
    one.join(two)
    assert one.send(op="write", count=4, size=16384, seed=3, **two.memory)["done"] == "4"
    assert two.verify(count=4, size=16384, seed=3)["good"] == "4"
    assert one.send(op="read", count=4, size=16384, **two.memory)["done"] == "4"
    assert one.verify(count=4, size=16384, seed=3)["good"] == "4"

    two.word(index=0, set="yes", value=100)
    assert one.send(op="add", size=8, compare_add=23, **two.memory)["done"] == "1"
    assert (two.word()["word"], one.word()["word"]) == (hex(123), hex(100))
    assert one.send(op="cas", size=8, compare_add=123, swap=9, **two.memory)["done"] == "1"
    assert (two.word()["word"], one.word()["word"]) == (hex(9), hex(123))
    assert one.send(op="cas", size=8, compare_add=123, swap=5, **two.memory)["done"] == "1"
    assert (two.word()["word"], one.word()["word"]) == (hex(9), hex(9))

    if node1.in_kernel:
        # Only the bits of the mask are compared, and swapped; only up to the borders does the addition carry.
        two.word(index=0, set="yes", value=0xaabbccdd11223344)
        masked = {"op": "masked_cas", "size": 8, "compare_add_mask": 0xffff, "swap_mask": 0xff00000000, **two.memory}
        assert one.send(compare_add=0x3344, swap=0x5566778899, **masked)["done"] == "1"
        assert (two.word()["word"], one.word()["word"]) == (hex(0xaabbcc5511223344), hex(0xaabbccdd11223344))
        assert one.send(compare_add=0x3345, swap=0, **masked)["done"] == "1"
        assert two.word()["word"] == hex(0xaabbcc5511223344)
        two.word(index=0, set="yes", value=0x00000000ffffffff)
        assert one.send(op="masked_add", size=8, compare_add=0x0000000100000001, compare_add_mask=1 << 31, **two.memory)["done"] == "1"
        assert (two.word()["word"], one.word()["word"]) == (hex(0x0000000100000000), hex(0xffffffff))


def check_keys(node1, node2):
    """The first node can access the second's memory only with a valid key, and only where the key permits it."""
    def opens(key, status="success", **options):
        done = one.send(op="write", count=1, size=4096, seed=40, addr=key["addr"], rkey=key["rkey"], **options)
        assert done["status"] == status, done[""]

    def fresh():
        one, two = node1.open(type="rc"), node2.open(type="rc")
        one.join(two)
        registered = two.register()
        assert registered["status"] == "success", registered[""]
        return one, two, registered

    one, two, key = fresh()
    assert one.send(op="write", count=4, size=8192, seed=40, addr=key["addr"], rkey=key["rkey"])["done"] == "4"
    assert two.verify(count=4, size=8192, seed=40)["good"] == "4"
    assert two.invalidate()["status"] == "success"
    opens(key, "remote access error")

    # A window gives access only to its part of the region, to the peer of its QP, and with the rights it was bound with.
    one, two, key = fresh()
    window = two.bind(offset=8192, size=4096)
    assert window["status"] == "success" and window["rkey"] != key["rkey"], window[""]
    two.word(index=0, set="yes", value=77)
    opens(window)
    assert two.word(index=0)["word"] == hex(77) and two.verify(offset=8192, count=1, size=4096, seed=40)["good"] == "1"
    read = one.send(op="read", count=1, size=4096, addr=window["addr"], rkey=window["rkey"])
    assert read["done"] == "1" and one.verify(count=1, size=4096, seed=40)["good"] == "1"
    assert two.invalidate(window=1)["status"] == "success"
    again = two.bind(offset=8192, size=4096)
    assert again["status"] == "success" and again["rkey"] != window["rkey"]
    opens(again)
    opens(window, "remote access error")
    for bound, beyond in (({}, 4096), ({"deny": 1}, 0)):
        one, two, key = fresh()
        window = two.bind(offset=8192, size=4096, **bound)
        opens({"addr": hex(int(window["addr"], 16) + beyond), "rkey": window["rkey"]}, "remote access error")
    # A window of type 1 gives access to every QP of its PD, moves when it is bound again, and cannot be invalidated.
    one, two, key = fresh()
    window = two.bind(type=1, offset=8192, size=4096)
    assert window["status"] == "success", window[""]
    opens(window)
    assert two.verify(offset=8192, count=1, size=4096, seed=40)["good"] == "1"
    again = two.bind(type=1, offset=16384, size=4096)
    assert again["status"] == "success" and again["rkey"] != window["rkey"], again[""]
    opens(again)
    assert two.verify(offset=16384, count=1, size=4096, seed=40)["good"] == "1"
    opens(window, "remote access error")
    one, two, key = fresh()
    assert two.bind(type=1, offset=0, size=4096)["status"] == "success"
    kept = two.invalidate(window=1)
    assert kept["status"] == "memory window bind error", kept[""]
    # A window cannot be bound beyond its region.
    one, two, key = fresh()
    refused = two.bind(offset=61440, size=8192)
    assert refused["status"] == "memory window bind error", refused[""]

    # A send with invalidate invalidates a key, and the receiver's completion contains it.
    for take in ("register", "bind"):
        one, two, key = fresh()
        if take == "bind":
            key = two.bind(size=4096)
        opens(key)
        two.post(count=1, size=100)
        assert one.send(op="send_inv", size=100, seed=9, rkey=key["rkey"])["done"] == "1"
        received = two.receive(count=1, size=100, seed=9)
        assert (received["good"], received.get("invalidated")) == ("1", key["rkey"]), received[""]
        opens(key, "remote access error")


def check_moderation(node1, node2):
    """Events of the second's CQ are delayed until their count or the period is reached."""
    one, two = node1.open(type="rc"), node2.open(type="rc")
    one.join(two)

    def delays(sent, right, **moderation):
        """A busy host also delays events, so one correct measurement of ten suffices."""
        two.moderate(**moderation)
        seen = []
        while not seen or not right(seen[-1]):
            assert len(seen) < 10, (sent, moderation, seen)
            seen.append(event_delay(one, two, sent))

    delays(3, lambda us: us > 30000, count=4, period=60000)
    delays(4, lambda us: us < 20000, count=4, period=60000)
    delays(3, lambda us: us < 20000, count=0, period=0)


def check_notification(lab, node1, node2):
    """The second never waits while a message has arrived, however polling, arming and messages are interleaved (NOTIFY-03, -06, -07, -08)."""
    one, two = node1.open(type="rc", depth=128), node2.open(type="rc", depth=128)
    one.join(two)
    two.post(count=128, size=16)
    count = lab.rounds(20000, 1000000)
    limit_ms = int(20000 * lab.slowness)
    # The test is meaningful only if the receiver has waited, and if arming has also reported missed events, which depends on timing.
    for attempt in range(5):
        receiver = two.start(f"notify count={count} seed={lab.seed + attempt & 0xffffffff} ms={limit_ms}")
        one.burst(timeout=1200, count=count, size=16, seed=(lab.seed >> 8) + attempt & 0xffffffff)
        received = receiver(timeout=1200)
        assert received["received"] == str(count), received
        if stressed := int(received["waits"]) > count // 1000 and int(received["missed"]) > 0:
            break
    assert stressed, received


def check_drain(node1, node2):
    """Draining or destroying a QP completes all its requests in order, even if there are more than the card flushes at once."""
    for how, count in (("drain", 30), ("destroy", 30), ("destroy", 200), ("poll", 200)):
        for kind in ("rc", "xrc"):
            silent = node2.open(type=kind)
            address = "".join(f" {name}={value}" for name, value in silent.address.items())
            drained = node1.command(f"drain how={how} count={count} type={kind}{address}")
            assert (drained["sends"], drained["receives"], drained["disorder"]) == (str(count), str(count) if kind == "rc" else "0", "0"), (how, drained[""])


def check_errors(lab, node1, node2):
    """The first gets the completion status of requests that the second refuses."""
    def fresh(**options):
        one, two = node1.open(type="rc"), node2.open(type="rc")
        one.join(two, **options)
        return one, two

    one, two = fresh()
    wrong = one.send(op="write", count=3, size=64, addr=two.memory["addr"], rkey="0x7fffff00")
    assert (wrong["done"], wrong["failed"], wrong["status"]) == ("0", "3", "remote access error"), wrong[""]
    assert one.state()["state"] == "6"
    two.state(to="err")
    if node2.in_kernel:    # of which a kernel module is notified, too
        wait_until("the responder's event", lambda: "QP access error" in two.events(), 10 * lab.slowness)

    one, two = fresh(deny=1)
    denied = one.send(op="read", count=1, size=64, **two.memory)
    assert denied["status"] in ("remote access error", "remote invalid request"), denied[""]

    one, two = fresh(rnr=1)
    unready = one.send(count=1, size=64)
    assert unready["status"] == "receiver-not-ready retries exceeded", unready[""]

    one, two = fresh()
    two.post(count=4, size=100)
    two.state(to="err")
    flushed = two.receive(count=4, size=100)
    assert flushed["failed"] == "4" and flushed["status"].startswith("request flushed"), flushed[""]

    one, two = fresh(timeout=14, retry=2)
    two.close()
    gone = one.send(count=2, size=64)
    assert gone["status"] == "retries exceeded", gone[""]


def check_counters(node, *names):
    """The counters of the card and of its only port are equal and above 0."""
    for name in names:
        device, port = node.guest.run(f"cd /sys/class/infiniband/mlx4_0 && echo 0 >hw_counters/lifespan && cat hw_counters/{name} ports/1/hw_counters/{name}").out.split()
        assert int(device) == int(port) > 0, (name, device, port)


def check_events(lab, node1, node2, fabric, srq_error="SRQ error"):
    """Events of the second's queues, and of the first's path, reach only the handlers of those. srq_error: the event of an SRQ that has failed, None where
    there is none."""
    def fresh(join=True, **options):
        one, two = node1.open(type="rc"), node2.open(type="rc", **options)
        if join:
            one.join(two)
        return one, two

    def expect_events(endpoint, *names):
        """It is notified of these events, once each, and of no others."""
        wait_until(f"the events {names}", lambda: set(names) <= set(endpoint.events()), 10 * lab.slowness)
        assert endpoint.events() == {name: 1 for name in names}, endpoint.events()

    one, two = fresh(join=False)
    two.connect(**one.address, until="rtr")
    one.connect(**two.address)
    two.post(count=1, size=64)
    assert two.events() == {}
    assert one.send(count=1, size=64, seed=1)["done"] == "1"
    expect_events(two, "communication established")
    assert two.receive(count=1, size=64, seed=1)["good"] == "1"

    one, two = fresh()
    assert one.events() == {}
    assert one.state(to="sqd")["state"] == "4"
    expect_events(one, "send queue drained")
    one.state(to="rts")
    exchange(one, two, 4, 100)

    one, two = fresh(srq=1)
    two.post(count=8, size=64)
    two.limit(limit=4)
    for already in (4, 1):
        assert two.events() == {}
        assert one.send(count=already, size=64, seed=1)["done"] == str(already)
    expect_events(two, "SRQ limit reached")
    assert one.send(count=2, size=64, seed=1)["done"] == "2"
    two.state(to="err")
    expect_events(two, "SRQ limit reached", "last WQE reached")

    one, two = fresh()
    misaligned = one.send(op="add", size=8, compare_add=1, addr=hex(int(two.memory["addr"], 16) + 4), rkey=two.memory["rkey"])
    assert misaligned["status"] == "remote invalid request", misaligned[""]
    expect_events(two, "QP request error")

    one, two = fresh()
    assert one.send(op="write", size=64, addr=two.memory["addr"], rkey="0x7fffff00")["status"] == "remote access error"
    expect_events(two, "QP access error")

    # A CQ overflow also moves the QP to the error state.
    one, two = fresh(cqe=7)
    two.post(count=16, size=64)
    one.send(count=16, size=64)
    expect_events(two, "CQ error", "QP fatal error")

    # If the card cannot read an SRQ, the QP that needed it also fails.
    one, two = fresh(srq=1)
    two.post(count=8, size=64)
    fabric.fault(node2.guest.name, "srq-list")
    one.send(count=1, size=64)
    expect_events(two, *filter(None, [srq_error]), "QP fatal error", "last WQE reached")


def check_no_migration(node1, node2):
    # The card does not support automatic path migration, so an alternate path is refused.
    one, two = node1.open(type="rc"), node2.open(type="rc")
    try:
        one.connect(**two.address, alternate=two.answer["lid"])
        assert False, "an alternate path was taken"
    except Refused as refused:
        assert "Invalid argument" in str(refused), refused


def check_doorbells(node1, node2, fabric):
    """A list of requests takes one doorbell."""
    one, two = node1.open(type="rc"), node2.open(type="rc")
    one.join(two)
    for batch, doorbells in ((1, 32), (16, 2), (32, 1)):
        two.post(count=32, size=64)
        before = fabric.asked("node1")["send_doorbells"]
        assert one.send(count=32, size=64, batch=batch, seed=1)["done"] == "32"
        assert fabric.asked("node1")["send_doorbells"] - before == doorbells, batch
        assert two.receive(count=32, size=64, seed=1)["good"] == "32"


def check_resize(node1, node2):
    one, two = node1.open(type="rc", depth=64), node2.open(type="rc", depth=64)
    one.join(two)
    for entries in (500, 100, 1000, 127):
        two.post(count=32, size=100)
        assert one.send(count=32, size=100, seed=entries)["done"] == "32"
        two.resize(cqe=entries)
        assert two.receive(count=32, size=100, seed=entries)["good"] == "32"


def check_bad_link(lab, one, two, fabric):
    one.join(two, retry=7, mtu=3)
    fabric.link("node1", loss="2%", corruption="1%")
    for _ in range(lab.rounds(5, 500)):
        exchange(one, two, 16, 4000)
        exchange(two, one, 16, 4000)
    assert one.send(op="write", count=4, size=16000, seed=3, **two.memory)["done"] == "4"
    assert two.verify(count=4, size=16000, seed=3)["good"] == "4"
    fabric.link("node1", loss="0%", corruption="0%")


@test(kernels=("um-debug",), also=("debug", "stock", "plain"), timeout=300)
def rc_uc_and_ud_messages_of_all_sizes_arrive_intact(lab):
    """RC, UC and UD carry messages of all sizes unchanged, with and without SRQ, immediate data and inline data."""
    with pair(lab) as (node1, node2, _):
        check_messages(node1, node2)


@test(kernels=("um-debug",), also=("debug", "stock", "plain"), timeout=300)
def rdma_and_atomics_access_only_memory_granted_by_a_valid_key(lab):
    """RDMA write and read, atomics (also masked), and keys of registrations and windows work as specified. A key that has been invalidated grants no
    access."""
    with pair(lab) as (node1, node2, _):
        check_memory(node1, node2, type="rc")
        check_memory(node1, node2, type="xrc")
        check_keys(node1, node2)


@test(kernels=("um-debug",), also=("debug", "stock", "plain"), timeout=300)
def failed_request_reports_its_status_and_flushes_the_queue(lab):
    """A wrong key, a missing right, a missing receive and a missing peer each complete with their own status, and the card counts them. Other queued
    requests are flushed in order."""
    with pair(lab) as (node1, node2, _):
        for node in (node1, node2):
            node.guest.insmod("/share/weft_sysfs.ko")
        check_errors(lab, node1, node2)
        check_counters(node1, "sq_num_rae", "sq_num_rree", "sq_num_tree")
        check_counters(node2, "rq_num_rae", "rq_num_rnr", "rq_num_wrfe")
        for node in (node1, node2):
            node.guest.run("rmmod weft_sysfs")


@test(kernels=("um-debug",), also=("stock", "debug", "plain"), timeout=300)
def async_event_reaches_only_the_handler_of_its_qp_srq_or_cq(lab):
    """Each affiliated asynchronous event that a consumer can cause reaches the handler of its QP, SRQ or CQ once, and no other handler."""
    with pair(lab) as (node1, node2, fabric):
        check_events(lab, node1, node2, fabric)
        check_no_migration(node1, node2)
        check_doorbells(node1, node2, fabric)


@test(kernels=("stock",), also=("plain", "debug"), timeout=300)
def cq_resize_cq_moderation_and_qp_drain_lose_no_completion(lab):
    """Completions stay in their CQ, in order, while it grows or shrinks. Moderated events are delayed but not lost. A QP that has been drained or
    destroyed has no outstanding requests."""
    with pair(lab) as (node1, node2, _):
        check_resize(node1, node2)
        check_moderation(node1, node2)
        check_notification(lab, node1, node2)
        check_drain(node1, node2)


@test(kernels=("stock",), also=("plain", "debug"), timeout=400)
def rc_data_arrives_complete_over_a_lossy_link(lab):
    """With loss and corruption on the link, RC traffic arrives complete and in order."""
    with pair(lab) as (node1, node2, fabric):
        check_bad_link(lab, node1.open(type="rc"), node2.open(type="rc"), fabric)


@test(kernels=("stock",), also=("plain", "debug"), timeout=600)
def messages_rdma_and_atomics_complete_between_weft_and_stock_drivers(lab):
    """All verbs work between weft's driver and Debian's driver and verbs library, with each side in both roles."""
    with pair(lab, stock_peer=True) as (ours, theirs, fabric):
        check_messages(ours, theirs)
        check_keys(theirs, ours)
        check_drain(ours, theirs)
        check_moderation(theirs, ours)
        check_notification(lab, theirs, ours)
        for one, two in ((ours, theirs), (theirs, ours)):
            check_memory(one, two, type="rc")
            check_memory(one, two, type="xrc")
            check_errors(lab, one, two)
            check_resize(one, two)
        check_bad_link(lab, ours.open(type="rc"), theirs.open(type="rc"), fabric)
