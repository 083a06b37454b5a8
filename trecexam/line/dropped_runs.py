"""The files of the drop folder -> runs and whole answers; what of them cannot be taken, and why."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from converters.errors import ConversionError
from converters.lines import iter_lines
from converters.ragval import AnswerRow
from converters.run import Run
from trecexam.bank import Bank
from trecexam.files.cache import FileCache
from trecexam.files.stamps import Rejected, Stamp
from trecexam.line.dropped_files import Dropped, read_dropped
from trecexam.line.judged_answers import not_judged
from trecexam.line.run_columns import RunColumns
from trecexam.line.run_names import name_runs
from trecexam.tables.text import shorten_list
from trecexam.track import TrackFolder

#: Why a run is not taken that is to other queries than the bank's.
NO_QUERY = "none of its queries is in the bank"


class RunContent(NamedTuple):
    """Another one whenever a run is: its file; where its queries are known by texts, a digest of these."""

    path: Path
    stamp: Stamp | None
    query_texts: str = ""


class TakenRuns(NamedTuple):
    """What was dropped and taken, by display name; see `trecexam.line.inputs.TrackInputs`."""

    runs: Mapping[str, Run]
    files: Mapping[str, Path]
    contents: Mapping[str, RunContent]
    own_texts: Mapping[str, str]
    answers: Mapping[str, tuple[AnswerRow, ...]]


class DroppedRuns:
    """The drop folder of a track.

    Attributes:
        whole_answers: whether the track's grader judges whole answers, which come with their texts.
        columns: those of large runs.
    """

    def __init__(self, folder: TrackFolder, files: FileCache, *, whole_answers: bool) -> None:
        self.folder = folder
        self.whole_answers = whole_answers
        self._files = files
        self._prompts: dict[str, str] = {}
        self.columns = RunColumns(folder.state / "runs", write=False)

    def read(
        self,
        bank: Bank,
        query_texts: Mapping[str, str],
        hold: Collection[Path],
        rejected: list[Rejected],
    ) -> TakenRuns:
        """The runs that are taken; to `rejected` goes what is not.

        Args:
            hold: files that are being written now; their earlier content, if any, still counts.
        """
        self._forget_prompts(query_texts)
        pool = self.folder.config.track.pool
        read = partial(
            read_dropped,
            pool=pool,
            query_texts=query_texts,
            whole=self.whole_answers,
            read_run=self.columns.read,
        )
        texts = hashlib.sha256(json.dumps(sorted(query_texts.items())).encode()).hexdigest()
        runs: dict[Path, Run] = {}
        contents: dict[Path, RunContent] = {}
        answers: dict[Path, tuple[AnswerRow, ...]] = {}
        own: dict[str, str] = {}
        for path in self.folder.run_files():
            if path in hold and not self._files.has("run", path):
                continue
            shown = self.folder.shown(path)
            try:
                dropped = self._files.get("run", path, read, frozen=path in hold)
                self._check(path, dropped, own)
            except ConversionError as error:
                rejected.append(Rejected(shown, error.line, error.reason))
                continue
            rejected += (Rejected(shown, error.line, error.reason) for error in dropped.refused)
            if dropped.answers:
                rejected += not_judged(shown, dropped.answers, bank)
                known = tuple(row for row in dropped.answers if row.question_id in bank.items)
                if not known:
                    continue
                answers[path] = known
            elif not self._asked(path, dropped.run, bank, rejected):
                continue
            runs[path] = dropped.run
            known_by = texts if dropped.by_prompt else ""
            contents[path] = RunContent(path, self._files.stamp_of("run", path), known_by)
            own.update(dropped.texts)
        names = name_runs({path: run.name for path, run in runs.items()}, self.folder.runs)
        files = {names[path]: path for path in sorted(runs, key=names.__getitem__)}
        return TakenRuns(
            {name: runs[path].renamed(name) for name, path in files.items()},
            files,
            {name: contents[path] for name, path in files.items()},
            own,
            {name: answers[path] for name, path in files.items() if path in answers},
        )

    def forget_missing(self) -> None:
        """Removes what is kept on disk of files that are gone."""
        self.columns.forget(but=set(self.folder.run_files()))

    def _check(self, path: Path, dropped: Dropped, own: Mapping[str, str]) -> None:
        if any(own.get(doc_id, text) != text for doc_id, text in dropped.texts.items()):
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
                "a run of passages, and this track has none: its judge scores answers, a line of JSON each "
                'with "question_id" and "answer"',
            )

    def _asked(self, path: Path, run: Run, bank: Bank, rejected: list[Rejected]) -> bool:
        """Whether one of the run's queries is in the bank; those that are not are said."""
        unknown = [query_id for query_id in run.query_ids if query_id not in bank.items]
        if len(unknown) < len(run.query_ids):
            # Of a query that was retired as a whole it is said once, not for each run.
            unknown = [query_id for query_id in unknown if query_id not in bank.retired]
        if not unknown:
            return True
        line = self._files.get("line " + unknown[0], path, partial(_first_line, query_id=unknown[0]))
        shown = shorten_list(unknown, dots=True)
        if len(unknown) == len(run.query_ids):
            of_facets = any(query_id.partition("/")[0] in run for query_id in bank.items)
            hint = "; the bank's are query/facet: set facets = true in [track]" if of_facets else ""
            rejected.append(Rejected(self.folder.shown(path), line, f"{NO_QUERY}: {shown}{hint}"))
            return False
        some = f"{len(unknown)} of its {len(run.query_ids)} queries"
        rejected.append(
            Rejected(self.folder.shown(path), line, f"{some} are not in the bank, and were left out: {shown}")
        )
        return True

    def _forget_prompts(self, query_texts: Mapping[str, str]) -> None:
        """Has responses that name their query by its text read again when those texts change."""
        if self._prompts != query_texts:
            self._prompts = dict(query_texts)
            self._files.forget("run", lambda value: not getattr(value, "by_prompt", True))


def _first_line(path: Path, query_id: str) -> int | None:
    first = query_id.encode()
    return next((number for number, line in iter_lines(path) if line.split(None, 1)[:1] == [first]), None)
