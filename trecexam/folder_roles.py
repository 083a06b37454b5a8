"""Roles of files in a track, by their content: queries, passages, judgments, grades, banks, runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import converters
from converters.errors import ConversionError
from converters.lines import first_object, head
from converters.passages import named_as
from converters.scored_rows import has_texts, is_ambiguous
from trecexam.config import CONFIG_NAME
from trecexam.errors import TrackError, quoted
from trecexam.folder import files_in

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
    """Detect the format of a file that the user gave a role.

    Raises:
        TrackError: the file is missing, or surely has another role.
    """
    if not path.is_file():
        reason = "is a folder, a pipe or a device, not a file" if path.exists() else "no such file"
        raise TrackError(reason, path=path)
    found = look_at(path)
    if reason := _mistaken(found, role):
        raise TrackError(reason, path=path)
    return found._replace(role=role, why=NAMED)


def runs_in(folder: Path) -> list[Found]:
    """Return the files of a folder of runs, whatever they are, without hidden ones."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith("."))
    return [Found(path, "runs", why=NAMED, below=path.relative_to(folder).as_posix()) for path in paths]


def look_into(folder: Path, but: Path, named: Sequence[Found] = ()) -> list[Found]:
    """Detect the files of a folder and its sub-folders, in the order of their paths.

    Hidden files and the `out/` of tracks in the folder are left out.

    Args:
        but: a folder whose files are left out: the track's own.
        named: files that the user gave roles, which they have here, too.

    Raises:
        TrackError: the folder is a track itself, or none of its files is of use to a track.
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
    """Refuse files that have a role of which a track has one file.

    Raises:
        TrackError: it names the files, and says how to choose.
    """
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
