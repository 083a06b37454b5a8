"""`track.erag`: evaluation of runs by a downstream model's answers from their documents."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from converters.gold import KIND
from trecexam.errors import TrecexamError, did_you_mean
from trecexam.extensions.erag.end_to_end import QueryCorrelation, query_correlations, read_end_to_end
from trecexam.extensions.erag.erag import (
    ask_model,
    estimate,
    gold_files,
    label_by_provenance,
    lists_of,
    load_metric,
    texts_of_documents,
)
from trecexam.extensions.erag.evaluation import ALWAYS, FILES, Evaluation, noted
from trecexam.extensions.erag.grader import label_of
from trecexam.extensions.erag.labels import OUTPUTS, PROVENANCE, SOURCES, label_texts, read_outputs
from trecexam.extensions.erag.metrics import Metric, contains_answer, scored
from trecexam.extensions.erag.retrieval import DEFAULT, allowed, measure_values, measures_of
from trecexam.graders.base import Estimate
from trecexam.grades.grading import Progress
from trecexam.inputs.inputs import Needs, read_inputs
from trecexam.inputs.protected import refuse_folder
from trecexam.inputs.track_graders import Measures, names_of
from trecexam.scores.leaderboard import leaderboard
from trecexam.track_groups import Group


class EragAccessor(Group):
    """Accessor for scores of runs by a RAG system's answers from each document."""

    def score(
        self,
        gold: Path | str | None = None,
        metric: str | Metric | None = None,
        *,
        measures: Measures | None = None,
        outputs: Path | str | None = None,
        end_to_end: Path | str | None = None,
        labels: str = OUTPUTS,
        output: Path | str | None = None,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Evaluation:
        """Label each document with the score of the model's answer from this document only, like `erag`.

        Outputs are kept in the track's store, so each prompt is sent once for all metrics.

        Args:
            gold: file of gold outputs; None for the track's bank.
            metric: em, f1, rouge-l, accuracy, module:function, or a function of output and gold outputs; None
                for the track's metric, else em.
            measures: names; None for P, nDCG, Success, R, AP and RR at 10, if the labels allow them.
            outputs: file of `query_id, doc_id, output` lines that replace a model.
            end_to_end: file of `run query_id score` lines to correlate with.
            labels: "outputs"; or a baseline without a model: "contains-answer", 1 if the document contains a
                gold answer, or "provenance", 1 if official judgments or KILT's gold outputs name the
                document.
            output: folder for the files; None, or a stopped call, writes none.
            progress: called after each batch of outputs.
            stop: called repeatedly; True ends the call early.

        Raises:
            LockedError: another process grades this track, and prompts are unanswered.
            StoreError: the store is missing or outdated, and its outputs would cost again.
        """
        folder, gold = self._track.folder, _path(gold)
        outputs, end_to_end = _path(outputs), _path(end_to_end)
        if labels not in SOURCES:
            hint = did_you_mean(labels, SOURCES, f"the labels are {', '.join(SOURCES)}")
            raise TrecexamError(f"no labels '{labels}'; {hint}")
        if labels != OUTPUTS and (metric or outputs):
            raise TrecexamError(f"labels '{labels}' use no outputs: leave out metric and outputs")
        names = names_of(measures)
        named = measures_of(names or DEFAULT)
        if output is not None:
            refuse_folder(Path(output), (folder.root, gold, outputs, end_to_end), FILES, always=ALWAYS)
        notes: list[str] = []
        complete, name, label = True, labels, partial(scored, contains_answer)
        if labels == OUTPUTS:
            # Load the metric before any model: its code may be refused.
            name, loaded = load_metric(folder, metric)
            label = partial(label_of, loaded)
        files = gold_files(folder, gold)
        if labels == OUTPUTS and outputs is None:
            lists, texts, complete = ask_model(folder, files, notes, progress, stop)
        else:
            inputs = read_inputs(folder, Needs(frozenset((KIND,))), bank_files=files)
            lists = lists_of(folder, inputs, inputs.rejected)
            if outputs is not None:
                display_path = folder.shown(outputs)
                texts = read_outputs(outputs, display_path, lists.golds, lists.pairs, lists.rejected)
            elif labels != PROVENANCE:
                texts = texts_of_documents(folder, inputs, lists)
        if labels == PROVENANCE:
            labelled = label_by_provenance(folder, inputs, lists, notes)
        else:
            labelled = label_texts(texts, lists.golds, label)
        able, refused = allowed(named, labelled.labels)
        values = measure_values(labelled.labels, able, list(lists.golds), lists.ranked)
        answered = {run: [q for q, doc_ids in of.items() if doc_ids] for run, of in lists.ranked.items()}
        correlations: tuple[QueryCorrelation, ...] = ()
        if end_to_end is not None:
            scores = read_end_to_end(end_to_end, folder.shown(end_to_end), values, lists.rejected)
            correlations = tuple(query_correlations(values, scores))
        evaluation = noted(
            Evaluation(
                name,
                labelled,
                values,
                leaderboard(values, values.measures, values.query_ids, answered),
                refused if names else (),
                correlations,
                tuple(lists.rejected),
                tuple(notes),
                complete,
            )
        )
        if output is not None and complete:
            evaluation.write(Path(output))
        return evaluation

    def estimate(self, gold: Path | str | None = None) -> Estimate:
        """Estimate the documents ("cells"), tokens and cost of `score`; calls no model."""
        return estimate(self._track.folder, _path(gold))


def _path(path: Path | str | None) -> Path | None:
    return None if path is None else Path(path)
