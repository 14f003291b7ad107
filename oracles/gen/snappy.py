"""Writes bundle_snappy.index: the table of bundle_tf_names.index with its data block compressed.

TensorFlow 2.15.1 writes no compressed tables but reads them.  cramjam 2.14.0 (snappy's raw format), Python 3.11, no
randomness.  Run: python oracles/gen/snappy.py
"""

import pathlib
import struct

import cramjam

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def take_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def stored(block, kind):
    return block + bytes([kind]) + struct.pack("<I", masked_crc32c(block + bytes([kind])))


if __name__ == "__main__":
    table = (FIXTURES / "bundle_tf_names.index").read_bytes()
    # The only data block ends, with its trailer of five bytes, where the metaindex block begins.
    meta_offset, at = take_varint(table, len(table) - 48)
    meta_size, _ = take_varint(table, at)
    meta = table[meta_offset : meta_offset + meta_size]

    data = bytes(cramjam.snappy.compress_raw(table[: meta_offset - 5]))
    handle = varint(0) + varint(len(data))
    entry = varint(0) + varint(1) + varint(len(handle)) + b"t" + handle
    index = entry + struct.pack("<II", 0, 1)

    out = stored(data, 1)
    footer = varint(len(out)) + varint(len(meta))
    out += stored(meta, 0)
    footer += varint(len(out)) + varint(len(index))
    out += stored(index, 0)
    out += footer.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)
    (FIXTURES / "bundle_snappy.index").write_bytes(out)
