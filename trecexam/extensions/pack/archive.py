"""The .tar.gz of a pack: the same bytes for the same files, and checked before anything is unpacked."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import zlib
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from converters.lines import open_input
from trecexam.errors import TrecexamError

MANIFEST, FORMAT = "manifest.json", "trecexam pack 1"
#: Unpacked bytes: at most so many, and so many times the packed ones beyond the first.
LARGEST, MOST_TIMES, FREE = 2**31, 200, 2**26
#: Files, folders around one, and bytes of its name.
MOST_FILES, DEEPEST, LONGEST_NAME = 100_000, 16, 400


#: All that a damaged or hostile archive makes gzip, tarfile and json raise.
_DAMAGE = (
    *(tarfile.TarError, zlib.error, EOFError, OSError, ValueError),
    *(LookupError, ArithmeticError, RecursionError),
)


def to_bytes(files: Mapping[str, bytes], about: Mapping[str, Any]) -> bytes:
    """Return the archive: the manifest, then the files by name."""
    listed = {name: sha256(content).hexdigest() for name, content in sorted(files.items())}
    manifest = json.dumps({"format": FORMAT, **about, "files": listed}, indent=1, ensure_ascii=False)
    buffer = io.BytesIO()
    with (
        gzip.GzipFile("", "wb", 9, buffer, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, content in ((MANIFEST, manifest.encode()), *sorted(files.items())):
            info = tarfile.TarInfo(name)  # of 1970, root, 0644
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def read_archive(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the manifest of a pack and its files, whose digests match the manifest.

    Raises:
        TrecexamError: the file is not a pack, is damaged, or would do harm; nothing was unpacked.
    """
    try:
        with open_input(path) as file:
            most = min(LARGEST, FREE + MOST_TIMES * os.fstat(file.fileno()).st_size)
            content = gzip.GzipFile(fileobj=file).read(most + 1)
        if len(content) > most:
            raise ValueError("it would unpack to too many bytes")
        files = _files(content)
        manifest = json.loads(files.pop(MANIFEST))
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise ValueError(f'its {MANIFEST} has no "format": "{FORMAT}"')
        if manifest.get("files") != {name: sha256(content).hexdigest() for name, content in files.items()}:
            raise ValueError(f"its files are not those that {MANIFEST} lists")
    except _DAMAGE as error:
        raise TrecexamError(
            f"is no pack of `trecexam export pack`, or is damaged ({error}); nothing was unpacked", path=path
        ) from None
    return {key: value for key, value in manifest.items() if key not in ("format", "files")}, files


def _files(content: bytes) -> dict[str, bytes]:
    """Read the members of a tar.

    Raises:
        ValueError: a member would do harm.
    """
    files: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for member in archive:
            if not is_safe(member.name):
                raise ValueError(f"a name points outside of the pack, or is too long: {member.name!r}")
            if not member.isreg() or member.issparse():
                raise ValueError(f"{member.name!r} is a link, a folder or a device")
            if member.name in files or len(files) >= MOST_FILES:
                raise ValueError(f"{member.name!r} is there twice, or there are too many files")
            file = archive.extractfile(member)
            files[member.name] = b"" if file is None else file.read()
    return files


def is_safe(name: str) -> bool:
    """Return whether a file may have this name in a pack: a relative path without `..` and hidden parts."""
    folders = name.split("/")
    return (
        len(name.encode(errors="surrogatepass")) <= LONGEST_NAME
        and len(folders) <= DEEPEST
        and name.isprintable()
        and "\\" not in name
        and all(part and not part.startswith(".") for part in folders)
    )
