"""A pack as a track: its raw answers read anew, all of out/ computed, and compared with what was packed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import converters
from converters.errors import ConversionError
from trecexam.bank.model import asked_digest, passage_digest
from trecexam.config import CONFIG_NAME, load_config
from trecexam.errors import TrackError, TrecexamError
from trecexam.extensions.pack.contents import (
    OUT,
    TRACK,
    Environment,
    GraderIdentity,
    Pack,
    PackedAnswer,
    PackedAssessment,
    PackedText,
    read_pack,
)
from trecexam.extensions.pack.replay import Replayed, refuse_outside, stand_in
from trecexam.files.kept import read_object
from trecexam.graders.base import identity_json
from trecexam.line.assessment import Assessment
from trecexam.line.loaded_track import TrackLoaders
from trecexam.line.rejected import all_rejected
from trecexam.line.store import GradeStore
from trecexam.outputs.joint import JointOutputs
from trecexam.outputs.outputs import MANIFEST, Outputs
from trecexam.tables.result import Result
from trecexam.tables.table import Table
from trecexam.tables.text import plural
from trecexam.track import TrackFolder

SAME, DIFFERS, MISSING = "same", "differs", "missing"


@dataclass(frozen=True)
class Reproduction(Result):
    """Each file that the pack has a digest of, and what came of it.

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
        return {"reproduced": self.reproduced, "folder": str(self.folder)}

    def declare(self) -> Mapping[str, Table]:
        return {"files": Table(("file", "outcome", "why"), self.files)}


def reproduce(
    path: Path | str,
    folder: Path | str | None = None,
    *,
    texts: Path | str | None = None,
    trust_code: bool = False,
) -> Reproduction:
    """Makes a track of a pack, computes all of out/ and compares; asks nobody.

    Args:
        folder: the track; new or empty. None: the pack's name without its ending, here.
        texts: a folder with files of passages: of those that are not packed, the texts with the packed digest
            are taken from it.
        trust_code: run a metric of the pack that is code: read it first.

    Raises:
        TrackError: the folder is not empty.
        TrecexamError: the pack is damaged or made to do harm, or nothing can be computed of it.
    """
    path = Path(path)
    root = Path(path.name).with_suffix("") if folder is None else Path(folder)
    pack = read_pack(path)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise TrackError("is not empty, and a pack makes a track of its own: name another with -o", path=root)
    _check_settings(path, pack)
    passages, notes = _with_texts(pack.of(PackedText), None if texts is None else Path(texts))
    track = _make(root, pack, passages, trust_code=trust_code)
    who = {each.grader: each for each in pack.of(GraderIdentity)}
    assessments = {each.name: each for each in pack.of(PackedAssessment)}
    graders = {name: Replayed(each, who.get(each.grader or ""), track) for name, each in assessments.items()}
    with TrackLoaders(track, graders=graders) as loaders:
        if loaders.keys() != graders.keys():
            raise TrecexamError("refused: its graders are not those of its trecexam.toml", path=path)
        loaded = loaders.load()
        for error in loaded.unable.values() if not loaded.assessments else ():
            raise error
        for name, each in loaded.assessments.items():
            complete = assessments[name].complete
            rejected = all_rejected(each)
            Outputs(each.folder).write(each, rejected, None, complete=complete)
        if not loaded.is_single:
            JointOutputs(loaders).write(loaded, {}, lambda: False)
        reading = [
            _read_otherwise(pack, assessments[name], each) for name, each in loaded.assessments.items()
        ]
        notes += tuple(
            f"{name} cannot go on, and could when it was packed: {error}"
            for name, error in loaded.unable.items()
            if assessments[name].grader is not None
        )
    files = _compared(pack, track, [each for each in reading if each])
    return Reproduction(files, root, (*notes, *_summary(pack, files, root)))


def _check_settings(path: Path, pack: Pack) -> None:
    """Refuses settings that would read what is not in the pack, before any file is made.

    Raises:
        ConfigError, TrecexamError: there are none, or some would.
    """
    content = pack.files.get(f"{TRACK}{CONFIG_NAME}")
    if content is None:
        raise TrecexamError(f"refused: it has no {TRACK}{CONFIG_NAME}", path=path)
    with TemporaryDirectory() as place:
        settings = Path(place) / CONFIG_NAME
        settings.write_bytes(content)
        config = load_config(settings)
        refuse_outside(config, settings, path)
    if config.track.dataset is not None:
        raise TrecexamError("refused: `dataset` in its settings would be fetched", path=path)


def _with_texts(
    passages: Sequence[PackedText], folder: Path | None
) -> tuple[list[PackedText], tuple[str, ...]]:
    """The passages with those texts of the folder that have the packed digest; and what there is to say."""
    lacking = {each.docid: each for each in passages if each.text is None}
    n_lacking = len(lacking)
    if folder is not None and not folder.is_dir():
        raise TrackError("no such folder of texts", path=folder)
    found, other = dict[str, str](), Counter[str]()
    for file in sorted(folder.rglob("*")) if folder is not None else ():
        if file.is_file():
            with suppress(ConversionError):
                for doc_id, text in converters.read(file, "passages"):
                    if doc_id not in lacking:
                        continue
                    if passage_digest(text).hex() == lacking[doc_id].sha256:
                        found[doc_id] = text
                    else:
                        other[doc_id] += 1
    differ = len(other.keys() - found.keys())
    notes = []
    if folder is not None:
        notes.append(f"{folder}: has {len(found):,} of the {n_lacking:,} texts that are not packed")
        if differ:
            notes.append(f"{folder}: another text than was graded of {plural(differ, 'passage')}, not taken")
    elif n_lacking:
        notes.append(
            f"{plural(n_lacking, 'text')} not packed: digests stand in; --texts FOLDER supplies them"
        )
    taken = [each.model_copy(update={"text": found.get(each.docid, each.text)}) for each in passages]
    return taken, tuple(notes)


def _make(root: Path, pack: Pack, passages: Sequence[PackedText], *, trust_code: bool) -> TrackFolder:
    """The track's files, and its store.

    Raises:
        TrecexamError: they cannot be written.
    """
    least = pack.about.min_text
    standing = {each.docid: stand_in(each, least) for each in passages}
    files = pack.below(TRACK)
    lines = (
        json.dumps({"docid": doc_id, "text": text}, ensure_ascii=False) for doc_id, text in standing.items()
    )
    content = "".join(f"{line}\n" for line in lines).encode()
    files |= dict.fromkeys(pack.about.texts_at, content)
    try:
        for name, part in files.items():
            target = root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                file.write(part)
    except OSError as error:
        raise TrackError(f"cannot be written: {error.strerror}", path=error.filename or root) from None
    folder = TrackFolder.open(root, trust_code=trust_code)
    # Equal texts have equal digests, whatever stands in for them.
    digests = {each.sha256: passage_digest(standing[each.docid]) for each in passages}
    _store(folder, pack, digests)
    return folder


def _store(folder: TrackFolder, pack: Pack, digests: Mapping[str, bytes]) -> None:
    made_on = {each.environment: each.details for each in pack.of(Environment)}
    answers = pack.of(PackedAnswer)
    items = list(dict.fromkeys(each.item for each in answers))
    texts = list(dict.fromkeys(each.passage for each in answers))
    with GradeStore(folder.store_path) as store:
        who = {
            each.grader: store.add_grader(bytes.fromhex(each.grader), identity_json(each.identity))
            for each in pack.of(GraderIdentity)
        }
        item_of = dict(zip(items, store.add_items([bytes.fromhex(each) for each in items]), strict=True))
        real = [digests.get(each) or bytes.fromhex(each) for each in texts]
        text_of = dict(zip(texts, store.add_passages(real), strict=True))
        groups: dict[tuple[str, int | None], list[PackedAnswer]] = {}
        for each in answers:
            groups.setdefault((each.grader, each.environment), []).append(each)
        for (grader, environment), group in groups.items():
            rows = (each.row(item_of[each.item], text_of[each.passage]) for each in group)
            store.add(who[grader], rows, None if environment is None else made_on[environment])


def _read_otherwise(pack: Pack, packed: PackedAssessment, track: Assessment) -> str:
    """How many of a grader's answers mean another rating now; "" where none does."""
    read = track.traits.read
    if read is None or not track.traits.free_text:
        if packed.free_text:
            return f"the answers of {packed.name} are not read anew: its grader says no way without its model"
        return ""
    items = {asked_digest(item).hex(): item for sheet in track.sheets.values() for item in sheet.items}
    readable = [
        each
        for each in pack.of(PackedAnswer)
        if each.grader == packed.grader and each.item in items and each.status in ("ok", "unparsed")
    ]
    other = sum(tuple(read(items[each.item], each.answer)) != (each.rating, each.status) for each in readable)
    of = f"{other:,} of {plural(len(readable), 'answer')} of {packed.name}"
    return f"{of} are read otherwise now than when they were stored" if other else ""


def _compared(pack: Pack, folder: TrackFolder, reading: list[str]) -> tuple[tuple[str, str, str], ...]:
    """A row for each file that the pack has a digest of."""
    out, before = folder.shared_out, pack.below(OUT)
    now = read_object(out / MANIFEST).get("versions", {})
    versions = [
        f"{name} {was or 'none'} then, {now.get(name) or 'none'} now"
        for name, was in pack.about.versions.items()
        if now.get(name) != was
    ]
    causes = "; ".join((*reading, *versions))
    rows: list[tuple[str, str, str]] = []
    for name, digest in pack.about.outputs.items():
        try:
            content = _as_packed((out / name).read_bytes(), pack, folder)
        except OSError:
            rows.append((name, MISSING, causes or "it is not computed of what is packed"))
            continue
        if sha256(content).hexdigest() == digest:
            rows.append((name, SAME, ""))
            continue
        number = next(_differences(before[name], content), "") if name in before else ""
        rows.append((name, DIFFERS, "; ".join(filter(None, (number, causes)))))
    tables = ", ".join(name for name, outcome, _ in rows if outcome != SAME and name in before)
    made_of = f"it shows {tables}" if tables else "no table differs: what it shows of files or texts does"
    return tuple(
        (name, outcome, why or (made_of if outcome == DIFFERS else "")) for name, outcome, why in rows
    )


def _as_packed(content: bytes, pack: Pack, folder: TrackFolder) -> bytes:
    """An output that names digests of files, with those that they had where the track was packed."""
    for name, digest in pack.about.inputs.items():
        with suppress(OSError):
            now = sha256((folder.root / name).read_bytes()).hexdigest()
            content = content if now == digest else content.replace(now.encode(), digest.encode())
    return content


def _differences(before: bytes, now: bytes) -> Iterator[str]:
    """Where a table has another value: line, column, and both."""
    header: list[str] = []
    old, new = (content.decode(errors="replace").splitlines() for content in (before, now))
    for number, (was, got) in enumerate(zip_longest(old, new), 1):
        was_fields, fields = (line.split("\t") if line is not None else [] for line in (was, got))
        header = header or was_fields
        if was == got:
            continue
        if len(was_fields) != len(fields):
            yield f"line {number}: {was!r} was packed, {got!r} is computed"
            continue
        for column, (one, other) in enumerate(zip(was_fields, fields, strict=True)):
            if one != other:
                name = header[column] if column < len(header) and number > 1 else f"column {column + 1}"
                yield f"line {number}, {fields[0]}, {name}: {one} was packed, {other} is computed"


def _summary(pack: Pack, files: Sequence[tuple[str, str, str]], root: Path) -> Iterator[str]:
    answers = plural(len(pack.of(PackedAnswer)), "answer")
    same = sum(outcome == SAME for _, outcome, _ in files)
    if not files:
        yield f"{root}: computed of {answers}; the pack has no digests to compare with"
    elif same == len(files):
        yield f"{root}: reproduced: of {answers} all {plural(same, 'file')} of out/ are made again"
    else:
        yield f"{root}: not reproduced: {len(files) - same:,} of {plural(len(files), 'file')} of out/ differ"
