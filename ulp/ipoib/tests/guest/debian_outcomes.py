# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Lists the outcomes of an administrator's actions on Debian's stack (Linux 6.1, ib_ipoib) that depend neither on the other actions nor on their order.

The list is taken from outcomes.json of a full run: `scripts/test --full --only '^guest-um-debug\\.random_administration'`.
"""

# Indexed by act, and by the command in it.
OUTCOMES = {
    "attributes": {
        "arp off": "ok",
        "broadcast 00:11:22:33:44:55": "RTNETLINK answers: Invalid argument",
        "dynamic off": "ok",
        "dynamic on": "ok",
        "group 7": "ok",
        "multicast off": "ok",
        "name ": 'Error: argument "" is wrong: "name" not a valid ifname',
        "numtxqueues 3": "ok",
        "txqueuelen 1": "ok",
    },
    "bridge": {
        "enslave": "RTNETLINK answers: Invalid argument",
    },
    "children": {
        "delete-ib0": "ok",
        "foreign": "RTNETLINK answers: No such device",
        "no-parent": "RTNETLINK answers: Invalid argument",
        "partition-0": "RTNETLINK answers: Invalid argument",
        "still there": "",
    },
    "ethtool_sets": {
        "-Q ib0 queue_mask 0x1 --show-coalesce": "Cannot get device per queue parameters: Invalid argument",
        "-W ib0 1": "Can not set dump level: Operation not supported",
        "--set-fec ib0 encoding off": "netlink error: Operation not supported",
        "-C ib0 pkt-rate-low 5": "netlink error: Invalid argument",
        "-L ib0 combined 2": "netlink error: Operation not supported",
        "-N ib0 flow-type udp4 action 0": "Cannot insert classification rule",
        "-r ib0": "Cannot restart autonegotiation: Operation not supported",
        "-s ib0 msglvl 1": "netlink error: Operation not supported",
        "-t ib0": "Cannot test: Operation not supported",
    },
    "ethtool_shows": {
        "": "ok",
        "--cable-test": "netlink error: Operation not supported",
        "-u": "RX classification rule retrieval failed",
        "-w": "Can not get dump level: Operation not supported",
        "--show-eee": "netlink error: Operation not supported",
        "--show-module": "ok",
        "--show-priv-flags": "netlink error: Operation not supported",
        "-a": "netlink error: Operation not supported",
        "-c": "ok",
        "-e": "Cannot get EEPROM data: Operation not supported",
        "-g": "netlink error: Operation not supported",
        "-k": "ok",
        "-n": "RX classification rule retrieval failed",
        "-x": "Cannot get RX ring count: Operation not supported",
    },
    "everything_read": {
        "mtu 100": "ok",
        "mtu 2044": "ok",
        "mtu 99999": "refused",
        "mtu x": "refused",
    },
    "hardware_address": {
        "same": "RTNETLINK answers: Device or resource busy",
        "short": "Invalid address length 6 - must be 20 bytes",
    },
    "ipv6": {
        "address": "ok",
        "token": "ok",
    },
    "listeners": {
        "join": "ok",
        "send": "ok",
    },
    "macvlan": {
        "add": "RTNETLINK answers: Invalid argument",
        "up": 'Cannot find device "mv"',
    },
    "namespace_with_a_child": {
        "add": "ok",
        "address": "ok",
        "delete": "ok",
        "move": "ok",
        "up": "ok",
    },
    "namespace_with_ib0": {
        "again": 'Cannot find device "ib0"',
        "move": "ok",
    },
    "neighbours": {
        "delete": "RTNETLINK answers: No such file or directory",
        "flush": "ok",
        "nobody": "ok",
        "short": "Error: Invalid link address.",
    },
    "packet_sockets": {
        "dgram-broadcast": "ok",
        "dgram-foreign": "ok",
        "dgram-nobody": "ok",
        "empty": "EINVAL",
        "long": "EMSGSIZE",
        "raw": "ok",
        "short": "EINVAL",
    },
    "promiscuous": {
        "all": "ok",
        "few": "ok",
        "off": "ok",
        "on": "ok",
    },
    "rename": {
        "back": "ok",
        "down": "ok",
        "up": "RTNETLINK answers: Device or resource busy",
    },
    "vlan": {
        "add": "Error: 8021q: VLANs not supported on device.",
    },
    "xdp": {
        "attach": "ok",
    },
}
