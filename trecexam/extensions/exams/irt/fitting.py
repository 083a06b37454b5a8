"""Maximum likelihood estimates of all items and examinees together."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trecexam.extensions.exams.irt.components import Components
from trecexam.extensions.exams.irt.estimation.likelihood import Responses, log_likelihood
from trecexam.extensions.exams.irt.estimation.marginal import AbilityPosterior, ability_posterior
from trecexam.extensions.exams.irt.estimation.objective import Objective, ParameterPoint
from trecexam.extensions.exams.irt.estimation.optimising import optimum
from trecexam.extensions.exams.irt.estimation.uncertainty import StandardErrors, at_bound, standard_errors
from trecexam.extensions.exams.irt.model import Errors, Floats, errors
from trecexam.extensions.exams.irt.settings import Settings


@dataclass(frozen=True, eq=False)
class LevelAbilities:
    """The abilities of one component's levels, which sum to 0, and their standard errors."""

    name: str
    levels: tuple[str, ...]
    theta: Floats
    se: Floats


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model. Missing standard errors are NaN (see `standard_errors`).

    Attributes:
        a, b, c, se_a, se_b, se_c: of each item; the standard errors are of the observed information.
        n: responses to each item.
        theta, se_theta, accuracy: of each examinee; accuracy is the share of right responses. The 95%
            interval theta +- 1.96 se_theta reaches the farther end of the marginal posterior's 95% interval
            (`ability_posterior`), also with components.
        components: each component's abilities; () without components.
        mean, se_mean: with components, the general mean; NaN without.
        log_likelihood: log-likelihood of all responses, in nats, without priors.
        errors: root mean square errors of the model and a baseline.
        bound: masks of values at a bound for "a", "b", "c" (items) and "theta" (examinees or levels).
        converged, iterations: of L-BFGS-B.
        seconds: wall-clock time.
        notes: notes on how to read the estimates, one per line.
    """

    settings: Settings
    a: Floats
    b: Floats
    c: Floats
    theta: Floats
    se_a: Floats
    se_b: Floats
    se_c: Floats
    se_theta: Floats
    n: NDArray[np.intp]
    accuracy: Floats
    components: tuple[LevelAbilities, ...]
    mean: float
    se_mean: float
    log_likelihood: float
    errors: Errors
    bound: Mapping[str, NDArray[np.bool_]]
    converged: bool
    iterations: int
    seconds: float
    notes: tuple[str, ...]


def fit(responses: ArrayLike, settings: Settings | None = None, components: Components | None = None) -> Fit:
    """Fit a model to a response matrix by L-BFGS-B with the analytic gradient.

    Joint maximum likelihood: items and examinees are estimated together. With priors, the joint posterior
    mode.

    Args:
        responses: 1, 0, or NaN if missing; shape (n_examinees, n_items).
        settings: None for the 3PL with the published bounds and starts.
        components: components of each examinee; theta is then the sum of its levels' abilities.

    Raises:
        ValueError: an invalid matrix, or no model can be fitted; see `check`.
    """
    from threadpoolctl import threadpool_limits

    values, settings = check(responses), settings or Settings.of()
    began = time.perf_counter()
    notes: list[str] = []
    if components is not None:
        components, dropped = _varying(components, len(values))
        notes += dropped
    objective = Objective(Responses(values), settings, None if components is None else components.design())
    # L-BFGS-B makes thousands of tiny BLAS calls: on a busy machine, threads that wait for one another take
    # twenty times as long.
    with threadpool_limits(1, user_api="blas"):
        done = optimum(objective)
        point = done.point
        theta = objective.theta(point)
        se = standard_errors(objective, point)
        posterior = ability_posterior(objective, point)
    # Responses say nothing about items that all or none got right, whatever a bound or prior gives.
    se.items[constant(values)] = np.nan
    if not se.joint:
        notes.append(
            "the information matrix is not positive definite: standard errors treat all other parameters "
            "as known, and are too small"
        )
    se_theta = se.theta
    if posterior is None:
        notes.append(
            "intervals of abilities come from the curvature alone, and are likely too short: integrating "
            "over the items would take minutes or does not converge"
        )
    else:
        se_theta = np.where(np.isnan(se.theta), np.nan, posterior.errors_of(theta, objective.design))
    parts, mean, se_mean = (
        _levels(components, point, se, posterior, notes) if components else ((), np.nan, np.nan)
    )
    if not done.converged:
        notes.append(f"not converged after {done.iterations:,} iterations: {done.why}")
    se_a, se_b, se_c = se.items.T
    return Fit(
        settings=settings,
        a=point.a,
        b=point.b,
        c=point.c,
        theta=theta,
        se_a=se_a,
        se_b=se_b,
        se_c=se_c,
        se_theta=se_theta,
        n=np.asarray((~np.isnan(values)).sum(axis=0), np.intp),
        accuracy=np.nanmean(values, axis=1),
        components=parts,
        mean=mean,
        se_mean=se_mean,
        log_likelihood=log_likelihood(objective.responses, theta, point.a, point.b, point.c),
        errors=errors(values, theta, point.a, point.b, point.c),
        bound=at_bound(objective, point),
        converged=done.converged,
        iterations=done.iterations,
        seconds=time.perf_counter() - began,
        notes=tuple(notes),
    )


def check(responses: ArrayLike) -> Floats:
    """Return the matrix as floats after checking that a model can be fitted.

    Raises:
        ValueError: a wrong shape or value, fewer than two examinees or items, a row or column without a
            response, or examinees with identical responses only.
    """
    values = np.array(responses, np.float64)
    if values.ndim != 2:
        raise ValueError(f"give a matrix of examinees x items; its shape is {values.shape}")
    missing = np.isnan(values)
    if not (missing | (values == 0) | (values == 1)).all():
        odd = values[~(missing | (values == 0) | (values == 1))][0]
        raise ValueError(f"a response is {odd:g}: give 0, 1, or NaN for no response")
    for count, what, why in (
        (values.shape[0], "examinee", "abilities are relative to each other"),
        (values.shape[1], "item", "discrimination cannot be estimated from one"),
    ):
        if count < 2:
            raise ValueError(
                f"{count} {what}{'' if count == 1 else 's'}: at least two are needed, because {why}"
            )
    if missing.all(axis=1).any() or missing.all(axis=0).any():
        raise ValueError("an examinee or an item without any response: leave it out")
    if constant(values).all():
        raise ValueError("every item has the same response from all examinees: no model can be fitted")
    return values


def constant(values: Floats) -> NDArray[np.bool_]:
    """Return the items that all or none of the examinees who responded got right; shape (n_items,)."""
    right, n_responses = np.nansum(values, axis=0), (~np.isnan(values)).sum(axis=0)
    return np.asarray((right == 0) | (right == n_responses), np.bool_)


def _varying(components: Components, n_examinees: int) -> tuple[Components, list[str]]:
    """Return the components that vary between examinees, and a note on each constant component."""
    if len(components.codes) != n_examinees:
        raise ValueError(f"components of {len(components.codes)} examinees for {n_examinees} in the matrix")
    constant_ = components.constant
    if len(constant_) == len(components.names):
        raise ValueError("every component has the same level for all examinees: no effect can be estimated")
    lines = [
        f"left out component '{name}': it is '{levels[0]}' for all examinees"
        for name, levels in zip(components.names, components.levels, strict=True)
        if name in constant_
    ]
    return (components.without(constant_) if constant_ else components), lines


def _levels(
    components: Components,
    point: ParameterPoint,
    se: StandardErrors,
    posterior: AbilityPosterior | None,
    notes: list[str],
) -> tuple[tuple[LevelAbilities, ...], float, float]:
    """Return the centred abilities of the components' levels, and the general mean."""
    centring = components.centring()
    values = centring @ components.smallest(point.ability)
    fixed = np.isnan(np.diag(se.ability))
    spread = AbilityPosterior(components.smallest(point.ability), np.nan_to_num(se.ability))
    if posterior is not None:
        spread = posterior._replace(ability=components.smallest(posterior.ability))
    errors_ = spread.errors_of(values, centring)
    distinct = components.told_apart()
    parts, start, indistinct = [], 0, []
    for name, levels in zip(components.names, components.levels, strict=True):
        part = slice(start, start + len(levels))
        of_part = np.where(distinct[part] & ~fixed[part], errors_[:-1][part], np.nan)
        parts.append(LevelAbilities(name, levels, values[part], of_part))
        sure = zip(levels, distinct[part], strict=True)
        indistinct += [f"{name} '{level}'" for level, is_sure in sure if not is_sure]
        start += len(levels)
    if indistinct:
        more = f" and {len(indistinct) - 4} more" if len(indistinct) > 4 else ""
        level_names = ", ".join(indistinct[:4]) + more
        notes.append(
            f"effects of components that always occur together cannot be separated ({level_names}): their "
            f"shares are the "
            "smallest that give the examinees' abilities, and have no standard error"
        )
    return tuple(parts), float(values[-1]), float(errors_[-1])
