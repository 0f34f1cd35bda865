"""Families with several parameters beside or instead of one linear predictor: labels, ordered labels and vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import OptionError
from suffice.families import gaussian
from suffice.families.base import take_states
from suffice.families.categoricals import Categoricals
from suffice.families.normals import MultivariateNormals
from suffice.models.glm.coefficients import Coefficients
from suffice.models.glm.cumulative import LINKS, log_between
from suffice.models.glm.design import DesignRows
from suffice.models.glm.family import ResponseFamily
from suffice.models.glm.links import find_link
from suffice.models.glm.softmax import softmax


def _drawn_labels(fitted: Coefficients, shares: Floats, rng: np.random.Generator) -> Any:
    """One label for each row of probabilities (n, classes)."""
    assert fitted.classes is not None
    return take_states(fitted.classes, Categoricals(shares).draw_each(rng))


class MultinomialFamily(ResponseFamily):
    """Labels by softmax: a linear predictor for each class but the reference."""

    name = "multinomial"
    canonical = "logit"
    links = ("logit",)
    response = "labels"
    support = "labels"

    def linear(self, fitted: Coefficients, table: DesignRows, offset: Floats | None) -> Floats:
        """(n, classes), with 0 for the reference, last; labels that a direction rules out have -inf."""
        eta = fitted.design.eta(table, fitted.beta)
        if offset is not None:
            eta += offset[:, None]
        eta = np.column_stack((eta, np.zeros(len(eta))))
        if fitted.direction is None:
            return eta
        along = fitted.design.eta(table, fitted.direction)
        size = np.abs(along).max(initial=0.0)
        along = np.column_stack((along, np.zeros(len(along))))
        return np.where(along >= along.max(axis=1, keepdims=True) - 1e-7 * size, eta, -np.inf)

    def predict(self, fitted: Coefficients, eta: Floats, kind: str) -> Any:
        """Probabilities, log odds against the reference, or the likeliest label."""
        assert fitted.classes is not None
        assert fitted.reference is not None
        if kind == "link":
            with np.errstate(invalid="ignore"):
                return np.nan_to_num(eta[:, :-1] - eta[:, -1:], nan=-np.inf, posinf=np.inf, neginf=-np.inf)
        whole = softmax(eta)
        order = [label for label in range(len(fitted.classes)) if label != fitted.reference] + [fitted.reference]
        shares = np.empty_like(whole)
        shares[:, order] = whole
        return shares if kind == "response" else take_states(fitted.classes, shares.argmax(axis=1))

    def log_prob_of_rows(self, fitted: Coefficients, eta: Floats, y: Floats, trials: Floats | None) -> Floats:
        """Log of the probability of each label."""
        shares = self.predict(fitted, eta, "response")
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(shares[np.arange(len(y)), y.astype(np.intp)]))

    def draw(self, fitted: Coefficients, mean: Floats, rng: np.random.Generator) -> Any:
        """Labels."""
        return _drawn_labels(fitted, mean, rng)


class OrdinalFamily(ResponseFamily):
    """Ordered labels, ``P(y <= k | x) = F(threshold_k - x' coefficients - offset)``: cumulative links.

    There is one linear predictor, and a threshold between each label and the next.
    """

    name = "ordinal"
    canonical = "logit"
    links = LINKS
    response = "ordered"
    support = "ordered labels"

    def check_options(self, options: Mapping[str, Any]) -> None:
        """The thresholds are intercepts without a prior, and there is no reference."""
        if not options["fit_intercept"]:
            raise OptionError("The thresholds of ordered labels take the place of an intercept; leave fit_intercept.")
        if options["penalize_intercept"]:
            raise OptionError("The thresholds of ordered labels take no prior; leave penalize_intercept out.")
        if not isinstance(options["reference"], Mapping | None):
            raise OptionError("Ordered labels have no reference class; give their order with states=[...].")

    def linear(self, fitted: Coefficients, table: DesignRows, offset: Floats | None) -> Floats:
        """Thresholds less eta (n, K - 1): the link of P(y <= k)."""
        held = len(fitted.thresholds)
        eta = fitted.design.eta(table, fitted.beta)
        ends = fitted.thresholds - (eta if offset is None else eta + offset[:, None])
        if fitted.direction is None:
            return ends
        along = fitted.direction[:held, 0] - fitted.design.eta(table, fitted.direction[held:])
        still = np.abs(along) <= 1e-7 * np.abs(along).max(initial=0.0)
        return np.where(still, ends, np.where(along > 0.0, np.inf, -np.inf))

    def _log_shares(self, fitted: Coefficients, eta: Floats) -> Floats:
        """Log probabilities (n, K)."""
        edge = np.full((len(eta), 1), np.inf)
        ends = np.concatenate((-edge, eta, edge), axis=1)
        return log_between(find_link(fitted.link), ends[:, 1:], ends[:, :-1])

    def predict(self, fitted: Coefficients, eta: Floats, kind: str) -> Any:
        """Probabilities, the link of the cumulative ones, or the likeliest label."""
        assert fitted.classes is not None
        if kind == "link":
            return eta
        shares = np.exp(self._log_shares(fitted, eta))
        return shares if kind == "response" else take_states(fitted.classes, shares.argmax(axis=1))

    def log_prob_of_rows(self, fitted: Coefficients, eta: Floats, y: Floats, trials: Floats | None) -> Floats:
        """Log of the probability of each label."""
        return np.asarray(self._log_shares(fitted, eta)[np.arange(len(y)), y.astype(np.intp)])

    def draw(self, fitted: Coefficients, mean: Floats, rng: np.random.Generator) -> Any:
        """Labels."""
        return _drawn_labels(fitted, mean, rng)


class MultivariateGaussianFamily(ResponseFamily):
    """Gaussian vectors: a linear predictor for each entry, and the covariance of what is left."""

    name = "multivariate_gaussian"
    links = ("identity",)
    response = "vectors"
    support = "vectors of finite numbers"

    def linear(self, fitted: Coefficients, table: DesignRows, offset: Floats | None) -> Floats:
        """The means."""
        eta = fitted.design.eta(table, fitted.beta)
        return eta if offset is None else eta + offset[:, None]

    def predict(self, fitted: Coefficients, eta: Floats, kind: str) -> Any:
        """The means."""
        if kind == "class":
            raise OptionError(f"The {self.name} response has no labels; use kind='response'.")
        return eta

    def log_prob_of_rows(self, fitted: Coefficients, eta: Floats, y: Floats, trials: Floats | None) -> Floats:
        """Normal log densities."""
        assert fitted.residual_covariance is not None
        return gaussian.log_density(np.zeros(y.shape[1]), fitted.residual_covariance, y - eta)

    def draw(self, fitted: Coefficients, mean: Floats, rng: np.random.Generator) -> Any:
        """Normal draws."""
        assert fitted.residual_covariance is not None
        centre = np.zeros(mean.shape[1])
        return mean + MultivariateNormals(centre, fitted.residual_covariance).sample(len(mean), rng)
