"""Measure names: parsed as ir_measures writes them, rejected with a helpful reason."""

from __future__ import annotations

import ir_measures
import pytest
from ir_measures import Measure, nDCG

from trecexam.scores import Cover
from trecexam.scores.measures import DIVERSITY, at_min_rating, measure


@pytest.mark.parametrize(
    ("text", "name"),
    [
        *((name, name) for name in (
            "nDCG@10", "P(rel=4)@20", "AP(rel=4)", "RR@10", "Cover(rel=4)@20", "nCover(rel=3)", "NRBP",
            "alpha_nDCG@20", "alpha_nDCG(rel=4)@10", "Judged@10", "AP_IA(rel=2)", "SetF(beta=2.0)", "Compat",
            "infAP", "Cover(rel=5)@5", "Cover(rel=4,partial=2)@1", "nCover(rel=4,weights='importance')@9",
            "all_score@10", "strict_all_score@5", "vital_score", "compliance_score@20",
        )),
        (" nDCG@10 ", "nDCG@10"),
        ("Cover@20", "Cover(rel=4)@20"),
        (nDCG @ 10, "nDCG@10"),
        (Cover(weights="vital", partial=3, rel=5), "Cover(rel=5,partial=3,weights='vital')"),
        (Cover(rel=5, partial=3, weights="item") @ 20, "Cover(rel=5,partial=3,weights='item')@20"),
        (Cover(rel=4, partial=None, weights="equal") @ 20, "Cover(rel=4)@20"),
        (measure("all_score@10") @ 20, "all_score@20"),
        (measure("all_score@10")(rel=4), "Cover(rel=4,partial=3)@10"),
        ("Cover(rel=4,weights=vital)@20", "Cover(rel=4,weights='vital')@20"),
        (" Cover( weights = vital , rel=4 ) @ 20", "Cover(rel=4,weights='vital')@20"),
        ('nCover(weights="importance",partial=2)', "nCover(rel=4,partial=2,weights='importance')"),
        ("nDCG(dcg=log2)@10", "nDCG@10"),
        ("P(rel=2,judged_only=True)@5", "P(rel=2,judged_only=True)@5"),
    ],
)  # fmt: skip
def test_names_are_parsed_and_printed_the_same(text: str | Measure, name: str) -> None:
    found = measure(text)
    assert str(found) == name
    for again in (measure(name), measure(name.replace("'", "")), measure(found)):
        assert (str(again), again, hash(again)) == (name, found, hash(found))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cover@20", "did you mean Cover@20?"),
        ("ndcg@10", r"did you mean nDCG@10\?$"),
        ("p(rel=2)@5", r"did you mean P\(rel=2\)@5\?$"),
        ("ndcg@0", r"did you mean nDCG\?$"),
        ("nDGC@10", "did you mean nDCG@10, alpha_nDCG@10 or SDCG?"),
        ("alphanDCG@10", "did you mean alpha_nDCG@10, "),
        ("ndcg10@5", r"did you mean nDCG@5(, \w+(@5)?){3} or \w+(@5)?\?$"),
        ("xyzzy", "the measures are AP, Cover, P, RR, nDCG and [0-9]+ more of ir_measures$"),
        ("ndcg_cut_10", "write nDCG@10"),
        ("P_20", "write P@20"),
        ("map", "write AP"),
        ("official", "the measures are"),
        ("", "write it as"),
        ("P@3; P@4", "write it as"),
        ("nDCG 10", "write it as"),
        ("P(**x)@5", "write it as"),
        ("P(5)", "write it as"),
        ("P\0", "write it as"),
        ("P@-1", "write it as"),
        ("P", "needs its parameter `cutoff`"),
        ("P@0", "cutoff=0 is not possible; it takes cutoff"),
        ("P@20.5", "cutoff=20.5 is not possible"),
        ("P@99999999999", "not possible"),
        ("P(rel=0)@20", "rel=0 is not possible"),
        ("P(rel=True)@20", "rel=True is not possible"),
        ("P(foo=2)@3", "no parameter `foo`; it takes cutoff"),
        ("AP(alpha=0.5)", "no parameter `alpha`"),
        ("nDCG(dcg='x')@3", "'log2' or 'exp-log2'"),
        ("Cover(rel=4)@0", "cutoff=0 is not possible"),
        ("Cover(rel=9.0)@5", "rel=9.0 is not possible"),
        ("Cover(k=20)", "no parameter `k`"),
        (
            "Cover(rel=4,weights=vitl)@5",
            "weights='vitl' is not possible; .*'equal' or 'vital' or 'importance'",
        ),
        ("Cover(rel=4,weights=True)@5", "weights=True is not possible"),
        (
            "Cover(rel=4,partial=4)@5",
            r"partial=4 is not below rel=4; it takes .*partial \(int of at least 1\)",
        ),
        ("Cover(rel=4,partial=0)@5", "partial=0 is not possible"),
        ("nCover(weights=vital", "cannot be read"),
        ("alpha_nDCG", "needs its parameter `cutoff`"),
        ("alpha_nDCG@21", "cutoffs up to 20"),
        ("StRecall", "needs its parameter"),
        ("alpha_nDCG(judged_only=True)@20", "judged_only"),
        ("ERR@20", "only gdeval computes it"),
        ("NumRel(rel=3)", "no provider"),
    ],
)
def test_invalid_names_are_rejected_with_a_reason(name: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        measure(name)


def test_every_diversity_measure_is_known() -> None:
    provider = ir_measures.providers.registry["pyndeval"]
    assert {supported.NAME for supported in provider.SUPPORTED_MEASURES} == DIVERSITY


@pytest.mark.parametrize(
    ("name", "counts", "expected"),
    [
        ("P@20", False, "P(rel=3)@20"),
        ("AP(rel=5)", False, "AP(rel=3)"),
        ("Cover(rel=4)@20", False, "Cover(rel=3)@20"),
        ("nCover@5", True, "nCover(rel=3)@5"),
        ("Cover(rel=5,partial=2,weights=vital)@5", False, "Cover(rel=3,partial=2,weights='vital')@5"),
        # With threshold 3 an item has full credit already.
        ("Cover(rel=5,partial=3,weights=vital)@5", False, "Cover(rel=3,weights='vital')@5"),
        ("nCover(rel=5,partial=4)", True, "nCover(rel=3)"),
        # Their subtopics are made with min_rating.
        ("alpha_nDCG@20", False, "alpha_nDCG@20"),
        ("alpha_nDCG(rel=5,alpha=0.3)@20", False, "alpha_nDCG(alpha=0.3)@20"),
        # Ratings as labels: no threshold. Retrieved passages, or relevant ones from a given label.
        ("nDCG@10", False, None),
        ("NumRet", False, None),
        ("NumRet(rel=2)", False, "NumRet(rel=3)"),
        # Labels that count items: the labels change.
        ("nDCG@10", True, "nDCG@10"),
        ("P(rel=2)@20", True, "P(rel=2)@20"),
    ],
)
def test_a_measure_can_be_moved_to_another_min_rating(name: str, counts: bool, expected: str | None) -> None:
    found = at_min_rating(measure(name), 3, counts=counts)
    assert (None if found is None else str(found)) == expected
