"""Makes a track folder from a user's files: their roles, by content, and their places."""

from __future__ import annotations

import filecmp
import shutil
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import converters
from converters.errors import ConversionError
from converters.lines import first_object, head
from converters.passages import named_as
from converters.scored_rows import has_texts, is_ambiguous
from converters.unpacking import file_label, without_ending
from trecexam.config import CONFIG_NAME, render_config
from trecexam.errors import TrackError, TrecexamError, quoted
from trecexam.files import atomic
from trecexam.folder import TrackFolder, files_in

#: Roles that one file of a track has.
SINGLE = ("queries", "passages", "qrels", "recorded", "leaderboard")
#: Formats of labels of relevance.
LABELS = ("qrels", "umbrela")
#: Format -> its role, and what such a file is called in messages.
_FORMATS: Mapping[str, tuple[str, str]] = {
    "queries": ("queries", "queries"),
    "passages": ("passages", "passages"),
    "qrels": ("qrels", "qrels"),
    "rubric": ("recorded", "a graded pool"),
    "grades": ("recorded", "grades"),
    "umbrela": ("recorded", "umbrela's judgments"),
    "leaderboard": ("leaderboard", "an official leaderboard"),
    "bank": ("bank", "a test bank"),
    "run": ("runs", "a run"),
    "responses": ("runs", "generated responses"),
}
#: Why a file has the role that the user gave it.
NAMED = "an option names it"
#: Files of one folder and role that are listed one by one.
_LISTED = 3
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


class Found(NamedTuple):
    """A file and its role.

    Attributes:
        role: None where the file is left out.
        format: as its content tells it; "" where it is in none that is known, or nobody looked.
        why: why it has this role, or is left out; "" where its content alone decides.
        below: of a file in a folder of runs, its path there.
    """

    path: Path
    role: str | None
    format: str = ""
    why: str = ""
    below: str = ""


def look_at(path: Path) -> Found:
    """Detect a file's format and role."""
    if not path.is_file():
        # Reading a pipe waits for ever.
        gone = "a link to a file that is gone"
        return Found(path, None, why="a pipe or a device" if path.exists() else gone)
    try:
        kind = converters.sniff(path)
        if kind == "qrels" and path.parent.name == "runs" and is_ambiguous(head(path)):
            kind = "run"
    except ConversionError as error:
        unknown = error.reason.startswith("in none of the supported formats")
        return Found(path, None, why="in none of the supported formats" if unknown else error.reason)
    if kind not in _FORMATS:
        return Found(path, None, kind, f"looks like the format '{kind}', which `init` does not take")
    if kind == "qrels" and "umbrela" in path.name.lower():
        return Found(path, "recorded", kind, "its name says that a model judged")
    return Found(path, _FORMATS[kind][0], kind)


def look_at_named(path: Path, role: str) -> Found:
    """Detect the format of a file that the user gave a role."""
    if not path.is_file():
        reason = "is a folder, a pipe or a device, not a file" if path.exists() else "no such file"
        raise TrackError(reason, path=path)
    found = look_at(path)
    if reason := _mistaken(found, role):
        raise TrackError(reason, path=path)
    return found._replace(role=role, why=NAMED)


def look_into(folder: Path, but: Path, named: Sequence[Found] = ()) -> list[Found]:
    """Detect the files of a folder and its sub-folders, in the order of their paths.

    Hidden files and the `out/` of tracks in the folder are left out.

    Args:
        but: a folder whose files are left out: the track's own.
        named: files that the user gave roles, which they have here, too.
    """
    if (folder / CONFIG_NAME).is_file():
        raise TrackError(
            f"is a track already: `trecexam watch {quoted(folder)} --once` updates it; for another track of "
            "its files, name them with --queries, --passages, --bank, --qrels and --runs",
            path=folder,
        )
    outputs = {but.absolute(), *(each.absolute().parent / "out" for each in folder.rglob(CONFIG_NAME))}
    roles = {each.path.absolute(): each for each in named}
    found = [
        roles[path.absolute()]._replace(path=path) if path.absolute() in roles else look_at(path)
        for path in files_in(folder)
        if outputs.isdisjoint(path.absolute().parents)
    ]
    if not any(each.role for each in found):
        raise TrackError(
            "no file here is in a format that a track takes; see `trecexam formats`", path=folder
        )
    # Of qrels a file beside them says who judged.
    beside = {each.path.with_name(f"{each.path.name}.json") for each in found if each.role == "qrels"}
    return [each for each in found if each.path not in beside]


def refuse_two(files: Sequence[Found], folder: Path) -> None:
    """Refuse files that have a role of which a track has one file."""
    for role in SINGLE:
        paths = [each.path for each in files if each.role == role]
        if len(paths) > 1:
            names = ", ".join(path.relative_to(folder).as_posix() for path in paths)
            choose = "keep one here" if role == "leaderboard" else f"choose one: --{role} {quoted(paths[0])}"
            raise TrackError(f"{len(paths)} files can be the {role}: {names}; {choose}", path=folder)


def described(files: Sequence[Found], folder: Path) -> Iterator[str]:
    """Yield a line for each file, or for each folder of many that are alike: its role, and why."""
    alike: dict[Found, list[str]] = {}
    for each in files:
        name = each.path.relative_to(folder).as_posix()
        alike.setdefault(each._replace(path=each.path.parent, below=""), []).append(name)
    for group, names in alike.items():
        if len(names) > _LISTED:
            inside = group.path.relative_to(folder).as_posix()
            names = [f"{len(names)} files in {'the folder' if inside == '.' else inside}"]
        form = f" (format '{group.format}')" if group.format not in (group.role, "run", "") else ""
        why = f": {group.why}" if group.why else ""
        for name in names:
            yield f"took {name} as {group.role}{form}{why}" if group.role else f"left out {name}{why}"


def _mistaken(found: Found, role: str) -> str:
    """Return why a file surely is not what it was given as; "" where it may be, or looks like nothing known.

    Such a file reads as the other format, and not as one of the role's own.
    """
    path, other, kind = found.path, found.role, found.format
    if other in (None, role) or (role, kind) == ("recorded", "qrels"):
        return ""
    row = first_object(head(path)) or {}
    if {role, other} == {"queries", "passages"}:
        # Their lines are alike: the name counts, or BEIR's titles.
        fits = named_as(path.name) != other and "_id" not in row
    elif role == "runs":
        fits = "answer" in row
    elif role == "queries" and kind in ("run", "qrels", "leaderboard"):
        # Any TSV reads as queries.
        fits = False
    else:
        fits = role != "recorded" and _reads(path, role)
    if fits or (role in ("queries", "passages") and has_texts(head(path))):
        return ""
    if kind != "run" and not _reads(path, kind):
        return ""
    remedy = f"is --{other} meant?"
    if kind == "leaderboard":
        remedy = "leave it out, and copy it into the track as official_leaderboard.tsv"
    return f"looks like {_FORMATS[kind][1]}, and was given as --{role}; {remedy}"


def _reads(path: Path, kind: str) -> bool:
    """Return True if the first record of a file can be read as one of this format."""
    try:
        return next(iter(converters.read(path, kind)), None) is not None
    except ConversionError:
        return False


@dataclass(frozen=True)
class Sources:
    """Files and settings of a new track. Everything is optional: files can be put into the folder later.

    Attributes:
        runs: files, and folders of them.
        folder: of further files, whose content tells their roles; named files take precedence.
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
    folder: Path | None = None
    dataset: str | None = None
    grader: str | None = None
    prompt: str | Path | None = None
    link: bool = False
    rag: bool = False
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def look(self, root: Path) -> list[Found]:
        """Look once at each file; of the folder also at those that are left out.

        Args:
            root: the track's folder.

        Raises:
            TrackError: a named file is missing, or surely another thing than it was given as; no file of the
                folder is of use; or two have a role of which a track has one.
        """
        named = [
            look_at_named(path, role)
            for role in ("queries", "passages", "qrels", "recorded")
            if (path := getattr(self, role)) is not None
        ]
        named += [look_at_named(path, "bank") for path in self.bank]
        for path in self.runs:
            if not path.is_dir():
                named.append(look_at_named(path, "runs"))
                continue
            # The files of a folder of runs are runs, whatever they look like.
            for run in filter(Path.is_file, files_in(path)):
                named.append(Found(run, "runs", why=NAMED, below=run.relative_to(path).as_posix()))
        if self.folder is None:
            return named
        files = look_into(self.folder, root, named)
        given = {each.role for each in named}
        files = [self._within_options(each, given) if each.why != NAMED else each for each in files]
        refuse_two(files, self.folder)
        # A file may be named for two roles.
        seen = {(each.path.absolute(), each.role) for each in files}
        return [*files, *(each for each in named if (each.path.absolute(), each.role) not in seen)]

    def _within_options(self, found: Found, given: Collection[str | None]) -> Found:
        """Leave out a file of the folder where an option says what has its role."""
        why = ""
        if found.role in given and found.role is not None:
            why = f"--{found.role} is given"
        elif found.role == "recorded" and self.rag and found.format not in LABELS:
            why = "--rag takes labels of relevance alone"
        elif found.role == "recorded" and not self.rag and self.grader not in (None, "recorded"):
            why = f"--grader {self.grader} grades"
        return found._replace(role=None, why=why) if why else found


def make_track(root: Path, sources: Sources, files: Sequence[Found] | None = None) -> list[Path]:
    """Make the folder, copy (or link) the files into it, and write a commented trecexam.toml.

    Doing it twice with the same files changes nothing.

    Args:
        files: what `Sources.look` found; None to look now.

    Returns:
        The files that were made.

    Raises:
        TrackError: as `Sources.look`; or two files would be copied to one place, or a different file stands
            there already. Nothing is written then.
    """
    taken = [each for each in (sources.look(root) if files is None else files) if each.role]
    places = [(_target(each), each.path) for each in taken]
    for each in taken:
        beside = each.path.with_name(f"{each.path.name}.json")
        if each.role == "qrels" and beside.is_file():
            places.append((f"{_target(each)}.json", beside))
    if isinstance(sources.prompt, Path):
        places.append((sources.prompt.name, sources.prompt))
    source_of: dict[Path, Path] = {}
    for name, source in places:
        target = root / name
        if (other := source_of.setdefault(target, source)) is not source:
            raise TrackError(f"{other} and {source} would both be copied here; rename one", path=target)
        if target.exists() and not _same(source, target):
            raise TrackError(
                "a different file stands here already; move it away or choose another folder", path=target
            )
    config, config_path = _config(root, sources, taken), root / CONFIG_NAME
    if config_path.exists() and _settings(config_path.read_text(encoding="utf-8")) != _settings(config):
        raise TrackError(
            "is there already, with other settings; edit it, or choose another folder", path=config_path
        )
    made = [target for target in source_of if not target.exists()]
    try:
        runs = sources.settings.get("track", {}).get("runs", "runs")
        for folder in (root / runs, root / ".trecexam"):
            folder.mkdir(parents=True, exist_ok=True)
        for target in made:
            target.parent.mkdir(parents=True, exist_ok=True)
            if sources.link:
                # resolve() would follow the user's own links.
                target.symlink_to(source_of[target].absolute())
            else:
                shutil.copyfile(source_of[target], target)
        if not config_path.exists():
            config_path.write_text(config, encoding="utf-8")
            made.append(config_path)
    except OSError as error:
        raise TrackError(f"cannot be written: {error.strerror}", path=error.filename or root) from None
    return made


def add_runs(folder: TrackFolder, files: Mapping[str, bytes], *, replace: bool = False) -> list[Path]:
    """Write files of runs into the drop folder, all or none, and return their paths.

    Args:
        files: content by path in the drop folder.
        replace: replace other files of these names.

    Raises:
        TrecexamError: another file of such a name is there, with this ending and no `replace`, or with
            another one; or a file cannot be written.
    """
    contents = {folder.runs / name: content for name, content in files.items()}
    labels = set(map(file_label, files))
    for other in folder.run_files():
        if other not in contents and file_label(other.relative_to(folder.runs).as_posix()) in labels:
            raise TrecexamError("move it away, or use another name for the new run", path=other)
        if other in contents and not replace and other.exists() and other.read_bytes() != contents[other]:
            raise TrecexamError("another run is there already; replace=True replaces it", path=other)
    atomic.make_folder(folder.runs)
    atomic.replace_together(contents)
    return [*contents]


def _same(source: Path, target: Path) -> bool:
    return target.is_file() and (target.samefile(source) or filecmp.cmp(source, target, shallow=False))


def _target(found: Found) -> str:
    """Return the path of a file in the track; the ending that shows its format stays."""
    role, name = found.role, found.path.name
    if role == "runs":
        return f"runs/{found.below or name}"
    stem = without_ending(name)
    packed = name.removeprefix(stem)
    suffix = Path(stem).suffix
    if role in ("queries", "passages"):
        default = ".tsv" if role == "queries" else ".jsonl"
        known = suffix in {".tsv", ".jsonl", ".json", ".xml", ".parquet"}
        return f"{role}{suffix if known else default}{packed}"
    if role == "qrels":
        return f"qrels.txt{packed}"
    if role == "leaderboard":
        return f"official_leaderboard.{'tsv' if first_object(head(found.path)) is None else 'json'}"
    if role == "recorded":
        # Official judgments are looked for under these names.
        return f"recorded.{name}" if name in {"qrels.txt", "qrels.txt.gz"} else name
    if name.startswith("bank.") and ".jsonl" in name:
        return name
    stem = stem.removesuffix(".jsonl").removesuffix(".json").strip(".")
    return f"bank.jsonl{packed}" if stem == "bank" else f"bank.{stem}.jsonl{packed}"


def _config(root: Path, sources: Sources, files: Sequence[Found]) -> str:
    """Return the content of trecexam.toml."""
    names = {each.role: _target(each) for each in files}
    track: dict[str, Any] = {role: names[role] for role in ("queries", "passages") if role in names}
    if banks := [each for each in files if each.role == "bank"]:
        track["bank"] = [*map(_target, banks)]
    track |= {"qrels": names["qrels"]} if "qrels" in names else {}
    track |= {"dataset": sources.dataset} if sources.dataset else {}
    recorded = names.get("recorded")
    grader = {"name": sources.grader or ("recorded" if recorded and not sources.rag else "embedding")}
    title = f"{root.resolve().name}: evaluation report"
    values: dict[str, dict[str, Any]] = {"track": track, "grader": grader, "report": {"title": title}}
    comments = {}
    if sources.rag:
        kinds = {item.kind for each in banks for item in converters.read(each.path, "bank")}
        values["graders"] = graders = rag_graders(kinds, recorded)
        comments = {"grader": _RAG_COMMENTS["grader"]} | {
            f"graders.{name}": _RAG_COMMENTS[name] + _WRITTEN * ("write_bank" in section)
            for name, section in graders.items()
        }
    elif recorded:
        grader["recorded"] = recorded
    if sources.prompt:
        section = values["graders"]["rubric"] if sources.rag else grader
        section["prompt"] = sources.prompt.name if isinstance(sources.prompt, Path) else sources.prompt
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
