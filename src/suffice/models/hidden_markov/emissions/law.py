"""Laws made of laws, as states emit them: mixtures, and independent columns."""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.errors import DataError, OptionError
from suffice.families.base import Distribution, as_probabilities, generator
from suffice.families.bernoulli import Bernoulli
from suffice.families.categorical import Categorical
from suffice.families.fitted import FamilyFitted
from suffice.fitting.driver import Fit
from suffice.fitting.report import Report
from suffice.models.hidden_markov.emissions.reals import as_reals

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait

Floats = NDArray[np.float64]


class Mixture(Distribution):
    """``sum_m weights[m] f_m(x)``: the law of a step that comes from one of several laws.

    Unfitted, as the emission of a hidden Markov model: ``Mixture(Normal(), 3)``, three laws in each state. Given:
    ``Mixture([Normal(0, 1), Normal(5, 2)], weights=[0.3, 0.7])``.

    Args:
        components: an unfitted law, or a list of given ones.
        n: how many components an unfitted mixture has.
        weights: one for each given component; equal unless said.

    >>> from suffice import Normal
    >>> Mixture([Normal(0, 1), Normal(10, 1)], weights=[0.25, 0.75]).mean()
    7.5
    """

    def __init__(self, components: Any, n: int | None = None, *, weights: ArrayLike | None = None) -> None:
        """See the class."""
        kept = tuple(components) if isinstance(components, Iterable) else components
        super().__init__(components=kept, n=n, weights=weights)
        if isinstance(kept, tuple):
            if not kept or not all(isinstance(law, Distribution) for law in kept):
                raise OptionError(f"components is {components!r}; expected a law, or a list of given laws.")
            shares = np.full(len(kept), 1.0 / len(kept)) if weights is None else as_probabilities(weights, "weights")
            if len(shares) != len(kept):
                raise OptionError(f"weights has {len(shares)} numbers for {len(kept)} components.")
            for law in kept:
                law.parameters_  # noqa: B018  an unfitted law has no parameters and says so
            self._adopt(Fit(FamilyFitted(self._with_fit(None), {"weights": shares})))
        elif not isinstance(kept, Distribution) or not (isinstance(n, int | np.integer) and n >= 1):
            raise OptionError(f"components is {components!r} and n is {n!r}; expected a law and how many of it.")

    def fit(self, data: Any, sample_weight: Any = None, *, columns: Any = None, **options: Any) -> Self:
        """Learn the components by EM: every step is a sequence of its own, and its state the component.

        Further options are those of `HiddenMarkovModel`, such as ``n_init`` and ``random_state``.
        """
        from suffice.sources.sequences import open_sequences

        # By name: the model stands above the laws that its states emit.
        chain = importlib.import_module("suffice.models.hidden_markov.declaration").HiddenMarkovModel

        if isinstance(self._options["components"], tuple):
            raise OptionError("There is nothing to fit: the components are given. Give an unfitted law and n.")
        steps = open_sequences(data, columns=columns).values
        model = chain(int(self._options["n"]), emission=self._options["components"], **options)
        model.fit(steps, lengths=np.ones(len(steps), np.int64), sample_weight=sample_weight)
        self._fitted = tuple(model.emissions_)
        return self._adopt(Fit(FamilyFitted(self._with_fit(None), {"weights": model.initial_}), model.report_))

    def _given(self) -> dict[str, Any] | None:
        """Given laws are checked by the constructor."""
        return None

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {"weights": as_probabilities(parameters["weights"], "weights")}

    @property
    def components_(self) -> tuple[Any, ...]:
        """The laws."""
        kept = self._options["components"]
        self.parameters_  # noqa: B018  without parameters there are no laws, and this says so
        return kept if isinstance(kept, tuple) else self._fitted

    @property
    def weights_(self) -> Floats:
        """Their weights (m,)."""
        return np.asarray(self.parameters_["weights"])

    def _n_free(self) -> int:
        """Weights but one, and the parameters of the laws."""
        sizes = [sum(np.size(value) for value in law.parameters_.values()) for law in self.components_]
        return len(self.weights_) - 1 + sum(sizes)

    def log_prob(self, x: Any) -> Floats:
        """Log-sum over components."""
        with np.errstate(divide="ignore"):
            logs = np.stack([law.log_prob(x) for law in self.components_]) + np.log(self.weights_).reshape(
                -1, *[1] * np.ndim(self.components_[0].log_prob(x))
            )
        top = logs.max(axis=0)
        safe = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.exp(logs - safe).sum(axis=0)) + safe)

    def sample(self, n: int = 1, random_state: Any = None) -> Any:
        """`n` draws: a component, then a value of it."""
        rng = generator(random_state)
        chosen = rng.choice(len(self.weights_), size=n, p=self.weights_)
        drawn = [np.asarray(law.sample(n, random_state=rng)) for law in self.components_]
        return np.stack(drawn)[chosen, np.arange(n)]

    def mean(self) -> Any:
        """The weighted mean of the components."""
        means = [law.mean() for law in self.components_]
        if any(isinstance(mean, list) for mean in means):
            raise OptionError("The mixture has no mean: some of its columns hold no numbers.")
        found = sum(weight * mean for weight, mean in zip(self.weights_, means, strict=True))
        return float(found) if np.ndim(found) == 0 else np.asarray(found)

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        from suffice.models.hidden_markov.emissions.portrait import mixture_portrait

        return mixture_portrait(self)

    def to_plain(self) -> dict[str, Any]:
        """Options, and what was learned."""
        state: dict[str, Any] = {"options": dict(self._options), "fitted": None}
        if self._bare_report() is not None:
            fitted = {"weights": self.weights_, "components": list(self.components_)}
            state |= {"fitted": fitted, "report": self.report_.to_plain()}
        return state

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data."""
        found = cls(**plain["options"])
        if plain["fitted"] is not None:
            found._fitted = tuple(plain["fitted"]["components"])
            weights = found._check(plain["fitted"])
            found._adopt(Fit(FamilyFitted(found._with_fit(None), weights), Report.from_plain(plain["report"])))
        return found


class ColumnsLaw(Distribution):
    """The law of several columns that are independent, each with a law of its own."""

    def __init__(self, laws: Sequence[Any], *, columns: Iterable[Hashable] | None = None) -> None:
        """One given law for each column."""
        kept = tuple(laws)
        if not kept or not all(isinstance(law, Distribution) for law in kept):
            raise OptionError(f"laws is {laws!r}; expected a list of given laws, one for each column.")
        super().__init__(laws=kept, columns=None if columns is None else tuple(columns))
        parameters = {str(at): law.parameters_ for at, law in enumerate(kept)}
        self._adopt(Fit(FamilyFitted(self._with_fit(None), parameters)))

    def _given(self) -> dict[str, Any] | None:
        """Given laws are checked by the constructor."""
        return None

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return dict(parameters)  # Each is that of a law, which has checked it.

    def __getitem__(self, column: Hashable) -> Any:
        """The law of a column, by name where columns have names, else by number."""
        names = self._options["columns"] or tuple(range(len(self._options["laws"])))
        return self._options["laws"][names.index(column)]

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        from suffice.families.portrait import portrait_of

        return portrait_of(self, columns=self._options["columns"] or ())

    def log_prob(self, x: Any) -> Floats:
        """The sum over columns of rows (n, d), or of the columns of a table by name."""
        laws, names = self._options["laws"], self._options["columns"] or tuple(range(len(self._options["laws"])))
        if isinstance(x, Mapping) or hasattr(x, "columns"):
            known = list(x if isinstance(x, Mapping) else x.columns)
            chosen = names if set(names) <= set(known) else known
            if len(chosen) != len(laws):
                raise DataError(f"The rows have {len(chosen)} columns; this law describes {len(laws)}.")
            columns = [np.asarray(x[name]) for name in chosen]
        else:
            rows = np.asarray(x)
            if rows.shape[-1:] != (len(laws),):
                raise DataError(f"The rows have shape {rows.shape}; expected {len(laws)} values in each.")
            columns = [rows[..., at] for at in range(len(laws))]
        return np.asarray(sum(_log_prob(*each) for each in zip(laws, columns, names, strict=True)))

    def sample(self, n: int = 1, random_state: Any = None) -> Any:
        """`n` draws (n, d)."""
        rng = generator(random_state)
        drawn = [np.asarray(law.sample(n, random_state=rng)) for law in self._options["laws"]]
        if all(column.dtype.kind in "biuf" for column in drawn):
            return np.stack(drawn, axis=1)
        return np.stack([column.astype(object) for column in drawn], axis=1)

    def mean(self) -> Any:
        """The means of the columns (d,); a list where some are no numbers."""
        found = [law.mean() for law in self._options["laws"]]
        return (
            np.array(found)
            if all(isinstance(mean, int | float | np.integer | np.floating) for mean in found)
            else found
        )


def _log_prob(law: Any, values: NDArray[Any], name: Hashable) -> Floats:
    """Of one column; values that its law does not take are an error that names it."""
    if values.dtype == object and not isinstance(law, Categorical | Bernoulli):
        values = as_reals(values.ravel(), name).reshape(values.shape)
    elif values.dtype.kind not in "biuf" and not isinstance(law, Categorical | Bernoulli):
        raise DataError(f"Column {name!r} holds {values.ravel()[:3].tolist()!r}; its law takes numbers.")
    return np.asarray(law.log_prob(values))
