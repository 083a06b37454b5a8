"""The files of the drop folder -> runs and whole answers; rejected and unusual files, and why."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from converters.errors import ConversionError
from converters.lines import iter_lines
from converters.records import Response
from converters.run import Run
from converters.unpacking import without_ending
from trecexam.bank import Bank
from trecexam.files.cache import FileCache
from trecexam.files.stamps import Rejected, Stamp, dangling_link, located
from trecexam.folder import TrackFolder
from trecexam.line.dropped_files import (
    Answered,
    Dropped,
    NothingPooledError,
    answers_reader,
    nothing_pooled,
    read_dropped,
)
from trecexam.line.normal_forms import differing_in_form
from trecexam.line.run_columns import RunColumns
from trecexam.line.track_graders import usable_folders
from trecexam.tables.text import plural, shorten_list


class Lacking(NamedTuple):
    """Where a query is missing that a run has.

    Attributes:
        is_there: where none of a run's queries is, as "is in the bank".
        are_not: of those that are left out, as "are not in the bank".
    """

    is_there: str
    are_not: str


IN_BANK = Lacking("is in the bank", "are not in the bank")
IN_GRADER = Lacking("is among the grader's queries", "are not among the grader's queries")
#: Only runs that agree in so many entries of their first and last query are compared as a whole.
_COMPARED_FIRST = 20


def _has_measures(run: Run) -> bool:
    """Return True where measures stand in place of documents: {"bm25": {"nDCG@10": 0.3}}."""
    # Imports ir_measures.
    from trecexam.scores.measures import measure

    try:
        for name in run.ranking(run.query_ids[0]):
            measure(name)
    except ValueError:
        return False
    return True


class RunContent(NamedTuple):
    """Another one whenever a run is: its file; where its queries are known by texts, a digest of these."""

    path: Path
    stamp: Stamp | None
    query_texts: str = ""


@dataclass(frozen=True, eq=False)
class TakenRuns:
    """What was dropped and taken.

    Attributes:
        runs: display name -> run, sorted by name; without queries that the bank does not have.
        run_files: display name -> file.
        run_contents: display name -> a token that changes when the run's content does.
        own_texts: doc_id -> text of the passages that generated responses amount to.
        documents: doc_id -> text of the documents that come with responses. Of several texts the last one
            counts, in the order of files.
        answers: of runs that are whole answers, the answers to questions of the bank, by display name.
        generated: display names of the runs that are generated responses, whatever of these is pooled.
        responses: of these runs, their responses to queries of the bank, by display name.
        notes: warnings about accepted files, one per line: queries that the bank does not have, a run
            that occurs twice.
    """

    runs: Mapping[str, Run]
    run_files: Mapping[str, Path]
    run_contents: Mapping[str, RunContent]
    own_texts: Mapping[str, str]
    documents: Mapping[str, str]
    answers: Mapping[str, tuple[Answered, ...]]
    generated: frozenset[str]
    responses: Mapping[str, tuple[Response, ...]]
    notes: tuple[str, ...]


class DroppedRuns:
    """The drop folder of a track.

    Attributes:
        whole_answers: whether the track's grader judges whole answers, which come with their texts.
        reading: the kind of reading, a key of the cache.
    """

    def __init__(
        self, folder: TrackFolder, files: FileCache, columns: RunColumns, *, whole_answers: bool
    ) -> None:
        """Args: columns: those of large runs."""
        self.folder = folder
        self.whole_answers = whole_answers
        settings = folder.config.track
        #: What of a response counts is not the same for all graders.
        self.reading = (
            f"run {settings.pool} {settings.unit} {settings.truncate} {whole_answers} "
            f"{settings.exclude_query_document}"
        )
        self._files = files
        self._columns = columns
        self._prompts: dict[str, str] = {}

    def read(
        self,
        bank: Bank,
        query_texts: Mapping[str, str],
        hold: Collection[Path],
        rejected: list[Rejected],
        lacking: Callable[[str], Lacking],
    ) -> TakenRuns:
        """The runs that are taken; to `rejected` goes what is not.

        Args:
            bank: what is graded.
            lacking: where a query is missing that `bank` does not have.
            hold: files that are being written now; their earlier content, if any, still counts.
        """
        self._forget_prompts(query_texts)
        settings = self.folder.config.track
        read = partial(
            read_dropped,
            pool=settings.pool,
            unit=settings.unit,
            query_texts=query_texts,
            whole=self.whole_answers,
            words=settings.truncate,
            strict=settings.strict,
            read_run=lambda path: self._files.get("ranked run", path, self._columns.read),
            warn=self._warn,
        )
        texts = hashlib.sha256(json.dumps(sorted(query_texts.items())).encode()).hexdigest()
        accepted: dict[Path, Dropped] = {}
        own_texts: dict[str, str] = {}
        left_out: dict[tuple[Lacking, tuple[str, ...]], list[Path]] = {}
        incomplete: list[str] = []
        documents: dict[str, str] = {}
        twice: list[str] = []
        tags: dict[Path, str] = {}
        for path in self.folder.run_files():
            if path in hold and not self._files.has(self.reading, path):
                continue
            file_name = self.folder.shown(path)
            try:
                dangling = dangling_link(path)
                if dangling:
                    raise ConversionError(path, None, dangling)
                dropped = self._files.get(
                    self.reading, path, lambda path: self._without_own(path, read(path)), frozen=path in hold
                )
                self._check(path, dropped, own_texts)
            except NothingPooledError:
                reason, elsewhere = self._nothing_pooled()
                if elsewhere:
                    incomplete.append(located(file_name, None, f"{reason}; other graders score it"))
                else:
                    rejected.append(Rejected(file_name, None, reason, "file"))
                continue
            except ConversionError as error:
                rejected.append(Rejected(file_name, error.line, error.reason, "file"))
                continue
            tags[path] = dropped.run.name
            rejected += (
                Rejected(file_name, error.line, error.reason, error.lost) for error in dropped.refused
            )
            reader = answers_reader() if dropped.answers else None
            if reader is not None:
                rejected += reader.not_judged(file_name, dropped.answers, bank)
                answers_in_bank = tuple(row for row in dropped.answers if row.question_id in bank.items)
                if not answers_in_bank:
                    continue
                dropped = replace(dropped, answers=answers_in_bank)
            else:
                unknown = tuple(query_id for query_id in dropped.run.query_ids if query_id not in bank.items)
                if len(unknown) == len(dropped.run.query_ids):
                    rejected.append(self._none_asked(path, dropped.run, unknown, bank, lacking))
                    continue
                by_place: dict[Lacking, list[str]] = {}
                for query_id in unknown:
                    # Of a query that was retired as a whole it is said once, not for each run.
                    if query_id not in bank.retired:
                        by_place.setdefault(lacking(query_id), []).append(query_id)
                for place, query_ids in by_place.items():
                    left_out.setdefault((place, tuple(query_ids)), []).append(path)
            if dropped.refused and dropped.responses:
                n, total = len(dropped.refused), len(dropped.refused) + len(dropped.responses)
                reason = (
                    f"{n:,} of {plural(total, 'response')} rejected: a query left without a response scores 0"
                )
                incomplete.append(located(file_name, None, reason))
            own_texts.update(dropped.texts)
            other = {
                doc_id: None
                for doc_id, text in dropped.documents.items()
                if documents.get(doc_id, text) != text
            }
            documents.update(dropped.documents)
            other.update(dict.fromkeys(dropped.documents_twice))
            if other:
                reason = (
                    f"{plural(len(other), 'document')} of its responses had another text in a line before or "
                    f"in another file: {shorten_list(list(other))}; the last text counts"
                )
                twice.append(located(file_name, None, reason))
            responses_in_bank = tuple(row for row in dropped.responses if row.query_id in bank.items)
            accepted[path] = replace(dropped, responses=responses_in_bank) if dropped.responses else dropped
        # Of several graders each may take other runs, and a run has one name: that among all there are.
        runs = {path: dropped.run for path, dropped in accepted.items()}
        named = runs.keys() if self.folder.grader is None else tags.keys()
        names = name_runs({path: tags[path] for path in named}, self.folder.runs)
        files = {names[path]: path for path in sorted(runs, key=names.__getitem__)}
        of = {name: accepted[path] for name, path in files.items()}

        def content(path: Path) -> RunContent:
            known_by = texts if accepted[path].by_prompt else ""
            return RunContent(path, self._files.stamp_of(self.reading, path), known_by)

        return TakenRuns(
            {name: dropped.run.renamed(name) for name, dropped in of.items()},
            files,
            {name: content(path) for name, path in files.items()},
            own_texts,
            documents,
            {name: dropped.answers for name, dropped in of.items() if dropped.answers},
            frozenset(name for name, dropped in of.items() if dropped.generated),
            {name: dropped.responses for name, dropped in of.items() if dropped.responses},
            (*incomplete, *twice, *self._left_out(left_out, runs, bank), *self._twice(runs)),
        )

    def stamp_of(self, path: Path) -> Stamp | None:
        """The stamp of a file when it was read; None where it was not."""
        return self._files.stamp_of(self.reading, path) if self._files.has(self.reading, path) else None

    def _without_own(self, path: Path, dropped: Dropped) -> Dropped:
        """Return the file without the queries' own documents, where the settings leave these out."""
        if not self.folder.config.track.exclude_query_document:
            return dropped
        run = dropped.run.without_query_documents()
        if len(dropped.run) and not len(run):
            raise ConversionError(
                path,
                None,
                "has only the queries' own documents, which `exclude_query_document` leaves out",
            )
        return replace(dropped, run=run)

    def _warn(self, path: Path, line: int, reason: str) -> None:
        """Logs a warning about a file, once for all graders."""
        text = located(self.folder.shown(path), line, reason)
        self._files.get(f"warned {text}", path, lambda _: logging.getLogger("converters").warning("%s", text))

    def forget_missing(self) -> None:
        """Removes what is kept on disk of files that are gone."""
        self._columns.forget(but=set(self.folder.run_files()))

    def _check(self, path: Path, dropped: Dropped, own_texts: Mapping[str, str]) -> None:
        if any(own_texts.get(doc_id, text) != text for doc_id, text in dropped.texts.items()):
            raise ConversionError(
                path,
                None,
                f"other responses of a run '{dropped.run.name}' are here already: give these another run id",
            )
        folder = self.folder
        without = folder.passages() is None and folder.recorded() is None and not folder.config.track.dataset
        if self.whole_answers and not dropped.answers and not dropped.texts and without:
            raise ConversionError(
                path,
                None,
                "a run of passages, but this track's judge scores answers: give a line of JSON per answer "
                'with "question_id" and "answer"',
            )

    def _nothing_pooled(self) -> tuple[str, bool]:
        """Why responses without citations are not scored; and whether others of the graders score them."""
        folder = self.folder
        sections = {} if folder.grader is None else folder.whole.graders
        of_grader = folder.grader is not None and "pool" in sections[folder.grader].model_fields_set
        section = f"graders.{folder.grader}" if of_grader else "track"
        pools = [view.config.track.pool for view in usable_folders(folder).values()]
        return nothing_pooled(section), any(pool != "citations" for pool in pools)

    def _none_asked(
        self, path: Path, run: Run, unknown: Sequence[str], bank: Bank, lacking: Callable[[str], Lacking]
    ) -> Rejected:
        places = {lacking(query_id) for query_id in unknown}
        place = places.pop() if len(places) == 1 else IN_GRADER
        of_facets = any(query_id.partition("/")[0] in run for query_id in bank.items)
        hint = "; the bank's are query/facet: set facets = true in [track]" if of_facets else ""
        hint += differing_in_form(unknown, bank.items)
        reason = f"none of its queries {place.is_there}: {shorten_list(unknown, dots=True)}{hint}"
        if _has_measures(run):
            runs = shorten_list(run.query_ids, 3, dots=True)
            reason = f"values of measures, not a run: drop the run files of {runs} instead"
        return Rejected(self.folder.shown(path), self._line_of(path, unknown[0]), reason, "file")

    def _left_out(
        self,
        left_out: Mapping[tuple[Lacking, tuple[str, ...]], Sequence[Path]],
        runs: Mapping[Path, Run],
        bank: Bank,
    ) -> Iterator[str]:
        """A line for each set of queries that some runs have and that are not graded."""
        for (place, unknown), paths in left_out.items():
            path, *other_paths = paths
            some = f"{len(unknown):,} of its {plural(len(runs[path].query_ids), 'query')}"
            if other_paths:
                some = (
                    f"{plural(len(unknown), 'query')} of this run and of {plural(len(other_paths), 'other')}"
                )
            reason = f"{some} {place.are_not}, and were left out: {shorten_list(unknown, dots=True)}"
            reason += differing_in_form(unknown, bank.items)
            yield located(self.folder.shown(path), self._line_of(path, unknown[0]), reason)

    def _twice(self, runs: Mapping[Path, Run]) -> Iterator[str]:
        """Yield a line for each run that several files have: x.run beside x.run.gz, say."""
        alike: dict[object, list[Path]] = {}
        copies: dict[Path, list[Path]] = {}
        for path, run in runs.items():
            first_and_last = run.query_ids[0], run.query_ids[-1]
            start = (tuple(run.ranking(query_id, _COMPARED_FIRST)) for query_id in first_and_last)
            candidates = alike.setdefault((run.query_ids, len(run), *start), [])
            first = next((other for other in candidates if equal_runs(runs[other], run)), None)
            if first is None:
                candidates.append(path)
                continue
            copies.setdefault(first, []).append(path)
        for first, (path, *others) in copies.items():
            more = f" and {plural(len(others), 'other file')}" if others else ""
            count = "all count: remove all but one" if others else "both count: remove one"
            reason = f"the same rankings and scores as in {self.folder.shown(first)}, and {count}"
            yield located(f"{self.folder.shown(path)}{more}", None, f"{reason} if that is a slip")

    def _line_of(self, path: Path, query_id: str) -> int | None:
        """The first line of a query in a run's file; None where it is no TREC run."""
        return self._files.get("line " + query_id, path, partial(_first_line, query_id=query_id))

    def _forget_prompts(self, query_texts: Mapping[str, str]) -> None:
        """Has responses that name their query by its text read again when those texts change."""
        if self._prompts != query_texts:
            self._prompts = dict(query_texts)
            self._files.forget(self.reading, lambda value: not getattr(value, "by_prompt", True))


def equal_runs(run: Run, other: Run) -> bool:
    """Whether two runs of the same queries have the same rankings and scores."""
    return bool(
        (run.offsets == other.offsets).all()
        and (run.scores == other.scores).all()
        and run.doc_ids.equals(other.doc_ids)
    )


def _first_line(path: Path, query_id: str) -> int | None:
    first = query_id.encode()
    return next((number for number, line in iter_lines(path) if line.split(None, 1)[:1] == [first]), None)


def name_runs(tags: Mapping[Path, str], folder: Path) -> dict[Path, str]:
    """A display name for each run file.

    The run tag, as trec_eval shows it; where several files carry the same tag (Pyserini writes "Anserini"
    into all), each of them is named by its path in the drop folder without the extension.
    """
    count: dict[str, int] = {}
    for tag in tags.values():
        count[tag] = count.get(tag, 0) + 1
    names = {path: tag for path, tag in tags.items() if count[tag] == 1}
    used = set(names.values())
    for path in sorted(tags.keys() - names.keys()):
        full = path.relative_to(folder).as_posix()
        short = without_ending(full)
        short = short.rsplit(".", 1)[0] if "." in Path(short).name else short
        names[path] = short if short not in used else full
        while names[path] in used:
            names[path] += "'"
        used.add(names[path])
    return names
