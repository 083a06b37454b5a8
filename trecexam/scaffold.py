"""Makes a track folder from a user's files."""

from __future__ import annotations

import filecmp
import os
import shutil
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import converters
from converters.lines import first_object, head
from converters.unpacking import without_ending
from trecexam.config import CONFIG_NAME, render_config
from trecexam.errors import TrackError
from trecexam.folder_roles import SINGLE, mistaken

#: Comments of trecexam.toml on the graders of a RAG track; `_WRITTEN` is for those whose bank `watch` writes.
_RAG_COMMENTS = {
    "grader": "What the graders below share. What one of them sets in its section counts for it alone: "
    "another model, prompt, bank.",
    "nuggets": "Nuggets: does a whole response say each nugget of its query? A and V, by AutoNuggetizer.",
    "support": "Support: does the first passage that a sentence cites say what the sentence says? "
    "Precision, recall, F1.",
    "umbrela": "Retrieval: how relevant is each passage that a run ranks, or a response cites? nDCG.",
    "rubric": "Coverage: how much of the bank do the passages of a run, or of a response, answer?",
}
_WRITTEN = " `watch` has a language model write the bank where it is not there; then edit it as you like."


class File(NamedTuple):
    """A file of the user's and its place in the track.

    Attributes:
        role: as in `trecexam.folder_roles`, or "prompt" or "provenance".
        in_folder: the file is in a folder of runs, and was not named itself.
    """

    role: str
    source: Path
    target: Path
    in_folder: bool = False


@dataclass(frozen=True)
class Sources:
    """Files and settings of a new track. Everything is optional: files can be put into the folder later.

    Attributes:
        runs: files, and folders of them.
        rag: the track has the four graders of a RAG track; `recorded` are then labels of relevance.
        prompt: of the grader; with `rag`, of coverage.
        settings: further settings, by section of trecexam.toml.
    """

    queries: Path | None = None
    bank: Sequence[Path] = ()
    passages: Path | None = None
    qrels: Path | None = None
    runs: Sequence[Path] = ()
    recorded: Path | None = None
    leaderboard: Path | None = None
    dataset: str | None = None
    grader: str | None = None
    prompt: str | Path | None = None
    link: bool = False
    rag: bool = False
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def files(self, root: Path) -> list[File]:
        """The files to copy, with their places in the track folder `root`.

        Raises:
            TrackError: two files have one place.
        """
        named = [(role, path) for role in SINGLE if (path := getattr(self, role)) is not None]
        named += [("bank", path) for path in self.bank]
        named += [("runs", path) for path in self.runs if not path.is_dir()]
        files = [File(role, path, root / _target(role, path)) for role, path in named]
        if self.qrels is not None:
            beside = self.qrels.with_name(f"{self.qrels.name}.json")
            target = root / f"{_target('qrels', self.qrels)}.json"
            files += [File("provenance", beside, target)] if beside.is_file() else []
        if isinstance(self.prompt, Path):
            files.append(File("prompt", self.prompt, root / self.prompt.name))
        for folder in (path for path in self.runs if path.is_dir()):
            inside = (path for path in sorted(folder.rglob("*")) if path.is_file())
            files += [
                File("runs", path, root / "runs" / path.relative_to(folder), in_folder=True)
                for path in inside
                if not path.name.startswith(".")
            ]
        by_target: dict[Path, Path] = {}
        for each in files:
            other = by_target.setdefault(each.target, each.source)
            if other is not each.source:
                raise TrackError(
                    f"{other} and {each.source} would both be copied here; rename one", path=each.target
                )
        return files


def make_track(root: Path, sources: Sources) -> list[Path]:
    """Make the folder, copy (or link) the files into it, and write a commented trecexam.toml.

    Doing it twice with the same files changes nothing.

    Returns:
        The files that were made.

    Raises:
        TrackError: a source is missing or surely another thing than it was given as, or a different file
            already stands where one would go; nothing is written then.
    """
    files = sources.files(root)
    for each in files:
        if not each.source.is_file():
            there = each.source.exists()
            reason = "is a folder, a pipe or a device, not a file" if there else "no such file"
            raise TrackError(reason, path=each.source)
        if each.target.exists() and not _same(each.source, each.target):
            raise TrackError(
                "a different file stands here already; move it away or choose another folder",
                path=each.target,
            )
        is_input = each.role not in ("leaderboard", "prompt", "provenance") and not each.in_folder
        if is_input and (reason := mistaken(each.role, each.source)):
            raise TrackError(reason, path=each.source)
    config, config_path = _config(root, sources, files), root / CONFIG_NAME
    if config_path.exists() and _settings(config_path.read_text(encoding="utf-8")) != _settings(config):
        raise TrackError(
            "is there already, with other settings; edit it, or choose another folder", path=config_path
        )
    made = [each for each in files if not each.target.exists()]
    try:
        runs = sources.settings.get("track", {}).get("runs", "runs")
        for folder in (root / runs, root / ".trecexam"):
            folder.mkdir(parents=True, exist_ok=True)
        for each in made:
            each.target.parent.mkdir(parents=True, exist_ok=True)
            if sources.link:
                absolute = os.path.abspath(each.source)  # noqa: PTH100 - resolve() would follow the user's own links
                each.target.symlink_to(absolute)
            else:
                shutil.copyfile(each.source, each.target)
        if config_path.exists():
            return [each.target for each in made]
        config_path.write_text(config, encoding="utf-8")
    except OSError as error:
        raise TrackError(f"cannot be written: {error.strerror}", path=error.filename or root) from None
    return [*(each.target for each in made), config_path]


def _same(source: Path, target: Path) -> bool:
    return target.is_file() and (target.samefile(source) or filecmp.cmp(source, target, shallow=False))


def _target(role: str, source: Path) -> str:
    """The name of a file in the track; the ending that shows its format stays."""
    stem = without_ending(source.name)
    packed = source.name.removeprefix(stem)
    suffix = Path(stem).suffix
    if role in ("queries", "passages"):
        default = ".tsv" if role == "queries" else ".jsonl"
        known = suffix in {".tsv", ".jsonl", ".json", ".xml", ".parquet"}
        return f"{role}{suffix if known else default}{packed}"
    if role == "qrels":
        return f"qrels.txt{packed}"
    if role == "leaderboard":
        return f"official_leaderboard.{'tsv' if first_object(head(source)) is None else 'json'}"
    if role == "recorded":
        # Official judgments are looked for under these names.
        return f"recorded.{source.name}" if source.name in {"qrels.txt", "qrels.txt.gz"} else source.name
    if role == "runs":
        return f"runs/{source.name}"
    if source.name.startswith("bank.") and ".jsonl" in source.name:
        return source.name
    stem = stem.removesuffix(".jsonl").removesuffix(".json").strip(".")
    return f"bank.jsonl{packed}" if stem == "bank" else f"bank.{stem}.jsonl{packed}"


def _config(root: Path, sources: Sources, files: Sequence[File]) -> str:
    names = {each.role: each.target.relative_to(root).as_posix() for each in files}
    track: dict[str, Any] = {role: names[role] for role in ("queries", "passages") if role in names}
    if sources.bank:
        track["bank"] = [each.target.name for each in files if each.role == "bank"]
    if sources.qrels:
        track["qrels"] = names["qrels"]
    if sources.dataset:
        track["dataset"] = sources.dataset
    recorded = names.get("recorded")
    grader = {"name": sources.grader or ("recorded" if recorded and not sources.rag else "embedding")}
    title = f"{root.resolve().name}: evaluation report"
    values: dict[str, dict[str, Any]] = {"track": track, "grader": grader, "report": {"title": title}}
    comments = {}
    if sources.rag:
        kinds = {item.kind for path in sources.bank for item in converters.read(path, "bank")}
        values["graders"] = graders = rag_graders(kinds, recorded)
        comments = {"grader": _RAG_COMMENTS["grader"]} | {
            f"graders.{name}": _RAG_COMMENTS[name] + _WRITTEN * ("write_bank" in section)
            for name, section in graders.items()
        }
    elif recorded:
        grader["recorded"] = recorded
    if sources.prompt:
        section = values["graders"]["rubric"] if sources.rag else grader
        section["prompt"] = names.get("prompt", str(sources.prompt))
    for name, settings in sources.settings.items():
        values.setdefault(name, {}).update(settings)
    return render_config(values, full=False, comments=comments)


def rag_graders(item_kinds: Collection[str] = (), recorded: str | None = None) -> dict[str, dict[str, Any]]:
    """The graders of a RAG track: name -> their settings.

    Args:
        item_kinds: the kinds of the items of a bank that is given, which is used unchanged.
        recorded: the track's file with labels of relevance, where there are some.
    """
    nuggets = {"bank": ["bank.nuggets.jsonl"], "write_bank": "nuggetizer"}
    questions = {"bank": ["bank.questions.jsonl"], "write_bank": "questions"}
    judge = {"name": "recorded", "recorded": recorded} if recorded else {"prompt": "UMBRELA"}
    return {
        "nuggets": {
            "unit": "response",
            "prompt": "NuggetAssign",
            **({} if "nugget" in item_kinds else nuggets),
        },
        "support": {},
        "umbrela": {**judge, "pool": "citations"},
        "rubric": {} if item_kinds else questions,
    }


def _settings(config: str) -> dict[str, dict[str, Any]] | None:
    """The settings of a trecexam.toml; None where it is none."""
    try:
        return {section: values for section, values in tomllib.loads(config).items() if values}
    except tomllib.TOMLDecodeError:
        return None
