"""Inputs of an evaluation: gold outputs, runs' lists, texts to label, and labels of official judgments.

The texts are a model's outputs; for the baseline "Containing the Answer", the documents themselves.
Salemi and Zamani, "Evaluating Retrieval Quality in Retrieval-Augmented Generation", SIGIR 2024.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from converters.errors import ConversionError
from converters.fields import a_number, a_text, an_id
from converters.gold import kilt_provenance
from converters.lines import decode, iter_filled, parse_object
from trecexam.errors import TrecexamError
from trecexam.extensions.erag.metrics import NoLabel
from trecexam.extensions.erag.retrieval import Labels, Pair, Ranked
from trecexam.files.stamps import Rejected
from trecexam.folder import TrackFolder
from trecexam.graders.replies import RAISE_LIMIT, read_reply
from trecexam.inputs import pool
from trecexam.inputs.inputs import TrackInputs
from trecexam.inputs.official import never_judged, never_judged_note
from trecexam.results.text import plural, shorten_list

NO_TEXT = NoLabel("missing", "the document has no text")
#: The text of each ranked document that is to be labelled.
Texts = dict[Pair, str | NoLabel]


class Lists(NamedTuple):
    """Ranked lists of runs for the queries with gold outputs.

    Attributes:
        golds: query_id -> gold outputs; sorted.
        rejected: rejected inputs, and gold outputs of queries that the track lacks.
    """

    golds: Mapping[str, tuple[str, ...]]
    ranked: Ranked
    rejected: list[Rejected]

    @property
    def pairs(self) -> list[Pair]:
        """All ranked documents with their queries, sorted."""
        ranked = (by_query.items() for by_query in self.ranked.values())
        return sorted({(q, doc_id) for lists in ranked for q, doc_ids in lists for doc_id in doc_ids})


def gold_files(folder: TrackFolder, gold: Path | str | None) -> tuple[Path, ...]:
    """Return the files with gold outputs, the track's bank for None; refuse a track without any."""
    files = folder.bank(optional=True) if gold is None else (Path(gold),)
    if not files:
        raise TrecexamError("no gold outputs: name their file with --gold", path=folder.root)
    return tuple(files)


def lists_of(
    folder: TrackFolder, inputs: TrackInputs, rejected: Iterable[Rejected], depth: int | None = None
) -> Lists:
    """Return the runs' lists to this depth (None: whole lists); refuse a track without gold or runs."""
    items, runs = inputs.bank.items, inputs.runs
    if not items:
        why = next((f": {row}" for row in inputs.rejected), "")
        raise TrecexamError(f"no gold outputs can be read{why}", path=inputs.bank_files[0])
    if not runs:
        files = {folder.shown(path) for path in folder.run_files()}
        why = next((f" (rejected: {row})" for row in inputs.rejected if row.file in files), "")
        raise TrecexamError(f"no run to evaluate in {folder.shown(folder.runs)}{why}", path=folder.root)
    track_queries = inputs.own_queries.union(*(run.query_ids for run in runs.values()))
    golds = {query_id: items[query_id][0].gold_answers for query_id in items if query_id in track_queries}
    ranked = {name: {q: run.ranking(q, depth) for q in golds} for name, run in runs.items()}
    lists = Lists(golds, ranked, [*rejected])
    if unknown := [query_id for query_id in items if query_id not in golds]:
        file = folder.shown(inputs.bank_files[0]) if len(inputs.bank_files) == 1 else "the bank"
        some = f"{len(unknown):,} of its {plural(len(items), 'query')} not in the track, left out"
        lists.rejected.append(Rejected(file, None, f"{some}: {shorten_list(unknown)}", "line"))
    return lists


def text_of(output: str, *, cut: bool = False) -> str | NoLabel:
    """Return an output without a model's thoughts, or why an output without its end has no label."""
    text, ends_early = read_reply(output, cut=cut)
    return NoLabel("unparsed", RAISE_LIMIT) if ends_early else text


def texts_of_documents(folder: TrackFolder, inputs: TrackInputs, lists: Lists) -> Texts:
    """Return the texts of the ranked documents."""
    own_texts = inputs.dropped.own_texts
    needed = {doc_id for _, doc_id in lists.pairs} - own_texts.keys()
    by_id, unread = pool.Texts(folder).of(needed) if needed else ({}, ())
    lists.rejected.extend(unread)
    texts = {**by_id, **own_texts}
    return {pair: texts.get(pair[1], NO_TEXT) for pair in lists.pairs}


def read_outputs(folder: TrackFolder, path: Path, lists: Lists) -> Texts:
    """Read the outputs of a JSON Lines file with `{"query_id", "doc_id", "output"}` per line.

    Args:
        lists: also receives the lines that are rejected.
    """
    missing = NoLabel("missing", "no output in the file")
    outputs: dict[Pair, str | NoLabel] = dict.fromkeys(lists.pairs, missing)
    for number, line in iter_filled(path):
        with _rejecting(folder, path, lists):
            row = parse_object(path, number, line)
            pair = an_id(path, number, row, ("query_id",)), an_id(path, number, row, ("doc_id", "docid"))
            where = f"document '{pair[1]}' of query '{pair[0]}'"
            output = a_text(path, number, row, ("output",), where, blank=True)
            if pair[0] not in lists.golds:
                reason = f"query '{pair[0]}' has no gold outputs, or is not in the track"
                raise ConversionError(path, number, reason)
            if outputs.get(pair) is not missing:
                reason = "has an output already; the first one counts" if pair in outputs else "is in no run"
                raise ConversionError(path, number, f"{where} {reason}")
            outputs[pair] = text_of(output)
    return outputs


def read_end_to_end(folder: TrackFolder, path: Path, lists: Lists) -> dict[Pair, float]:
    """Read (run, query_id) -> score from `run<TAB>query_id<TAB>score` lines, with a header or without.

    Args:
        lists: of the runs and queries that are evaluated; also receives the lines that are rejected.
    """
    scores: dict[Pair, float] = {}
    for number, line in iter_filled(path):
        with _rejecting(folder, path, lists):
            text = decode(path, number, line)
            columns = [part.strip() for part in (text.split("\t") if "\t" in text else text.split())]
            if columns == ["run", "query_id", "score"]:
                continue
            score = a_number(columns[-1])
            if len(columns) != 3 or score is None or not math.isfinite(score):
                raise ConversionError(path, number, "not `run<TAB>query_id<TAB>score` with a finite number")
            run, query_id, _ = columns
            if run not in lists.ranked or query_id not in lists.golds:
                reason = f"run '{run}' is not evaluated here on query '{query_id}'"
                raise ConversionError(path, number, reason)
            if (run, query_id) in scores:
                reason = f"run '{run}' has a score for query '{query_id}' already; the first one counts"
                raise ConversionError(path, number, reason)
            scores[run, query_id] = score
    return scores


@contextmanager
def _rejecting(folder: TrackFolder, path: Path, lists: Lists) -> Iterator[None]:
    """Add an error in a line of a file to the rejected inputs."""
    try:
        yield
    except ConversionError as error:
        lists.rejected.append(Rejected(folder.shown(path), error.line, error.reason, error.lost))


def label_by_provenance(folder: TrackFolder, inputs: TrackInputs, lists: Lists, notes: list[str]) -> Labels:
    """Label documents in the provenance with 1, ranked or not, and other ranked documents with 0.

    The provenance comes from official judgments, else from KILT's gold outputs.

    Args:
        notes: receives a note on runs without judged documents.
    """
    qrels = inputs.official
    if qrels is None:
        # KILT's gold outputs name only right documents, so they say nothing about other runs.
        qrels = tuple(row for file in inputs.bank_files for row in kilt_provenance(file))
        if not qrels:
            raise TrecexamError(
                "no provenance: put qrels.txt into the track, or give a KILT file as gold outputs",
                path=folder.root,
            )
    elif without := never_judged(inputs.runs, inputs.judged, lists.golds):
        notes.append(never_judged_note(without, len(inputs.runs), "values"))
    named = {(row.query_id, row.doc_id) for row in qrels if row.relevance > 0 and row.query_id in lists.golds}
    return {pair: float(pair in named) for pair in sorted(named.union(lists.pairs))}
