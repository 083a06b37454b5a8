"""The files of the drop folder -> runs and whole answers; rejected and unusual files, and why."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from converters.errors import ConversionError
from converters.lines import iter_lines
from converters.records import Response
from converters.run import Run
from converters.unpacking import file_label
from trecexam.bank import Bank
from trecexam.files.cache import FileCache
from trecexam.files.stamps import Rejected, Stamp, dangling_link, located
from trecexam.folder import TrackFolder
from trecexam.inputs.dropped_files import Answered, Dropped, answers_reader, parse_responses, read_dropped
from trecexam.inputs.run_columns import RunColumns
from trecexam.inputs.track_graders import usable_folders
from trecexam.inputs.typed_text import differing_in_form
from trecexam.results.text import plural, shorten_list

#: Only runs that agree in so many entries of their first and last query are compared as a whole.
_COMPARED_FIRST = 20


class RunContent(NamedTuple):
    """A token of a run: its file and, where its queries are known by their texts, a digest of these."""

    path: Path
    stamp: Stamp | None
    query_texts: str = ""


@dataclass(frozen=True, eq=False)
class TakenRuns:
    """The runs and answers that were accepted.

    Attributes:
        runs: display name -> run, sorted by name.
        run_files: display name -> file.
        run_contents: display name -> a token that changes when the run's content does.
        own_texts: doc_id -> text of the passages that generated responses amount to.
        documents: doc_id -> text of the documents that come with files; the last text of several.
        answers: display name -> whole answers to questions of the bank.
        generated: display names of the runs that are generated responses, whatever of these is pooled.
        responses: display name -> generated responses to queries of the bank.
        notes: warnings about accepted files, one per line.
    """

    own_texts: Mapping[str, str]
    documents: Mapping[str, str]
    notes: tuple[str, ...]
    runs: dict[str, Run] = field(default_factory=dict)
    run_files: dict[str, Path] = field(default_factory=dict)
    run_contents: dict[str, RunContent] = field(default_factory=dict)
    answers: dict[str, tuple[Answered, ...]] = field(default_factory=dict)
    generated: set[str] = field(default_factory=set)
    responses: dict[str, tuple[Response, ...]] = field(default_factory=dict)


class DroppedRuns:
    """The drop folder of a track.

    Attributes:
        whole_answers: whether the track's grader judges whole answers, which come with their texts.
    """

    def __init__(
        self, folder: TrackFolder, files: FileCache, columns: RunColumns, *, whole_answers: bool
    ) -> None:
        """Args: columns: those of large runs."""
        self.folder = folder
        self.whole_answers = whole_answers
        self._files = files
        self._columns = columns
        #: The kind of reading, a key of the cache: graders may take different parts of a response.
        self._reading = ""

    def read(
        self, bank: Bank, query_texts: Mapping[str, str], hold: Collection[Path], rejected: list[Rejected]
    ) -> TakenRuns:
        """Read the files that changed.

        Args:
            bank: what is graded.
            hold: files that are being written now; their earlier content, if any, still counts.
            rejected: gets a row for each file, line and response that is not accepted.
        """
        texts = hashlib.sha256(json.dumps(sorted(query_texts.items())).encode()).hexdigest()
        track = self.folder.config.track
        how = track.pool, track.unit, track.truncate, self.whole_answers, track.exclude_query_document, texts
        reading = f"run {' '.join(map(str, how))}"
        if reading != self._reading:
            # Other settings, or other texts of queries, make something else of the same files.
            self._files.forget(self._reading)
            self._reading = reading
        readable: dict[Path, Dropped] = {}
        accepted: dict[Path, Dropped] = {}
        own_texts: dict[str, str] = {}
        incomplete: list[str] = []
        for path in self.folder.run_files():
            if path in hold and not self._files.has(self._reading, path):
                continue
            try:
                dropped = self._dropped(path, query_texts, frozen=path in hold)
                self._check(path, dropped, own_texts)
            except ConversionError as error:
                rejected.append(Rejected(self.folder.shown(path), error.line, error.reason, "file"))
                continue
            readable[path] = dropped
            own_texts.update(dropped.texts)
            in_bank = self._in_bank(path, dropped, bank, rejected, incomplete)
            if in_bank is not None:
                accepted[path] = in_bank
        documents, other_texts = self._documents(accepted)
        # Of several graders each may take other runs, and a run has one name: that among all there are.
        named = accepted if self.folder.grader is None else readable
        names = name_runs({path: dropped.run.name for path, dropped in named.items()}, self.folder.runs)
        taken = TakenRuns(
            own_texts={doc_id: text for each in accepted.values() for doc_id, text in each.texts.items()},
            documents=documents,
            notes=(*incomplete, *other_texts, *self._left_out(accepted, bank), *self._twice(accepted)),
        )
        for path in sorted(accepted, key=names.__getitem__):
            name, dropped = names[path], accepted[path]
            taken.runs[name], taken.run_files[name] = dropped.run.renamed(name), path
            known_by = texts if dropped.by_prompt else ""
            taken.run_contents[name] = RunContent(path, self.stamp_of(path), known_by)
            if dropped.answers:
                taken.answers[name] = dropped.answers
            if dropped.responses:
                taken.responses[name] = dropped.responses
            if dropped.generated:
                taken.generated.add(name)
        return taken

    def stamp_of(self, path: Path) -> Stamp | None:
        """Return the stamp of a file when it was read; None where it was not."""
        return self._files.stamp_of(self._reading, path) if self._files.has(self._reading, path) else None

    def forget_missing(self) -> None:
        """Remove the kept columns of files that are gone."""
        self._columns.forget(but=set(self.folder.run_files()))

    def _dropped(self, path: Path, query_texts: Mapping[str, str], *, frozen: bool) -> Dropped:
        if dangling := dangling_link(path):
            raise ConversionError(path, None, dangling)
        track, file_name = self.folder.config.track, self.folder.shown(path)

        def read(path: Path) -> Dropped:
            dropped = read_dropped(
                path,
                track,
                query_texts,
                whole=self.whole_answers,
                read_run=partial(self._files.get, "ranked run", read=self._columns.read),
                read_responses=partial(
                    self._files.get, "responses", read=partial(parse_responses, file_name=file_name)
                ),
            )
            if not track.exclude_query_document:
                return dropped
            run = dropped.run.without_query_documents()
            if len(dropped.run) and not len(run):
                raise ConversionError(
                    path,
                    None,
                    "has only the queries' own documents, which `exclude_query_document` leaves out",
                )
            return replace(dropped, run=run)

        return self._files.get(self._reading, path, read, frozen=frozen)

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

    def _in_bank(
        self, path: Path, dropped: Dropped, bank: Bank, rejected: list[Rejected], notes: list[str]
    ) -> Dropped | None:
        """Return a file with what the bank has of its answers and responses; None where nothing is graded."""
        file_name, reader = self.folder.shown(path), answers_reader()
        if dropped.responses and not len(dropped.run):
            section = self.folder.section_of("pool", "track")
            reason = f'no citations in it, and `pool` in [{section}] is "citations"'
            pools = {view.config.track.pool for view in usable_folders(self.folder).values()}
            if pools == {"citations"}:
                rejected.append(Rejected(file_name, None, reason, "file"))
            else:
                notes.append(located(file_name, None, f"{reason}; other graders score it"))
            return None
        rejected += (Rejected(file_name, error.line, error.reason, error.lost) for error in dropped.refused)
        answers = tuple(row for row in dropped.answers if row.question_id in bank.items)
        if reader and dropped.answers:
            rejected += reader.not_judged(file_name, dropped.answers, bank)
            if not answers:
                return None
        elif all(query_id not in bank.items for query_id in dropped.run.query_ids):
            rejected.append(self._none_graded(path, dropped.run, bank))
            return None
        if dropped.refused and dropped.responses:
            n, total = len(dropped.refused), len(dropped.refused) + len(dropped.responses)
            reason = (
                f"{n:,} of {plural(total, 'response')} rejected: a query left without a response scores 0"
            )
            notes.append(located(file_name, None, reason))
        responses = tuple(row for row in dropped.responses if row.query_id in bank.items)
        return replace(dropped, answers=answers, responses=responses)

    def _documents(self, accepted: Mapping[Path, Dropped]) -> tuple[dict[str, str], list[str]]:
        """Return the documents that come with files, and a note on each file with another text of some."""
        documents: dict[str, str] = {}
        notes: list[str] = []
        for path, dropped in accepted.items():
            other: dict[str, None] = {}
            for doc_id, text in dropped.documents:
                if documents.get(doc_id, text) != text:
                    other[doc_id] = None
                documents[doc_id] = text
            if other:
                reason = (
                    f"{plural(len(other), 'document')} of its responses had another text in a line before or "
                    f"in another file: {shorten_list(other)}; the last text counts"
                )
                notes.append(located(self.folder.shown(path), None, reason))
        return documents, notes

    def _none_graded(self, path: Path, run: Run, bank: Bank) -> Rejected:
        of_facets = any(query_id.partition("/")[0] in run for query_id in bank.items)
        hint = "; the bank's are query/facet: set facets = true in [track]" if of_facets else ""
        hint += differing_in_form(run.query_ids, bank.items)
        reason = (
            f"none of its queries ({shorten_list(run.query_ids)}) is among the grader's queries "
            f"({shorten_list(bank.items, 2) or 'none'}){hint}"
        )
        return Rejected(self.folder.shown(path), self._line_of(path, run.query_ids[0]), reason, "file")

    def _left_out(self, accepted: Mapping[Path, Dropped], bank: Bank) -> Iterator[str]:
        """Yield a line for each set of queries that some runs have and that are not graded."""
        # Of a query that was retired as a whole it is said once, not for each run.
        known = bank.items.keys() | bank.retired.keys()
        left_out: dict[tuple[str, ...], list[Path]] = {}
        for path, dropped in accepted.items():
            unknown = tuple(query_id for query_id in dropped.run.query_ids if query_id not in known)
            if unknown and not dropped.answers:
                left_out.setdefault(unknown, []).append(path)
        for unknown, (path, *others) in left_out.items():
            some = f"{len(unknown):,} of its {plural(len(accepted[path].run.query_ids), 'query')}"
            if others:
                some = f"{plural(len(unknown), 'query')} of this run and of {plural(len(others), 'other')}"
            reason = (
                f"{some} are not among the grader's queries, and were left out: "
                f"{shorten_list(unknown)}{differing_in_form(unknown, bank.items)}"
            )
            yield located(self.folder.shown(path), self._line_of(path, unknown[0]), reason)

    def _twice(self, accepted: Mapping[Path, Dropped]) -> Iterator[str]:
        """Yield a line for each run that several files have: x.run beside x.run.gz, say."""
        alike: dict[object, list[list[Path]]] = {}
        for path, dropped in accepted.items():
            run = dropped.run
            ends = *run.query_ids[:1], *run.query_ids[-1:]
            start = (tuple(run.ranking(query_id, _COMPARED_FIRST)) for query_id in ends)
            candidates = alike.setdefault((run.query_ids, len(run), *start), [])
            copies = next((paths for paths in candidates if equal_runs(accepted[paths[0]].run, run)), None)
            if copies is None:
                candidates.append([path])
            else:
                copies.append(path)
        for first, *copies in (paths for candidates in alike.values() for paths in candidates):
            if copies:
                path, *others = copies
                more = f" and {plural(len(others), 'other file')}" if others else ""
                count = "all count: remove all but one" if others else "both count: remove one"
                reason = f"the same rankings and scores as in {self.folder.shown(first)}, and {count}"
                yield located(f"{self.folder.shown(path)}{more}", None, f"{reason} if that is a slip")

    def _line_of(self, path: Path, query_id: str) -> int | None:
        """Return the first line of a query in a run's file; None where it is no TREC run."""
        return self._files.get("line " + query_id, path, partial(_first_line, query_id=query_id))


def equal_runs(run: Run, other: Run) -> bool:
    """Return True where two runs of the same queries have the same rankings and scores."""
    return bool(
        (run.offsets == other.offsets).all()
        and (run.scores == other.scores).all()
        and run.doc_ids.equals(other.doc_ids)
    )


def _first_line(path: Path, query_id: str) -> int | None:
    first = query_id.encode()
    return next((number for number, line in iter_lines(path) if line.split(None, 1)[:1] == [first]), None)


def name_runs(tags: Mapping[Path, str], folder: Path) -> dict[Path, str]:
    """Return a display name for each run file.

    The name is the run tag, as trec_eval shows it; where several files carry the same tag (Pyserini writes
    "Anserini" into all), each is named by its path in the drop folder without the extension.
    """
    count: dict[str, int] = {}
    for tag in tags.values():
        count[tag] = count.get(tag, 0) + 1
    names = {path: tag for path, tag in tags.items() if count[tag] == 1}
    used = set(names.values())
    for path in sorted(tags.keys() - names.keys()):
        full = path.relative_to(folder).as_posix()
        short = file_label(full)
        names[path] = short if short not in used else full
        while names[path] in used:
            names[path] += "'"
        used.add(names[path])
    return names
