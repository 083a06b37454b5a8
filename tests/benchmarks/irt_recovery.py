# ruff: noqa: E501
"""How well item response models find what a matrix was drawn from. Writes tests/benchmarks/results/irt.md.

    python tests/benchmarks/irt_recovery.py [TRACK of dl19]

Not a test: it takes two minutes, and its figures say how far estimates can be trusted, not whether the code
is right (tests/irt does).
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import numpy as np

from trecexam.irt import Components, Settings, fit, probability
from trecexam.irt.estimation.likelihood import Responses, log_likelihood

RESULTS = Path(__file__).parent / "results" / "irt.md"
SIZES = ((30, 100), (60, 200), (200, 200), (500, 500))
SEEDS = 5
NEWLINE = "\n"
INTRODUCTION = """# Item response models: how far estimates can be trusted

Matrices are drawn from a model and fitted with it. Abilities and difficulties are standard normal (1PL, 2PL),
a is log-normal (0, 0.4); the 3PL's items are uniform within the published bounds. Means over five seeds, of
500 x 500 over two. Made by `python tests/benchmarks/irt_recovery.py TRACK`.

With few examinees an item's a and c are hardly known, whatever the optimiser: read a row's r of a before you
drop an item for its a. Abilities are known far better, as each rests on all items. Without priors the 2PL
finds items that discriminate too well where examinees are few (mean a): maximum likelihood fits the noise.

The likelihood reached is above that of the true parameters everywhere, and nowhere below that of a slow
reference (SLSQP with numerical derivatives, in tests/irt/test_fitting.py). On 60 matrices of 8 to 30 x 5 to
20, neither SLSQP, TNC, trust-constr nor plain L-BFGS-B from the published start was better by 1e-4; of twelve
random starts each, the best was better once, by 0.009. On 40 x 60 plain L-BFGS-B was worse by up to 0.42, and
never better. Matrices of more than 20,000 responses have several maxima, too, and are gone at from one start.

Without priors the scale of the 1PL and 2PL is held at mean 0 (and deviation 1). Where bounds are reached (all got
a question right, a = 4) that costs likelihood which another scale would have within the same bounds: up to 0.3 in
the 1PL and 3.7 in the 2PL, on matrices of 8 x 10 to 100 x 80. On the scale that is held nothing better was found.
"""


def drawn(model: str, m: int, n: int, seed: int, theta: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """Responses, theta, a, b, c: the 3PL's items within the published bounds."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, 1, m) if theta is None else theta
    if model == "3pl":
        a, b, c = (rng.uniform(low, high, n) for low, high in ((0.5, 1.5), (0.01, 1), (0.2, 0.4)))
    else:
        a = rng.lognormal(0, 0.4, n) if model == "2pl" else np.ones(n)
        b, c = rng.normal(0, 1, n), np.zeros(n)
    chance = probability(theta, a, b, c)
    return (rng.random(chance.shape) < chance).astype(float), theta, a, b, c


def row(model: str, priors: bool, m: int, n: int) -> str:
    found: list[list[float]] = []
    for seed in range(SEEDS if m < 500 else 2):
        values, theta, a, b, c = drawn(model, m, n, seed)
        f = fit(values, Settings.of(model, priors=priors))  # type: ignore[arg-type]
        # On the scale of the truth's mean and deviation, where the model fixes none.
        shift = theta.mean() if model == "1pl" else 0.0
        known = ~np.isnan(f.se_theta)
        scale = theta.std() if model == "2pl" and not priors else 1.0
        centre = theta.mean() if model == "2pl" and not priors else shift
        off = f.theta * scale + centre - theta
        held = np.abs(off[known]) < 1.96 * f.se_theta[known] * scale
        found.append(
            [
                np.nan if model == "1pl" else np.corrcoef(f.a, a)[0, 1],
                np.nan if model == "1pl" else f.a.mean() / scale / a.mean(),
                np.corrcoef(f.b, b)[0, 1],
                np.sqrt(np.mean((f.b * scale + centre - b) ** 2)),
                np.corrcoef(f.theta, theta)[0, 1],
                np.sqrt(np.mean(off**2)),
                held.mean(),
                f.log_likelihood - log_likelihood(Responses(values), theta, a, b, c),
                f.seconds,
            ]
        )
    x = np.array(found).mean(axis=0)
    text = ["" if np.isnan(value) else f"{value:.2f}" for value in x[:7]]
    return (
        f"| {model.upper()}{', priors' if priors else ''} | {m} x {n} | "
        + " | ".join(text)
        + f" | +{x[7]:.0f} | {x[8]:.2f} |"
    )


def hierarchical() -> str:
    found = []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        codes = [rng.integers(0, size, 60) for size in (5, 6, 3)]
        truth = [rng.normal(0, sd, size) for sd, size in ((0.8, 5), (0.5, 6), (0.3, 3))]
        theta = np.sum([t[k] for t, k in zip(truth, codes, strict=True)], axis=0)
        values, *_ = drawn("3pl", 60, 700, seed, theta)
        rows = [tuple(map(str, one)) for one in zip(*codes, strict=True)]
        f = fit(values, None, Components.of(("llm", "retriever", "icl"), rows))
        used = [
            np.array([t[int(n)] for n in part.levels]) for part, t in zip(f.components, truth, strict=True)
        ]
        true = np.concatenate([one - one.mean() for one in used])
        ours = np.concatenate([part.theta for part in f.components])
        se = np.concatenate([part.se for part in f.components])
        stretch = float(ours @ true / (true @ true))
        found.append(
            [
                np.corrcoef(ours, true)[0, 1],
                stretch,
                np.mean(np.abs(ours - true) < 1.96 * se),
                np.mean(np.abs(ours / stretch - true) < 1.96 * se / stretch),
                f.seconds,
            ]
        )
    x = np.array(found).mean(axis=0)
    return f"""\
60 examinees x 700 questions, three components with 14 levels, 3PL as published, {SEEDS} seeds: levels'
abilities correlate with the true ones at {x[0]:.3f} and are stretched by a factor of {x[1]:.2f}. Of the 95% intervals
{x[2]:.0%} hold the truth, and {x[3]:.0%} once the stretch is taken out. A fit takes {x[4]:.1f} s.

The stretch is joint maximum likelihood's own: it has three numbers for each question, and does not grow exact
as questions are added (Neyman & Scott, Econometrica 16, 1948), only as examinees are. So intervals say how sure
an *order* is, on the scale that was fitted; they do not say how sure the scale is."""


def official(track: str) -> str:
    """The sections on a track of dl19."""
    import trecexam

    with trecexam.open_track(track) as opened:
        exam = opened.fit_exam()
    fitted, f = exam.fitted, exam.fitted.fit
    taus = {(ours, theirs): one.kendall_tau for ours, theirs, one in exam.official}
    names = list(dict.fromkeys(theirs for _, theirs in taus))
    lines = ["| official | tau of abilities | tau of the share of items covered |", "|---|---|---|"]
    lines += [f"| {name} | {taus['theta', name]:.3f} | {taus['accuracy', name]:.3f} |" for name in names]
    worst = sorted(range(len(f.a)), key=lambda n: fitted.quality[n].rank)
    told = [n for n in worst if fitted.quality[n].share not in (0, 1)][:10]
    items = ["| a | b | covered by | rest correlation | question |", "|---|---|---|---|---|"]
    for n in told:
        one, name = fitted.quality[n], fitted.exam.items[n]
        items.append(
            f"| {f.a[n]:.2f} | {f.b[n]:.2f} | {one.share:.0%} | {one.rest_correlation:.2f} | "
            f"{fitted.exam.texts[name]} ({fitted.exam.queries[name]}) |"
        )
    notes = [one.note for one in fitted.quality]
    kinds = [
        sum(word in note for note in notes)
        for word in ("all got it right", "no one got it right", "redundant", "weaker")
    ]
    return f"""\
## TREC DL 2019: the bank as an exam of 37 runs

`trecexam exam fit TRACK` with default settings: 2PL with priors. A run has an item right where one of its
first 20 passages is rated 4 or 5 by FLAN-T5-large.

{NEWLINE.join(lines)}

Of {len(notes)} items {kinds[0]} are covered by all runs, {kinds[1]} by none; {kinds[2]} have nearly the
responses of another, and {kinds[3]} are covered by weaker runs more often. One run covers 15% of the items, the
others 60 to 74%: abilities, which weigh items by how well they tell runs apart, see more of an order there than
the share of items does.

### The ten worst items

Of those that some runs cover and others do not, the least discriminating:

{NEWLINE.join(items)}
"""


def main() -> None:
    head = (
        "| model | examinees x questions | r of a | mean a, by the true one | r of b | RMSE of b | "
        "r of theta | "
        "RMSE of theta | 95% intervals that hold | log-likelihood above the truth's | seconds |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|"
    )
    rows = []
    for model in ("1pl", "2pl", "3pl"):
        for priors in (False, True):
            for m, n in SIZES:
                rows.append(row(model, priors, m, n))
                print(rows[-1], flush=True)
    parts = [f"## Recovery\n\n{head}\n" + "\n".join(rows) + "\n", f"## Components\n\n{hierarchical()}\n"]
    if len(sys.argv) > 1:
        parts.append(official(sys.argv[1]))
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    RESULTS.write_text(f"{INTRODUCTION}\nMade on {machine}.\n\n" + "\n".join(parts))


if __name__ == "__main__":
    main()
