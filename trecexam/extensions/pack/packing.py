"""Packs a track into an archive, and makes a track of it again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import ValidationError

from converters.errors import ConversionError
from trecexam.calls import Accessor
from trecexam.config import CONFIG_NAME, TrackConfig, load_config
from trecexam.errors import ConfigError, TrackError, TrecexamError
from trecexam.extensions.pack.archive import is_safe, read_archive, to_bytes
from trecexam.extensions.pack.stored import About, PackedAnswer, PackedGrader, Source, packed_grader
from trecexam.files import atomic
from trecexam.files.kept import read_object, read_regular
from trecexam.graders.base import identity_digest, identity_json
from trecexam.line.inputs import InputReader
from trecexam.line.loaded_track import TrackLoaders
from trecexam.line.store import GradeRow, GradeStore
from trecexam.line.track_graders import usable_folders
from trecexam.outputs.outputs import MANIFEST
from trecexam.tables.result import Tables
from trecexam.tables.table import Table
from trecexam.tables.text import plural
from trecexam.track import PACK, PROMPT_SUFFIXES, TrackFolder

#: Where the track's files are in a pack; the grades.
TRACK, GRADES = "track/", "grades.jsonl"
#: The settings that name files of the track.
_FILES = ("queries", "passages", "qrels", "official_leaderboard", "runs", "recorded", "prompt", "bank")


class PackCalls(Accessor):
    """More of `track.export`."""

    def pack(self, output: Path | str) -> Tables:
        """Write inputs, settings and grades to one .tar.gz: see `pack_track`."""
        return pack_track(self._loaders, Path(output))


def pack_track(loaders: TrackLoaders, output: Path) -> Tables:
    """Write inputs, settings, grades and the digests of out/ to one archive; call no model.

    Returns:
        The files in the archive, and their sizes in bytes.

    Raises:
        TrackError: out/ is not there yet, or a file cannot be packed under its name.
        ConfigError: a setting names a file outside of the track.
        TrecexamError: the archive cannot be written.
    """
    folder = loaders.folder
    refuse_outside(folder.whole, folder.config_path)
    manifest = read_object(folder.shared_out / MANIFEST)
    if not isinstance(manifest.get("outputs"), dict):
        raise TrackError(f"no out/ yet: `trecexam watch {folder.root} --once` first", path=folder.root)
    graders, inputs = dict[str, PackedGrader](), dict[str, str]()
    for name in loaders:
        # A grader that cannot go on has no grades that count.
        with suppress(TrecexamError, ConversionError):
            inputs |= loaders[name].load().digests
            # A recording is packed itself, and needs no model.
            if loaders[name].traits.known_passages is None:
                graders[name] = packed_grader(loaders[name])
    sources, answers = _answers(loaders.shared.store)
    files = {f"{TRACK}{name}": content for name, content in _inputs(loaders)}
    files[GRADES] = "".join(answers).encode()
    about = About(
        graders=graders,
        sources=sources,
        # Those that out/ was made from: where it is older than the inputs, a reader is told which changed.
        inputs=dict(sorted(manifest.get("inputs", {}).items())),
        outputs=dict(sorted(manifest["outputs"].items())),
        versions=dict(sorted(manifest.get("versions", {}).items())),
    )
    content = to_bytes(files, about.model_dump(mode="json"))
    atomic.replace(output, content)
    notes = [f"{output}: {len(content) / 2**20:.2f} MiB, {plural(len(answers), 'answer')}"]
    if folder.whole.track.dataset is not None:
        notes.append(f"the dataset {folder.whole.track.dataset} is not packed: ir_datasets fetches it again")
    if manifest.get("inputs") != inputs:
        notes.append(f"out/ is older than the inputs: `trecexam watch {folder.root} --once` first")
    rows = tuple((name, len(each)) for name, each in sorted(files.items()))
    return Tables({"files": Table(("file", "bytes"), rows)}, tuple(notes))


def _answers(store: GradeStore) -> tuple[tuple[Source, ...], list[str]]:
    """Return the sources of all answers, and each answer as a line of JSON, by grader, passage and item."""
    identities = {identity_digest(each): each for each in (json.loads(text) for _, text in store.graders())}
    sources: dict[str, Source] = {}
    lines: list[tuple[str, bytes, bytes, dict[str, Any]]] = []
    for each in store.everything():
        key = json.dumps([identities[each.grader], each.environment], sort_keys=True)
        sources.setdefault(key, Source(identity=identities[each.grader], environment=each.environment))
        fields = dict(zip(GradeRow._fields[2:], each.grade[2:], strict=True))
        lines.append((key, each.passage, each.item, fields))
    order = {key: at for at, key in enumerate(sorted(sources))}
    return tuple(sources[key] for key in order), [
        PackedAnswer.model_construct(
            source=order[key], passage=passage.hex(), item=item.hex(), **fields
        ).model_dump_json(exclude_none=True)
        + "\n"
        for key, passage, item, fields in sorted(lines, key=lambda line: line[:3])
    ]


def _inputs(loaders: TrackLoaders) -> Iterator[tuple[str, bytes]]:
    """Each input file of the track by its name there, and its content.

    Raises:
        TrackError: a file cannot be packed under its name.
        TrecexamError: a file that the settings name is missing.
    """
    views = usable_folders(loaders.folder).values() or [loaders.folder]
    readers = [InputReader(view, shared=loaders.shared) for view in views]
    for path in sorted({path for reader in readers for path, _ in reader.state()}):
        name = loaders.folder.shown(path)
        if not is_safe(name):
            raise TrackError("cannot be packed because of its name: rename it", path=path)
        with suppress(OSError):
            yield name, read_regular(path)


def unpack(path: Path, root: Path) -> int:
    """Make a track of a pack, with its grades; return the number of its files.

    Raises:
        TrackError: the folder is not empty.
        TrecexamError: the file is not a pack, is damaged or would do harm; nothing was unpacked.
    """
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise TrackError("is not empty: name a new folder for the pack's track", path=root)
    manifest, files = read_archive(path)
    lines = files.pop(GRADES, b"").splitlines()
    inputs = {name.removeprefix(TRACK): content for name, content in files.items()}
    try:
        if CONFIG_NAME not in inputs or any(not name.startswith(TRACK) for name in files):
            raise ValueError(f"it has no {TRACK}{CONFIG_NAME}, or files outside of {TRACK}")
        answers = [PackedAnswer.model_validate_json(line) for line in lines]
        about = About.model_validate(manifest)
        if any(each.source >= len(about.sources) for each in answers):
            raise ValueError(f"a line of {GRADES} names no source of the manifest")
        with TemporaryDirectory() as folder:
            settings = Path(folder) / CONFIG_NAME
            settings.write_bytes(inputs[CONFIG_NAME])
            refuse_outside(load_config(settings), settings)
    except (ValueError, ConfigError) as error:
        reason = error.reason if isinstance(error, ConfigError) else str(error)
        if isinstance(error, ValidationError):
            reason = f"{GRADES} or the manifest has other fields than `export pack` writes"
        raise TrecexamError(f"refused, nothing was unpacked: {reason}", path=path) from None
    try:
        for name, content in inputs.items():
            target = root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        made = TrackFolder.open(root)
        _store(made.store_path, about.sources, answers)
        atomic.replace(made.shared_state / PACK, about.model_dump_json().encode())
    except BaseException as error:
        # The folder was empty before.
        shutil.rmtree(root, ignore_errors=True)
        if isinstance(error, OSError):
            raise TrackError(f"cannot be written: {error.strerror}", path=root) from None
        raise
    return len(inputs)


def _store(path: Path, sources: Sequence[Source], answers: Sequence[PackedAnswer]) -> None:
    """Write the answers to a new store, one transaction for each source."""
    with GradeStore(path) as store:
        for number, source in enumerate(sources):
            batch = [each for each in answers if each.source == number]
            grader = store.add_grader(identity_digest(source.identity), identity_json(source.identity))
            items = list(dict.fromkeys(each.item for each in batch))
            texts = list(dict.fromkeys(each.passage for each in batch))
            item_of = dict(zip(items, store.add_items([*map(bytes.fromhex, items)]), strict=True))
            text_of = dict(zip(texts, store.add_passages([*map(bytes.fromhex, texts)]), strict=True))
            rows = (GradeRow(item_of[each.item], text_of[each.passage], *each.grade) for each in batch)
            store.add(grader, rows, source.environment)


def refuse_outside(config: TrackConfig, path: Path) -> None:
    """Refuse settings that name files outside of the track.

    Raises:
        ConfigError: a setting does.
    """
    for section in (config.track, config.grader, *config.graders.values()):
        for key in _FILES:
            value = getattr(section, key, None) or ()
            for each in (value,) if isinstance(value, str) else value:
                published = key == "prompt" and PurePosixPath(each).suffix.lower() not in PROMPT_SUFFIXES
                if not published and not is_safe(PurePosixPath(each).as_posix()):
                    reason = f"`{key}` names {each!r}, which is not in the track: link it into the track"
                    raise ConfigError(f"{reason}, and name the link", path=path)
