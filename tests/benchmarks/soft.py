# ruff: noqa: E501
"""Accuracy of expected labels and ECover on TREC DL 2019, without judgments: prints the tables of results/soft.md.

    python tests/benchmarks/soft.py TRACK

TRACK is a track of ../shared/dl19 that the embedding grader graded, with `pool_judged = true`. A minute or two.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
from cut_points import link, soft_link
from numpy.typing import NDArray
from scipy.stats import kendalltau, t

from trecexam.features.correlation.comparison import compare
from trecexam.features.correlation.paired_scores import paired_scores
from trecexam.folder import TrackFolder
from trecexam.graders.embedding import CUT_POINTS, SOFT_POINTS, SOFT_WIDTH, probabilities
from trecexam.grades.evaluation import probable_ratings
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.official import official_judgments
from trecexam.grades.open_track import OpenTrack
from trecexam.scores.columns import Evaluator, Judged
from trecexam.scores.expected import with_probabilities
from trecexam.scores.rank_correlation import QueryDraws
from trecexam.scores.ratings import QueryRatings

Floats = NDArray[np.float64]
SOFT_CUTS = SOFT_POINTS, SOFT_WIDTH
OFFICIAL, RELS, SPLITS = "nDCG@10", (2, 3, 4, 5), 20
COVERS = [f"{kind}(rel={rel})@20" for kind in ("Cover", "ECover") for rel in RELS]
#: Other cut points and widths: a logistic of this width around each hard cut point.
WIDTHS = (0.01, 0.03, 0.06)


def main(root: Path) -> None:
    lines: list[str] = []
    tracks = {}
    for label in ("expected", "max"):
        folder = TrackFolder.open(root)
        config = folder.config.model_copy(
            update={"scores": folder.config.scores.model_copy(update={"label": label})}
        )
        with OpenTrack(replace(folder, config=config)) as loaders:
            loader = loaders.first
            tracks[label] = loader.load()
            _ = probable_ratings(tracks[label])
            lines += whole(tracks[label], label)
            cosines = cosines_of(tracks[label])
            cost = seconds(tracks[label])
    lines += cost
    lines += differences(tracks["max"], tracks["expected"])
    lines += unseen(tracks["max"], cosines)
    lines += other_models(tracks["max"], cosines)
    print("\n".join(lines))


def whole(track: GradedTrack, label: str) -> list[str]:
    """Tau of all queries."""
    measures = [OFFICIAL, *(COVERS if label == "max" else ())]
    found = compare(track, measures, [OFFICIAL])
    assert found is not None
    lines = []
    if label == "expected":
        lines = ["## All queries\n", "| measure | tau | 95% interval |", "|---|---:|---:|"]
    for (name, *_), value in found.pairs:
        shown = f'`{name}`, `label = "{label}"`' if name == OFFICIAL else f"`{name}`"
        tau = value.kendall_tau
        lines.append(f"| {shown} | {tau.value:.2f} | {tau.low:.2f} to {tau.high:.2f} |")
    return lines


def differences(hard: GradedTrack, expected: GradedTrack) -> list[str]:
    """Of tau, with intervals over queries."""
    lines = ["\n## Differences\n", "| first | second | difference | 95% interval |", "|---|---|---:|---:|"]
    pairs = [(hard, OFFICIAL, expected, OFFICIAL)]
    pairs += [(hard, f"Cover(rel={rel})@20", hard, f"ECover(rel={rel})@20") for rel in RELS]
    for first, one, second, other in pairs:
        taus, subsets, n_queries = [], [], 0
        for track, name in ((first, one), (second, other)):
            (scores,) = paired_scores(track, [name], [OFFICIAL])
            n_queries = len(scores.query_ids)
            draws = QueryDraws()
            rubric, official = draws.subset_means(scores.rubric), draws.subset_means(scores.official)
            taus.append(tau(scores.rubric.mean(axis=1), scores.official.mean(axis=1)))
            subsets.append([tau(a, b) for a, b in zip(rubric.T, official.T, strict=True)])
        error = QueryDraws().standard_error(np.subtract(subsets[1], subsets[0])[None], n_queries)
        half = float(np.ravel(error)[0]) * float(t.ppf(0.975, n_queries - 1))
        gain = taus[1] - taus[0]
        kinds = ("labels", "expected gains") if one == other else ("", "")
        lines.append(
            f"| `{one}` {kinds[0]} | `{other}` {kinds[1]} | {gain:+.2f} | {gain - half:+.2f} to {gain + half:+.2f} |"
        )
    return lines


def unseen(track: GradedTrack, cosines: Mapping[str, Floats]) -> list[str]:
    """Cut points fitted on half of the queries, leaderboards of the other half."""
    rng = np.random.default_rng(0)
    taus: dict[str, list[float]] = {}
    names = np.array(sorted(cosines))
    for _ in range(SPLITS):
        order = rng.permutation(names)
        half = len(order) // 2
        for fitted_on, tested_on in ((order[:half], order[half:]), (order[half:], order[:half])):
            given, judgments = judged(track, cosines, fitted_on.tolist())
            cuts = link([float(each.max()) for each in given], judgments)
            found = evaluated(track, cosines, tested_on.tolist(), cuts, soft_link(given, judgments))
            for name, value in found.items():
                taus.setdefault(name, []).append(value)
    lines = ["\n## Queries that the cut points have not seen\n"]
    lines += ["| measure | mean tau | lowest |", "|---|---:|---:|"]
    lines += [f"| {name} | {np.mean(values):.2f} | {min(values):.2f} |" for name, values in taus.items()]
    pairs = [(f'`{OFFICIAL}`, `label = "max"`', f'`{OFFICIAL}`, `label = "expected"`')]
    pairs += [(f"`Cover(rel={rel})@20`", f"`ECover(rel={rel})@20`") for rel in RELS]
    higher = [f"{other} in {sum(np.greater(taus[other], taus[one]))}" for one, other in pairs]
    return [*lines, f"\nHigher than its counterpart, of {2 * SPLITS} halves: {', '.join(higher)}."]


def other_models(track: GradedTrack, cosines: Mapping[str, Floats]) -> list[str]:
    """Why the probabilities are not a logistic around the hard cut points."""
    lines = ["\n## Other models of the probabilities\n"]
    names = list(evaluated(track, cosines, sorted(cosines), CUT_POINTS, SOFT_CUTS))
    soft = [name for name in names if "expected" in name or name.startswith("`E")]
    lines += ["| width | " + " | ".join(soft) + " |", "|---|" + "---:|" * len(soft)]
    for cuts in (SOFT_CUTS, *((CUT_POINTS, width) for width in WIDTHS)):
        found = evaluated(track, cosines, sorted(cosines), CUT_POINTS, cuts)
        kind = "fitted" if cuts == SOFT_CUTS else f"{cuts[1]}"
        lines.append(f"| {kind} | " + " | ".join(f"{found[name]:.2f}" for name in soft) + " |")
    return lines


def seconds(track: GradedTrack) -> list[str]:
    """What it costs."""
    started = time.process_time()
    for sheet in track.sheets.values():
        track.grades.distributions(sheet, read=True)
    read = time.process_time() - started
    judgments = Judged.from_ratings(probable_ratings(track), "expected")
    measures = [ir_measures.parse_measure(name) for name in ("ECover(rel=4)@20", "Cover(rel=4)@20")]
    taken = []
    for measure in measures:
        started = time.process_time()
        evaluator = Evaluator([measure], judgments)
        for run in track.runs.values():
            evaluator.values(run)
        taken.append(time.process_time() - started)
    cells = sum(sheet.codes.size for sheet in track.sheets.values())
    return [
        "",
        f"Reading the probabilities of {cells:,} cells took {read:.2f} CPU seconds, {measures[0]} of {len(track.runs)} runs {taken[0]:.2f}, {measures[1]} {taken[1]:.2f} (joins with the judgments included).",
    ]


def cosines_of(track: GradedTrack) -> dict[str, Floats]:
    """query_id -> cosines of its passages and items, of the judged queries."""
    cosines = {}
    for query_id in official_judgments(track).judged:
        sheet = track.sheets[query_id]
        column = {item.item_id: place for place, item in enumerate(sheet.items)}
        cosines[query_id] = np.full(sheet.codes.shape, np.nan)
        for row in track.grade_rows((query_id,)):
            cosines[query_id][sheet.row_of[row["doc_id"]], column[row["item_id"]]] = float(row["answer"])
    return cosines


def judged(
    track: GradedTrack, cosines: Mapping[str, Floats], query_ids: Sequence[str]
) -> tuple[list[Floats], list[int]]:
    labels = official_judgments(track).judged
    given, judgments = [], []
    for query_id in query_ids:
        row_of = track.sheets[query_id].row_of
        for doc_id, label in labels[query_id].items():
            if doc_id in row_of and label >= 0:
                given.append(cosines[query_id][row_of[doc_id]])
                judgments.append(label)
    return given, judgments


def evaluated(
    track: GradedTrack,
    cosines: Mapping[str, Floats],
    query_ids: Sequence[str],
    cuts: Sequence[float],
    soft: tuple[Sequence[float], float],
) -> dict[str, float]:
    """Tau by measure with these cut points."""
    queries = []
    for query_id in query_ids:
        ratings = np.searchsorted(np.array(cuts), cosines[query_id], side="right").astype(np.int8)
        plain = QueryRatings(query_id, track.sheets[query_id].doc_ids, ratings.shape[1], ratings)
        queries.append(with_probabilities(plain, probabilities(cosines[query_id], *soft)))
    rows = [row for row in official_judgments(track).rows if row.query_id in set(query_ids)]
    official = means(track, Judged.from_qrels(rows), [OFFICIAL])[:, 0]
    by_rule = {
        rule: means(track, Judged.from_ratings(queries, rule), [OFFICIAL]) for rule in ("max", "expected")
    }
    found = {
        f'`{OFFICIAL}`, `label = "{rule}"`': tau(values[:, 0], official) for rule, values in by_rule.items()
    }
    covers = means(track, Judged.from_ratings(queries), COVERS)
    return found | {f"`{name}`": tau(column, official) for name, column in zip(COVERS, covers.T, strict=True)}


def means(track: GradedTrack, judgments: Judged, names: Sequence[str]) -> Any:
    evaluator = Evaluator([ir_measures.parse_measure(name) for name in names], judgments)
    return np.array([evaluator.values(run).mean(axis=0) for run in track.runs.values()])


def tau(one: Floats, other: Floats) -> float:
    return float(kendalltau(np.round(one, 12), np.round(other, 12)).statistic)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
