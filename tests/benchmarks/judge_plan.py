# ruff: noqa: E501
"""What plans of `trecexam learned-next` are worth on TREC DL 2019. Writes results/judge-plan.md.

    python tests/benchmarks/judge_plan.py TRACK

TRACK is a track of ../shared/dl19 with `pool_judged = true` and `min_relevant = 2`, encoded; a copy is changed, not it.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from served import serving

from trecexam.extensions.learn.arithmetic.learning import fit
from trecexam.extensions.learn.arithmetic.pooled import PooledQueryToLearn
from trecexam.extensions.learn.cross_validation import LEARNED, CrossValidation, Estimate
from trecexam.extensions.learn.judging_plan.expected_change import DrawnLeaderboards, expected_change
from trecexam.extensions.learn.judging_plan.plan import Planned, judging_rounds
from trecexam.extensions.learn.learned_pool import gather_data
from trecexam.extensions.learn.splits import Part, Split
from trecexam.extensions.page import learning
from trecexam.line.loader import TrackLoader
from trecexam.scores.rank_correlation.tau import tau_b_columns
from trecexam.scores.retrieved import retrieved_weights
from trecexam.track import TrackFolder

RESULTS = Path(__file__).parent / "results" / "judge-plan.md"
PER_QUERY, SEEDS = (3, 5, 10), 5
INTRODUCTION = """# What to judge next, to learn from: TREC DL 2019

Made by `python tests/benchmarks/judge_plan.py TRACK` on the 21 queries, 37 runs and 4,339 judgments of `../shared/dl19`, with FLAN-T5-large's
recorded ratings among the features. Nothing is judged at first; then what the plan of `trecexam learned-next` names is, by the official judgments. The plan chooses
among passages that have one. kappa (>= 2 or not) is on the rest, tau is Kendall's, of nDCG@10 leaderboards with learned gains and with all judgments.
Intervals are 95%, over queries, as those of `trecexam cross-validate`. MiniLM was trained on MS MARCO: see learned.md.
"""


def main(root: Path) -> None:
    with TrackLoader(TrackFolder.open(root)) as loader:
        queries = gather_data(loader.load()).queries
    lines = [
        INTRODUCTION,
        f"Made on {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, with other work beside it.\n",
    ]
    with threadpool_limits(1):
        lines += by_share(queries)
        lines += by_round(queries)
    with tempfile.TemporaryDirectory() as folder:
        lines += seconds(Path(shutil.copytree(root, Path(folder) / "track")))
    RESULTS.write_text("\n".join(lines))


def rounds_of(queries: tuple[PooledQueryToLearn, ...], share: float, seed: int) -> list[list[Planned]]:
    weights = [retrieved_weights(query.ranks, len(query.doc_ids)) for query in queries]
    return list(judging_rounds(weights, [~np.isnan(query.judgments) for query in queries], share, [seed, 0]))


def hidden_after(
    queries: tuple[PooledQueryToLearn, ...], rounds: list[list[Planned]]
) -> tuple[np.ndarray, ...]:
    hidden = tuple(~np.isnan(query.judgments) for query in queries)
    for query, passage, _ in (row for of_round in rounds for row in of_round):
        hidden[query][passage] = False
    return hidden


def by_share(queries: tuple[PooledQueryToLearn, ...]) -> list[str]:
    validation = CrossValidation(queries, 2)
    lines = [
        "\n## With and without a random share\n",
        f"Means over {SEEDS} seeds where some is random.\n",
        "| judged a query | random share | kappa, learned | tau, learned | tau, unjudged = 0 | tau, unjudged = 1 |",
        "|---|---|---|---|---|---|",
    ]
    for k in PER_QUERY:
        for share in (0.0, 0.1, 0.3, 1.0):
            parts = [
                (Part(hidden_after(queries, rounds_of(queries, share, seed)[:k])),)
                for seed in range(SEEDS if share else 1)
            ]
            rows = {row.method: row for row in validation.rows(Split("plan", tuple(parts)))}
            lines.append(
                f"| {k} | {share:.0%} | {shown(rows[LEARNED].kappa)} | {shown(rows[LEARNED].tau)} "
                f"| {rows['unjudged = 0'].tau.value:.2f} | {rows['unjudged = 1'].tau.value:.2f} |"
            )
            print(lines[-1], flush=True)
    return lines


def shown(figure: Estimate) -> str:
    return f"{figure.value:.2f} ({figure.low:.2f} to {figure.high:.2f})"


def by_round(queries: tuple[PooledQueryToLearn, ...]) -> list[str]:
    lines = [
        "\n## What is expected, and what came of it\n",
        "*Expected change* is what `--budget` compares with 0.01: 1 - tau of the leaderboards before and after the next passage of each query, expected from",
        "100 draws of what people would say; *change* is what it then was. *Expected tau* is with the draws' leaderboards, *tau* with the official one. *Undecided* are pairs",
        "of runs that change their order in more than 5% of the draws, next to each other and all, as the judging page says; *wrong* are the pairs of all that are in the",
        "other order officially, and *wrong, decided* those of them that were not undecided. Random share 10%, seed 0.\n",
        "Draws are those of `leaderboard --learned` (`PosteriorLabels`). With the plain ones that were here before (learned gains with normal errors, held to the scale) the same plans had, by the same script,",
        "23 wrong pairs that passed for decided in the seven rows from 10 judged on, where there are 9 now, and 2 in the three rows before, where there are 11 now (of some 1,600 decided ones). Expected changes were off by .004 on",
        "average then, and are by .006 now.\n",
        "| judged a query | expected change | change | expected tau | tau | undecided of 36 | of 666 | wrong | wrong, decided |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    rounds = rounds_of(queries, 0.1, 0)
    official = DrawnLeaderboards(fit([query.passages for query in queries]), queries, 1).expected
    boards = {}
    ks = (2, 3, 5, 10, 15, 20, 25, 30, 40, 50)
    for k in sorted({*ks, *(at + 1 for at in ks)}):
        hidden = hidden_after(queries, rounds[:k])
        seen = [query.hiding(hide) for query, hide in zip(queries, hidden, strict=True)]
        boards[k] = DrawnLeaderboards(fit([query.passages for query in seen]), seen)
    for k in ks:
        board = boards[k]
        planned = [[row.passage for row in rounds[k] if row.query == at] for at in range(len(queries))]
        change = expected_change(board.after([[]] * len(queries)), board.after(planned))
        lower, higher = np.triu_indices(len(official), 1)
        better = board.expected[lower] > board.expected[higher]
        wrong = (official[lower] > official[higher]) != better
        other = (board.drawn[lower] > board.drawn[higher]) != better[:, None]
        lines.append(
            f"| {k} | {change:.3f} | {1 - tau(board.expected, boards[k + 1].expected):.3f} "
            f"| {tau_b_columns(board.drawn, board.expected[:, None]).mean():.2f} | {tau(board.expected, official):.2f} "
            f"| {board.undecided.neighbours} | {board.undecided.pairs} | {wrong.sum()} "
            f"| {(wrong & (other.mean(axis=1) <= 0.05)).sum()} |"
        )
        print(lines[-1], flush=True)
    return lines


def tau(some: np.ndarray, others: np.ndarray) -> float:
    return float(tau_b_columns(some[:, None], others[:, None])[0])


def seconds(root: Path) -> list[str]:
    """How long the page's process takes to learn again, and people to rate meanwhile; a tenth is judged."""
    qrels = root / "qrels.txt"
    every = qrels.read_text().splitlines(keepends=True)
    qrels.write_text("".join(every[::10]))
    with TrackLoader(TrackFolder.open(root)) as loader:
        pool = loader.load().pool
    rest = [
        line for at, line in enumerate(every) if at % 10 and line.split()[2] in pool[line.split()[0]].doc_ids
    ]
    cpu = []
    for _ in range(5):
        began = time.process_time()
        learnt = learning._learn(root)
        cpu.append(time.process_time() - began)
    assert learnt.undecided is not None, learnt.failure
    learned = []
    with learning.LearnAgain(root) as again, serving(root, apart=True, learning=again) as served:
        alone = list(ratings(served.url, rest[:20]))
        for _ in ratings(served.url, rest[20:40]):
            again.want(served.live.version)
            assert again.wait(served.live.version, 60)
            last, _ = again.want(0)
            assert last is not None
            assert last.undecided is not None, last.failure
            learned.append(last.seconds)
        beside = []
        for wait in ratings(served.url, rest[40:60]):
            beside.append(wait)
            again.want(served.live.version)
    return [
        "\n## Time\n",
        f"To learn again after a judgment, in the process beside the page, of 21 queries and {last.n_judgments:,} judgments: reading, fit, predictions, 100 draws, and what is undecided.\n",
        "| | seconds |",
        "|---|---|",
        f"| CPU, the best of five | {min(cpu):.2f} ({min(cpu) / 21:.3f} a query) |",
        f"| from the judgment on, median of 20 | {statistics.median(learned):.2f} ({statistics.median(learned) / 21:.3f} a query) |",
        f"| a rating on the page, median of 20, nothing learning | {statistics.median(alone):.3f} |",
        f"| the same, while it learns from the one before | {statistics.median(beside):.3f} |",
        "",
    ]


def ratings(url: str, lines: Sequence[str]) -> Iterator[float]:
    """Rates passages on the page; how many seconds each took."""
    connection = HTTPConnection(urlsplit(url).netloc)
    connection.request("GET", "/state")
    csrf = json.loads(connection.getresponse().read())["csrf"]
    headers = {"origin": url, "content-type": "application/x-www-form-urlencoded"}
    for line in lines:
        query_id, _, doc_id, label = line.split()
        rating = str(int(label) + 1)
        form = {
            "csrf": csrf,
            "query": query_id,
            "doc": doc_id,
            "rating": rating,
            "who": "Ann",
            "why": "because",
        }
        began = time.perf_counter()
        connection.request("POST", "/override", urlencode(form), headers)
        answer = connection.getresponse()
        answer.read()
        yield time.perf_counter() - began
        assert answer.status == 303


if __name__ == "__main__":
    main(Path(sys.argv[1]))
