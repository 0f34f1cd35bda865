"""Ordered labels as a family: ``P(y <= k | x) = F(threshold_k - x' coefficients - offset)``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import OptionError
from suffice.families.base import take_states
from suffice.models.glm.cumulative import LINKS, log_between
from suffice.models.glm.design import Table
from suffice.models.glm.figures import Wishes
from suffice.models.glm.learned import Learned
from suffice.models.glm.links import Link, find_link
from suffice.models.glm.ordinal import OrdinalFit, ahead_of, problem_of
from suffice.models.glm.priors import Penalties
from suffice.models.glm.problem import Problem
from suffice.models.glm.rows import Kind, Read
from suffice.models.glm.vector_families import VectorFamily, drawn_labels

Floats = NDArray[np.float64]


class OrdinalFamily(VectorFamily):
    """Cumulative links: one linear predictor, and a threshold between each label and the next."""

    name = "ordinal"

    def kind(self, model: Any) -> Kind:
        """Ordered labels."""
        options = model._options
        link = self._link(options["link"])
        if not options["fit_intercept"]:
            raise OptionError("The thresholds of ordered labels take the place of an intercept; leave fit_intercept.")
        if options["penalize_intercept"]:
            raise OptionError("The thresholds of ordered labels take no prior; leave penalize_intercept out.")
        if options["reference"] is not None:
            raise OptionError("Ordered labels have no reference class; give their order with states=[...].")
        return Kind("ordered", model._law_option("states"), None, link.name)

    def _link(self, name: Any) -> Link:
        link = find_link("logit" if name is None else name)
        if link.name not in LINKS:
            raise OptionError(f"The ordinal family does not take the link {link.name!r}; it takes {', '.join(LINKS)}.")
        return link

    def learn(self, model: Any, read: Read, wishes: Wishes) -> Learned:
        """Newton's method on thresholds and coefficients together, or the solver asked for."""
        penalties = ahead_of(model._penalties(read.design, 1), len(read.ahead))
        link, options = self._link(model._options["link"]), model._options
        return OrdinalFit(read, link, penalties, wishes, model._control(), options["covariance"]).learned()

    def linear(self, learned: Learned, table: Table, offset: Floats | None) -> Floats:
        """Thresholds less eta (n, K - 1): the link of P(y <= k)."""
        held = len(learned.thresholds)
        eta = learned.design.eta(table, learned.beta)
        found = learned.thresholds - (eta if offset is None else eta + offset[:, None])
        if learned.direction is None:
            return found
        along = learned.direction[:held, 0] - learned.design.eta(table, learned.direction[held:])
        still = np.abs(along) <= 1e-7 * np.abs(along).max(initial=0.0)
        return np.where(still, found, np.where(along > 0.0, np.inf, -np.inf))

    def _log_shares(self, learned: Learned, eta: Floats) -> Floats:
        """Log probabilities (n, K)."""
        edge = np.full((len(eta), 1), np.inf)
        ends = np.concatenate((-edge, eta, edge), axis=1)
        return log_between(self._link(learned.link), ends[:, 1:], ends[:, :-1])

    def predict(self, learned: Learned, eta: Floats, kind: str) -> Any:
        """Probabilities, the link of the cumulative ones, or the likeliest label."""
        assert learned.classes is not None
        if kind == "link":
            return eta
        shares = np.exp(self._log_shares(learned, eta))
        return shares if kind == "response" else take_states(learned.classes, shares.argmax(axis=1))

    def log_prob(self, learned: Learned, eta: Floats, y: Floats) -> Floats:
        """Log of the probability of each label."""
        return np.asarray(self._log_shares(learned, eta)[np.arange(len(y)), y.astype(np.intp)])

    def sample(self, learned: Learned, mean: Floats, rng: np.random.Generator) -> Any:
        """Labels."""
        return drawn_labels(learned, mean, rng)

    def problem(self, read: Read, learned: Learned, penalties: Penalties) -> Problem:
        """The problem of the fit."""
        return problem_of(read, self._link(learned.link), ahead_of(penalties, len(read.ahead)))
