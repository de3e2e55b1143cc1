# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that scripts/ci/run works with guests as in a user's CI job, and keeps consoles, logs, the capture and the JUnit XML file."""
import os
import subprocess
import xml.etree.ElementTree

from lab import cache, kernels
from lab.testing import test

RUN = cache.TREE / "scripts/ci/run"


def job(lab, name, *words):
    """Runs a job with a kernel of the user's own: Debian's, given as a file and a directory of modules. Returns its artifacts, status, output and the element of
    its test case."""
    stock = kernels.find("stock")
    artifacts = lab.directory / name
    done = subprocess.run([RUN, "--artifacts", artifacts, f"--kernel={stock.image}", f"--modules={stock.modules}", *words], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False, env={**os.environ, "WEFT": str(lab.program("weft"))})
    print(done.stdout, done.stderr, flush=True)
    suite = xml.etree.ElementTree.parse(artifacts / "junit.xml").getroot()
    (case,) = suite
    assert suite.get("tests") == "1" and int(suite.get("failures")) == len(case.findall("failure")), suite.attrib
    return artifacts, done.returncode, done.stdout, case


@test(kernels=(), also=("stock",), timeout=250)
def ci_job_saves_guest_consoles_weftd_log_packet_capture_and_junit_xml(lab):
    """A job boots the user's kernel, returns the status of its command, and keeps the consoles, weftd's log, a capture of all links and JUnit XML. A job
    whose guest crashes has status 125, and keeps the kernel's report."""
    share = lab.directory / "share"
    share.mkdir()
    (share / "test").write_text("#!/bin/sh\nuname -r\nping -c 3 10.1.0.2\nexit 7\n")
    (share / "test").chmod(0o755)
    artifacts, status, said, case = job(lab, "failed", f"--share={share}", "--capture", "all", "--", "/share/test")
    release = kernels.find("stock").release
    assert status == 7 and release in said and " 0% packet loss" in said, said
    assert {path.name for path in artifacts.iterdir()} == {"node1.log", "node2.log", "weftd.log", "capture.pcap", "capture.txt", "output.txt", "junit.xml"}
    for host in ("node1", "node2"):
        assert f"Linux version {release}" in (artifacts / f"{host}.log").read_text(errors="replace"), host
    assert "node1" in (artifacts / "weftd.log").read_text()
    assert (artifacts / "output.txt").read_text() == said
    assert case.find("failure").get("message").strip() == "node1: status 7" and " 0% packet loss" in case.find("system-out").text
    # Each request and each reply crosses two links.
    shown = subprocess.run(["tshark", "-n", "-r", artifacts / "capture.pcap", "-Y", "icmp", "-T", "fields", "-e", "frame.interface_name"],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout.split()
    assert len(shown) == 12 and len(set(shown)) == 2, shown

    artifacts, status, said, case = job(lab, "crashed", "--on", "node2", "--", "echo c >/proc/sysrq-trigger; sleep 60")
    assert status == 125 and "Kernel panic" in (artifacts / "node2.log").read_text(errors="replace"), (status, said)
    assert "node2" in case.find("failure").get("message")
    assert not (artifacts / "capture.pcap").exists()
