"""Families with several parameters beside or instead of one linear predictor: what each of them answers in its own way.

A family of one linear predictor is a `Family` with a `Link`. The families here bring their own fit, and their own way
from coefficients to probabilities or means.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Variable
from suffice.errors import EstimateError, OptionError
from suffice.families.base import take_states
from suffice.models.glm.design import Table
from suffice.models.glm.figures import Wishes
from suffice.models.glm.learned import Learned, learned_labels, learned_vectors
from suffice.models.glm.priors import Penalties
from suffice.models.glm.problem import Problem
from suffice.models.glm.rows import Kind, Read, recode
from suffice.models.glm.several import fit_labels, fit_vectors
from suffice.models.glm.softmax import softmax
from suffice.models.glm.vectors import fit_vectors_with_prior

Floats = NDArray[np.float64]


class VectorFamily(ABC):
    """What a model asks of such a family; `labels` says whether the response is a label."""

    name: ClassVar[str]
    labels: ClassVar[bool] = True

    @abstractmethod
    def kind(self, model: Any) -> Kind:
        """The kind of response, once the options of the model are found to be its own."""

    @abstractmethod
    def learn(self, model: Any, read: Read, wishes: Wishes) -> Learned:
        """The fit."""

    @abstractmethod
    def linear(self, learned: Learned, table: Table, offset: Floats | None) -> Floats:
        """Linear predictors (n, m) of rows; infinite where a separating direction decides them."""

    @abstractmethod
    def predict(self, learned: Learned, eta: Floats, kind: str) -> Any:
        """The answer of `GLM.predict` at linear predictors (n, m)."""

    @abstractmethod
    def log_prob(self, learned: Learned, eta: Floats, y: Floats) -> Floats:
        """Log density or probability of each row (n,)."""

    @abstractmethod
    def sample(self, learned: Learned, mean: Floats, rng: np.random.Generator) -> Any:
        """One response for each row of probabilities or means (n, m)."""

    def problem(self, read: Read, learned: Learned, penalties: Penalties) -> Problem:
        """The problem of the fit, for profile intervals."""
        raise EstimateError("Profile intervals need one linear predictor.")


def drawn_labels(learned: Learned, shares: Floats, rng: np.random.Generator) -> Any:
    """One label for each row of probabilities (n, classes)."""
    assert learned.classes is not None
    below = np.cumsum(shares, axis=1)[:, :-1]
    return take_states(learned.classes, (rng.random((len(shares), 1)) > below).sum(axis=1))


class MultinomialFamily(VectorFamily):
    """Labels by softmax: a linear predictor for each class but the reference."""

    name = "multinomial"

    def kind(self, model: Any) -> Kind:
        """Labels."""
        _only_link(model, self.name, "logit")
        return Kind("labels", model._law_option("states"))

    def learn(self, model: Any, read: Read, wishes: Wishes) -> Learned:
        """The codes are turned so that the reference is the last."""
        assert read.classes is not None
        options = model._options
        reference = read.classes[-1] if options["reference"] is None else options["reference"]
        place = Variable.discrete("y", read.classes).index(reference)
        order = [at for at in range(len(read.classes)) if at != place] + [place]
        recode(read.rows, np.argsort(order).astype(np.float64))
        penalties = model._penalties(read.design, len(order) - 1)
        fit = fit_labels(read.rows, read.design, len(order), penalties, wishes, model._control())
        return learned_labels(read, fit, order, penalties, covariance=options["covariance"])

    def linear(self, learned: Learned, table: Table, offset: Floats | None) -> Floats:
        """(n, classes), with 0 for the reference, last; labels that a direction rules out have -inf."""
        eta = learned.design.eta(table, learned.beta)
        if offset is not None:
            eta += offset[:, None]
        eta = np.column_stack((eta, np.zeros(len(eta))))
        if learned.direction is None:
            return eta
        along = learned.design.eta(table, learned.direction)
        size = np.abs(along).max(initial=0.0)
        along = np.column_stack((along, np.zeros(len(along))))
        return np.where(along >= along.max(axis=1, keepdims=True) - 1e-7 * size, eta, -np.inf)

    def predict(self, learned: Learned, eta: Floats, kind: str) -> Any:
        """Probabilities, log odds against the reference, or the likeliest label."""
        assert learned.classes is not None
        assert learned.reference is not None
        if kind == "link":
            with np.errstate(invalid="ignore"):
                return np.nan_to_num(eta[:, :-1] - eta[:, -1:], nan=-np.inf, posinf=np.inf, neginf=-np.inf)
        whole = softmax(eta)
        order = [at for at in range(len(learned.classes)) if at != learned.reference] + [learned.reference]
        found = np.empty_like(whole)
        found[:, order] = whole
        return found if kind == "response" else take_states(learned.classes, found.argmax(axis=1))

    def log_prob(self, learned: Learned, eta: Floats, y: Floats) -> Floats:
        """Log of the probability of each label."""
        shares = self.predict(learned, eta, "response")
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(shares[np.arange(len(y)), y.astype(np.intp)]))

    def sample(self, learned: Learned, mean: Floats, rng: np.random.Generator) -> Any:
        """Labels."""
        return drawn_labels(learned, mean, rng)


class MultivariateGaussianFamily(VectorFamily):
    """Vectors with a Gaussian law: a linear predictor for each entry, and the covariance of what is left."""

    name = "multivariate_gaussian"
    labels = False

    def kind(self, model: Any) -> Kind:
        """Vectors."""
        _only_link(model, self.name, "identity")
        return Kind("vectors")

    def learn(self, model: Any, read: Read, wishes: Wishes) -> Learned:
        """Least squares, or with a prior."""
        if model._options["covariance"] == "robust":
            raise OptionError("Robust errors are not offered for a response of vectors; fit its columns one by one")
        prior = model._options["prior"]
        if prior is None:
            return learned_vectors(read, fit_vectors(read.rows, read.design, wishes, model._control()))
        penalize = model._options["penalize_intercept"]
        return learned_vectors(read, fit_vectors_with_prior(read.rows, read.design, prior, penalize_intercept=penalize))

    def linear(self, learned: Learned, table: Table, offset: Floats | None) -> Floats:
        """The means."""
        eta = learned.design.eta(table, learned.beta)
        return eta if offset is None else eta + offset[:, None]

    def predict(self, learned: Learned, eta: Floats, kind: str) -> Any:
        """The means."""
        if kind == "class":
            raise OptionError(f"The {self.name} response has no labels; use kind='response'.")
        return eta

    def log_prob(self, learned: Learned, eta: Floats, y: Floats) -> Floats:
        """Normal log densities."""
        assert learned.residual_covariance is not None
        away = y - eta
        logdet = np.linalg.slogdet(learned.residual_covariance)[1]
        square = np.einsum("ij,ij->i", away, np.linalg.solve(learned.residual_covariance, away.T).T)
        return np.asarray(-0.5 * (square + logdet + y.shape[1] * math.log(2 * math.pi)))

    def sample(self, learned: Learned, mean: Floats, rng: np.random.Generator) -> Any:
        """Normal draws."""
        assert learned.residual_covariance is not None
        return mean + rng.normal(size=mean.shape) @ np.linalg.cholesky(learned.residual_covariance).T


def _only_link(model: Any, name: str, link: str) -> None:
    if model._options["link"] not in (None, link):
        raise OptionError(f"The {name} family has no other link; got {model._options['link']!r}.")
