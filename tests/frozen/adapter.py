"""The one place that knows how commands, files and results look: point it at new names when they move.

The frozen data (`data/`) is in the words of the day on which it was made. What moves without changing its
meaning is said here, and the data stays; what changes on purpose is a line of CHANGES.md, and the data is
made anew.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from outside import find_outside

#: First words of a command line as the recipes write it -> as it is now; the longest that fits is taken.
COMMANDS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("ragval", "judge"): ("watch", "--once"),
    ("simulate", "runs"): ("simulate",),
    ("simulate", "removal"): ("simulate", "--judgments"),
}
#: What was an option that made another command of one -> that command, and what the option is now.
MODES: Mapping[tuple[str, str], tuple[tuple[str, ...], tuple[str, ...]]] = {
    ("leaderboard", "--groups"): (("compare",), ()),
    ("leaderboard", "--baseline"): (("compare",), ("--baseline",)),
    ("leaderboard", "--pairs"): (("compare",), ("--pairs",)),
    ("leaderboard", "--learned"): (("leaderboard",), ("--labels", "learned")),
    ("judge-next", "--budget"): (("judge-next",), ("--top",)),
}
#: Options that are gone, as JSON has what they chose: command -> option -> how many words follow it.
GONE: Mapping[tuple[str, ...], Mapping[str, int]] = {
    ("judge", "agreement"): {"--disagreements": 0},
    ("compare-graders",): {"--between": 1},
    ("simulate", "runs"): {"--summary": 0},
    ("bank", "diff"): {"--all": 0},
}
#: What tells a row of a result from its siblings; a row is the set of these.
KEYS = frozenset({
    "run", "run_a", "run_b", "query_id", "query", "doc_id", "item", "item_id", "measure",
    "official_measure", "grader", "grader_a", "grader_b", "label", "judgment", "who", "assessor",
    "assessor_a", "assessor_b", "examinee", "question_id", "statement", "table", "rule", "topic",
    "name", "way", "filter", "component", "level", "id", "official_file", "system"
})  # fmt: skip
#: Where a result keeps its sentences.
NOTES = frozenset({"notes", "cautions", "remarks", "warnings", "note", "caution"})
#: What hangs on the day, the machine or installed packages.
PASSING = frozenset({
    "when", "time", "times", "written", "version", "versions", "environment", "environments",
    "elapsed", "iterations", "minutes", "seconds", "speed", "threads", "pid", "watched_by", "trecexam"
})  # fmt: skip
#: Words of a path in JSON that say only where a table stands.
STRUCTURE = frozenset({"scores", "mean", "rows", "runs", "tables", "counts"})
#: Files that are there or not, as they hang on fonts and versions.
_DRAWN = (".png", ".svg", ".pdf")
#: Columns of results with more values than this are kept as digests.
MANY = 60
#: And stores with more grades as one.
MANY_GRADES = 400
#: Commands and files whose numbers an optimiser made: their last digits hang on the processor.
_FIT_COMMANDS = frozenset({"exam", "learn"})
_FIT_FILES = re.compile(
    r"(^|/)(((?<!plots/)items|examinees|item_quality|components|steps|information\w*|item_curves|abilities)\.tsv"
    r"|(fit|learned)\.json|learned(-leaderboard)?\.tsv)$"
)
#: How far such numbers may be from the frozen ones: by more than one of the last printed digit, see
#: `CERTAIN_DIGITS` in extensions/exams/irt/settings.py, learn/learn.py and learn/learned_board.py.
FIT_TOLERANCE = 0.0101
_FLOAT = re.compile(r"(?<![\w.])-?\d+\.\d+(e[-+]?\d+)?(?![\w.])")
#: What manifest.json says of every setting and every file: `files of out` has them, and settings come and go.
_OF_MANIFEST_OPEN = frozenset({"config", "inputs", "outputs", "versions", "environments"})
_PROGRESS = re.compile(r"\[\d\d:\d\d:\d\d\] ")
_SHA256 = re.compile(r"\b[0-9a-f]{64}\b")
#: The day in the file that lies beside qrels and says how they were made.
_DAY_OF_QRELS = re.compile(r'("made_by".*?"date": )"\d{4}-\d\d-\d\d"', re.S)
_SCRUBBED = (
    (re.compile(r"http://127\.0\.0\.1:\d+"), "SERVER"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:?\d\d)?"), "WHEN"),
    (re.compile(r"\b\d+(\.\d+)? ?(s|seconds?|minutes?|ms)\b"), "SPELL"),
    (re.compile(r"\b\d+ files? written"), "N files written"),
    (re.compile(r"\b\d+ iterations?\b"), "N iterations"),
    # Columns padded to the width of a path.
    (re.compile(r"  +"), "  "),
)


#: Any of what lies there says where it lies.
_OUTSIDE = found.parent if (found := find_outside("*")) else Path("/nowhere")


def command(words: Sequence[str]) -> list[str]:
    """A recipe's command line in today's words."""
    for first, options in GONE.items():
        for option, more in options.items():
            if tuple(words[: len(first)]) == first and option in words:
                place = words.index(option)
                words = [*words[:place], *words[place + 1 + more :]]
    for place, word in enumerate(words):
        if mode := MODES.get((str(words[0]), str(word))):
            first, instead = mode
            return [*first, *words[1:place], *instead, *words[place + 1 :]]
    for length in range(min(4, len(words)), 0, -1):
        if tuple(words[:length]) in COMMANDS:
            return [*COMMANDS[tuple(words[:length])], *words[length:]]
    return list(words)


def scrubbed(text: str, root: Path) -> str:
    """Without what hangs on the day and the machine."""
    text = text.replace(str(root), "ROOT").replace(str(_OUTSIDE), "SHARED")
    for pattern, word in _SCRUBBED:
        text = pattern.sub(word, text)
    return text


def digest(data: bytes | str) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()[:16]


Triple = tuple[str, str, Any]


def triples(value: Any, root: Path, row: tuple[str, ...] = (), column: str = "") -> Iterator[Triple]:
    """All that a result says, as (row, column, value), however its JSON is laid out; notes are left out."""
    if isinstance(value, Mapping):
        keys = tuple(
            scrubbed(str(value[key]), root) for key in value if key in KEYS and isinstance(value[key], str)
        )
        # A table by columns: {"columns": [...], "rows": [[...], ...]}.
        if isinstance(value.get("columns"), list) and isinstance(value.get("rows"), list):
            for cells in value["rows"]:
                if isinstance(cells, list):
                    yield from triples(dict(zip(value["columns"], cells, strict=True)), root, row, column)
                else:
                    yield from triples(cells, root, row, column)
            return
        for key, inner in value.items():
            if key in NOTES or key in PASSING or (key in KEYS and isinstance(inner, str)):
                continue
            records = isinstance(inner, list) and any(isinstance(each, Mapping) for each in inner)
            below = column if key in STRUCTURE or records else f"{column}.{key}".lstrip(".")
            yield from triples(inner, root, row + keys, below)
    elif isinstance(value, list):
        if all(isinstance(inner, Mapping) for inner in value):
            for inner in value:
                yield from triples(inner, root, row, column)
        else:
            for place, inner in enumerate(value):
                yield from triples(inner, root, row, f"{column}[{place}]")
    else:
        yield " | ".join(sorted(set(row))), column or "value", _plain(value, root)


def _rounded(value: Any, digits: int) -> Any:
    return round(value, digits) + 0.0 if isinstance(value, float) else value


def _plain(value: Any, root: Path) -> Any:
    if isinstance(value, float):
        return round(value, 9) + 0.0
    if isinstance(value, str):
        text = scrubbed(value, root)
        return text if len(text) <= 60 else f"sha {digest(text)}"
    return value


def values(value: Any, root: Path, digits: int, *, fit: bool = False) -> list[list[Any]]:
    """What is frozen of a result: its triples in order; of long columns how many they are, and a digest.

    Of a long column of a fit's numbers, some of them.
    """
    found = in_order((row, column, _rounded(said, digits)) for row, column, said in triples(value, root))
    lengths = Counter(column for _, column, _ in found)
    short = [list(triple) for triple in found if lengths[triple[1]] <= MANY]
    for column, length in sorted(lengths.items()):
        if length > MANY:
            rows = [triple for triple in found if triple[1] == column]
            numbers = sorted(row[2] for row in rows if fit and isinstance(row[2], float))
            rows = [row for row in rows if not (fit and isinstance(row[2], float))]
            short += [[f"of all {len(numbers)} rows", column, number] for number in _some(numbers)]
            total = sum(row[2] for row in rows if isinstance(row[2], (int, float)))
            short.append([f"all {length} rows, sum {round(total, 6)}", column, digest(json.dumps(rows))])
    return short


def in_order(found: Iterable[Triple]) -> list[Triple]:
    return sorted(found, key=lambda triple: (triple[0], triple[1], json.dumps(triple[2])))


def notes(value: Any, stderr: str, root: Path) -> set[str]:
    """All sentences of a command: of its JSON, and on stderr."""
    found = (
        note for note in (*_notes(value), *stderr.splitlines()) if note.strip() and not _PROGRESS.match(note)
    )
    return {scrubbed(note, root) for note in found}


def _notes(value: Any, inside: bool = False) -> Iterator[str]:
    if isinstance(value, str) and inside:
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _notes(inner, inside or key in NOTES)
    elif isinstance(value, list):
        for inner in value:
            yield from _notes(inner, inside)


def of_fit(line: str) -> bool:
    """Whether an optimiser has a say in what a command line prints; `line` as it was frozen."""
    words = command(line.split())
    return words[0] in _FIT_COMMANDS or "--labels" in words


def apart(text: str) -> dict[str, Any]:
    """A digest of a text without its numbers with a point, and these; of many every so many."""
    numbers = [float(match[0]) for match in _FLOAT.finditer(text)]
    return {"words": digest(_FLOAT.sub("N", text)), "numbers": _some(numbers)}


def _some(numbers: Sequence[float]) -> list[float]:
    return list(numbers if len(numbers) <= MANY else numbers[:: len(numbers) // 12])


def near(was: Any, now: Any) -> bool:
    """Whether two results of a fit are the same up to its last digits."""
    if isinstance(was, float) or isinstance(now, float):
        return all(isinstance(n, int | float) for n in (was, now)) and abs(was - now) < FIT_TOLERANCE
    if isinstance(was, list) and isinstance(now, list):
        return len(was) == len(now) and all(map(near, was, now))
    if isinstance(was, dict) and isinstance(now, dict):
        return was.keys() == now.keys() and all(near(was[key], now[key]) for key in was)
    return bool(was == now)


def files(folder: Path, root: Path, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """name -> digest of every file below a folder: of JSON what it says, of pages and pictures only the name.

    Of results of a fit the numbers, too.

    Args:
        without: how names begin that are left out.
    """
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {
        name: _of_file(folder / name, root)
        for name in names
        if not name.startswith(without) and not re.search(r"(^|/)\.", name)
    }


def _of_file(path: Path, root: Path) -> Any:
    if path.suffix in (*_DRAWN, ".html", ".gz", ".sqlite"):
        return "there"
    text = path.read_text(encoding="utf-8")
    if path.suffix in {".json", ".jsonl"}:
        text = _DAY_OF_QRELS.sub(r'\1"DAY"', _SHA256.sub("SHA256", text))
        rows = (
            [json.loads(text)] if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]
        )
        if path.name == "manifest.json":
            rows = [{key: value for key, value in rows[0].items() if key not in _OF_MANIFEST_OPEN}]
        sentences = sorted(note for row in rows for note in notes(row, "", root))
        if _FIT_FILES.search(path.as_posix()):
            said = [*triples(rows, root)]
            numbers = [value for _, _, value in said if isinstance(value, float)]
            words = [triple for triple in said if not isinstance(triple[2], float)]
            return {"words": digest(json.dumps([in_order(words), sentences])), "numbers": _some(numbers)}
        return digest(json.dumps([in_order(triples(rows, root)), sentences]))
    text = scrubbed(text, root)
    return apart(text) if _FIT_FILES.search(path.as_posix()) else digest(text)


def page_notes(track: Path, root: Path) -> list[str]:
    """The cautions of out/report.html, and of the graders' own where there are several."""
    found = re.findall(
        r'<(?:p|li|div)[^>]*class="[^"]*(?:note|lead|soft)[^"]*"[^>]*>(.*?)</(?:p|li|div)>',
        "".join(page.read_text() for page in sorted((track / "out").rglob("report.html"))),
        re.S,
    )
    return sorted({scrubbed(" ".join(re.sub(r"<[^>]+>", "", text).split()), root) for text in found} - {""})


def store(track: Path, *, answers: bool = True) -> dict[str, Any]:
    """The keys of everything that was ever asked, and the answers."""
    found: dict[str, Any] = {"graders": {}, "grades": []}
    path = track / ".trecexam" / "grades.sqlite"
    if not path.is_file():
        return found
    db = sqlite3.connect(path)
    try:
        for key, identity in db.execute("SELECT hex(digest), identity FROM grader"):
            found["graders"][key[:16]] = digest(identity)
        rows = db.execute(
            """SELECT hex(g.digest), hex(i.digest), hex(p.digest), status, rating, answer FROM grade
            JOIN grader g ON g.id = grader_id JOIN item i ON i.id = item_id
            JOIN passage p ON p.id = passage_id"""
        )
        grades = sorted(
            f"{grader[:8]} {item[:12]} {passage[:12]} {status} {rating} {digest(said)[:8] if answers else ''}"
            for grader, item, passage, status, rating, said in rows
        )
        found["grades"] = grades if len(grades) <= MANY_GRADES else [f"{len(grades)}: {digest(str(grades))}"]
    finally:
        db.close()
    return found
