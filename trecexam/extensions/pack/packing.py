"""A track as a pack."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import converters
from converters.errors import ConversionError
from converters.rubric_jsonl import query_lines
from trecexam.bank.model import passage_digest
from trecexam.config import CONFIG_NAME, line_of_setting
from trecexam.errors import TrackError, TrecexamError
from trecexam.extensions.pack.container import is_safe
from trecexam.extensions.pack.contents import (
    OUT,
    TRACK,
    About,
    Environment,
    GraderIdentity,
    Pack,
    PackedAnswer,
    PackedAssessment,
    PackedText,
    packed,
)
from trecexam.extensions.pack.replay import real_digest, refuse_outside, stand_in
from trecexam.files import atomic
from trecexam.files.kept import read_object, read_regular
from trecexam.graders.base import identity_digest
from trecexam.line.assessment import Assessment
from trecexam.line.loaded_track import TrackLoaders
from trecexam.line.loader import TrackLoader
from trecexam.line.sources import sources_beside
from trecexam.line.store import GradeStore
from trecexam.line.track_graders import usable_folders
from trecexam.outputs.outputs import MANIFEST
from trecexam.tables.result import Tables
from trecexam.tables.table import Table
from trecexam.tables.text import plural
from trecexam.track import TrackFolder

#: The files of out/ that are packed themselves, so that it can be said which number differs.
SHOWN = (".tsv", ".qrels")


def pack_track(loaders: TrackLoaders, output: Path | str, *, texts: bool = False) -> Tables:
    """Writes the track into one file, from which others can compute all of out/; asks nobody.

    Args:
        output: the file; replaced as a whole.
        texts: with the texts of the passages, in place of their digests.

    Returns:
        The parts and their sizes in bytes.

    Raises:
        TrackError: nothing is in out/ yet, or a file cannot be packed under its name.
        ConfigError: a setting names a file elsewhere than in the track.
        TrecexamError: the file cannot be written.
    """
    pack, notes = _pack(loaders, texts=texts)
    content = pack.to_bytes()
    atomic.replace(Path(output), content)
    return written_pack(Path(output), pack, len(content), notes)


def written_pack(output: Path, pack: Pack, size: int, notes: tuple[str, ...]) -> Tables:
    """What is said of a pack that was written."""
    rows = [(name, len(content)) for name, content in sorted(pack.files.items())]
    lines = [(name, len(records)) for name, records in pack.records.items()]
    table = Table(("part", "bytes"), tuple(rows))
    has = f"{output}: {size / 2**20:.2f} MiB, {plural(len(pack.of(PackedAnswer)), 'answer')}"
    return Tables(
        {"files": table, "records": Table(("part", "lines"), tuple(lines))},
        (has, *notes),
        about={"pack": str(output), "bytes": size},
    )


def _pack(loaders: TrackLoaders, *, texts: bool) -> tuple[Pack, tuple[str, ...]]:
    folder = loaders.folder
    refuse_outside(folder.whole, folder.config_path)
    manifest = read_object(folder.shared_out / MANIFEST)
    if not isinstance(manifest.get("outputs"), dict):
        raise TrackError(
            f"nothing is in out/ yet: `trecexam watch {folder.root} --once` first", path=folder.root
        )
    tracks: dict[str, Assessment] = {}
    assessments: list[PackedAssessment] = []
    for name in loaders:
        try:
            tracks[name] = loaders[name].load()
            assessments.append(_assessment(name, loaders[name]))
        except (TrecexamError, ConversionError) as error:
            tracks.pop(name, None)
            assessments.append(PackedAssessment(name=name, unable=str(error).replace(str(folder.root), ".")))
    passages = _passages(tracks, whole=texts)
    least = folder.whole.track.min_text
    store = loaders.shared.store
    answers, environments = _answers(store, passages)
    files = _files(folder, tracks, least, whole=texts)
    outputs = {
        name: content
        for name in manifest["outputs"]
        if (content := _content(folder.shared_out / name)) is not None
    }
    shown = {f"{OUT}{name}": content for name, content in outputs.items() if name.endswith(SHOWN)}
    places = sorted({each.shown(path) for each in _views(folder) if (path := _of(each.passages)) is not None})
    digests = {file: digest for track in tracks.values() for file, digest in sorted(track.digests.items())}
    about = About(
        texts="whole" if all(each.text is not None for each in passages) else "digests",
        texts_at=tuple(places or ["passages.jsonl"]) if passages else (),
        min_text=least,
        versions=dict(sorted(manifest.get("versions", {}).items())),
        inputs=digests,
        outputs={name: sha256(content).hexdigest() for name, content in sorted(outputs.items())},
    )
    identities = _identities(store, tracks)
    notes = (
        ()
        if about.texts == "whole"
        else (f"of {plural(len(passages), 'passage')} digests are in it, and no texts: --texts packs them",)
    )
    if manifest.get("inputs") != digests:
        notes += (f"out/ is older than the track's files: `trecexam watch {folder.root} --once` first",)
    return packed(about, {**files, **shown}, passages, environments, identities, assessments, answers), notes


def _assessment(name: str, loader: TrackLoader) -> PackedAssessment:
    traits = loader.traits
    names = None
    with suppress(TrecexamError, ConversionError):
        names = traits.model_and_prompt()
    known = traits.known_passages
    return PackedAssessment(
        name=name,
        grader=identity_digest(loader.grader.identity).hex(),
        complete=read_object(loader.folder.manifest_path).get("complete") is True,
        item_kinds=tuple(sorted(traits.item_kinds)),
        needs_query_text=traits.needs_query_text,
        scale=tuple(traits.scale),
        score_settings=json.loads(json.dumps(dict(traits.score_settings))),
        free_text=traits.free_text,
        cells_share=traits.cells_share,
        known_passages=known and {query: tuple(sorted(ids)) for query, ids in sorted(known.items())},
        model_and_prompt=names,
        reads=tuple(
            each
            for each in ("cosines", "label", "probabilities", "read")
            if getattr(traits, each) is not None
        ),
    )


def _identities(store: GradeStore, tracks: Mapping[str, Assessment]) -> list[GraderIdentity]:
    """Of the track's graders, as they say it, and of all others who ever graded here; by digest."""
    own = [json.loads(json.dumps(dict(track.grader.identity))) for track in tracks.values()]
    every = [*map(json.loads, (identity for _, identity in store.graders())), *own]
    known = {identity_digest(each).hex(): each for each in every}
    return [GraderIdentity(grader=digest, identity=known[digest]) for digest in sorted(known)]


def _passages(tracks: Mapping[str, Assessment], *, whole: bool) -> list[PackedText]:
    """The passages of all graders, by id; those of responses are in these.

    Raises:
        TrackError: two graders have another text of the same id.
    """
    texts: dict[str, str] = {}
    for track in tracks.values():
        for doc_id, text in track.texts.items():
            if doc_id not in track.own_texts and texts.setdefault(doc_id, text) != text:
                raise TrackError(f"passage '{doc_id}' has two texts: one cannot be packed for both")
    return [_packed_text(doc_id, text, whole=whole) for doc_id, text in sorted(texts.items())]


def _packed_text(doc_id: str, text: str, *, whole: bool) -> PackedText:
    absent = real_digest(text)
    return PackedText(
        docid=doc_id,
        sha256=absent or passage_digest(text).hex(),
        characters=len(text),
        text=text if whole and absent is None else None,
    )


def _answers(store: GradeStore, passages: list[PackedText]) -> tuple[list[PackedAnswer], list[Environment]]:
    """All that is stored, sorted; and what it was made on."""
    real: dict[bytes, str] = {}
    for each in passages:
        name = f"sha256:{each.sha256}"
        for text in (name, name.ljust(each.characters, ".")):
            real[passage_digest(text)] = each.sha256
    stored = list(store.everything())
    details = {json.dumps(each.environment, sort_keys=True): each.environment for each in stored}
    numbers = {
        text: number for number, text in enumerate(sorted(text for text, of in details.items() if of), 1)
    }
    answers = [
        PackedAnswer(
            grader=each.grader.hex(),
            passage=real.get(each.passage, each.passage.hex()),
            item=each.item.hex(),
            rating=each.grade.rating,
            status=each.grade.status,
            answer=each.grade.answer,
            probabilities=each.grade.probabilities,
            environment=numbers.get(json.dumps(each.environment, sort_keys=True)),
        )
        for each in stored
    ]
    made_on = [Environment(environment=number, details=json.loads(text)) for text, number in numbers.items()]
    return sorted(answers, key=lambda each: each.key), made_on


def _views(folder: TrackFolder) -> list[TrackFolder]:
    """The folder as each grader sees it."""
    return list(usable_folders(folder).values()) or [folder]


def _of(method: Callable[[], Path | None]) -> Path | None:
    with suppress(TrecexamError):
        return method()
    return None


def _files(
    folder: TrackFolder, tracks: Mapping[str, Assessment], least: int, *, whole: bool
) -> dict[str, bytes]:
    """The track's own files, by their names in the pack; without texts, unless these are meant.

    Raises:
        TrackError: one cannot be packed under its name.
    """
    paths: set[Path] = {
        folder.root / "judgments.tsv",
        *folder.root.glob("overrides*.tsv"),
        *folder.run_files(),
    }
    files: dict[str, bytes] = {f"{TRACK}{CONFIG_NAME}": _settings(folder)}
    for view in _views(folder):
        with suppress(TrecexamError):
            paths |= {*view.bank(optional=True)}
        for method in (view.queries, view.qrels, view.official_leaderboard, view.prompt, view.metric):
            path = _of(method)
            paths |= {path, sources_beside(path)} if path is not None else set()
        recorded = _of(view.recorded)
        if recorded is not None and not whole and _kind(recorded) == "rubric":
            files[f"{TRACK}{view.shown(recorded)}"] = b"".join(_without_texts(recorded, least))
        elif recorded is not None:
            paths.add(recorded)
    for path in paths:
        content = _content(path)
        if content is not None:
            files[f"{TRACK}{folder.shown(path)}"] = content
    if folder.whole.track.dataset is not None:
        files |= _of_dataset(folder, tracks)
    for name in files:
        if not is_safe(name):
            raise TrackError("cannot be packed under its name: rename it", path=name.removeprefix(TRACK))
    return files


def _settings(folder: TrackFolder) -> bytes:
    """trecexam.toml; what is of a dataset is in the pack."""
    text = folder.config_path.read_text(encoding="utf-8")
    if folder.whole.track.dataset is None:
        return text.encode()
    number = line_of_setting(folder.config_path, "track", "dataset")
    lines = text.splitlines(keepends=True)
    if number is not None:
        lines[number - 1] = f"# packed: {lines[number - 1]}"
    return "".join(lines).encode()


def _of_dataset(folder: TrackFolder, tracks: Mapping[str, Assessment]) -> Iterator[tuple[str, bytes]]:
    """What is read of the dataset where the track has no file for it."""
    if folder.queries() is None:
        texts = {query: text for track in tracks.values() for query, text in track.query_texts.items()}
        lines = (
            json.dumps({"query_id": query, "text": text}) + "\n" for query, text in sorted(texts.items())
        )
        yield f"{TRACK}queries.jsonl", "".join(lines).encode()
    official = next((track.official for track in tracks.values() if track.official is not None), None)
    if folder.qrels() is None and official is not None:
        rows = (f"{row.query_id} {row.iteration} {row.doc_id} {row.relevance}\n" for row in official)
        yield f"{TRACK}qrels.txt", "".join(rows).encode()


def _content(path: Path) -> bytes | None:
    try:
        return read_regular(path)
    except OSError:
        return None


def _kind(path: Path) -> str | None:
    with suppress(ConversionError):
        return converters.sniff(path)
    return None


def _without_texts(path: Path, least: int) -> Iterator[bytes]:
    """The lines of a graded pool, with what stands in for texts."""
    for _, query_id, paragraphs in query_lines(path):
        kept = [
            {
                "paragraph_id": each.get("paragraph_id"),
                "text": _stands_in(each.get("text"), least),
                "exam_grades": each.get("exam_grades"),
            }
            for each in paragraphs
        ]
        yield json.dumps([query_id, kept], ensure_ascii=False).encode() + b"\n"


def _stands_in(text: object, least: int) -> str | None:
    if not isinstance(text, str) or not text.strip():
        return None
    return stand_in(_packed_text("a passage", text, whole=False), least)
