# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Contains examples of tests with the pytest plugin: pytest -p weft.pytest_plugin"""
import pytest
import weft


def test_nodes_reach_each_other(lab):
    lab["node1"].run("ping -c 3 10.1.0.2")


def test_ibv_pingpong_exchanges_data(lab):
    with lab["node1"].start("ibv_rc_pingpong") as server:
        lab["node1"].run("until ss -ltn | grep -q :18515; do sleep 0.1; done", timeout=60)
        assert "bytes in" in lab["node2"].run("ibv_rc_pingpong 10.1.0.1").stdout
        server.wait()


def test_port_goes_down_when_its_cable_is_unplugged(lab):
    lab.link("node2").down()
    lab["node2"].run("until ibstat | grep 'State: Down'; do sleep 0.1; done", timeout=60)
    with pytest.raises(weft.CommandFailed):
        lab["node1"].run("ping -c 1 -W 1 10.1.0.2")
    lab.link("node2").up()
    lab["node1"].run("until ping -c 1 -W 1 10.1.0.2; do :; done", timeout=120)


def test_lossy_link_increments_the_symbol_error_counter(lab):
    with lab.link("node2").changed(loss="50%"):
        lab["node1"].run("ping -c 20 -i 0.01 -W 1 10.1.0.2", check=False)
    assert any(counters["symbol_errors"] for counters in lab.counters("node2/1", "switch1/2").values())


def test_subnet_manager_has_activated_both_nodes(lab):
    assert [host["name"] for host in lab.fabric["hosts"]] == ["node1", "node2"]
    assert lab.fabric["subnet_manager"]["state"] == "master"
    assert all(port["up"] and port["lid"] for host in lab.fabric["hosts"] for port in host["ports"])


def test_capture_contains_the_packets_of_a_ping(lab, tmp_path):
    with lab.capture("node1", tmp_path / "ping.pcap") as file:
        lab["node1"].run("ping -c 1 10.1.0.2")
    assert file.stat().st_size > 200


def test_program_of_this_host_uses_the_port_of_a_guest(lab):
    state = lab.attach("node1").run("ibstat").stdout
    assert "State: Active" in state
    guid = lab["node1"].run("ibstat -p").stdout.strip()
    assert f"Port GUID: {guid}" in state
    assert "SMINFO_MASTER" in lab.attach("node2").run("sminfo").stdout
