"""Distributions made of distributions, as states emit them: mixtures, and independent columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats
from suffice.errors import DataError, NotFittedError, OptionError
from suffice.families.base import Distribution, Seed, as_probabilities, generator
from suffice.families.bernoulli import Bernoulli
from suffice.families.categorical import Categorical
from suffice.models.hidden_markov.emissions.reals import as_reals

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait


@dataclass(frozen=True, eq=False)
class MixtureFitted:
    """Distributions and their weights (m,): ``sum_m weights[m] f_m(x)``; the columns of a table that was learned."""

    components: tuple[Any, ...]
    weights: Floats
    columns: tuple[Hashable, ...] | None = None

    title = "Mixture"

    @property
    def n_params(self) -> int:
        """Weights but one, and the parameters of the components."""
        sizes = [sum(np.size(value) for value in one.parameters_.values()) for one in self.components]
        return len(self.weights) - 1 + sum(sizes)

    def log_prob(self, x: Any) -> Floats:
        """Log-sum over components."""
        logs = np.stack([one.log_prob(x) for one in self.components])
        with np.errstate(divide="ignore"):
            return np.asarray(np.logaddexp.reduce(logs.T + np.log(self.weights), axis=-1).T)

    def score_samples(self, rows: Any) -> Floats:
        """Log density of each row (n,)."""
        return np.atleast_1d(self.log_prob(rows))

    def portrait(self) -> Portrait:
        """What there is to see of it."""
        from suffice.models.hidden_markov.emissions.portrait import mixture_portrait

        return mixture_portrait(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        plain = {"weights": self.weights, "components": list(self.components)}
        return plain if self.columns is None else {**plain, "columns": list(self.columns)}


class MixtureDistribution(Distribution):
    """``sum_m weights[m] f_m(x)``, unfitted or given; see `suffice.Mixture`, which can be fitted."""

    def __init__(self, components: Any, n: int | None = None, *, weights: ArrayLike | None = None) -> None:
        """components: an unfitted distribution, `n` of which there are, or a list of given ones with their weights."""
        kept = tuple(components) if isinstance(components, Iterable) else components
        super().__init__(components=kept, n=n, weights=weights)

    def _settle(self) -> None:
        components, n = self._options["components"], self._options["n"]
        self._given: MixtureFitted | None = None
        if isinstance(components, tuple) and n is not None:
            raise OptionError(
                f"n={n!r} has no effect: the components are given, {len(components)} of them. Leave it out."
            )
        if not isinstance(components, tuple) and self._options["weights"] is not None:
            raise OptionError(
                "weights= has no effect on components that are to be learned, which begin with equal ones. Leave it "
                "out, or give a list of components with parameters."
            )
        if isinstance(components, tuple):
            self._given = self._of(components, self._options["weights"])
        elif not isinstance(components, Distribution) or not (isinstance(n, int | np.integer) and n >= 1):
            raise OptionError(
                f"components is {components!r} and n is {n!r}; expected a distribution and how many of it."
            )

    @staticmethod
    def _of(components: tuple[Any, ...], weights: ArrayLike | None) -> MixtureFitted:
        """Given components, each of which has parameters, with weights of as many numbers or equal ones."""
        if not components or not all(isinstance(one, Distribution) for one in components):
            raise OptionError(
                f"components is {list(components)!r}; expected a distribution, or a list of given distributions."
            )
        even = np.full(len(components), 1.0 / len(components))
        shares = even if weights is None else as_probabilities(weights, "weights")
        if len(shares) != len(components):
            raise OptionError(f"weights has {len(shares)} numbers; expected {len(components)}, one for each component.")
        for one in components:
            one.parameters_  # noqa: B018  an unfitted distribution has no parameters and says so
        return MixtureFitted(components, shares)

    @property
    def fitted_(self) -> MixtureFitted:
        """Components and weights, given or learned."""
        fitted = self._given if self._fit is None else self._fit.fitted
        if fitted is None:
            raise NotFittedError("This Mixture has no parameters yet. Call fit, or give the components.")
        return fitted

    @property
    def parameters_(self) -> dict[str, Any]:
        """The weights."""
        return {"weights": self.weights_}

    @property
    def n_params_(self) -> int:
        """Weights but one, and the parameters of the components."""
        return self.fitted_.n_params

    @property
    def components_(self) -> tuple[Any, ...]:
        """The distributions."""
        return self.fitted_.components

    @property
    def weights_(self) -> Floats:
        """Their weights (m,)."""
        return self.fitted_.weights

    def log_prob(self, x: Any) -> Floats:
        """Log-sum over components."""
        return self.fitted_.log_prob(x)

    def sample(self, n: int = 1, random_state: Seed = None) -> Any:
        """`n` draws: a component, then a value of it."""
        rng = generator(random_state)
        chosen = rng.choice(len(self.weights_), size=n, p=self.weights_)
        drawn = [np.asarray(one.sample(n, random_state=rng)) for one in self.components_]
        return np.stack(drawn)[chosen, np.arange(n)]

    def mean(self) -> Any:
        """The weighted mean of the components."""
        means = [one.mean() for one in self.components_]
        if any(isinstance(mean, list) for mean in means):
            raise OptionError("The mixture has no mean: some of its columns hold no numbers.")
        total = sum(weight * mean for weight, mean in zip(self.weights_, means, strict=True))
        return float(total) if np.ndim(total) == 0 else np.asarray(total)

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        from suffice.families.portrait import portrait_of

        return portrait_of(self) if self._given is None and self._fit is None else self.fitted_.portrait()


class IndependentColumns(Distribution):
    """The distribution of several columns that are independent, each with a distribution of its own."""

    def __init__(self, distributions: Sequence[Any], *, columns: Iterable[Hashable] | None = None) -> None:
        """One given distribution for each column."""
        kept = tuple(distributions)
        if not kept or not all(isinstance(one, Distribution) for one in kept):
            raise OptionError(
                f"distributions is {distributions!r}; expected a list of given distributions, one for each column."
            )
        super().__init__(distributions=kept, columns=None if columns is None else tuple(columns))

    def _settle(self) -> None:
        self._parameters = {str(column): one.parameters_ for column, one in enumerate(self._options["distributions"])}

    def __getitem__(self, column: Hashable) -> Any:
        """The distribution of a column, by name where columns have names, else by number."""
        names = self._options["columns"] or tuple(range(len(self._options["distributions"])))
        return self._options["distributions"][names.index(column)]

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        from suffice.families.portrait import portrait_of

        return portrait_of(self, columns=self._options["columns"] or ())

    def log_prob(self, x: Any) -> Floats:
        """The sum over columns of rows (n, d), or of the columns of a table by name."""
        distributions, names = (
            self._options["distributions"],
            self._options["columns"] or tuple(range(len(self._options["distributions"]))),
        )
        if isinstance(x, Mapping) or hasattr(x, "columns"):
            known = list(x if isinstance(x, Mapping) else x.columns)
            chosen = names if set(names) <= set(known) else known
            if len(chosen) != len(distributions):
                raise DataError(
                    f"The rows have {len(chosen)} columns; this distribution describes {len(distributions)}."
                )
            columns = [np.asarray(x[name]) for name in chosen]
        else:
            rows = np.asarray(x)
            if rows.shape[-1:] != (len(distributions),):
                raise DataError(f"The rows have shape {rows.shape}; expected {len(distributions)} values in each.")
            columns = [rows[..., column] for column in range(len(distributions))]
        return np.asarray(sum(_log_prob(*each) for each in zip(distributions, columns, names, strict=True)))

    def sample(self, n: int = 1, random_state: Seed = None) -> Any:
        """`n` draws (n, d)."""
        rng = generator(random_state)
        drawn = [
            np.asarray(distribution.sample(n, random_state=rng)) for distribution in self._options["distributions"]
        ]
        if all(column.dtype.kind in "biuf" for column in drawn):
            return np.stack(drawn, axis=1)
        return np.stack([column.astype(object) for column in drawn], axis=1)

    def mean(self) -> Any:
        """The means of the columns (d,); a list where some are no numbers."""
        means = [distribution.mean() for distribution in self._options["distributions"]]
        return (
            np.array(means)
            if all(isinstance(mean, int | float | np.integer | np.floating) for mean in means)
            else means
        )


def _log_prob(distribution: Any, values: NDArray[Any], name: Hashable) -> Floats:
    """Of one column; values that its distribution does not take are an error that names it."""
    if values.dtype == object and not isinstance(distribution, Categorical | Bernoulli):
        values = as_reals(values.ravel(), name).reshape(values.shape)
    elif values.dtype.kind not in "biuf" and not isinstance(distribution, Categorical | Bernoulli):
        raise DataError(f"Column {name!r} holds {values.ravel()[:3].tolist()!r}; its distribution takes numbers.")
    return np.asarray(distribution.log_prob(values))
