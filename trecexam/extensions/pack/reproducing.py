"""Reproduces a pack: reads its raw answers again, computes out/, and compares it with the packed files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import converters
from converters.errors import ConversionError
from trecexam.bank.model import asked_digest, passage_digest
from trecexam.config import CONFIG_NAME, load_config
from trecexam.errors import TrackError
from trecexam.extensions.pack.contents import (
    OUT,
    TRACK,
    Pack,
    PackedAnswer,
    PackedAssessment,
    PackedText,
    read_pack,
    refused,
)
from trecexam.extensions.pack.replay import (
    Replayed,
    digests_standing_in,
    is_of_people,
    refuse_outside,
    renamed,
    stand_in,
)
from trecexam.files.kept import read_object
from trecexam.files.stamps import Rejected
from trecexam.graders.base import identity_json
from trecexam.line.assessment import Assessment
from trecexam.line.loaded_track import TrackLoaders
from trecexam.line.rejected import all_rejected
from trecexam.line.store import GradeRow, GradeStore
from trecexam.outputs.joint import JointOutputs
from trecexam.outputs.outputs import MANIFEST, Outputs
from trecexam.tables.result import Result
from trecexam.tables.table import Table
from trecexam.tables.text import plural
from trecexam.track import TrackFolder

SAME, DIFFERS, MISSING = "same", "differs", "missing"


@dataclass(frozen=True)
class Reproduction(Result):
    """The result for each file with a digest in the pack.

    Attributes:
        files: (file in out/, "same", "differs" or "missing", why it is not the same).
        folder: the track that was made.
    """

    files: tuple[tuple[str, str, str], ...]
    folder: Path
    notes: tuple[str, ...] = ()

    @property
    def reproduced(self) -> bool:
        """Whether all files are the same."""
        return all(outcome == SAME for _, outcome, _ in self.files)

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"reproduced": self.reproduced, "track": str(self.folder)}

    def declare(self) -> Mapping[str, Table]:
        return {"files": Table(("file", "outcome", "why"), self.files)}

    def for_people(self) -> tuple[Table, ...]:
        """The files that are not the same."""
        return (replace(self.table, rows=tuple(row for row in self.files if row[1] != SAME)),)

    def all_for_people(self) -> tuple[Table, ...]:
        """All files."""
        return (self.table,)


def reproduce(
    path: Path | str,
    folder: Path | str | None = None,
    *,
    texts: Path | str | None = None,
    trust_code: bool = False,
) -> Reproduction:
    """Makes a track from a pack, computes out/ and compares it; calls no model.

    Args:
        folder: the track; new or empty. None: the pack's name without its ending, here.
        texts: a folder with files of passages: of those that are not packed, the texts with the packed digest
            are taken from it.
        trust_code: run a metric of the pack that is code: read it first.

    Raises:
        TrackError: the folder is not empty, or there is none of texts.
        TrecexamError: the pack is damaged or made to do harm, or nothing can be computed of it.
    """
    path = Path(path)
    root = Path(path.name).with_suffix("") if folder is None else Path(folder)
    pack = read_pack(path)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise TrackError("is not empty: give a new folder for the pack's track with -o", path=root)
    _check_settings(path, pack)
    passages, notes = _with_texts(pack.texts, None if texts is None else Path(texts))
    try:
        track = _made(root, pack, passages, trust_code=trust_code)
        causes = _compute(path, pack, track)
    except BaseException:
        # Nothing was in it before.
        shutil.rmtree(root, ignore_errors=True)
        raise
    files = tuple(_compared(pack, track, passages, causes))
    return Reproduction(files, root, (*notes, *causes, _summary(pack, files, root)))


def _compute(path: Path, pack: Pack, track: TrackFolder) -> list[str]:
    """Writes out/; returns notes on graders whose answers are read differently.

    Raises:
        TrecexamError, ConversionError: no grader can go on, or a file cannot be written.
    """
    packed = {each.name: each for each in pack.assessments}
    identities = {each.grader: each.identity for each in pack.graders}
    graders = {
        name: Replayed(each, identities.get(each.grader or ""), track) for name, each in packed.items()
    }
    with TrackLoaders(track, graders=graders) as loaders:
        if loaders.keys() != graders.keys():
            raise refused(path, "its assessments and its trecexam.toml name different graders")
        loaded = loaders.load()
        if not loaded.assessments:
            raise loaded.unable[next(iter(loaded.unable))]
        rejected = {name: _rejected(pack, packed[name], each) for name, each in loaded.assessments.items()}
        for name, each in loaded.assessments.items():
            # Not `update`, which would grade, write banks, and learn.
            Outputs(each.folder).write(each, rejected[name], None, complete=packed[name].complete)
        if not loaded.is_single:
            JointOutputs(loaders).write(loaded, rejected, lambda: False)
        causes = [why for each in loaded.assessments.values() for why in _read_otherwise(pack, each)]
        causes += (f"{name}: {why}" for name, why in loaded.unable.items() if packed[name].grader is not None)
    return causes


def _rejected(pack: Pack, packed: PackedAssessment, track: Assessment) -> tuple[Rejected, ...]:
    """What is rejected now, and the packed rows on files whose bytes are not in the pack, in packed order.

    Without outputs to compare with, the track is a new one, and these rows are not about its files.
    """
    now, files = dict.fromkeys(all_rejected(track)), pack.below(TRACK)
    rows = (Rejected(*row) for row in packed.rejected if pack.about.outputs)
    then = dict.fromkeys(row for row in rows if row in now or row.file not in files)
    return (*then, *(row for row in now if row not in then))


def _check_settings(path: Path, pack: Pack) -> None:
    """Raises an error for settings that need files outside of the pack, before any file is written.

    Raises:
        ConfigError, TrecexamError: there are no settings, or some would do so.
    """
    with TemporaryDirectory() as folder:
        settings = Path(folder) / CONFIG_NAME
        settings.write_bytes(pack.files.get(f"{TRACK}{CONFIG_NAME}", b"["))
        config = load_config(settings)
        refuse_outside(config, settings, path)
    if config.track.dataset is not None:
        raise refused(path, "its settings name a `dataset`, which would be downloaded")


def _with_texts(
    passages: Sequence[PackedText], folder: Path | None
) -> tuple[list[PackedText], tuple[str, ...]]:
    """The passages with the folder's texts that match the packed digests, and notes."""
    absent = {each.docid: each.sha256 for each in passages if each.text is None}
    if folder is None:
        n = plural(len(absent), "passage")
        note = f"no texts of {n}, only digests: give the texts with --texts FOLDER"
        return [*passages], (note,) if absent else ()
    if not folder.is_dir():
        raise TrackError("no such folder of texts", path=folder)
    texts: dict[str, str] = {}
    other: set[str] = set()
    for file in filter(Path.is_file, sorted(folder.rglob("*"))):
        # Other files in the folder are ignored.
        with suppress(ConversionError):
            for doc_id, text in converters.read(file, "passages"):
                if absent.get(doc_id) == passage_digest(text).hex():
                    texts[doc_id] = text
                elif doc_id in absent:
                    other.add(doc_id)
    notes = [f"{folder}: has {len(texts):,} of the {plural(len(absent), 'text')} that are not packed"]
    if other - texts.keys():
        n_other = plural(len(other - texts.keys()), "passage")
        notes.append(f"{folder}: rejected the texts of {n_other}, which differ from those that were graded")
    packed_texts = (each.model_copy(update={"text": texts.get(each.docid, each.text)}) for each in passages)
    return [*packed_texts], tuple(notes)


def _made(root: Path, pack: Pack, passages: Sequence[PackedText], *, trust_code: bool) -> TrackFolder:
    """Writes the track's files and its store.

    Raises:
        TrecexamError: they cannot be written.
    """
    texts = {each.docid: stand_in(each, pack.about.min_text) for each in passages}
    lines = (json.dumps({"docid": doc_id, "text": text}) + "\n" for doc_id, text in texts.items())
    standing = digests_standing_in(passages, pack.about.min_text)
    files = pack.below(TRACK) | dict.fromkeys(pack.about.texts_at, "".join(lines).encode())
    try:
        for name, content in files.items():
            target = root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                file.write(renamed(content, standing) if is_of_people(name) else content)
    except OSError as error:
        raise TrackError(f"cannot be written: {error.strerror}", path=error.filename or root) from None
    folder = TrackFolder.open(root, trust_code=trust_code)
    sources = {each.by: each for each in pack.graders}
    by: dict[str, list[PackedAnswer]] = {source: [] for source in sources}
    for answer in pack.answers:
        by[answer.by].append(answer)
    with GradeStore(folder.store_path) as store:
        for source, answers in by.items():
            identity = sources[source].identity
            grader = store.add_grader(bytes.fromhex(sources[source].grader), identity_json(identity))
            items = list(dict.fromkeys(each.item for each in answers))
            digests = list(dict.fromkeys(each.passage for each in answers))
            item_of = dict(zip(items, store.add_items([bytes.fromhex(each) for each in items]), strict=True))
            # Equal texts have equal digests, whatever replaces them.
            texts_there = [bytes.fromhex(standing.get(each, each)) for each in digests]
            text_of = dict(zip(digests, store.add_passages(texts_there), strict=True))
            rows = (GradeRow(item_of[each.item], text_of[each.passage], *each.said) for each in answers)
            store.add(grader, rows, sources[source].environment if answers else None)
    return folder


def _read_otherwise(pack: Pack, track: Assessment) -> Iterator[str]:
    """Whether a grader's answers are read again, and how many get another rating."""
    packed = next(each for each in pack.assessments if each.name == track.name)
    read = track.traits.read
    if packed.free_text and (read is None or not track.traits.free_text):
        yield f"answers of {track.name} were not read again, because its grader needs its model for that"
    if read is None or not track.traits.free_text:
        return
    items = {asked_digest(item).hex(): item for sheet in track.sheets.values() for item in sheet.items}
    by = {each.by for each in pack.graders if each.grader == packed.grader}
    answers = [
        each
        for each in pack.answers
        if each.by in by and each.item in items and each.status in ("ok", "unparsed")
    ]
    other = sum(
        tuple(read(items[each.item], each.answer, each.cut_at is not None)) != each.said[:2]
        for each in answers
    )
    if other:
        yield f"{other:,} of {plural(len(answers), 'answer')} of {track.name} are now read differently"


def _compared(
    pack: Pack, folder: TrackFolder, passages: Sequence[PackedText], causes: Sequence[str]
) -> Iterator[tuple[str, str, str]]:
    """A row for each file with a digest in the pack.

    An output that names digests of files or texts is compared as if it named those that were packed.
    """
    then = {now: digest for digest, now in digests_standing_in(passages, pack.about.min_text).items()}
    for name, digest in pack.about.inputs.items():
        with suppress(OSError):
            then[sha256((folder.root / name).read_bytes()).hexdigest()] = digest
    out, before = folder.shared_out, pack.below(OUT)
    now = read_object(out / MANIFEST).get("versions", {})
    versions = [
        f"{name} {was or 'none'} then, {now.get(name) or 'none'} now"
        for name, was in pack.about.versions.items()
        if now.get(name) != was
    ]
    differing_files: list[str] = []
    for name, digest in pack.about.outputs.items():
        why = [*causes, *versions]
        if not (out / name).is_file():
            yield name, MISSING, "; ".join(why) or "it is not computed from packed files"
            continue
        content = renamed((out / name).read_bytes(), then)
        if sha256(content).hexdigest() == digest:
            yield name, SAME, ""
            continue
        if name in before:
            differing_files.append(name)
            why = [*_difference(before[name], content), *why]
        yield (
            name,
            DIFFERS,
            "; ".join(why) or f"made from files that differ, too: {', '.join(differing_files) or 'no table'}",
        )


def _difference(before: bytes, now: bytes) -> Iterator[str]:
    """The first difference of two tables: line, column, and both values."""
    old, new = (content.decode(errors="replace").splitlines() for content in (before, now))
    header = old[0].split("\t") if old else []
    for number, (was, got) in enumerate(zip_longest(old, new, fillvalue=""), 1):
        pairs = zip_longest(was.split("\t"), got.split("\t"), fillvalue="")
        for column_index, (old_value, new_value) in enumerate(pairs):
            if old_value != new_value:
                column = (
                    header[column_index]
                    if number > 1 and len(header) > 1 and column_index < len(header)
                    else column_index + 1
                )
                yield f"line {number}, column {column}: {old_value!r} then, {new_value!r} now"
                return


def _summary(pack: Pack, files: Sequence[tuple[str, str, str]], root: Path) -> str:
    answers = plural(len(pack.answers), "answer")
    other = sum(outcome != SAME for _, outcome, _ in files)
    if not files:
        return f"{root}: computed from {answers}; the pack has no digests of out/ to compare with"
    if other:
        return f"{root}: not reproduced: {other:,} of {plural(len(files), 'file')} of out/ differ"
    return (
        f"{root}: reproduced: all {plural(len(files), 'file')} of out/ are the same, computed from {answers}"
    )
