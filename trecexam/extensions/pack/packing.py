"""Packs a track."""

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
    Pack,
    PackedAnswer,
    PackedAssessment,
    PackedText,
    Source,
)
from trecexam.extensions.pack.replay import (
    digests_standing_in,
    is_of_people,
    real_digest,
    refuse_outside,
    renamed,
    stand_in,
)
from trecexam.files import atomic
from trecexam.files.kept import read_object, read_regular
from trecexam.graders.base import identity_digest
from trecexam.line.assessment import Assessment
from trecexam.line.loaded_track import TrackLoaders
from trecexam.line.loader import TrackLoader
from trecexam.line.rejected import all_rejected
from trecexam.line.sources import provenance_beside, sources_beside
from trecexam.line.store import GradeStore
from trecexam.line.track_graders import usable_folders
from trecexam.outputs.outputs import MANIFEST
from trecexam.tables.result import Tables
from trecexam.tables.table import Table
from trecexam.tables.text import plural
from trecexam.track import TrackFolder

#: The files of out/ that are packed themselves, so that it can be said which number differs.
_SHOWN = (".tsv", ".qrels")
_READERS = ("cosines", "label", "probabilities", "read")


def pack_track(loaders: TrackLoaders, output: Path | str, *, texts: bool = False) -> Tables:
    """Writes the track to one file from which out/ can be computed; calls no model.

    Args:
        output: the file; replaced as a whole.
        texts: with the texts of the passages, in place of their digests.

    Returns:
        The files in it, and their sizes in bytes.

    Raises:
        TrackError: nothing is in out/ yet, or a file cannot be packed under its name.
        ConfigError: a setting names a file elsewhere than in the track.
        TrecexamError: the file cannot be written.
    """
    pack = _pack(loaders, texts=texts)
    content = pack.to_bytes()
    atomic.replace(Path(output), content)
    notes = [f"{output}: {len(content) / 2**20:.2f} MiB, {plural(len(pack.answers), 'answer')}"]
    absent = sum(each.text is None for each in pack.texts)
    if absent:
        notes.append(
            f"{plural(absent, 'passage')} packed as digests, without texts; add the texts with --texts"
        )
    if read_object(loaders.folder.shared_out / MANIFEST).get("inputs") != pack.about.inputs:
        notes.append(f"out/ is older than the inputs: `trecexam watch {loaders.folder.root} --once` first")
    rows = tuple((name, len(content)) for name, content in sorted(pack.files.items()))
    return Tables({"files": Table(("file", "bytes"), rows)}, tuple(notes))


def _pack(loaders: TrackLoaders, *, texts: bool) -> Pack:
    folder = loaders.folder
    refuse_outside(folder.whole, folder.config_path, folder.config_path)
    manifest = read_object(folder.shared_out / MANIFEST)
    if not isinstance(manifest.get("outputs"), dict):
        reason = f"nothing is in out/ yet: `trecexam watch {folder.root} --once` first"
        raise TrackError(reason, path=folder.root)
    tracks: dict[str, Assessment] = {}
    assessments: list[PackedAssessment] = []
    for name in loaders:
        try:
            tracks[name] = loaders[name].load()
            assessments.append(_assessment(name, loaders[name], tracks[name]))
        except (TrecexamError, ConversionError) as error:
            tracks.pop(name, None)
            # Word for word, as files of out/ say it.
            assessments.append(PackedAssessment(name=name, unable=str(error)))
    least = folder.whole.track.min_text
    passages = _passages(tracks, least, whole=texts)
    made = {name: _content(folder.shared_out / name) for name in sorted(manifest["outputs"])}
    outputs = {name: content for name, content in made.items() if content is not None}
    printed_outputs = {f"{OUT}{name}": content for name, content in outputs.items() if name.endswith(_SHOWN)}
    text_files = {each.shown(path) for each in _views(folder) if (path := _named(each.passages)) is not None}
    about = About(
        texts_at=tuple(sorted(text_files)) or (("passages.jsonl",) if passages else ()),
        min_text=least,
        inputs=dict(sorted(pair for track in tracks.values() for pair in track.digests.items())),
        versions=dict(sorted(manifest.get("versions", {}).items())),
        outputs={name: sha256(content).hexdigest() for name, content in outputs.items()},
    )
    absent = (each.model_copy(update={"text": None}) for each in passages)
    real = {now: digest for digest, now in digests_standing_in(absent, least).items()}
    files = _files(folder, tracks, real, least, whole=texts) | printed_outputs
    graders, answers = _answers(loaders.shared.store, tracks, real)
    return Pack(about, files, passages, graders, assessments, answers)


def _assessment(name: str, loader: TrackLoader, track: Assessment) -> PackedAssessment:
    traits, names, known_passages = loader.traits, None, loader.traits.known_passages
    with suppress(TrecexamError, ConversionError):
        names = traits.model_and_prompt()
    return PackedAssessment(
        name=name,
        grader=identity_digest(loader.grader.identity).hex(),
        complete=read_object(loader.folder.manifest_path).get("complete") is True,
        item_kinds=tuple(sorted(traits.item_kinds)),
        needs_query_text=traits.needs_query_text,
        scale=(traits.scale.max_rating, traits.scale.min_rating),
        score_settings=json.loads(json.dumps(dict(traits.score_settings))),
        free_text=traits.free_text,
        cells_share=traits.cells_share,
        known_passages=None
        if known_passages is None
        else {query: tuple(sorted(ids)) for query, ids in sorted(known_passages.items())},
        model_and_prompt=names,
        reads=tuple(each for each in _READERS if getattr(traits, each) is not None),
        rejected=tuple((row.file, row.line, row.reason, row.lost) for row in all_rejected(track)),
    )


def _passages(tracks: Mapping[str, Assessment], least: int, *, whole: bool) -> list[PackedText]:
    """The passages of all graders by id, including those of responses.

    Raises:
        TrackError: two graders have another text of the same id.
    """
    texts: dict[str, str] = {}
    for track in tracks.values():
        for doc_id, text in track.texts.items():
            if doc_id not in track.own_texts and texts.setdefault(doc_id, text) != text:
                raise TrackError(
                    f"passage '{doc_id}' has two texts, and a pack can hold one: make them the same"
                )
    return [_packed_text(doc_id, text, least, whole=whole) for doc_id, text in sorted(texts.items())]


def _packed_text(doc_id: str, text: str, least: int, *, whole: bool) -> PackedText:
    absent = real_digest(text)
    digest = None if len(text) < least else absent or passage_digest(text).hex()
    return PackedText(docid=doc_id, sha256=digest, text=text if whole and absent is None else None)


def _answers(
    store: GradeStore, tracks: Mapping[str, Assessment], real: Mapping[str, str]
) -> tuple[list[Source], list[PackedAnswer]]:
    """All sources and their answers, sorted.

    Args:
        real: the digest of what replaces a text -> that of the text.
    """
    # As the track's graders say it, which is the order that the report has.
    identities = {identity_digest(each.grader.identity): each.grader.identity for each in tracks.values()}
    sources = {each.by: each for each in (Source.of(identity, None) for identity in identities.values())}
    stored = {identity_digest(each): each for each in (json.loads(text) for _, text in store.graders())}
    by: dict[tuple[bytes, str], str] = {}
    answers: list[PackedAnswer] = []
    for each in store.everything():
        made_on = each.grader, json.dumps(each.environment)
        if made_on not in by:
            source = Source.of(identities.get(each.grader, stored[each.grader]), each.environment)
            by[made_on] = source.by
            sources[source.by] = source
        rating, status, answer, probabilities, cut_at = each.grade[2:]
        answers.append(
            PackedAnswer.model_construct(
                by=by[made_on],
                passage=real.get(each.passage.hex(), each.passage.hex()),
                item=each.item.hex(),
                rating=rating,
                status=status,
                answer=answer,
                probabilities=probabilities,
                cut_at=cut_at,
            )
        )
    answers.sort(key=lambda each: (each.by, each.passage, each.item))
    return [sources[by] for by in sorted(sources)], answers


def _views(folder: TrackFolder) -> list[TrackFolder]:
    """The track folder with each grader's settings."""
    return list(usable_folders(folder).values()) or [folder]


def _named(method: Callable[[], Path | None]) -> Path | None:
    with suppress(TrecexamError):
        return method()
    return None


def _files(
    folder: TrackFolder,
    tracks: Mapping[str, Assessment],
    real: Mapping[str, str],
    least: int,
    *,
    whole: bool,
) -> dict[str, bytes]:
    """The track's files by their names in the pack; without texts, unless requested.

    Raises:
        TrackError: one cannot be packed under its name.
    """
    paths: set[Path | None] = {folder.root / "judgments.tsv", *folder.root.glob("overrides*.tsv")}
    files: dict[str, bytes] = {}
    for view in _views(folder):
        paths |= {*view.run_files(), *view.bank(optional=True), _named(view.queries), _named(view.prompt)}
        paths |= {_named(view.official_leaderboard), _named(view.metric)}
        qrels, recorded = _named(view.qrels), _named(view.recorded)
        paths |= {qrels, sources_beside(qrels), provenance_beside(qrels)} if qrels is not None else set()
        if recorded is not None and not whole and _sniffed(recorded) == "rubric":
            files[view.shown(recorded)] = b"".join(_without_texts(recorded, least))
        else:
            paths.add(recorded)
    for path in paths - {None}:
        assert path is not None
        content = _content(path)
        if content is not None:
            name = folder.shown(path)
            files[name] = renamed(content, real) if is_of_people(name) else content
    files[CONFIG_NAME] = folder.config_path.read_bytes()
    if folder.whole.track.dataset is not None:
        files |= _of_dataset(folder, tracks)
    for name in files:
        if not is_safe(name):
            raise TrackError("cannot be packed because of its name: rename it", path=name)
    return {f"{TRACK}{name}": content for name, content in files.items()}


def _of_dataset(folder: TrackFolder, tracks: Mapping[str, Assessment]) -> Iterator[tuple[str, bytes]]:
    """Files with the dataset's content, and settings without the dataset."""
    number = line_of_setting(folder.config_path, "track", "dataset")
    lines = folder.config_path.read_bytes().splitlines(keepends=True)
    yield CONFIG_NAME, b"".join(b"" if at == number else line for at, line in enumerate(lines, 1))
    if folder.queries() is None:
        texts = {query: text for track in tracks.values() for query, text in track.query_texts.items()}
        rows = (json.dumps({"query_id": query, "text": text}) + "\n" for query, text in sorted(texts.items()))
        yield "queries.jsonl", "".join(rows).encode()
    official = next((track.official for track in tracks.values() if track.official is not None), None)
    if folder.qrels() is None and official is not None:
        rows = (f"{row.query_id} {row.iteration} {row.doc_id} {row.relevance}\n" for row in official)
        yield "qrels.txt", "".join(rows).encode()


def _content(path: Path) -> bytes | None:
    with suppress(OSError):
        return read_regular(path)
    return None


def _sniffed(path: Path) -> str | None:
    with suppress(ConversionError):
        return converters.sniff(path)
    return None


def _without_texts(path: Path, least: int) -> Iterator[bytes]:
    """The lines of a graded pool, with stand-ins for texts."""
    for _, query_id, paragraphs in query_lines(path):
        packed_paragraphs = []
        for each in paragraphs:
            text = each.get("text")
            if isinstance(text, str) and text.strip():
                text = stand_in(_packed_text("a passage", text, least, whole=False), least)
            packed_paragraphs.append(
                {
                    "paragraph_id": each.get("paragraph_id"),
                    "text": text,
                    "exam_grades": each.get("exam_grades"),
                }
            )
        yield json.dumps([query_id, packed_paragraphs], ensure_ascii=False).encode() + b"\n"
