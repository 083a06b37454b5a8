"""Measures on columns of TREC DL 2019: 21 queries, 37 runs, official labels and FLAN-T5-large's ratings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from real_trec_eval import TrecEval

from converters.records import Qrel
from converters.run import Run
from converters.trec_qrels import read_qrels
from converters.trec_run import read_run
from trecexam.scores.columns import Evaluator, Judged
from trecexam.scores.measures import measure


@pytest.fixture(scope="module")
def runs(dl19: Path) -> list[Run]:
    return [read_run(path) for path in sorted((dl19 / "runs").iterdir())]


@pytest.fixture(scope="module")
def qrels(dl19: Path) -> list[Qrel]:
    return list(read_qrels(dl19 / "qrels.txt"))


def test_values_equal_the_output_of_trec_eval(dl19: Path, trec_eval: TrecEval, qrels: list[Qrel]) -> None:
    names = {
        "map": "AP(rel=2)", "map_cut_100": "AP(rel=2)@100", "P_10": "P(rel=2)@10",
        "recall_1000": "R(rel=2)@1000",
        "recip_rank": "RR(rel=2)", "ndcg": "nDCG", "ndcg_cut_10": "nDCG@10", "Rprec": "Rprec(rel=2)",
        "success_5": "Success(rel=2)@5", "set_P": "SetP(rel=2)", "set_recall": "SetR(rel=2)",
        "num_ret": "NumRet", "num_rel_ret": "NumRet(rel=2)",
    }  # fmt: skip
    cut = re.compile(r"_(?=\d)")
    judged = Judged.from_qrels(qrels)
    evaluator = Evaluator([measure(name) for name in names.values()], judged)
    for path in sorted((dl19 / "runs").iterdir())[::4]:
        asked = [cut.sub(".", name) for name in names]
        printed = trec_eval.evaluate(dl19 / "qrels.txt", path, asked, "-c", "-l", "2").values
        values = dict(zip(judged.query_ids, evaluator.values(read_run(path)).tolist(), strict=True))
        compared = 0
        for (query_id, name), text in printed.items():
            if query_id != "all":
                value = values[query_id][list(names).index(name)]
                assert text == (f"{value:.0f}" if name.startswith("num_") else f"{value:.4f}"), (
                    path.name,
                    name,
                )
                compared += 1
        assert compared == len(names) * len(values)
