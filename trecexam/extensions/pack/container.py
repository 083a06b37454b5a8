"""The zip file of a pack: deterministic when written, validated when read."""

from __future__ import annotations

import hashlib
import io
import json
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from converters.errors import ConversionError
from converters.lines import open_input
from trecexam.errors import TrecexamError

MANIFEST, FORMAT, SCHEMA = "manifest.json", "trecexam pack", 1
#: Bytes of a pack, and of all its parts unpacked; how often more than packed, beyond the first bytes.
LARGEST, LARGEST_UNPACKED, MOST_TIMES, FREE = 2**31, 2**32, 200, 2**26
#: Parts, folders around one, and bytes of its name.
MOST_PARTS, DEEPEST, LONGEST_NAME = 100_000, 16, 400
#: All that a damaged or hostile zip makes zipfile raise.
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError),
    *(ValueError, RuntimeError, NotImplementedError, OverflowError, LookupError),
)


def written(parts: Mapping[str, bytes], about: Mapping[str, Any]) -> bytes:
    """The bytes of a pack: the manifest, then its parts by name.

    Args:
        about: what the manifest has beside the parts.
    """
    listed = {name: {"bytes": len(part), "sha256": _sha256(part)} for name, part in sorted(parts.items())}
    manifest = {"format": FORMAT, "schema": SCHEMA, **about, "parts": listed}
    first = {MANIFEST: json.dumps(manifest, indent=1, ensure_ascii=False).encode() + b"\n"}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as pack:
        for name, part in (*first.items(), *sorted(parts.items())):
            info = zipfile.ZipInfo(name)  # of 1980
            info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, 3
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            pack.writestr(info, part)
    return buffer.getvalue()


def unpacked(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest of a pack and its parts, whose digests match the manifest.

    Raises:
        TrecexamError: it is no pack, of another schema, damaged, or made to do harm.
    """
    try:
        with open_input(path) as file, zipfile.ZipFile(file) as pack:
            size = file.seek(0, io.SEEK_END)
            infos = pack.infolist()
            _refuse(path, size, infos)
            parts = {}
            for info in infos:
                with pack.open(info) as part:
                    parts[info.filename] = part.read(info.file_size + 1)
        manifest = json.loads(parts.pop(MANIFEST))
    except TrecexamError:
        raise
    except ConversionError as error:
        raise TrecexamError(error.reason, path=path) from None
    except FileNotFoundError:
        raise TrecexamError("no such file", path=path) from None
    except (*_DAMAGE, RecursionError) as error:
        raise TrecexamError(f"is not a pack, or is damaged ({error}): copy it again", path=path) from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise TrecexamError(f'is not a pack: its {MANIFEST} has no "format": "{FORMAT}"', path=path)
    if manifest.get("schema") != SCHEMA:
        raise TrecexamError(
            f"a pack of schema {manifest.get('schema')!r}, known here: {SCHEMA}; use the version of "
            f"trecexam that made it",
            path=path,
        )
    listed = manifest.get("parts")
    if not isinstance(listed, dict) or listed.keys() != parts.keys():
        raise TrecexamError(f"damaged: its parts are not those that {MANIFEST} lists", path=path)
    for name, content in parts.items():
        if listed[name] != {"bytes": len(content), "sha256": _sha256(content)}:
            raise TrecexamError(f"damaged: {name} is not what {MANIFEST} says; copy it again", path=path)
    return manifest, parts


def is_safe(name: str) -> bool:
    """Whether this name is allowed for a part or a track's file."""
    folders = name.split("/")
    return (
        len(name.encode(errors="surrogatepass")) <= LONGEST_NAME
        and len(folders) <= DEEPEST
        and name.isprintable()
        and "\\" not in name
        and all(part and not part.startswith(".") for part in folders)
    )


def _refuse(path: Path, size: int, infos: list[zipfile.ZipInfo]) -> None:
    """Raises an error for entries that no valid pack has.

    Raises:
        TrecexamError: it says which part, and why.
    """
    total, packed = sum(info.file_size for info in infos), sum(info.compress_size for info in infos)
    reason, names = "", set[str]()
    if size > LARGEST or total > LARGEST_UNPACKED:
        reason = f"it has more than {LARGEST_UNPACKED >> 30} GiB"
    elif len(infos) > MOST_PARTS:
        reason = f"it has more than {MOST_PARTS:,} parts"
    elif packed > size or total > FREE + MOST_TIMES * size:
        reason = f"it would unpack {size:,} bytes to {total:,}"
    for info in infos if not reason else ():
        kind = stat.S_IFMT(info.external_attr >> 16)
        if not is_safe(info.filename):
            reason = "the name of a part points outside of the pack, or is too long"
        elif info.filename in names:
            reason = "it contains a part twice"
        elif kind not in (0, stat.S_IFREG):
            reason = "a part is a link or a device, not a file"
        elif info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            reason = "a part is encrypted, or compressed in another way than by deflate"
        if reason:
            reason = f"{reason}: {info.filename!r}"
            break
        names.add(info.filename)
    if reason:
        raise TrecexamError(f"refused, nothing was unpacked: {reason}", path=path)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
