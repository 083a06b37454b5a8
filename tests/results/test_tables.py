from __future__ import annotations

from trecexam.results.table import Table, to_tsv


def test_a_small_p_value_is_not_shown_as_0_unlike_other_small_numbers() -> None:
    rows = ((1e-17, 4.31e-49), (0.0, 0.0), (0.5, 0.00012), (None, float("nan")))
    table = Table(("mean", "p"), rows, small=("p",))
    assert to_tsv(table).splitlines() == [
        "mean\tp",
        "0.000000\t4.3e-49",
        "0.000000\t0.000000",
        "0.500000\t0.000120",
        "\t",
    ]
    assert repr(table).splitlines()[1].split() == ["0.000", "4.3e-49"]
