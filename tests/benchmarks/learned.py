"""Order of runs by learned labels, over ten draws of half of the queries. Prints a table of results.

    python tests/benchmarks/learned.py WORK [COLLECTION...]

WORK is a folder for the tracks, whose texts are encoded once. Data is in ../shared. The table is one of
results/learned.md.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau
from threadpoolctl import threadpool_limits

sys.path.append(str(Path(__file__).resolve().parents[1] / "helpers"))

from outside import outside

from trecexam.extensions.learn.arithmetic.learning import fit
from trecexam.extensions.learn.arithmetic.passages import QueryPassages
from trecexam.extensions.learn.arithmetic.scores import drawn_ndcg, expected_scores
from trecexam.extensions.learn.learned_pool import gather_data
from trecexam.folder import TrackFolder
from trecexam.grades.open_track import OpenTrack

DRAWS, K = 10, 10
COLLECTIONS = ("cranfield", "vaswani", "cisi", "dl19")
DESIGNS = ("3 most retrieved", "5 most retrieved", "10 most retrieved", "5% at random", "10% at random")


def collection(work: Path, name: str) -> list[QueryPassages]:
    """Read a collection through a track in `work`; its pool is the judged passages of the first 20 ranks."""
    source, root = outside("dl19" if name == "dl19" else f"collections/{name}"), work / name
    if not (root / "trecexam.toml").exists():
        files = {"queries": "queries.tsv", "passages": "passages.jsonl.gz", "runs": "runs"}
        options = [part for option, file in files.items() for part in (f"--{option}", str(source / file))]
        options += ["--qrels", str(next(source.glob("qrels.txt*")))]
        subprocess.run([sys.executable, "-m", "trecexam", "init", str(root), *options], check=True)
    (root / "trecexam.toml").write_text("[track]\ndepth = 20\n")
    with OpenTrack(TrackFolder.open(root)) as opened:
        return list(map(judged_alone, gather_data(opened.first.load(bank_needed=False)).queries))


def judged_alone(query: QueryPassages) -> QueryPassages:
    """Return the query with its judged passages alone; in rankings those below move up."""
    kept = query.judged
    place = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1).astype(np.int32)[query.ranks]
    return replace(
        query,
        doc_ids=tuple(np.array(query.doc_ids, object)[kept]),
        ranks=np.take_along_axis(place, np.argsort(place < 0, axis=1, kind="stable"), axis=1),
        judgments=query.judgments[kept],
        features=query.features[kept],
        vectors=query.vectors[kept],
    )


def hidden(query: QueryPassages, design: str, rng: np.random.Generator) -> QueryPassages:
    """Return the query with the judgments of a design alone."""
    amount, n = int(design.split()[0].rstrip("%")), len(query.doc_ids)
    if design.endswith("random"):
        is_judged = rng.random(n) < amount / 100
    else:
        is_judged = np.isin(np.arange(n), np.argsort(query.features[:, 0], kind="stable")[:amount])
    return replace(query.hiding(~is_judged), elsewhere=np.empty(0))


def ndcg(queries: Sequence[QueryPassages]) -> np.ndarray:
    """Return the mean nDCG of each run; unjudged passages count 0."""
    values = [drawn_ndcg(q.ranks, np.nan_to_num(q.judgments)[None], K, q.elsewhere)[0] for q in queries]
    return np.asarray(np.mean(values, axis=0))


def main() -> None:
    """Print a row for each collection and design."""
    print("| | judged | unjudged = 0 | learned leaderboard |\n|---|---|---|---|")
    for name in sys.argv[2:] or COLLECTIONS:
        every = collection(Path(sys.argv[1]).resolve(), name)
        for design in DESIGNS:
            taus = []
            for draw in range(DRAWS):
                rng = np.random.default_rng([draw, 77])
                half = [every[at] for at in sorted(rng.permutation(len(every))[: len(every) // 2])]
                seen = [hidden(query, design, rng) for query in half]
                with threadpool_limits(1):
                    learned = expected_scores(fit(seen), seen, K, 1)[0].mean(axis=1)
                boards = (ndcg(seen), learned)
                taus.append([kendalltau(board, ndcg(half)).statistic for board in boards])
            (zero, ours), (_, spread) = np.mean(taus, axis=0), np.std(taus, axis=0, ddof=1)
            print(f"| {name} | {design} | {zero:.2f} | {ours:.2f} (sd {spread:.2f}) |", flush=True)


if __name__ == "__main__":
    main()
