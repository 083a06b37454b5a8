"""Writes runs, banks, texts and judgments that are given in Python to files that a track reads.

Content is a data frame of any library (pandas, polars, pyarrow, narwhals, duckdb ...), an iterable of dicts
or of records with the fields as attributes, or a dict. Where content has another shape, each function raises
a TrecexamError that names the argument and the row, or the user's own file and the line.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any

import orjson

import converters
from converters.bank import read_bank
from converters.bank_lines import LINE_KEYS
from converters.errors import ConversionError
from converters.fields import an_id
from converters.lines import open_bytes
from converters.rag_responses import read_responses
from converters.records import Item, Qrel
from converters.run import Run
from converters.trec_run import write_run
from trecexam.errors import TrecexamError
from trecexam.folder import files_in
from trecexam.inputs.dropped_files import one_run
from trecexam.inputs.dropped_runs import name_runs
from trecexam.inputs.typed_text import refuse_controls

Rows = list[dict[str, Any]]
#: Names of fields, PyTerrier's and ir_datasets' among them; the first that a row has counts.
_QUERY_ID = ("query_id", "qid")
_DOC_ID = ("doc_id", "docno", "docid")
_TEXTS = {
    "queries": (_QUERY_ID, ("text", "query", "title")),
    "passages": ((*_DOC_ID, "id"), ("text", "contents", "segment")),
}
#: The path of errors in rows.
_NO_FILE = ""


@contextmanager
def _argument(name: str, remedy: str = "", file: Path | None = None) -> Iterator[None]:
    """Raise errors as TrecexamErrors that name the argument of a call and its row, or a file."""
    try:
        yield
    except ConversionError as error:
        if error.path in (_NO_FILE, str(file)):
            raise TrecexamError(f"{name}: row {error.line}: {error.reason}{remedy}") from None
        raise TrecexamError(error.reason, path=error.path, line=error.line) from None
    except (ValueError, orjson.JSONEncodeError) as error:
        raise TrecexamError(f"{name}: {error}{remedy}") from None


def input_file(name: str, data: Any, folder: Path) -> Path | None:
    """Return the file of an input; write one into the folder if the input is given as content.

    Args:
        name: "queries", "passages", "official" or "recorded".
        data: None; a file; rows: of queries and passages an id and a text, of judgments as
            `ir_measures.Qrel`, of recorded grades as `Track.grades` gives them; or a dict id -> text or, of
            judgments, query_id -> doc_id -> label.
    """
    if data is None or _is_path(data):
        return None if data is None else Path(data)
    with _argument(name):
        if name == "official":
            rows, file = _rows(_flat(data, "query_id", "doc_id", "label")), folder / "qrels.txt"
            labels = _numbers(rows, "relevance", "label", whole=True)
            qrels = (
                Qrel(query_id, doc_id, int(label), str(_first(row, ["iteration"]) or 0))
                for row, (query_id, doc_id, label) in zip(rows, labels, strict=True)
            )
            converters.write(qrels, file, "qrels")
            return file
        if name == "recorded":
            return _write_lines(folder / "recorded.jsonl", _rows(data))
        id_names, text_names = _TEXTS[name]
        key = "docid" if name == "passages" else "query_id"
        rows = _rows(_flat(data, key, "text"))
        if all(row.keys().isdisjoint(text_names) for row in rows):
            raise ValueError(f"no row has a {' or '.join(text_names)}")
        lines = (
            {key: an_id(_NO_FILE, number, row, id_names), "text": _first(row, text_names)}
            for number, row in enumerate(rows, 1)
        )
        return _write_lines(folder / f"{name}.jsonl", lines)


def bank_files(data: Any, folder: Path) -> tuple[Path, ...]:
    """Return the files of the test bank; write one into the folder if the bank is given as content.

    Args:
        data: None; a file or several, `converters.records.Item`s, a dict query_id -> questions, each a text
            or a dict as an item of a bank's line; or rows as a bank's lines are: `query_id`, `question` or
            `nugget`, and what else there may be (`question_id`, `gold_answers`, `importance` ...), or rows
            of an item's fields, `query_id`, `item_id` and `text`.
    """
    paths, data = _paths_or_content(data)
    if data is None:
        return tuple(paths)
    file = folder / "bank.jsonl"
    with _argument("bank", file=file):
        if isinstance(data, list) and data and all(isinstance(item, Item) for item in data):
            converters.write(data, file, "bank")
        else:
            _write_lines(file, map(_bank_line, _rows(_flat(data, "query_id", "items"))))
        list(read_bank(file, lambda _: None))
    return (file,)


def run_files(runs: Any) -> dict[str, bytes]:
    """Return the files of runs, content by path in the drop folder, from any input of `evaluate`.

    Files get the names that a track gives them.
    """
    paths, runs = _paths_or_content(files_in(Path(runs)) if _is_path(runs) and Path(runs).is_dir() else runs)
    forms = "{\"NAME\": run}, a folder, a list of files, or rows of all runs with a column 'run'"
    with _argument("runs", f"; give {forms}"):
        if isinstance(runs, Mapping | list) and not runs:
            raise ValueError("there are none")
        if isinstance(runs, Mapping):
            first = next(iter(runs.values()))
            if isinstance(first, Mapping) and first and all(isinstance(v, Real) for v in first.values()):
                raise ValueError("this dict is one run, query_id -> doc_id -> score")
        elif paths:
            found = {path.absolute(): _read_run(path) for path in paths}
            folder = Path(os.path.commonpath([path.parent for path in found]))
            names = name_runs({path: tag for path, (tag, _) in found.items()}, folder)
            runs = {names[path]: run for path, (_, run) in found.items()}
        else:
            by_name: dict[str, Rows] = {}
            for number, row in enumerate(_rows(runs), 1):
                by_name.setdefault(an_id(_NO_FILE, number, row, ("run", "tag", "run_id")), []).append(row)
            runs = by_name
    return dict(run_file(name, run) for name, run in runs.items())


def run_file(name: str, run: Any) -> tuple[str, bytes]:
    """Return the path in the drop folder and the content of a run's file, from any input of `add_run`."""
    if not isinstance(name, str):
        raise TrecexamError(f"the name of a run is not text: {name!r}")
    refuse_controls("the name of a run", name)
    if any(not part or part.startswith(".") for part in name.split("/")):
        raise TrecexamError(
            f"a run's file cannot be called {name!r}: use a name without . in front, as mine or team/mine"
        )
    buffer = io.BytesIO()
    with _argument(f"run '{name}'"):
        if _is_path(run):
            tag, run = _read_run(Path(run))
            if isinstance(run, Path):
                if tag != name:
                    raise ConversionError(run, None, f"responses of {tag}: add them by that name")
                with open_bytes(run) as stream:
                    return f"{name}.jsonl", stream.read()
        elif not isinstance(run, Run):
            rows = _rows(_flat(run, "query_id", "doc_id", "score"))
            run = Run.from_entries(name, _numbers(rows, "score"))
        write_run(run.renamed(name), buffer)
    return f"{name}.run", buffer.getvalue()


def _is_path(data: Any) -> bool:
    return isinstance(data, str | os.PathLike)


def _paths_or_content(data: Any) -> tuple[list[Path], Any]:
    """Return the paths of a path or of an iterable of paths, and no content; or [] and the content.

    An iterator of records becomes a list.
    """
    if _is_path(data):
        return [Path(data)], None
    if isinstance(data, Mapping) or hasattr(data, "__arrow_c_stream__") or not isinstance(data, Iterable):
        return [], data
    data = list(data)
    are_paths = data and all(map(_is_path, data))
    return ([Path(path) for path in data], None) if are_paths else ([], data)


def _rows(data: Any) -> Rows:
    """Return the rows of a data frame, of dicts or of records; at least one."""
    if hasattr(data, "__arrow_c_stream__"):
        import pyarrow as pa

        try:
            rows: Rows = pa.table(data).to_pylist()
        except (pa.ArrowException, ValueError, TypeError) as error:
            # A column of texts and numbers, say.
            raise ValueError(f"the data frame cannot be read: {error}") from None
    elif isinstance(data, Iterable) and not isinstance(data, Mapping):
        rows = [_fields(row, number) for number, row in enumerate(data, 1)]
    else:
        more = "; collect() it" if hasattr(data, "collect") else ""
        raise ValueError(f"not a file, a data frame or a list of records, but {type(data).__name__}{more}")
    if not rows:
        raise ValueError("no rows")
    return rows


def _fields(row: Any, number: int) -> dict[str, Any]:
    fields = row._asdict() if hasattr(row, "_asdict") else row
    fields = fields if isinstance(fields, Mapping) else getattr(row, "__dict__", None)
    if fields is None:
        raise ConversionError(_NO_FILE, number, f"neither a dict nor a record with names: {row!r:.60}")
    return dict(fields)


def _flat(data: Any, *names: str) -> Any:
    """Return a dict of values, or of dicts, as rows whose fields have these names; else the data."""
    if not isinstance(data, Mapping):
        return data
    first, *rest = names
    rows: Rows = []
    for key, value in data.items():
        if len(rest) > 1 and not isinstance(value, Mapping):
            raise ValueError(f"a dict must be {' -> '.join(names)}; see {first.removesuffix('_id')} '{key}'")
        inner = _flat(value, *rest) if len(rest) > 1 else [{rest[0]: value}]
        rows += [{first: key, **row} for row in inner]
    return rows


def _first(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the value of the first of these fields that a row has; None without any."""
    return next((row[name] for name in names if row.get(name) is not None), None)


def _numbers(rows: Rows, *names: str, whole: bool = False) -> Iterator[tuple[str, str, float]]:
    """Yield (query_id, doc_id, number); the number is in the first of these fields, and may be infinite."""
    for line, row in enumerate(rows, 1):
        query_id, doc_id = an_id(_NO_FILE, line, row, _QUERY_ID), an_id(_NO_FILE, line, row, _DOC_ID)
        value, number = _first(row, names), math.nan
        # duckdb has decimals.
        if not isinstance(value, bool) and isinstance(value, Real | Decimal):
            with suppress(OverflowError, ValueError):
                number = float(value)
        if math.isnan(number) or (whole and not number.is_integer()):
            what = f"the {' or '.join(names)} of '{doc_id}' for query '{query_id}'"
            reason = f"{what} is not a {'whole ' * whole}number: {value!r:.60}"
            reason += f"; the row has {', '.join(map(str, row))}" * (value is None)
            raise ConversionError(_NO_FILE, line, reason)
        yield query_id, doc_id, number


def _bank_line(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as the line of a bank that its reader expects."""
    row = {name: value for name, value in row.items() if value is not None}
    if "query_id" not in row and "qid" in row:
        # In older banks `qid` is a question's.
        row["query_id"] = row.pop("qid")
    is_item = "text" in row and row.keys().isdisjoint(LINE_KEYS)
    items = [row] if is_item else row.get("items")
    if items is None:
        return row
    if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
        raise ValueError(f"give a list of questions for query {row.get('query_id')!r}, not {items!r:.60}")
    questions = [{"question_text": item} if isinstance(item, str) else item for item in items]
    return {**row, "items": questions}


def _write_lines(file: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    option = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE
    file.write_bytes(b"".join(orjson.dumps(row, option=option) for row in rows))
    return file


def _read_run(path: Path) -> tuple[str, Run | Path]:
    """Return the tag of a file and its run; of responses their system, and the file."""
    if converters.sniff(path) != "responses":
        run: Run = converters.read(path, "run")
        return run.name, run
    systems = sorted({response.run for response in read_responses(path, lambda _: None)})
    return one_run(path, systems), path
