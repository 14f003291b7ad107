"""Writes oracles/fixtures/zip64.jsonl: archives in the Zip64 format, as Python writes them, with numbers small enough for a fixture.

Run as `python oracles/gen/zip64.py`; the standard library and NumPy are enough. Python takes the format for members above 2 GiB; here the
limit is a few bytes. A case has the archive (`file`), and its members (`names`, `contents`).
"""

import io
import sys
import zipfile

from fixture import Fixture

fixture = Fixture()
MEMBERS = [("config.json", b'{"a": 1}' * 9), ("assets/x.txt", b"a\nb\n" * 20), ("empty", b"")]


def archive(limit, method):
    """An archive whose numbers above the limit have eight bytes."""
    buffer, zipfile.ZIP64_LIMIT = io.BytesIO(), limit
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, content in MEMBERS:
            file.writestr(zipfile.ZipInfo(name), content, compress_type=method)
    return buffer.getvalue()


# All numbers; sizes alone; the place of the last member and of the directory.
for name, limit, method in [("all", 0, 0), ("sizes", 75, 0), ("packed", 5, 8), ("places", 130, 0)]:
    names, contents = zip(*MEMBERS)
    file = archive(limit, method)
    assert b"PK\x06\x06" in file
    fixture.case(name, file=file, names=list(names), contents=list(contents))
fixture.write("zip64", python=sys.version.split()[0])
