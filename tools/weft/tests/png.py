# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Writes the licence into pictures, because every file of the tree must contain it."""
import struct
import zlib

LICENCE = b"License\0SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB"


def keep(picture, path):
    """Writes a PNG picture with its licence in a text chunk."""
    after = 8 + 12 + struct.unpack(">I", picture[8:12])[0]  # size of the signature and the first chunk
    chunk = b"tEXt" + LICENCE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(picture[:after] + struct.pack(">I", len(LICENCE)) + chunk + struct.pack(">I", zlib.crc32(chunk)) + picture[after:])
