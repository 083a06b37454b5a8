# ruff: noqa: E501
"""How well item response models recover the parameters of simulated matrices: prints the tables of results/irt.md.

    python tests/benchmarks/irt_recovery.py [TRACK of dl19]

The page says what the columns are. Takes some ten minutes. The figures say how far estimates can be trusted, not
whether the code is right (tests/extensions/exams/irt does).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from trecexam.extensions.exams.irt.components import Components
from trecexam.extensions.exams.irt.estimation.likelihood import Responses, log_likelihood
from trecexam.extensions.exams.irt.estimation.objective import Objective, ParameterPoint
from trecexam.extensions.exams.irt.estimation.uncertainty import StandardErrors, standard_errors
from trecexam.extensions.exams.irt.fitting import Fit, fit
from trecexam.extensions.exams.irt.model import probability
from trecexam.extensions.exams.irt.settings import Settings

SIZES = ((20, 100), (60, 200), (120, 400), (200, 200))
SEEDS = 20
#: scipy's own limit, which the released code leaves as it is. A numerical gradient takes one of them a parameter.
EVALUATIONS = 15_000
Estimates = dict[str, np.ndarray]
#: Parameter -> truth, estimate, standard error.
Recovered = dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]


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


def published(values: np.ndarray) -> tuple[Estimates, float]:
    """Where the released code would stop, and the log-likelihood there."""
    objective = Objective(Responses(values), Settings.of("3pl"), None)
    start = objective.start()
    with threadpool_limits(1, user_api="blas"):
        done = minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=objective.bounds(),
            options={"maxfun": EVALUATIONS // (len(start) + 1)},
        )
    point = objective.point(done.x)
    return {"a": point.a, "b": point.b, "c": point.c, "theta": point.ability}, -float(done.fun)


def curvature(values: np.ndarray, f: Fit, made_of: Components | None = None) -> StandardErrors:
    """Of the curvature alone."""
    ability = f.theta
    if made_of is not None:
        levels = np.concatenate([part.theta for part in f.components])
        ability = made_of.smallest(levels + f.mean / len(f.components))
    objective = Objective(Responses(values), f.settings, None if made_of is None else made_of.design())
    return standard_errors(objective, ParameterPoint(f.a, f.b, f.c, ability))


def recovered(model: str, how: str, m: int, n: int, seed: int) -> tuple[Recovered, float, float]:
    """What was found of one matrix, "curvature" that of theta by it; log-likelihood above the truth's; seconds."""
    values, theta, a, b, c = drawn(model, m, n, seed)
    truth = {"a": a, "b": b, "c": c, "theta": theta}
    true_likelihood = log_likelihood(Responses(values), theta, a, b, c)
    began = time.perf_counter()
    if how == "published":
        estimates, likelihood = published(values)
        errors = {name: np.full(len(at), np.nan) for name, at in estimates.items()}
    else:
        f = fit(values, Settings.of(model, priors=how == "priors"))  # type: ignore[arg-type]
        estimates = {name: getattr(f, name) for name in truth}
        errors = {name: getattr(f, f"se_{name}") for name in truth}
        likelihood = f.log_likelihood
        # The truth on the scale that the estimate is held at.
        if f.settings.anchor in ("mean", "standard"):
            unit = theta.std() if f.settings.anchor == "standard" else 1.0
            truth |= {"a": a * unit, "b": (b - theta.mean()) / unit, "theta": (theta - theta.mean()) / unit}
    seconds = time.perf_counter() - began
    known = {name: (truth[name], estimates[name], errors[name]) for name in truth}
    bare = curvature(values, f).theta if how != "published" else np.full(m, np.nan)
    known["curvature"] = (known["theta"][0], known["theta"][1], bare)
    return known, likelihood - true_likelihood, seconds


def row(model: str, how: str, m: int, n: int) -> str:
    rows: list[list[float]] = []
    held: dict[str, list[bool]] = {name: [] for name in ("a", "b", "c", "theta", "curvature")}
    widths: list[float] = []
    for seed in range(SEEDS):
        found, likelihood, seconds = recovered(model, how, m, n, seed)
        numbers: list[float] = []
        widths += (found["theta"][2] / found["curvature"][2]).tolist()
        for name, (true, estimate, se) in found.items():
            free = bool(np.ptp(true) > 0)
            numbers += [
                float(np.corrcoef(estimate, true)[0, 1]) if free and np.ptp(estimate) > 0 else np.nan,
                float(np.sqrt(np.mean((estimate - true) ** 2))) if free else np.nan,
            ]
            known = ~np.isnan(se)
            held[name] += (np.abs(estimate - true) <= 1.96 * se)[known].tolist() if free else []
        rows.append([*numbers, likelihood, seconds])
    x = np.array(rows).mean(axis=0)
    text = ["" if np.isnan(value) else f"{value:.3f}" for value in x[:8]]
    shares = ["" if not held[name] else f"{np.mean(held[name]):.1%}" for name in ("theta", "a", "b", "c")]
    shares.insert(1, f"{np.mean(held['curvature']):.1%}" if held["curvature"] else "")
    shares.insert(2, "" if how == "published" else f"{np.nanmedian(widths):.2f}")
    names = {"published": "published code", "ml": "ML", "priors": "priors"}
    return (
        f"| {model.upper()}, {names[how]} | {m} x {n} | {text[6]} | {text[7]} | "
        + " | ".join([*shares[:3], *text[:6], *shares[3:]])
        + f" | {x[-2]:+.0f} | {x[-1]:.2f} |"
    )


def hierarchical(priors: bool) -> str:
    """A row of the table of components."""
    rows: list[list[float]] = []
    held: dict[str, list[bool]] = {"levels": [], "theta": [], "curvature": []}
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        codes = [rng.integers(0, size, 60) for size in (5, 6, 3)]
        truth = [rng.normal(0, sd, size) for sd, size in ((0.8, 5), (0.5, 6), (0.3, 3))]
        theta = np.sum([t[k] for t, k in zip(truth, codes, strict=True)], axis=0)
        values, *_ = drawn("3pl", 60, 700, seed, theta)
        made_of = [tuple(map(str, each)) for each in zip(*codes, strict=True)]
        split = Components.of(("llm", "retriever", "icl"), made_of)
        f = fit(values, Settings.of("3pl", priors=priors), split)
        used = [
            np.array([t[int(n)] for n in part.levels]) for part, t in zip(f.components, truth, strict=True)
        ]
        true = np.concatenate([levels - levels.mean() for levels in used])
        ours = np.concatenate([part.theta for part in f.components])
        se = np.concatenate([part.se for part in f.components])
        held["levels"] += (np.abs(ours - true) <= 1.96 * se).tolist()
        centring = split.centring()[:-1]
        bare = np.sqrt(np.diag(centring @ curvature(values, f, split).ability @ centring.T))
        held["curvature"] += (np.abs(ours - true) <= 1.96 * bare).tolist()
        known = ~np.isnan(f.se_theta)
        held["theta"] += (np.abs(f.theta - theta) <= 1.96 * f.se_theta)[known].tolist()
        rows.append(
            [
                float(np.corrcoef(ours, true)[0, 1]),
                float(ours @ true / (true @ true)),
                float(np.sqrt(np.mean((ours - true) ** 2))),
                f.seconds,
            ]
        )
    x = np.array(rows).mean(axis=0)
    return (
        f"| {'priors' if priors else 'ML'} | {x[0]:.3f} | {x[1]:.2f} | {x[2]:.3f} | {np.mean(held['levels']):.1%} | "
        f"{np.mean(held['curvature']):.1%} | {np.mean(held['theta']):.1%} | {x[3]:.1f} |"
    )


def components() -> None:
    print(
        "\n| how | r of levels | stretch | RMSE of levels | 95% of levels | curvature | 95% of theta | seconds |"
    )
    print("|---" * 8 + "|", *map(hierarchical, (False, True)), sep="\n", flush=True)


def official(track: str) -> None:
    """The tables of a track of dl19."""
    import trecexam

    with trecexam.open_track(track) as opened:
        fitted = opened.exam.fit()
    taus = {(ours, theirs): one.kendall_tau.value for ours, theirs, one in fitted.official}
    print("\n| official | tau of abilities | tau of the share of items covered |\n|---|---|---|")
    for name in dict.fromkeys(theirs for _, theirs in taus):
        print(f"| {name} | {taus['theta', name]:.3f} | {taus['accuracy', name]:.3f} |")
    quality = list(fitted.tables["item_quality"])
    shares = [one["share"] for one in quality]
    print(f"\n{len(shares)} items: {shares.count(1)} covered by all runs, {shares.count(0)} by none")
    print("\n| a | b | covered by | question |\n|---|---|---|---|")
    for one in [one for one in quality if one["share"] not in (0, 1)][:10]:
        print(f"| {one['a']:.2f} | {one['b']:.2f} | {one['share']:.0%} | {one['text']} ({one['query_id']}) |")


def recovery(models: Sequence[str], ways: Sequence[str]) -> None:
    print(
        "\n| model | examinees x questions | r of theta | RMSE of theta | 95% of theta | curvature | width | r of a | RMSE of a | r of b | "
        "RMSE of b | r of c | RMSE of c | 95% of a | 95% of b | 95% of c | likelihood | seconds |\n"
        + "|---" * 18
        + "|"
    )
    for model in models:
        for how in ways:
            for m, n in SIZES:
                print(row(model, how, m, n), flush=True)


if __name__ == "__main__":
    recovery(("3pl",), ("published", "ml", "priors"))
    components()
    recovery(("1pl", "2pl"), ("ml", "priors"))
    if len(sys.argv) > 1:
        official(sys.argv[1])
