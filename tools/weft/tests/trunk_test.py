#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests a trunk between two daemons: unmodified programs of infiniband-diags, attached to nodes of either daemon, see one subnet.

    trunk_test.py WEFT WEFTD LIBRARY [TEST...]

LIBRARY is the library that replaces libibumad in these programs. weft finds it without this argument.
"""
import contextlib
import ctypes
import ctypes.util
import hmac
import json
import os
import pathlib
import re
import secrets
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import cases
import daemon

WEFT, WEFTD, LIBRARY = sys.argv[1:4]
assert os.path.exists(LIBRARY)
SYSTEM = os.pathsep.join(("/usr/sbin", "/sbin", os.environ.get("PATH", os.defpath)))
NEEDED = ("ibnetdiscover", "perfquery")
LAB = """
name = "{name}"

[[switch]]
name = "leaf-{name}"
ports = 4

[[host]]
name = "node-{name}"
model = "endpoint"

[[link]]
ends = ["node-{name}", "leaf-{name}"]

[[trunk]]
name = "west"
end = "leaf-{name}/4"
{address}
key-file = "{key}"
{settings}
[sm]
enabled = {manages}
"""


class Daemon:
    """One weftd with its half of the fabric, which runs within start()."""

    def __init__(self, folder, name, key, address, manages, settings=""):
        self.directory = folder / name
        self.node = f"node-{name}"
        self.lab = LAB.format(name=name, key=key, address=address, manages=str(manages).lower(), settings=settings)
        self.process = None

    @contextlib.contextmanager
    def start(self):
        self.directory.mkdir(exist_ok=True)
        (self.directory / "control.sock").unlink(missing_ok=True)       # left by a killed daemon
        with daemon.weftd(WEFTD, self.lab, self.directory) as (self.process, _):
            yield self

    def weft(self, *words):
        done = subprocess.run([WEFT, "--socket-dir", str(self.directory), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              env={**os.environ, "PATH": SYSTEM}, timeout=daemon.TIME_LIMIT)
        return done.stdout if done.returncode == 0 else ""

    def attached(self, *words):
        """Returns the standard output of a program on this half's node; empty if it fails."""
        return self.weft("attach", self.node, "--", *words)

    def fabric(self):
        return json.loads(self.weft("--json", "fabric", "show"))

    def trunk(self):
        return self.fabric()["trunks"][0]

    def link_is_up(self):
        return any(link["up"] for link in self.fabric()["links"] if "west/1" in link["ends"])

    def counter(self, name):
        port = f"leaf-{self.directory.name}/4"
        return json.loads(self.weft("--json", "counters", port))[port][name]

    def lids(self):
        """Returns {node: LID} of all nodes that ibnetdiscover finds from here."""
        text = self.attached("ibnetdiscover")
        found = {name: int(lid) for name, lid in re.findall(r'^Switch\s.*# "([^"]*)".* lid (\d+)', text, re.MULTILINE)}
        return found | {name: int(lid) for name, lid in re.findall(r'^Ca\s.*# "([^"]*)"\n\[1\].*?# lid (\d+)', text, re.MULTILINE)}


HELLO, PROOF, PACKET, CREDITS, LINK, ALIVE, BYE, FRAME = range(1, 9)
BYE_VERSION, BYE_KEY, BYE_PROTOCOL, BYE_IN_USE, BYE_RECORD, BYE_KIND = 1, 4, 5, 9, 11, 12
CONNECTS, LISTENS = 1, 2
INFINIBAND, ETHERNET = 1, 2
SODIUM = ctypes.CDLL(ctypes.util.find_library("sodium"))


def frame(kind, body=b""):
    return struct.pack(">IB3x", len(body), kind) + body


def x25519(private, public=None):
    """Returns the shared secret with a peer's public key, or the own public key."""
    result = ctypes.create_string_buffer(32)
    failed = SODIUM.crypto_scalarmult(result, private, public) if public else SODIUM.crypto_scalarmult_base(result, private)
    assert not failed
    return result.raw


class Records:
    """One direction of an encrypted connection: RFC 8439 with the number of the record as nonce and its length as additional data."""

    def __init__(self, key):
        self.key = key
        self.number = 0

    def apply(self, operation, data, header, room):
        nonce = struct.pack(">4xQ", self.number)
        self.number += 1
        result = ctypes.create_string_buffer(len(data) + room)
        long = ctypes.c_ulonglong
        if operation is SODIUM.crypto_aead_chacha20poly1305_ietf_encrypt:
            failed = operation(result, None, data, long(len(data)), header, long(len(header)), None, nonce, self.key)
        else:
            failed = operation(result, None, None, data, long(len(data)), header, long(len(header)), nonce, self.key)
        assert not failed
        return result.raw[:len(data) + room]

    def seal(self, frames):
        header = struct.pack(">I", len(frames) + 16)
        return header + self.apply(SODIUM.crypto_aead_chacha20poly1305_ietf_encrypt, frames, header, 16)

    def open(self, header, data):
        return self.apply(SODIUM.crypto_aead_chacha20poly1305_ietf_decrypt, data, header, -16)


class Peer:
    """An independent implementation of the connecting end, after Documentation/trunks.rst. It has exchanged hellos."""

    def __init__(self, test, address, key, hello=None, kind=INFINIBAND):
        self.key = key
        self.sending = self.receiving = None
        self.frames = b""       # rest of the last record that was not returned yet
        host, port = address.rsplit(":", 1)
        self.socket = test.enterContext(socket.create_connection((host, int(port)), timeout=daemon.TIME_LIMIT))
        self.private = secrets.token_bytes(32)
        self.hello = hello or struct.pack(">8sHBB32s32s32sB3x", b"weft-trk", 3, CONNECTS, 4, b"west", secrets.token_bytes(32), x25519(self.private), kind)
        self.socket.sendall(frame(HELLO, self.hello))
        kind, self.their_hello = self.receive()
        test.assertEqual(kind, HELLO)

    def receive(self):
        """Returns (type, body) of the next frame; None at the end of the stream."""
        if (header := self.take(8)) is None:
            return None
        size, kind = struct.unpack(">IB3x", header)
        return kind, self.take(size)

    def take(self, size):
        """Returns the next bytes of frames."""
        if not self.receiving:
            return self.read(size)
        if not self.frames and size:
            if (header := self.read(4)) is None:
                return None
            self.frames = self.receiving.open(header, self.read(*struct.unpack(">I", header)))
        data, self.frames = self.frames[:size], self.frames[size:]
        assert len(data) == size, "a record contains whole frames"
        return data

    def read(self, size):
        data = b""
        while len(data) < size:
            try:
                more = self.socket.recv(size - len(data))
            except ConnectionResetError:
                more = b""
            if not more:
                return None
            data += more
        return data

    def send(self, *frames):
        """Sends one record."""
        self.socket.sendall(self.sending.seal(b"".join(frames)))

    def goodbye(self):
        """Returns the reason with which weftd closes the connection; frames before it are ignored."""
        reason = None
        while (received := self.receive()) is not None:
            if received[0] == BYE:
                reason = received[1][0]
        return reason

    def authenticator(self, purpose, role, secret=b""):
        return hmac.digest(self.key, purpose + bytes([role]) + secret + self.hello + self.their_hello, "sha256")

    def proof(self, role):
        return self.authenticator(b"weft trunk proof 3", role)

    def authenticate(self):
        """Returns True if weftd has proved that it has the key, too."""
        self.socket.sendall(frame(PROOF, self.proof(CONNECTS)))
        if self.receive() != (PROOF, self.proof(LISTENS)):
            return False
        secret = x25519(self.private, self.their_hello[-36:-4])
        self.sending, self.receiving = (Records(self.authenticator(b"weft trunk session 3", role, secret)) for role in (CONNECTS, LISTENS))
        return True


class Trunk(unittest.TestCase):
    def setUp(self):
        if missing := [name for name in NEEDED if not shutil.which(name, path=SYSTEM)]:
            self.skipTest(f"not installed: {', '.join(missing)}")
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-trunk-")))
        self.key = self.write_key("key")

    def write_key(self, name):
        path = self.folder / name
        path.write_bytes(secrets.token_bytes(32))
        path.chmod(0o600)
        return path

    def first(self):
        return self.enterContext(Daemon(self.folder, "first", self.key, 'listen = "127.0.0.1:0"', True).start())

    def second(self, first, key=None, settings=""):
        return Daemon(self.folder, "second", key or self.key, f'connect = "{first.trunk()["address"]}"', False, settings)

    def await_subnet(self, *daemons):
        """Waits until all nodes of both halves have LIDs and each half reaches the other by them."""
        names = {"node-first", "node-second", "leaf-first", "leaf-second"}
        for each in daemons:
            def is_complete(of=each):
                lids = of.lids()
                return names <= set(lids) and all(lids[name] for name in names) and lids
            lids = daemon.await_that(f"the subnet to be complete at {each.node}", is_complete)
            for name in names:
                daemon.await_that(f"{each.node} to reach {name}", lambda of=each, lid=lids[name]: of.attached("perfquery", str(lid), "1"))
        return lids

    def test_two_daemons_form_one_subnet(self):
        first = self.first()
        with self.second(first).start() as second:
            lids = self.await_subnet(first, second)
            self.assertEqual(first.lids(), second.lids())
            # The subnet manager of the first half has assigned the LIDs of the second half.
            self.assertEqual([node["lid"] for node in second.fabric()["switches"]], [lids["leaf-second"]])
            self.assertIn(f"connected to {first.trunk()['address']}", second.weft("fabric", "show"))
            route = first.attached("ibtracert", str(lids["node-first"]), str(lids["node-second"]))
            self.assertEqual(re.findall(r'"(.*)"', route), ["node-first", "leaf-first", "leaf-second", "node-second", "node-second"])
            if shutil.which("ibping", path=SYSTEM):
                with daemon.process(WEFT, "--socket-dir", str(second.directory), "attach", second.node, "--", "ibping", "-S", env={**os.environ, "PATH": SYSTEM}):
                    # The server may not have started yet.
                    daemon.await_that("ibping across the trunk",
                                      lambda: "3 received, 0% packet loss" in first.attached("ibping", "-c", "3", str(lids["node-second"])))

    def test_trunk_link_goes_down_when_a_daemon_is_killed_and_up_when_it_restarts(self):
        first = self.first()
        with self.second(first).start() as second:
            self.await_subnet(first, second)
            for times in (1, 2):
                second.process.kill()
                second.process.wait()
                daemon.await_that("the link to go down", lambda: not first.link_is_up())
                self.assertFalse(first.trunk()["connected"])
                daemon.await_that("the manager to miss the other half", lambda: first.lids() and "node-second" not in first.lids())
                self.assertEqual(first.counter("link_downed"), times)
                again = self.second(first)
                self.enterContext(again.start())
                second.process = again.process
                self.await_subnet(first, again)
                self.assertEqual(first.counter("link_downed"), times)
                self.assertEqual(again.counter("link_downed"), 0)
            self.assertEqual(first.trunk()["violations"], 0)
            self.assertEqual(first.trunk()["connections"], 3)

    def test_trunk_is_refused_if_its_ends_have_different_keys(self):
        first = self.first()
        with self.second(first, key=self.write_key("other")).start() as second:
            daemon.await_that("a refusal", lambda: second.trunk()["refused"])
            self.assertIn("the two ends have different keys", second.weft("fabric", "show"))
            self.assertFalse(first.link_is_up())
            self.assertEqual(first.trunk()["connections"], 0)

    def test_trunk_link_stays_up_while_unauthenticated_clients_connect(self):
        first = self.first()
        with self.second(first).start() as second:
            self.await_subnet(first, second)
            address, key = first.trunk()["address"], self.key.read_bytes()
            self.assertEqual(self.refusal_of_proof(address, secrets.token_bytes(32)), BYE_KEY)
            # Another daemon with the key, as if a lab file was copied.
            other = Peer(self, address, key)
            other.socket.sendall(frame(PROOF, recorded := other.proof(CONNECTS)))
            self.assertEqual(other.goodbye(), BYE_IN_USE)
            # A client that has recorded the daemon's frames sends them again.
            replay = Peer(self, address, key, hello=other.hello)
            replay.socket.sendall(frame(PROOF, recorded))
            self.assertEqual(replay.goodbye(), BYE_KEY)
            early = Peer(self, address, key)
            early.socket.sendall(frame(LINK, bytes(16)))
            self.assertEqual(early.goodbye(), BYE_PROTOCOL)
            cut = Peer(self, address, key)
            cut.socket.sendall(frame(PROOF, bytes(32))[:20])
            cut.socket.close()
            daemon.await_that("the refusals to be counted", lambda: first.trunk()["refused"] == 5)
            self.assertTrue(first.link_is_up())
            self.assertEqual(first.counter("link_downed"), 0)
            self.assertEqual((first.trunk()["connections"], first.trunk()["violations"]), (1, 1))
            self.assertIn("last refused 127.0.0.1:", first.weft("fabric", "show"))
        # The failures of these clients are not reported as the reason why the trunk is not connected.
        daemon.await_that("the end of the connection", lambda: not first.trunk()["connected"])
        self.assertEqual(self.refusal_of_proof(address, secrets.token_bytes(32)), BYE_KEY)
        daemon.await_that("the refusal to be counted", lambda: first.trunk()["refused"] == 6)
        self.assertEqual(first.trunk()["reason"], "the peer reports: the trunk was removed or its daemon exited")

    def refusal_of_proof(self, address, key):
        peer = Peer(self, address, key)
        peer.socket.sendall(frame(PROOF, peer.proof(CONNECTS)))
        return peer.goodbye()

    def test_authenticated_peer_that_breaks_the_protocol_is_disconnected(self):
        first = self.first()
        address, key = first.trunk()["address"], self.key.read_bytes()
        descriptors = pathlib.Path(f"/proc/{first.process.pid}/fd")
        # The count may include the control connection of the previous command. A leak would be one descriptor for each peer.
        before = len(list(descriptors.iterdir()))
        wrong = {
            "unknown type": frame(42),
            "body beyond the largest": struct.pack(">IB3x", 1 << 30, PACKET),
            "second hello": frame(HELLO, bytes(112)),
            "Ethernet frame": frame(FRAME, bytes(60)),
            "half a frame": frame(ALIVE) + frame(ALIVE)[:4],
            "packet without headers": frame(PACKET, struct.pack(">HBBB3x", 1, 0, 0, 0)),
            "credits for nothing": frame(CREDITS, struct.pack(">BxH", 0, 1)),
            "link without an MTU": frame(LINK, struct.pack(">IIBBBBB3x", 1, 1, 1, 3, 7, 0, 0)),
        }
        for count, (name, sent) in enumerate(wrong.items(), start=1):
            with self.subTest(name):
                peer = Peer(self, address, key)
                self.assertTrue(peer.authenticate())
                peer.send(sent)
                self.assertEqual(peer.goodbye(), BYE_PROTOCOL)
                self.assertEqual((first.trunk()["connections"], first.trunk()["violations"]), (count, count))
        cut = Peer(self, address, key)
        self.assertTrue(cut.authenticate())
        cut.socket.sendall(cut.sending.seal(frame(ALIVE))[:20])
        cut.socket.shutdown(socket.SHUT_WR)
        daemon.await_that("the cut connection to be noticed", lambda: not first.trunk()["connected"])
        self.assertEqual(first.trunk()["reason"], "the peer closed the connection within a record")
        self.assertEqual(first.trunk()["violations"], len(wrong))
        daemon.await_that("the descriptors to be closed", lambda: len(list(descriptors.iterdir())) <= before)
        with self.second(first).start() as second:
            self.await_subnet(first, second)

    def test_forged_or_altered_records_close_the_trunk_connection(self):
        first = self.first()
        address, key = first.trunk()["address"], self.key.read_bytes()

        def altered(record):
            return record[:-1] + bytes([record[-1] ^ 1])

        wrong = {
            "plain text": lambda seal: [frame(ALIVE)],
            "forged": lambda seal: [struct.pack(">I", 24) + secrets.token_bytes(24)],
            "altered": lambda seal: [altered(seal())],
            "repeated": lambda seal: [seal()] * 2,
            "reordered": lambda seal: [seal(), seal()][::-1],
            "left out": lambda seal: [seal(), seal(), seal()][::2],
            "too long": lambda seal: [struct.pack(">I", 1 << 17)],
        }
        for count, (name, records) in enumerate(wrong.items(), start=1):
            with self.subTest(name):
                peer = Peer(self, address, key)
                self.assertTrue(peer.authenticate())
                peer.send(frame(ALIVE), frame(ALIVE))
                peer.socket.sendall(b"".join(records(lambda peer=peer: peer.sending.seal(frame(ALIVE)))))
                self.assertEqual(peer.goodbye(), BYE_RECORD)
                trunk = first.trunk()
                self.assertEqual((trunk["connections"], trunk["violations"]), (count, count))
                self.assertEqual(trunk["reason"], "a record was forged, altered, repeated, left out or out of order")

    def test_peer_with_an_older_protocol_version_is_refused_with_a_reason(self):
        first = self.first()
        hello = struct.pack(">8sHBB32s32s", b"weft-trk", 1, CONNECTS, 4, b"west", secrets.token_bytes(32))
        for version, body in ((1, hello), (2, hello[:9] + b"\2" + hello[10:] + bytes(32))):
            with self.subTest(version=version):
                old = Peer(self, first.trunk()["address"], self.key.read_bytes(), body)
                self.assertEqual(old.goodbye(), BYE_VERSION)
                self.assertIn(f"different versions of the trunk protocol (this one version 3, the peer version {version})", first.weft("log", "trunk"))

    def test_trunk_of_an_ethernet_segment_is_refused_by_the_trunk_of_a_link(self):
        first = self.first()
        other = Peer(self, first.trunk()["address"], self.key.read_bytes(), kind=ETHERNET)
        self.assertEqual(other.goodbye(), BYE_KIND)
        self.assertIn("one end connects a link of the fabric, the other one an Ethernet segment", first.weft("fabric", "show"))

    def test_trunk_width_and_mtu_configured_at_one_end_apply_to_both_ends(self):
        first = self.first()
        with self.second(first, settings='width = "1x"\nmtu = 2048').start() as second:
            lids = self.await_subnet(first, second)
            info = first.attached("smpquery", "portinfo", str(lids["leaf-first"]), "4")
            self.assertRegex(info, r"LinkWidthActive:\.*1X")
            self.assertRegex(info, r"NeighborMTU:\.*2048")
            second.weft("link", "down", "west")
            daemon.await_that("the link to go down", lambda: not first.link_is_up())
            second.weft("link", "up", "west")
            daemon.await_that("the link to come up", first.link_is_up)
            self.await_subnet(first, second)


if __name__ == "__main__":
    cases.main([sys.argv[0], *sys.argv[4:]])
