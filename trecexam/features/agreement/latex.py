"""Tables for papers, in LaTeX with booktabs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from trecexam.features.agreement.words import thresholds_in_words

if TYPE_CHECKING:
    from trecexam.features.agreement.arithmetic import Agreement, Crosstab
    from trecexam.scores.kappa import Kappa

PREAMBLE = "% \\usepackage{booktabs}\n"
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
} | {char: f"\\{char}" for char in "&%$#_{}"}


def escape(text: str) -> str:
    """A name as LaTeX prints it: special characters escaped, white space made single blanks."""
    return "".join(_SPECIAL.get(char, char) for char in " ".join(text.split()))


def agreement_latex(agreements: Iterable[Agreement], subject: str) -> str:
    """A `table` for each choice of thresholds, with its graded, merged and binary crosstab.

    The kappa of a row is that of its label against the framed judgment, with its 95% interval; the last
    row's is that of the whole table.

    Args:
        subject: what was graded by what; stands in the caption.
    """
    return PREAMBLE + "\n".join(_float(agreement, subject) for agreement in agreements)


def _float(agreement: Agreement, subject: str) -> str:
    pairing = (
        "its equal"
        if agreement.same_scale
        else "the lowest judgment of its group in the merged table, as the scales differ"
    )
    caption = (
        f"Automatic labels (rows) by people's judgments (columns), {escape(subject)}: "
        f"{thresholds_in_words(agreement.thresholds)}. "
        rf"Cohen's $\kappa$ of each label against the framed judgment, {pairing}, and of the whole table "
        r"where both scales are the same, with 95\% intervals."
    )
    tables = "\n\\par\\medskip\n".join(_tabular(table) for table in agreement.tables)
    return f"\\begin{{table}}\n\\centering\n\\caption{{{caption}}}\n{tables}\n\\end{{table}}\n"


def _tabular(table: Crosstab) -> str:
    width = len(table.judgments)
    lines = [
        rf"\begin{{tabular}}{{l{'r' * (width + 1)}l}}",
        r"\toprule",
        _row(
            [
                table.name.capitalize(),
                rf"\multicolumn{{{width}}}{{c}}{{Judgments}}",
                "Total",
                r"Cohen's $\kappa$",
            ]
        ),
        rf"\cmidrule(lr){{2-{width + 1}}}",
        _row(["Label", *map(_level, table.judgments), "", ""]),
        r"\midrule",
    ]
    for label, counts, column, value in zip(
        table.labels, table.counts.tolist(), table.paired, table.kappas, strict=True
    ):
        cells = [rf"\fbox{{{n}}}" if place == column else str(n) for place, n in enumerate(counts)]
        lines.append(_row([_level(label), *cells, str(sum(counts)), _kappa(value)]))
    sums = table.counts.sum(axis=0).tolist()
    lines += [r"\midrule", _row(["Total", *map(str, sums), str(sum(sums)), _kappa(table.kappa)])]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _level(name: str) -> str:
    """ ">=4", "<2", "1..3", "-2": numbers in math, so that signs are signs."""
    if ".." in name:
        return "--".join(f"${part}$" for part in name.split(".."))
    return "$" + name.replace(">=", r"\geq ") + "$"


def _kappa(value: Kappa) -> str:
    if math.isnan(value.value):
        return ""
    if math.isnan(value.low):
        return f"${value.value:z.2f}$"
    return f"${value.value:z.2f}$ [${value.low:z.2f}$, ${value.high:z.2f}$]"
