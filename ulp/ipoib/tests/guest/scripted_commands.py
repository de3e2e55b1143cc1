# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Defines an administrator's actions on ib0, of a few shell commands each, which are performed in a random order that depends on a seed.

An action is a script for bash. `try NAME command…` runs a command and prints `NAME: ok`, or `NAME: ` and Linux's error message; `report` always prints the
command's output. These lines are the action's outcome, which is compared between stacks. An action that changes settings on which others depend restores
them.
"""
import re

ADDRESS = "10.0.0"
TOOL = "/tmp/administrator"

PRELUDE = f"""
A={TOOL}
try() {{ local name=$1 out; shift; if out=$("$@" 2>&1); then echo "$name: ok"; else echo "$name: $(tail -n 1 <<<"$out")"; fi; }}
report() {{ local name=$1; shift; echo "$name: $("$@" 2>&1 | tail -n 1)"; }}
await() {{ for i in $(seq 600); do eval "$1" >/dev/null 2>&1 && return 0; sleep 0.1; done; echo "never: $1"; }}
home() {{ ip link set ib0 up; ip addr replace {ADDRESS}.$NUMBER/24 dev ib0; }}
"""

# "": the settings of the link.
ETHTOOL_SHOWN = ("", "-i", "-k", "-c", "-l", "-n", "-x", "-m", "-e", "-d", "-T", "-P", "-S", "-g", "-a",
                 "--show-eee", "--show-fec", "--show-priv-flags", "--show-tunnels", "--phy-statistics", "--show-module", "-u", "-w", "--cable-test", "--cable-test-tdr")
FEATURES = ("rx", "tx", "sg", "tso", "gso", "gro", "rxvlan", "txvlan", "lro", "ntuple", "rxhash", "highdma")


def namespace_with_ib0(random):
    inside = random.choice(("", "ip -n m link set ib0 up", f"ip -n m addr add {ADDRESS}.$NUMBER/24 dev ib0; ip -n m link set ib0 up",
                            "ip -n m link set lo up; ip -n m link set ib0 name elsewhere; ip -n m link set elsewhere up"))
    return f"""ip netns add m
try move ip link set ib0 netns m
{inside}
try again ip link set ib0 netns m
ip netns del m
await 'ip link show ib0 || ip link show elsewhere'
ip link show elsewhere >/dev/null 2>&1 && {{ ip link set elsewhere down; try back ip link set elsewhere name ib0; }}
home"""


def namespace_with_a_child(random):
    end = random.choice(("ip netns del m; await 'ip link show child'; try delete ip link del child",
                         "try delete ip -n m link del child; ip netns del m"))
    return f"""ip netns add m
try add ip link add link ib0 name child type ipoib pkey 0x8001
try move ip link set child netns m
try up ip -n m link set child up
try address ip -n m addr add 10.0.7.$NUMBER/24 dev child
{end}"""


def children(random):
    pkeys = [random.choice(("0x8001", "0x0001", "0x8003")) for _ in range(2)]
    return f"""try add ip link add link ib0 name child type ipoib pkey {pkeys[0]}
try another ip link add link ib0 name child2 type ipoib pkey {pkeys[1]}
try deeper ip link add link child name child3 type ipoib pkey 0x8005
try partition-0 ip link add link ib0 name child4 type ipoib pkey 0
try no-parent ip link add name child5 type ipoib pkey 0x8006
try foreign ip link add link lo name child6 type ipoib pkey 0x8006
try up ip link set child up
try delete-child ip link del child
ip link del child2 2>/dev/null
ip link del child4 2>/dev/null; ip link del child3 2>/dev/null
try delete-ib0 ip link del ib0
test -e /sys/class/net/ib0 && echo still there
home"""


def packet_sockets(random):
    length = random.choice((24, 64, 500, 1500, 2000))
    nobody = "0000055f fe800000 00000000 0202c903 00dead01".replace(" ", "")
    foreign = "00ffffff ff12401b 80090000 00000000 00000001".replace(" ", "")
    return f"""broadcast=$(tr -d : </sys/class/net/ib0/broadcast)
report raw $A packet ib0 raw {length}
report empty $A packet ib0 raw 0
report short $A packet ib0 raw {random.randrange(1, 24)}
# Debian's module reads the missing address and crashes the kernel.
test $NUMBER = 1 && report dgram-nowhere $A packet ib0 dgram {length}
report dgram-broadcast $A packet ib0 dgram {length} $broadcast
report dgram-nobody $A packet ib0 dgram {length} {nobody}
report dgram-foreign $A packet ib0 dgram {length} {foreign}
report long $A packet ib0 dgram 5000 $broadcast"""


def vlan(_):
    return """try add ip link add link ib0 name tagged type vlan id 5
ip link del tagged 2>/dev/null"""


def bridge(_):
    return """ip link add br9 type bridge
try enslave ip link set ib0 master br9
ip link del br9"""


def macvlan(random):
    return f"""try add ip link add link ib0 name mv type macvlan mode {random.choice(("bridge", "private", "vepa", "passthru"))}
try up ip link set mv up
ip link del mv 2>/dev/null"""


def bonding(random):
    policy = random.choice((" fail_over_mac active", ""))
    return f"""ip link add bond9 type bond mode active-backup miimon 100{policy}
ip link set ib0 down
try enslave ip link set ib0 master bond9
try up ip link set bond9 up
try release ip link set ib0 nomaster
ip link del bond9
home"""


def traffic_control(random):
    kind = random.choice(("pfifo limit 10", "fq_codel", "tbf rate 100mbit burst 20k latency 50ms", "prio", "sfq", "netem delay 1ms"))
    return f"""try root tc qdisc replace dev ib0 root {kind}
ping -c 2 -i 0.1 -W 1 -q $PEER >/dev/null
try ingress tc qdisc add dev ib0 clsact
try filter tc filter add dev ib0 egress matchall action pass
tc qdisc del dev ib0 clsact 2>/dev/null
try delete tc qdisc del dev ib0 root"""


def xdp(_):
    return """rm -f /tmp/xdp
$A xdp ib0 >/tmp/xdp & tool=$!
await 'test -s /tmp/xdp'
echo "attach: $(cat /tmp/xdp)"
ping -c 2 -i 0.1 -W 1 -q $PEER >/dev/null
kill $tool 2>/dev/null; wait $tool 2>/dev/null; true"""


def promiscuous(random):
    return f"""try on ip link set ib0 promisc on
try all ip link set ib0 allmulticast on
tcpdump -i ib0 -n -c {random.randrange(2, 8)} -w /dev/null >/dev/null 2>/tmp/said & tool=$!
await '! kill -0 $tool'
kill $tool 2>/dev/null; wait $tool 2>/dev/null
grep -Eq '^[1-9][0-9]* packets captured' /tmp/said || echo "never: a capture: $(head -n 1 /tmp/said)"
try off ip link set ib0 promisc off
try few ip link set ib0 allmulticast off"""


def up_and_down(random):
    return f"""for i in $(seq {random.randrange(1, 6)}); do ip link set ib0 down; ip link set ib0 up; done
home"""


def attributes(random):
    """Chooses at random from all attributes of `ip link set`. The kernel decides about unusual values."""
    sets = ["mtu 68", "mtu 67", "mtu 1500", "mtu 2044", "mtu 2045", "mtu 4092", "mtu 65520", "mtu 65521", "mtu 0", "txqueuelen 0", "txqueuelen 1", "txqueuelen 5000",
            "alias somebody", "group 7", "group 0", "arp off", "arp on", "multicast off", "multicast on", "dynamic on", "dynamic off",
            "carrier off", "protodown on", "mode dormant", "mode default", "state up", "vf 0 mac 00:11:22:33:44:55", "addrgenmode none",
            "addrgenmode eui64", "gso_max_size 1000", "gso_max_size 65536", "trailers off", "name ib0", "name ''", "name lo",
            "address 00:11:22:33:44:55", "broadcast 00:11:22:33:44:55", "broadcast 00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff", "master lo", "numtxqueues 3", "type ipoib mode connected", "type ipoib umcast 1",
            "type ipoib pkey 0x8009"]
    lines = [f"try '{item}' ip link set dev ib0 {item}" for item in random.sample(sets, 12)]
    return "\n".join(lines) + """
ip link set ib0 arp on multicast on txqueuelen 1000 dynamic off
ip link set ib0 type ipoib mode datagram umcast 0
ip link set ib0 mtu 2044; ip link set ib0 mode default; ip link set ib0 gso_max_size 65536
ip link set ib0 down; home"""


def rename(_):
    return """try up ip link set ib0 name other
ip link show other >/dev/null 2>&1 && ip link set other name ib0
ip link set ib0 down
try down ip link set ib0 name other
try back ip link set other name ib0
home"""


def hardware_address(_):
    return """old=$(cat /sys/class/net/ib0/address)
try same ip link set ib0 address $old
try short ip link set ib0 address 00:11:22:33:44:55
home"""


def ethtool_shows(random):
    lines = [f"try '{flag}' ethtool {flag} ib0" for flag in random.sample(ETHTOOL_SHOWN, 12)]
    return "\n".join(lines)


def ethtool_sets(random):
    sets = [f"-K ib0 {feature} {state}" for feature in FEATURES for state in ("off", "on")]
    sets += ["-C ib0 rx-usecs 8 rx-frames 4", "-C ib0 rx-usecs 100000000", "-C ib0 pkt-rate-low 5", "-G ib0 rx 512", "-G ib0 rx 17",
             "-A ib0 rx on", "-L ib0 combined 2", "-X ib0 default", "-s ib0 speed 100", "-s ib0 msglvl 1", "-r ib0", "-t ib0", "-p ib0 1",
             "-E ib0 magic 1 offset 0 value 1", "-N ib0 flow-type udp4 action 0", "-f ib0 nothing", "--reset ib0 all",
             "--set-priv-flags ib0 x on", "--set-eee ib0 eee on", "--set-fec ib0 encoding off", "-W ib0 1", "-U ib0 flow-type udp4 action 0", "-Q ib0 queue_mask 0x1 --show-coalesce",
             "-Q ib0 queue_mask 0x1 --coalesce rx-usecs 8", "--set-module ib0 power-mode-policy auto", "--set-tunable ib0 rx-copybreak 100", "--set-phy-tunable ib0 downshift on"]
    lines = [f"try '{item}' ethtool {item}" for item in random.sample(sets, 12)]
    return "\n".join(lines) + """
for f in rx tx sg tso gso gro; do ethtool -K ib0 $f on >/dev/null 2>&1; done; true"""


def everything_read(_):
    return """cat /proc/net/dev /proc/net/dev_mcast /proc/net/igmp >/dev/null
find /sys/class/net/ib0/ -type f -readable -exec cat {} + >/dev/null 2>&1
ip -s -d link show ib0 >/dev/null; ip maddr show dev ib0 >/dev/null; ss -0 >/dev/null; true
for value in 100 2044 99999 x; do if echo $value 2>/dev/null >/sys/class/net/ib0/mtu; then echo "mtu $value: ok"; else echo "mtu $value: refused"; fi; done 2>/dev/null
home"""


def listeners(random, count=1000):
    return f"""rm -f /tmp/listen
$A listen ib0 239.{random.randrange(4, 250)}.0.0 {count} >/tmp/listen & tool=$!
await 'test -s /tmp/listen'
echo "join: $(cat /tmp/listen)"
{random.choice(("", "ip link set ib0 down; home"))}
kill $tool; wait $tool 2>/dev/null
report send $A send ib0 239.3.{random.randrange(250)}.0 20"""


def neighbours(random):
    guid = ":".join(f"{random.randrange(256):02x}" for _ in range(6))
    return f"""try nobody ip neigh replace {ADDRESS}.77 lladdr 00:00:05:5f:fe:80:00:00:00:00:00:00:02:02:{guid} dev ib0
try short ip neigh replace {ADDRESS}.78 lladdr 00:11:22:33:44:55 dev ib0
echo x >/dev/udp/{ADDRESS}.77/9; echo x >/dev/udp/{ADDRESS}.78/9
try flush ip neigh flush dev ib0 nud all
try delete ip neigh del {ADDRESS}.77 dev ib0"""


def ipv6(_):
    return """sysctl -qw net.ipv6.conf.ib0.disable_ipv6=1
sysctl -qw net.ipv6.conf.ib0.disable_ipv6=0
try address ip -6 addr add fd00::$NUMBER/64 dev ib0 nodad
try token ip token set ::7 dev ib0
ip -6 addr flush dev ib0 scope global; true"""


def driver_unbound(_):
    return """driver=$(readlink -f /sys/class/net/ib0/device/driver); card=$(basename $(readlink -f /sys/class/net/ib0/device))
try unbind eval "echo $card >$driver/unbind"
test -e /sys/class/net/ib0 && echo 'still there'
try bind eval "echo $card >$driver/bind"
await 'test -e /sys/class/net/ib0'
home"""


# Each action, and the configuration symbol that the kernel must have for it.
SCRIPTS = {
    namespace_with_ib0: None, namespace_with_a_child: None, children: None, packet_sockets: None, vlan: "VLAN_8021Q", bridge: "BRIDGE",
    macvlan: "MACVLAN", bonding: "BONDING", traffic_control: "NET_SCHED", xdp: "BPF_SYSCALL", promiscuous: None, up_and_down: None,
    attributes: None, rename: None, hardware_address: None, ethtool_shows: None, ethtool_sets: None, everything_read: None, listeners: None,
    neighbours: None, ipv6: None, driver_unbound: None,
}


def drawn(random):
    """Returns a round of all actions in random order: (name, needs, script)."""
    for command in random.sample(list(SCRIPTS), len(SCRIPTS)):
        yield command.__name__, SCRIPTS[command], command(random)


def outcome_of(text):
    """Returns the output of a script as {name: outcome}, without parts of messages that differ from run to run."""
    lines = (re.sub(r"\x1b\[[\d;]*m", "", line).strip() for line in text.splitlines())
    return dict(line.split(": ", 1) if ": " in line else (line, "") for line in lines if line)
