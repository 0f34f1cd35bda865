"""Tables for the tests of linear-Gaussian nodes, and the shortest way from a table to a node."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from suffice.domain import Domain, Variable
from suffice.models.bayesian.nodes.linear_gaussian import LinearGaussianNode
from suffice.models.bayesian.nodes.linear_gaussian_learner import LinearGaussianLearner
from suffice.sources import open_source, summarize_source
from suffice.statistics import Summary


def domain_of(frame: pd.DataFrame, names: Sequence[Any], states: Any = None) -> Domain:
    """The family's domain: parents, then the node; text is discrete."""
    found = []
    for name in names:
        if frame[name].dtype.kind == "f":
            found.append(Variable(name, "real"))
        else:
            found.append(Variable.discrete(name, (states or {}).get(name, sorted(set(frame[name])))))
    return Domain(found)


def summarised(frame: pd.DataFrame, learner: LinearGaussianLearner, domain: Domain, weights: Any = None) -> Summary:
    """The moments that the learner asks for."""
    statistics = learner.statistics(domain)
    source = open_source(frame, sample_weight=weights)
    columns = dict.fromkeys(name for key in statistics for name in key.columns)
    wide = Domain([*domain.variables, *(Variable(name, "real") for name in columns if name not in domain)])
    return summarize_source(source, wide, statistics)


def learn(frame: pd.DataFrame, names: Sequence[Any], states: Any = None, **options: Any) -> LinearGaussianNode:
    """The node `names[-1]` given `names[:-1]`."""
    learner = LinearGaussianLearner(**options)
    domain = domain_of(frame, names, states)
    return learner.learn(domain, summarised(frame, learner, domain))


def least_squares(frame: pd.DataFrame, parents: Sequence[Any], node: Any) -> tuple[Any, float]:
    """Weights, intercept first, and mean square of the residuals, by numpy."""
    x = np.column_stack([np.ones(len(frame)), *(frame[name] for name in parents)])
    y = frame[node].to_numpy()
    weights = np.linalg.lstsq(x, y, rcond=None)[0]
    return weights, float(np.mean((y - x @ weights) ** 2))


def mixed(rows: int = 240, seed: int = 0) -> pd.DataFrame:
    """Two discrete and three real columns; y depends on all."""
    rng = np.random.default_rng(seed)
    g, h = rng.choice(list("uvw"), rows), rng.choice(["no", "yes"], rows)
    a = rng.normal(3.0, 2.0, rows)
    b = 0.5 * a + rng.normal(0.0, 1.0, rows)
    shift = np.select([g == "u", g == "v"], [1.0, -2.0], 4.0)
    y = shift + np.where(h == "yes", 2.0, -1.0) * a - b + rng.normal(0.0, 0.7, rows)
    return pd.DataFrame({"g": g, "a": a, "h": h, "b": b, "y": y})


def codes_of(frame: pd.DataFrame, domain: Domain) -> dict[Any, Any]:
    """Columns as a node takes them: codes and numbers."""
    return {
        v.name: np.array([v.index(s) for s in frame[v.name]]) if v.kind == "discrete" else frame[v.name].to_numpy()
        for v in domain.variables
    }
