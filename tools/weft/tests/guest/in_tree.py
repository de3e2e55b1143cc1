# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests `weft run --deterministic --stack linux`, with which guests run the kernel's own RDMA stack in virtual time."""
import filecmp
import re
import subprocess

from lab.testing import test

LIST = "cd /sys/class/net/ib0/device/driver && pwd -P; sort /proc/modules | cut -d ' ' -f 1 | paste -sd ' '\n"
PING = "ping -D -c 5 -i 0.1 10.1.0.2\n"
IN_TREE = {"ib_core", "ib_ipoib", "ib_umad", "ib_uverbs", "mlx4_core", "mlx4_ib"}


def _run(lab, *options, status=0, limit=90):
    done = subprocess.run([lab.program("weft"), "run", "--deterministic", "--quiet", "--kernel", lab.kernel, "--seed", str(lab.seed & 0xFFFF), *options],
                          capture_output=True, text=True, check=False, timeout=limit * lab.slowness)
    assert done.returncode == status, done.stdout + done.stderr
    return done


@test(kernels=("um-debug",), also=("um",), timeout=120)
def guests_get_ib0_from_the_in_tree_drivers_of_their_kernel(lab):
    """Guests have ib0 with an address, on mlx4_ib of their kernel, before the command runs. A card for which the kernel has no driver is refused."""
    done = _run(lab, "--stack", "linux", "--on", "node1", "--", LIST + PING)
    driver, modules, *answers = done.stdout.splitlines()
    assert driver.endswith("/drivers/mlx4_core"), done.stdout
    assert set(modules.split()) >= IN_TREE and "weft_" not in modules, modules
    assert " 0% packet loss" in done.stdout, answers
    refused = _run(lab, "--stack", "linux", "--card", "mthca", "--", "true", status=1)
    assert "has no module ib_mthca, which --stack linux loads for mthca: use another --card" in refused.stderr, refused.stderr


@test(kernels=(), also=("um-debug", "um"), timeout=240)
def two_runs_with_the_same_seed_capture_identical_packets_with_either_stack(lab):
    """Two runs with the same seed print the same times and record the same packets, on Linux's stack and on weft's."""
    for stack in ("linux", "weft"):
        captures = [lab.directory / f"{stack}-{number}.pcap" for number in range(2)]
        said = [_run(lab, "--stack", stack, "--capture", capture, "--on", "node1", "--", PING).stdout for capture in captures]
        assert said[0] == said[1] and said[0].count("time=") == 5, said
        assert captures[0].stat().st_size > 10_000 and captures[0].read_bytes() == captures[1].read_bytes(), "the captures differ"


GUESTS = 16
# Each guest pings every other. After the first half, the subnet manager of weft hands the subnet over to OpenSM in node1, and the guests wait for that.
# A ping may be lost meanwhile, so it is repeated. No guest ends before the last one has finished, because its peers ping it.
ALL_PAIRS = f"""
count={GUESTS} number=${{HOSTNAME#node}} port=$(echo /sys/class/infiniband/*/ports/1) lost=0
exec 9<> <(:)
pause() {{ read -rt "$1" -u 9 || :; }}
manager() {{ read -r manager <$port/sm_lid; }}
reach() {{
	until ping -q -c 1 -W 5 "10.1.0.$1" >/dev/null 2>&1; do
		((++lost < 20)) || {{ echo "no answer from node$1"; exit 1; }}
	done
}}
reach_some() {{ for ((k = $1; k < $2; k++)); do reach $(((number - 1 + k) % count + 1)); done; }}
reach_some 1 $((count / 2))
manager; before=$manager
if [ "$number" = 1 ]; then
	printf 'sminfo_polling_timeout 500\npolling_retry_number 2\n' >/run/opensm.conf
	opensm -F /run/opensm.conf -f /run/opensm.log -p 14 >/dev/null 2>&1 &
fi
while manager; [ "$manager" = "$before" ]; do pause 1; done
reach_some $((count / 2)) $count
echo "$before $manager $(cat $port/lid) $EPOCHREALTIME"
while ((${{EPOCHREALTIME%.*}} < 1700000040)); do pause 1; done
pkill -KILL opensm || :
"""


@test(kernels=(), also=("um",), timeout=600, full_timeout=1200)
def each_of_16_guests_pings_all_others_before_and_after_a_handover_to_opensm(lab):
    """16 guests with Linux's own IPoIB ping each other in virtual time. Half of the pairs do so before weft's subnet manager hands over to OpenSM in node1, and the
    other half afterwards.
    A second run with the same seed prints the same times and records the same packets."""
    links = "".join(f'[[host]]\nname = "node{number}"\n[[link]]\nends = ["node{number}", "switch1"]\n' for number in range(1, GUESTS + 1))
    file = lab.directory / "lab.toml"
    file.write_text(f'[[switch]]\nname = "switch1"\nports = {GUESTS + 1}\n{links}[sm]\nswitch = "switch1"\n')
    captures = [lab.directory / f"{number}.pcap" for number in range(2)]
    said = [_run(lab, "--stack", "linux", "--lab", file, "--capture", capture, "--timeout", "120", "--", ALL_PAIRS, limit=500).stdout for capture in captures]
    found = dict(re.findall(r"^(node\d+): (0x\w+ 0x\w+ 0x\w+) \d+\.\d+$", said[0], re.MULTILINE))
    assert found.keys() == {f"node{number}" for number in range(1, GUESTS + 1)}, said[0]
    managers = {tuple(words.split()[:2]) for words in found.values()}
    assert len(managers) == 1 and managers.pop()[1] == found["node1"].split()[2], said[0]
    assert said[0] == said[1], "\n".join(said)
    assert captures[0].stat().st_size > 1_000_000 and filecmp.cmp(*captures, shallow=False), "the captures differ"
