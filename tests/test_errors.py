from __future__ import annotations

from trecexam.errors import did_you_mean


def test_a_name_that_is_not_known_has_a_guess_where_one_is_near() -> None:
    assert did_you_mean("recal", ("recall", "precision")) == "did you mean 'recall'?"
    assert did_you_mean("recal", {"recall"}, before="; ") == "; did you mean 'recall'?"
    assert did_you_mean("zzz", ("recall",), "known: recall", before="; ") == "known: recall"
