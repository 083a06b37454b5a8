"""`track.erag`: evaluation of runs by a downstream model's answers from their documents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from converters.gold import KIND
from trecexam.errors import TrecexamError, rejected_notes
from trecexam.extensions.erag.answering import ask_model, erag_view, stored_outputs
from trecexam.extensions.erag.evaluation import ALWAYS, FILES, Evaluation, query_correlations
from trecexam.extensions.erag.inputs import (
    gold_files,
    label_by_provenance,
    lists_of,
    read_end_to_end,
    read_outputs,
    texts_of_documents,
)
from trecexam.extensions.erag.metrics import Metric, NoLabel, contains_answer, load_metric, scored
from trecexam.extensions.erag.retrieval import DEFAULT, Pair, allowed, measure_values, measures_of
from trecexam.graders.base import Estimate
from trecexam.grades.grading import Progress, estimate
from trecexam.inputs.inputs import Needs, read_inputs
from trecexam.inputs.protected import refuse_folder
from trecexam.inputs.track_graders import Measures, names_of
from trecexam.results.text import LOST, Note
from trecexam.scores.leaderboard import leaderboard
from trecexam.track_groups import Group

#: Sources of labels: the model's outputs, or a baseline.
SOURCES = ("outputs", "contains-answer", "provenance")


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
        labels: str = "outputs",
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
        folder = self._track.folder
        gold, outputs, end_to_end = (p if p is None else Path(p) for p in (gold, outputs, end_to_end))
        if labels not in SOURCES:
            raise TrecexamError(f"no labels '{labels}'; the labels are {', '.join(SOURCES)}")
        if labels != "outputs" and (metric or outputs):
            raise TrecexamError(f"labels '{labels}' use no outputs: leave out metric and outputs")
        names = names_of(measures)
        requested = measures_of(names or DEFAULT)
        if output is not None:
            refuse_folder(Path(output), (folder.root, gold, outputs, end_to_end), FILES, always=ALWAYS)
        # Load the metric before any model: its code may be refused.
        name, function = load_metric(folder, metric) if labels == "outputs" else (labels, contains_answer)
        files, notes, texts = gold_files(folder, gold), list[str](), dict[Pair, str | NoLabel]()
        if labels == "outputs" and outputs is None:
            track = ask_model(erag_view(self._track.loaders, folder), files, notes, progress, stop)
            # People's ratings may belong to other items than these gold outputs.
            people = {folder.shown(folder.overrides()), folder.shown(folder.judgments())}
            rejected = [row for row in track.not_taken if row.file not in people]
            lists = lists_of(folder, track.inputs, rejected, track.depth)
            texts = stored_outputs(track, lists.pairs)
        else:
            inputs = read_inputs(folder, Needs(frozenset((KIND,))), bank_files=files)
            lists = lists_of(folder, inputs, inputs.rejected)
            if outputs is not None:
                texts = read_outputs(folder, outputs, lists)
            elif labels != "provenance":
                texts = texts_of_documents(folder, inputs, lists)
        by_document = {
            pair: scored(function, text, lists.golds[pair[0]]) if isinstance(text, str) else text
            for pair, text in texts.items()
        }
        if labels == "provenance":
            by_document |= label_by_provenance(folder, inputs, lists, notes)
        document_labels = {pair: label for pair, label in by_document.items() if isinstance(label, float)}
        unlabelled = {pair: why for pair, why in by_document.items() if isinstance(why, NoLabel)}
        scores = None if end_to_end is None else read_end_to_end(folder, end_to_end, lists)
        able = allowed(requested, document_labels)
        needs = "needs labels of 0 and 1, but some are fractions; use P, Success and nDCG"
        refused = [f"{each} {needs}" for each in requested if each not in able] if names else []
        values = measure_values(document_labels, able, list(lists.golds), lists.ranked)
        answered = {run: [q for q in ranking if ranking[q]] for run, ranking in lists.ranked.items()}
        evaluation = Evaluation(
            metric=name,
            labels=document_labels,
            unlabelled=unlabelled,
            n_empty=list(texts.values()).count(""),
            by_query=values,
            leaderboard=leaderboard(values, values.measures, values.query_ids, answered),
            correlation=query_correlations(values, scores),
            failed=bool(refused) or any(why.status != "missing" for why in unlabelled.values()),
            rejected=tuple(lists.rejected),
        )
        if stop is not None and stop():
            stopped = "stopped before writing any files; the model's answers are stored: run it again"
            notes.append(Note(f"{stopped} to continue", LOST))
        elif output is not None:
            evaluation.write(Path(output))
        notes += [*evaluation.label_notes(), *refused]
        return evaluation.with_notes(*rejected_notes(lists.rejected), *notes)

    def estimate(self, gold: Path | str | None = None) -> Estimate:
        """Estimate the documents ("cells"), tokens and cost of `score`; calls no model."""
        view = erag_view(self._track.loaders, self._track.folder)
        return estimate(view, view.load(bank_files=gold_files(view.folder, gold)))
