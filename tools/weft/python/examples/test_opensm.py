# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Contains examples of tests without guests. The OpenSM and the diagnostic programs that are installed on this machine run attached to nodes of an
emulated fabric."""
import re
import time

import pytest
import weft

pytestmark = pytest.mark.weft(lab="fat-tree.toml")


@pytest.fixture
def opensm(lab, tmp_path):
    """OpenSM on node1, for one test."""
    with lab.attach("node1").start("env", f"OSM_TMP_DIR={tmp_path}", f"OSM_CACHE_DIR={tmp_path}", "opensm", "-s", 2, "-f", tmp_path / "opensm.log") as process:
        for node in lab.hosts:
            lab.attach(node).wait_until_active()
        yield process


def lid_of(lab, node):
    return int(re.search(r"Base lid: (\d+)", lab.attach(node).run("ibstat").stdout)[1])


def test_opensm_makes_every_port_active(lab, opensm):
    assert len({lid_of(lab, node) for node in lab.hosts}) == 8
    assert "SMINFO_MASTER" in lab.attach("node8").run("sminfo").stdout
    assert lab.attach("node2").run("ibnetdiscover").stdout.count("\nSwitch") == 6


def test_opensm_routes_around_a_broken_link(lab, opensm):
    def switches():
        trace = lab.attach("node1").run("ibtracert", lid_of(lab, "node1"), lid_of(lab, "node8"), check=False).stdout
        return re.findall(r'"(spine\d)', trace)

    (before,) = switches()
    link = lab.link("leaf1/3" if before == "spine1" else "leaf1/4")
    link.down()
    deadline = time.monotonic() + 60
    while switches() in ([], [before]):
        assert time.monotonic() < deadline and opensm.running()
    link.up()


def test_program_returns_output_and_raises_on_failure(lab):
    assert lab.attach("leaf1").run("ibstat", "-p").stdout.startswith("0x")
    with pytest.raises(weft.CommandFailed, match="failed"):
        lab.attach("node1").run("smpquery", "nodeinfo", "-D", "0,2")
