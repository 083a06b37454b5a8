"""Packing of a track into an archive, unpacking, and graders of a pack without their models."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import tarfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from converters.lines import open_input
from trecexam.config import CONFIG_NAME
from trecexam.errors import GraderError, LackingError, TrackError, TrecexamError, plain_reason, quoted
from trecexam.files import atomic
from trecexam.files.kept import read_object, read_regular
from trecexam.files.stamps import sha256_of
from trecexam.folder import PACK, TrackFolder, refuse_code
from trecexam.graders import available
from trecexam.graders.base import Answer, Cell, Grader, Scale, identity_digest, identity_json
from trecexam.grades.open_track import OpenTrack
from trecexam.grades.store import GradeRow, GradeStore
from trecexam.inputs.inputs import input_stamps
from trecexam.inputs.track_graders import ONLY, usable_folders
from trecexam.outputs.outputs import MANIFEST
from trecexam.results.text import plural, shorten_list

#: Paths in a pack: the folder of the track's files, and the grades.
TRACK, GRADES = "track/", "grades.jsonl"
_Rating = Literal[0, 1, 2, 3, 4, 5]
#: A line of the grades: position of the source, passage, item, rating, status, reply, probabilities, limit.
_GRADE = tuple[int, bytes, bytes, _Rating | None, str, str, tuple[float, ...] | None, int | None]
#: Kinds of readers of a grader's stored answers.
_READERS = ("cosines", "probabilities", "read")
#: The settings that name files of the track.
_FILES = {"queries", "passages", "qrels", "official_leaderboard", "runs", "recorded", "prompt", "bank"}
#: Limits of a pack: files, bytes, and the ratio of unpacked to packed bytes beyond a first amount.
MOST_FILES, LARGEST, MOST_TIMES, FREE = 100_000, 2**31, 200, 2**26


class PackedGrader(BaseModel):
    """A grader in a pack; `reads` names the reader of its stored answers."""

    settings: str
    identity: dict[str, Any]
    item_kinds: list[str]
    needs_query_text: bool
    scale: tuple[_Rating, _Rating]
    score_settings: dict[str, Any]
    free_text: bool | None
    model_and_prompt: tuple[str | None, str | None] | None
    reads: list[str]


class StoredGrader(Grader):
    """A grader of a pack, without its model."""

    def __init__(self, packed: PackedGrader, readers: Mapping[str, Any], make: Callable[[], Grader]) -> None:
        self._packed, self._make = packed, make
        self.item_kinds, self.scale = frozenset(packed.item_kinds), Scale(*packed.scale)
        self.free_text, self.model_and_prompt = packed.free_text, packed.model_and_prompt
        self.needs_query_text, self.score_settings = packed.needs_query_text, packed.score_settings
        reads = (readers.get(name) if name in packed.reads else None for name in _READERS)
        self.cosines, self.probabilities, self.read = reads

    @property
    def identity(self) -> Mapping[str, Any]:
        return self._packed.identity

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        """Grade cells without a grade in the pack, with the model."""
        model = self._make()
        if dict(model.identity) != self.identity:
            raise GraderError("the pack has no grade of these cells, and the model here is another one")
        yield from model.grade(cells)


class PackManifest(BaseModel):
    """The manifest of a pack: graders, sources of grades (identity and environment), and digests of out/."""

    format: Literal["trecexam pack 1"] = "trecexam pack 1"
    graders: dict[str, PackedGrader]
    sources: list[tuple[dict[str, Any], dict[str, str] | None]]
    inputs: dict[str, str]
    outputs: dict[str, str]
    versions: dict[str, str | None]


def pack(loaders: OpenTrack, output: Path | str) -> str:
    """Write inputs, settings, grades and the digests of out/ to one .tar.gz; return a line on its size."""
    folder, files = loaders.folder, dict[str, bytes]()
    _refuse_outside(read_regular(folder.config_path))
    views = usable_folders(folder).values() or [folder]
    for path in {path for view in views for path in input_stamps(view)}:
        if not _is_safe(name := folder.shown(path)):
            raise TrackError("cannot be packed because of its name: rename it", path=path)
        with suppress(OSError):
            files[f"{TRACK}{name}"] = read_regular(path)
    out, inputs, graders = read_object(folder.shared_out / MANIFEST), dict[str, str](), dict[str, Any]()
    for name in loaders:
        # A waiting grader has no files in out/.
        with suppress(LackingError):
            inputs |= loaders[name].load().digests
            grader = loaders[name].grader
            # Recordings are packed as files and need no model.
            if grader.known_passages is None:
                graders[name] = PackedGrader.model_construct(
                    settings=_settings(loaders[name].folder),
                    identity=dict(grader.identity),
                    item_kinds=sorted(grader.item_kinds),
                    needs_query_text=grader.needs_query_text,
                    scale=grader.scale,
                    score_settings=dict(grader.score_settings),
                    free_text=grader.free_text,
                    model_and_prompt=grader.model_and_prompt,
                    reads=[reader for reader in _READERS if getattr(grader, reader)],
                )
    if out.get("inputs") != inputs:
        raise TrackError(
            f"out/ is old: `trecexam watch {quoted(folder.root)} --once` first", path=folder.root
        )
    sources, lines = list[Any](), list[str]()
    for (identity, environment), rows in groupby(loaders.store.everything(), lambda row: row[:2]):
        lines += [json.dumps([len(sources), *row[2:4], *row[4][2:]]) + "\n" for row in rows]
        sources.append((json.loads(identity), json.loads(environment)))
    manifest = PackManifest.model_validate({**out, "graders": graders, "sources": sources})
    files |= {MANIFEST: manifest.model_dump_json(indent=1).encode(), GRADES: "".join(lines).encode()}
    with tarfile.open(fileobj=(tar := io.BytesIO()), mode="w") as archive:
        for name, content in sorted(files.items()):
            info = tarfile.TarInfo(name)  # of 1970, root, 0644
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    if tar.tell() > LARGEST or not files.keys() >= {f"{TRACK}{name}" for name in inputs}:
        reason = f"an input cannot be read, or all together have more than {LARGEST // 2**30} GiB"
        raise TrackError(reason, path=folder.root)
    packed = gzip.compress(tar.getvalue(), mtime=0)
    atomic.replace(Path(output), packed)
    return f"{output}: {len(packed) / 2**20:.2f} MiB, {plural(len(lines), 'answer')}"


def unpack(path: Path, root: Path) -> int:
    """Make a track with grades from a pack; return the number of files.

    Raises:
        TrecexamError: the folder is not empty, or the file is no pack, damaged or unsafe.
    """
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise TrackError("is not empty: name a new folder for the pack's track", path=root)
    try:
        files = _read(path)
        if missing := {MANIFEST, GRADES, TRACK + CONFIG_NAME} - files.keys():
            raise ValueError(f"it has no {', '.join(sorted(missing))}")
        _refuse_outside(files[TRACK + CONFIG_NAME])
        manifest = PackManifest.model_validate_json(files[MANIFEST])
        grades: list[list[Any]] = [[] for _ in manifest.sources]
        adapter = TypeAdapter(_GRADE, config=ConfigDict(val_json_bytes="hex"))
        for source, *grade in map(adapter.validate_json, files[GRADES].splitlines()):
            grades[source].append(grade)
        inputs = {root / name.removeprefix(TRACK): files[name] for name in files if name.startswith(TRACK)}
        atomic.replace_together({**inputs, root / PACK: files[MANIFEST]})
        with GradeStore(TrackFolder.open(root).store_path) as store:
            for (identity, environment), rows in zip(manifest.sources, grades, strict=True):
                grader = store.add_grader(identity_digest(identity), identity_json(identity))
                passages = store.add_ids("passage", [row[0] for row in rows])
                items = store.add_ids("item", [row[1] for row in rows])
                cells = zip(items, passages, rows, strict=True)
                store.add(grader, [GradeRow(item, text, *row[2:]) for item, text, row in cells], environment)
    except BaseException as error:
        # The folder was empty before.
        shutil.rmtree(root, ignore_errors=True)
        if not isinstance(error, Exception):
            raise
        # gzip, tarfile, tomllib and pydantic raise a dozen kinds of errors.
        why = plain_reason(error.errors()[0]) if isinstance(error, ValidationError) else error
        reason = f"nothing was unpacked: {why}; a pack is a file of `trecexam export pack`"
        raise TrecexamError(reason, path=path) from None
    return len(inputs)


def _read(path: Path) -> dict[str, bytes]:
    """Return the files of an archive; refuse unsafe paths and too large archives."""
    with open_input(path) as packed:
        most = min(LARGEST, FREE + MOST_TIMES * os.fstat(packed.fileno()).st_size)
        content = gzip.GzipFile(fileobj=packed).read(most + 1)
    if len(content) > most:
        raise ValueError("it would unpack to too many bytes")
    files: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for file in archive:
            if not file.isreg() or not _is_safe(file.name):
                raise ValueError(f"{file.name!r} is a link, a folder or a device, or points outside")
            if file.name in files or len(files) >= MOST_FILES:
                raise ValueError(f"{file.name!r} is there twice, or there are too many files")
            files[file.name] = content[file.offset_data : file.offset_data + file.size]
    return files


def _is_safe(name: str) -> bool:
    """Return True for a safe file name: a relative path without `..` and hidden parts."""
    return "\\" not in name and name.isprintable() and all(p and p[0] != "." for p in name.split("/"))


def _refuse_outside(settings: bytes) -> None:
    """Raise a TrackError for settings that name files outside of the track."""
    config = tomllib.loads(settings.decode())
    for section in (config.get("track", {}), config.get("grader", {}), *config.get("graders", {}).values()):
        for key in section.keys() & _FILES:
            for name in section[key] if isinstance(section[key], list) else [section[key]]:
                if not _is_safe(PurePosixPath(name).as_posix()):
                    reason = f"`{key}` in {CONFIG_NAME} names {name!r}, which is not in the track"
                    raise TrackError(f"{reason}: link it into the track, and name the link")


def stored_grader(folder: TrackFolder, make: Callable[[], Grader]) -> Grader | None:
    """Return the pack's grader; None if missing or if its settings changed."""
    settings, manifest = folder.config.grader, _manifest(folder)
    packed = manifest and manifest.graders.get(folder.grader or ONLY)
    if not packed or packed.settings != _settings(folder):
        return None
    refuse_code(settings.metric, folder.root, trusted=folder.trust_code)
    factory = available().get(settings.name)
    readers = factory.reading(settings, folder.root) if factory and factory.reading else {}
    return StoredGrader(packed, readers, make)


def _settings(folder: TrackFolder) -> str:
    """Return a grader's settings and its prompt's sha256, which identify the grader."""
    prompt = folder.prompt()
    return folder.config.grader.model_dump_json(exclude_defaults=True) + (sha256_of(prompt) if prompt else "")


def _manifest(folder: TrackFolder) -> PackManifest | None:
    with suppress(ValidationError):
        return PackManifest.model_validate(read_object(folder.root / PACK))
    return None


def differences(folder: TrackFolder) -> str:
    """Return a line on files of out/ that differ from the pack's digests, and on other differences."""
    pack, out = _manifest(folder), read_object(folder.shared_out / MANIFEST)
    if pack is None:
        return f"{PACK} is damaged: out/ is not compared with the pack"
    outputs, inputs, versions = (
        sorted(dict(getattr(pack, key).items() ^ out.get(key, {}).items()))
        for key in ("outputs", "inputs", "versions")
    )
    if not outputs:
        return f"out/ is the same as in the pack: {plural(len(pack.outputs), 'file')}"
    now = out.get("versions", {})
    why = [f"other inputs: {shorten_list(inputs, quote='')}"] if inputs else []
    why += [f"{n} {pack.versions.get(n) or 'none'} then, {now.get(n) or 'none'} now" for n in versions]
    reason = "; ".join(why) or "with the same inputs and versions: a grader stopped, or reads differently"
    differing = f"{len(outputs):,} of {plural(len(pack.outputs), 'file')} of out/ differ from the pack"
    return f"{differing}: {shorten_list(outputs, 10, quote='')}; {reason}"


#: Calls for tracks made from packs.
PACKS = SimpleNamespace(unpack=unpack, differences=differences, stored_grader=stored_grader)
