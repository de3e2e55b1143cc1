# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Finds the user of the program at the other end of a loopback connection, so that `weft web` can refuse other users."""
import ipaddress
import pathlib
import sys

TABLES = (pathlib.Path("/proc/net/tcp"), pathlib.Path("/proc/net/tcp6"))
ADDRESS, PEER, UID = 1, 2, 7      # columns
MAPPED = "0000000000000000" + f"{int.from_bytes(bytes.fromhex('0000ffff'), sys.byteorder):08X}"


def _as_in_table(address, port):
    """Formats an end of a connection as in the kernel's tables: words of 32 bits in the host's byte order."""
    packed = ipaddress.ip_address(address.partition("%")[0]).packed
    words = (int.from_bytes(packed[i:i + 4], sys.byteorder) for i in range(0, len(packed), 4))
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"


def uid_of(peer, own):
    """Returns the user of the socket with the address `peer` that is connected to `own`, each (address, port, …); None if it is not on this host."""
    ends = _as_in_table(*peer[:2]), _as_in_table(*own[:2])
    # A socket for both protocols that uses IPv4 is listed by the IPv6 form of its addresses.
    wanted = {ends, tuple(MAPPED + end for end in ends)}
    for table in TABLES:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if (fields[ADDRESS], fields[PEER]) in wanted:
                return int(fields[UID])
    return None
