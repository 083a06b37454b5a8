"""Makes a track folder from a user's files."""

from __future__ import annotations

import filecmp
import os
import shutil
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import converters
from converters.bank import read_bank
from converters.errors import ConversionError
from converters.lines import first_object, head
from converters.passages import named_as
from converters.scored_rows import has_texts
from converters.unpacking import without_ending
from trecexam.config import CONFIG_NAME, render_config
from trecexam.errors import TrackError

#: format -> the option that takes its files, and what it is in words.
_OPTION_OF = {
    "run": "runs",
    "qrels": "qrels",
    "bank": "bank",
    "passages": "passages",
    "rubric": "recorded",
    "umbrela": "recorded",
    "queries": "queries",
    "responses": "runs",
}
_LOOKS = {
    "run": "a run",
    "qrels": "qrels",
    "bank": "a test bank",
    "passages": "passages",
    "rubric": "a graded pool",
    "umbrela": "umbrela's judgments",
    "queries": "queries",
    "leaderboard": "an official leaderboard",
    "responses": "generated responses",
}
#: option -> what its file has.
_HAS = {
    "queries": "queries",
    "passages": "passages",
    "qrels": "judgments",
    "recorded": "grades",
    "bank": "questions or nuggets",
    "runs": "a run or responses",
}
#: option -> formats that are none of its. What is in none of these is too like others to be sure.
_NOT_OF: Mapping[str, Collection[str]] = {
    "queries": ("run", "qrels", "bank", "passages", "rubric", "umbrela", "responses", "leaderboard"),
    "passages": ("run", "qrels", "bank", "queries", "umbrela", "responses", "leaderboard"),
    "qrels": ("run", "bank", "passages", "rubric", "umbrela", "queries", "responses", "leaderboard"),
    "recorded": ("run", "bank", "queries", "responses", "leaderboard"),
    "bank": ("run", "qrels", "passages", "queries", "umbrela", "responses", "leaderboard"),
    "runs": ("qrels", "bank", "passages", "rubric", "umbrela", "queries", "leaderboard"),
}


#: What trecexam.toml says of the graders of a RAG track; of those whose bank `watch` writes `_WRITTEN`, too.
_RAG_COMMENTS = {
    "grader": "What the graders below share. What one of them sets in its section counts for it alone: "
    "another model, prompt, bank.",
    "graders.nuggets": "Nuggets: does a whole response say each nugget of its query? A and V, by "
    "AutoNuggetizer.",
    "graders.support": "Support: does the first passage that a sentence cites say what the sentence says? "
    "Precision, recall, F1.",
    "graders.umbrela": "Retrieval: how relevant is each passage that a run ranks, or a response cites? nDCG.",
    "graders.rubric": "Coverage: how much of the bank do the passages of a run, or of a response, answer?",
}
_WRITTEN = " `watch` has a language model write the bank where it is not there; then edit it as you like."


@dataclass(frozen=True)
class Sources:
    """What `trecexam init` was given. Everything is optional: files can be put into the folder later.

    Attributes:
        provenance: what lies beside the qrels, and says whose labels they are.
        rag: the track of a RAG track, with four graders; `recorded` are then labels of relevance.
    """

    queries: Path | None = None
    bank: Sequence[Path] = ()
    passages: Path | None = None
    qrels: Path | None = None
    provenance: Path | None = None
    runs: Sequence[Path] = ()
    recorded: Path | None = None
    dataset: str | None = None
    leaderboard: Path | None = None
    grader: str | None = None
    model: str | None = None
    prompt: str | Path | None = None
    link: bool = False
    rag: bool = False
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)


def make_track(root: Path, sources: Sources) -> list[Path]:
    """Makes the folder, copies (or links) the files in, and a commented trecexam.toml.

    Doing it twice with the same files changes nothing.

    Returns:
        The files that were made.

    Raises:
        TrackError: a source is missing or surely another thing than it was given as, or a different file
            already stands where one would go; nothing is written then.
    """
    plan = _plan(root, sources)
    config = _config(root, sources, plan)
    for source, target in plan:
        if not source.exists():
            raise TrackError("no such file", path=source)
        if not source.is_file():
            raise TrackError("is a folder, a pipe or a device, not a file", path=source)
        if target.exists() and not _same(source, target):
            raise TrackError(
                "a different file stands here already; move it away or choose another folder", path=target
            )
    for option, path in _given(sources):
        mistaken = _mistaken(option, path, sources.grader)
        if mistaken:
            raise TrackError(mistaken, path=path)
    config_path = root / CONFIG_NAME
    if config_path.exists() and _settings(config_path.read_text(encoding="utf-8")) != _settings(config):
        raise TrackError(
            "is there already, with other settings; edit it, or choose another folder", path=config_path
        )
    made = []
    try:
        runs = sources.settings.get("track", {}).get("runs", "runs")
        for folder in (root / runs, root / ".trecexam"):
            folder.mkdir(parents=True, exist_ok=True)
        for source, target in plan:
            if not target.exists():
                _place(source, target, link=sources.link)
                made.append(target)
        if not config_path.exists():
            config_path.write_text(config, encoding="utf-8")
            made.append(config_path)
    except OSError as error:
        raise TrackError(f"cannot be written: {error.strerror}", path=error.filename or root) from None
    return made


def not_runs(sources: Sources) -> list[str]:
    """A line for each file in the folders of runs that surely is none; they are copied like the others."""
    mistakes = ((path, _mistaken("runs", path, sources.grader)) for path in _in_folders(sources))
    return [f"{path}: {mistaken}" for path, mistaken in mistakes if mistaken]


def without_records(root: Path, sources: Sources) -> list[str]:
    """A line for each file or folder of runs that has nothing in it, and what to put where."""
    targets = dict(_plan(root, sources))
    inputs = [*_given(sources), *(("runs", path) for path in _in_folders(sources) if path in targets)]
    reasons = ((option, path, _nothing_in(option, path)) for option, path in inputs)
    empty_folders = [
        f"{path}: the folder has no files; put runs or responses into {root / 'runs'}"
        for path in sources.runs
        if path.is_dir() and not any(each.is_file() for each in path.rglob("*"))
    ]
    return empty_folders + [
        f"{path}: {reason}; put {_HAS[option]} into {targets[path]}, or remove it"
        for option, path, reason in reasons
        if reason
    ]


def unreadable(root: Path, sources: Sources) -> list[str]:
    """The first error of each bank, queries and qrels in the track that has records and cannot be read."""
    targets = dict(_plan(root, sources))
    errors = []
    for option, path in _given(sources):
        if option not in ("bank", "queries", "qrels") or _nothing_in(option, path):
            continue
        try:
            for _ in (
                read_bank(targets[path], _pass)
                if option == "bank"
                else converters.read(targets[path], option)
            ):
                pass
        except ConversionError as error:
            errors.append(str(error))
    return errors


def _pass(_: ConversionError) -> None:
    """Takes a warning of a reader: `watch` prints it."""


def _in_folders(sources: Sources) -> list[Path]:
    """The files in the folders of runs."""
    folders = [path for path in sources.runs if path.is_dir()]
    return [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]


def _nothing_in(option: str, path: Path) -> str:
    """Why there is no record in a file; "" where there is one, or a line that is to be mended."""
    try:
        if option in ("runs", "recorded"):
            head(path)
        else:
            next(iter(converters.read(path, option)), None)
    except ConversionError as error:
        return error.reason if error.line is None else ""
    return ""


def _given(sources: Sources) -> Iterator[tuple[str, Path]]:
    """(option, file) of all files that were named one by one."""
    for option in ("queries", "passages", "qrels", "recorded"):
        path = getattr(sources, option)
        if path is not None:
            yield option, path
    yield from (("bank", path) for path in sources.bank)
    yield from (("runs", path) for path in sources.runs if path.is_file())


def _mistaken(option: str, path: Path, grader: str | None) -> str:
    """Why a file is surely not what it was given as; "" where it may be, or looks like nothing known.

    It must read as the other format, and not as the option's own.
    """
    try:
        kind = converters.sniff(path)
        if option in ("queries", "passages") and has_texts(head(path)):
            return ""
    except ConversionError:
        return ""
    if kind not in _NOT_OF[option] or not (kind == "run" or _reads(path, kind)):
        return ""
    # A TSV of queries may hold anything, and responses are told from their lines.
    if option == "runs":
        fits = kind != "qrels" and (grader == "ragval" or "answer" in (first_object(head(path)) or {}))
    elif {option, kind} == {"queries", "passages"} and (named_as(path.name) == kind or _is_beir(path)):
        # Their lines are alike: what the name says, or BEIR's titles, counts.
        fits = False
    else:
        fits = not (option == "queries" and kind in ("run", "qrels", "leaderboard")) and _reads(path, option)
    if fits:
        return ""
    if kind == "leaderboard":
        return (
            f"looks like {_LOOKS[kind]}, and was given as --{option}; leave it out, and copy it into the "
            "track as official_leaderboard.tsv"
        )
    other = _OPTION_OF[kind]
    return f"looks like {_LOOKS[kind]}, and was given as --{option}; is --{other} meant?"


def _is_beir(path: Path) -> bool:
    return "_id" in (first_object(head(path)) or {})


def _reads(path: Path, kind: str) -> bool:
    """Whether the first record of a file can be read as one of this format."""
    if kind == "recorded":
        return False
    try:
        return next(iter(converters.read(path, kind)), None) is not None
    except ConversionError:
        return False


def _plan(root: Path, sources: Sources) -> list[tuple[Path, Path]]:
    plan: list[tuple[Path, Path]] = []
    if sources.queries:
        plan.append((sources.queries, root / _named("queries", sources.queries, ".tsv")))
    if sources.passages:
        plan.append((sources.passages, root / _named("passages", sources.passages, ".jsonl")))
    if sources.qrels:
        target = root / f"qrels.txt{_packed_ending(sources.qrels)}"
        plan.append((sources.qrels, target))
        if sources.provenance:
            plan.append((sources.provenance, root / f"{target.name}.json"))
    if sources.leaderboard:
        is_json = first_object(head(sources.leaderboard)) is not None
        plan.append((sources.leaderboard, root / f"official_leaderboard.{'json' if is_json else 'tsv'}"))
    for path in sources.bank:
        plan.append((path, root / _bank_name(path)))
    if sources.recorded:
        plan.append((sources.recorded, root / _recorded_name(sources.recorded)))
    if isinstance(sources.prompt, Path):
        plan.append((sources.prompt, root / sources.prompt.name))
    for run_path in sources.runs:
        if run_path.is_dir():
            plan += [
                (path, root / "runs" / path.relative_to(run_path))
                for path in sorted(run_path.rglob("*"))
                if path.is_file() and not path.name.startswith(".")
            ]
        else:
            plan.append((run_path, root / "runs" / run_path.name))
    targets: dict[Path, Path] = {}
    for source, target in plan:
        if target in targets:
            raise TrackError(
                f"{targets[target]} and {source} would both be copied here; rename one", path=target
            )
        targets[target] = source
    return plan


def _named(stem: str, source: Path, default: str) -> str:
    """`stem` with the source's own extension, so that its format stays visible."""
    suffix = Path(without_ending(source.name)).suffix
    extension = suffix if suffix in {".tsv", ".jsonl", ".json", ".xml", ".parquet"} else default
    return stem + extension + _packed_ending(source)


def _packed_ending(source: Path) -> str:
    return source.name.removeprefix(without_ending(source.name))


def _recorded_name(source: Path) -> str:
    """Qrels that are grades do not lie where the official ones are looked for."""
    return f"recorded.{source.name}" if source.name in {"qrels.txt", "qrels.txt.gz"} else source.name


def _bank_name(source: Path) -> str:
    if source.name.startswith("bank.") and ".jsonl" in source.name:
        return source.name
    ending = _packed_ending(source)
    stem = without_ending(source.name).removesuffix(".jsonl").removesuffix(".json").strip(".")
    return f"bank.jsonl{ending}" if stem == "bank" else f"bank.{stem}.jsonl{ending}"


def _config(root: Path, sources: Sources, plan: list[tuple[Path, Path]]) -> str:
    title = f"{root.resolve().name}: evaluation report"
    values: dict[str, dict[str, Any]] = {"track": {}, "grader": {}, "report": {"title": title}}
    targets: dict[Path, str] = {}
    for source, target in plan:
        targets.setdefault(source, target.relative_to(root).as_posix())
    if sources.queries:
        values["track"]["queries"] = targets[sources.queries]
    if sources.passages:
        values["track"]["passages"] = targets[sources.passages]
    if sources.bank:
        values["track"]["bank"] = [targets[path] for path in sources.bank]
    if sources.qrels:
        values["track"]["qrels"] = targets[sources.qrels]
    if sources.dataset:
        values["track"]["dataset"] = sources.dataset
    recorded = None if sources.recorded is None else _recorded_name(sources.recorded)
    if sources.rag:
        kinds = {item.kind for path in sources.bank for item in converters.read(path, "bank")}
        values["graders"] = rag_graders(kinds, recorded)
        recorded = None
    values["grader"]["name"] = sources.grader or ("recorded" if recorded else "embedding")
    if sources.model:
        values["grader"]["model"] = sources.model
    if sources.prompt:
        prompt = sources.prompt
        section = values["graders"]["rubric"] if sources.rag else values["grader"]
        section["prompt"] = targets[prompt] if isinstance(prompt, Path) else prompt
    if recorded:
        values["grader"]["recorded"] = recorded
    for section, settings in sources.settings.items():
        values.setdefault(section, {}).update(settings)
    comments = {
        f"graders.{name}": _RAG_COMMENTS[f"graders.{name}"]
        + (_WRITTEN if "write_bank" in section_values else "")
        for name, section_values in values.get("graders", {}).items()
    }
    of_all = {"grader": _RAG_COMMENTS["grader"]} if sources.rag else {}
    return render_config(values, full=False, comments=of_all | comments)


def rag_graders(item_kinds: Collection[str] = (), recorded: str | None = None) -> dict[str, dict[str, Any]]:
    """The graders of a RAG track: name -> their settings.

    Args:
        item_kinds: the kinds of the items of a bank that is given, which is used unchanged.
        recorded: the track's file with labels of relevance, where there are some.
    """
    by_model, by_file = {"prompt": "UMBRELA"}, {"name": "recorded", "recorded": recorded}
    return {
        "nuggets": {
            "unit": "response",
            "prompt": "NuggetAssign",
            **({} if "nugget" in item_kinds else _to_be_written("bank.nuggets.jsonl", "nuggetizer")),
        },
        "support": {},
        "umbrela": {**(by_file if recorded else by_model), "pool": "citations"},
        "rubric": {} if item_kinds else _to_be_written("bank.questions.jsonl", "questions"),
    }


def _to_be_written(name: str, how: str) -> dict[str, Any]:
    return {"bank": [name], "write_bank": how}


def _settings(config: str) -> dict[str, dict[str, Any]] | None:
    """What a trecexam.toml sets; None where it is none."""
    try:
        return {section: values for section, values in tomllib.loads(config).items() if values}
    except tomllib.TOMLDecodeError:
        return None


def _same(source: Path, target: Path) -> bool:
    return target.is_file() and (target.samefile(source) or filecmp.cmp(source, target, shallow=False))


def _place(source: Path, target: Path, *, link: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if link:
        target.symlink_to(os.path.abspath(source))  # noqa: PTH100 - resolve() would follow the user's own links
    else:
        shutil.copyfile(source, target)
