"""The law that a Markov network holds: domain, weights, masks, and what is computed from them on request."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain
from suffice.engines.junction_tree import TreePlan
from suffice.errors import FileFormatError, NotFittedError, OptionError, listing
from suffice.models.markov.answers import Inference, MarkovAnswers, MarkovInference
from suffice.models.markov.builders import MarkovBuilders
from suffice.models.markov.feature_rank import parameter_count
from suffice.models.markov.feature_spread import centred, offsets
from suffice.models.markov.law import LawFamily, Masks
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.priors import read_penalty
from suffice.models.markov.statistics import MarkovStatistics
from suffice.solvers.penalties import LaplacePenalty
from suffice.solvers.scaling import inner
from suffice.table import Table

Floats = NDArray[np.float64]


class MarkovState(MarkovAnswers, MarkovStatistics, MarkovBuilders):
    """The fitted or given part of a Markov network.

    `_weights` are finite; `_limits` says which of them run to infinity, and `_masks` rules out the joint states that
    vanish then. Everything else is made from these when it is first asked for.
    """

    _domain: Domain
    _weights: Floats
    _limits: Floats
    _masks: Masks
    _names: tuple[Hashable, ...]

    @property
    def nodes(self) -> tuple[Hashable, ...]:
        """The variables, in the order in which the structure names them."""
        return self._names

    def _keep(self, family: LawFamily, weights: Floats, limits: Floats) -> None:
        stale = ("_inference", "_law", "_near_law", "_log_z", "_standing", "_face_size", "_observed_information")
        for name in (*stale, "scores_", "n_expectations_"):
            self.__dict__.pop(name, None)
        self._domain, self._weights, self._limits = family.model.domain, weights, limits
        self._masks, self._law = family.masks, family

    @property
    def n_params_(self) -> int:
        """Free parameters: the rank of the features, constants aside. Tables have more weights than that.

        With a Laplace prior at most the number of weights that are not at its centre.
        """
        rank, penalty = self._rank(), read_penalty(self._options["prior"], len(self._weights))
        if isinstance(penalty, LaplacePenalty):
            return min(rank, int(np.count_nonzero(self._weights != penalty.mean)))
        return rank

    def _rank(self) -> int:
        """The rank of the features, constants aside; the last one is kept."""
        domain = self._known_domain()
        last: tuple[Any, int] | None = self.__dict__.get("_last_rank")
        if last is None or last[0] != (domain, self._terms):
            last = (domain, self._terms), parameter_count(self._family().model)
            self._last_rank = last
        return last[1]

    # -- reading -----------------------------------------------------------------------------------------------------

    def _known_domain(self) -> Domain:
        if "_domain" not in self.__dict__:
            raise NotFittedError(f"This {type(self).__name__} has no weights yet. Call fit, or with_weights.")
        return self._domain

    def _family(self) -> LawFamily:
        if "_law" not in self.__dict__:
            model = LogLinear(self._known_domain(), self._terms)
            self._law = LawFamily(model, self._masks, limit_bytes=self._options["limit_bytes"])
        return self._law

    def _infer(self) -> Inference:
        if "_inference" not in self.__dict__:
            self._inference: Inference = MarkovInference(self._near(), self._weights, self._log_normaliser())
        return self._inference

    @property
    def plan_(self) -> TreePlan:
        """The junction tree; prints its width, largest table and bytes."""
        return self._family().plan

    @property
    def log_partition_(self) -> float:
        """Log Z: the sum over all joint states of the product of all potentials."""
        return self._log_normaliser() + inner(self._weights, offsets(self._near().model))

    def _near(self) -> LawFamily:
        """The same laws at the same weights, features that lie far from 0 less a constant: what log p is made from."""
        if "_near_law" not in self.__dict__:
            family = self._family()
            near = centred(family.model)
            self._near_law = family if near is family.model else family.over(near)
        return self._near_law

    def _log_normaliser(self) -> float:
        """Log Z of the potentials of `_near`."""
        family = self._near()
        if "_log_z" not in self.__dict__:
            self._log_z = family.margins(self._weights)[0]
        return self._log_z

    @property
    def weights_(self) -> Floats:
        """One weight for each cell of a table and each feature.

        Where the maximum is not attained: minus or plus infinity for weights that run there each by itself, and NaN for
        weights that run to infinity only together with others, in proportions that the certificate names.
        """
        self._known_domain()
        return np.where(self._limits != 0.0, self._limits, self._weights)

    @property
    def weight_names_(self) -> tuple[str, ...]:
        """One name for each weight."""
        return self._family().model.weight_names

    def potential(self, clique: Any) -> Table:
        """The factor on exactly these variables, exp of the sum of all terms on them, axes in the order asked."""
        family = self._family()
        names = self._domain.names_of(list(clique) if isinstance(clique, set | frozenset) else clique)
        place = family.model.place(names)
        if place is None:
            raise OptionError(f"No term is on exactly {listing(names)}; there are {listing(family.model.scopes)}.")
        logs = family.model.part(family.potentials(self._weights)[: family.model.n_cells], place)
        scope = family.model.scopes[place]
        table = Table(self._domain.select(scope), np.exp(logs))
        return table if tuple(names) == scope else table.transpose(names)

    def factors(self) -> list[Table]:
        """The tables whose product is the law up to a constant, the largest cell of each 1.

        One for each set of variables that terms are on; and, where the maximum is not attained, indicators of the joint
        states that its limit leaves, which may be on further sets.
        """
        family = self._family()
        logs, found, begin = family.potentials(self._weights), [], 0
        for scope in (*family.model.scopes, *family.extra_scopes):
            domain = self._domain.select(scope)
            end = begin + math.prod(domain.shape(scope))
            part = logs[begin:end].reshape(domain.shape(scope))
            found.append(Table(domain, np.exp(part - part.max(initial=-np.inf))))
            begin = end
        return found

    def _fitted_state(self) -> dict[str, Any]:
        masks = [[list(scope), table] for scope, table in self._masks]
        return {"domain": self._domain, "weights": self._weights, "limits": self._limits, "masks": masks}

    def _restore(self, state: Mapping[str, Any]) -> None:
        domain, weights, limits = state["domain"], np.asarray(state["weights"]), np.asarray(state["limits"])
        if not isinstance(domain, Domain) or set(domain.names) != set(self.nodes):
            raise FileFormatError("The weights do not belong to the structure of the network.")
        model = LogLinear(domain, self._terms)
        wrong = weights.shape != (model.n_weights,) or weights.dtype != np.float64 or not np.isfinite(weights).all()
        if wrong or limits.shape != weights.shape or not _are_limits(limits):
            raise FileFormatError(f"The file holds weights of shape {weights.shape}; expected {(model.n_weights,)}.")
        masks = []
        for scope, table in state["masks"]:
            array = np.asarray(table)
            if array.shape != domain.shape(scope) or not np.isin(array, (0.0, -np.inf)).all():
                raise FileFormatError("A mask of the network does not fit its variables.")
            masks.append((tuple(scope), array))
        self._domain, self._weights, self._limits, self._masks = domain, weights, limits, tuple(masks)


def _are_limits(limits: Floats) -> bool:
    """Whether all are 0, infinite or NaN."""
    return limits.dtype == np.float64 and bool((~np.isfinite(limits) | (limits == 0.0)).all())
