"""What a hidden Markov model learns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats
from suffice.checks import draw_count, listed_names, read_only, whole_number
from suffice.errors import FileFormatError, MissingAttributeError, OptionError, listing, shortened
from suffice.families.base import as_floats, generator, take_states
from suffice.families.geometric import Geometric
from suffice.fitting.estimator import as_frame
from suffice.models.hidden_markov.build import emission_of
from suffice.models.hidden_markov.durations.decoding import draw_paths
from suffice.models.hidden_markov.durations.distributions import Staying, from_plain, to_plain
from suffice.models.hidden_markov.emissions.contract import Data, Emission
from suffice.models.hidden_markov.emissions.distributions import MixtureDistribution
from suffice.models.hidden_markov.expectation import ChainExpectation
from suffice.models.hidden_markov.input import Opened, columns_of, open_observations
from suffice.models.hidden_markov.parameters import ChainParameters, SegmentCounts, Statistics
from suffice.models.hidden_markov.structure import read_rows
from suffice.sources.sequence_tables import side_by_side
from suffice.sources.sequences import FormOptions, SequenceForm, is_table

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait


@dataclass(frozen=True, eq=False)
class HiddenMarkovFitted:
    """P(first state), P(next state | state), and the distributions of what is seen in each state.

    `emission` says what kind of distributions they are, `parameters` hold their numbers. `columns` are the names of
    what is seen, None where it has none. `hidden`: whether some states were hidden, so that EM has learned them;
    `scores` are then the objectives that its runs reached, -inf for one that failed, and `passes` how often they went
    through the sequences.
    """

    states: tuple[Hashable, ...]
    columns: list[Hashable] | None
    emission: Emission
    parameters: ChainParameters
    n_params: int
    hidden: bool
    scores: tuple[float, ...] = ()
    passes: int = 0

    title = "HiddenMarkovModel"

    def __post_init__(self) -> None:
        """Answers are made from the arrays: nobody writes to them. Copies and pickles come without that mark."""
        object.__setattr__(self, "parameters", self.parameters.read_only())

    @property
    def initial(self) -> Floats:
        """P(first state) (K,)."""
        return read_only(self.parameters.initial)

    @property
    def transitions(self) -> Floats:
        """P(next state | state) (K, K)."""
        return read_only(self.parameters.transitions)

    @property
    def emissions(self) -> list[Any]:
        """The distribution of each state."""
        return self.emission.distributions({name: array.copy() for name, array in self.parameters.emission.items()})

    @property
    def durations(self) -> list[Any]:
        """How long each state lasts: a distribution of steps where it has a table, else of those after the first."""
        leaving = (1.0 - np.diag(self.parameters.transitions)).tolist()
        kinds = self.parameters.durations or (Staying(),) * len(self.states)
        pairs = zip(kinds, leaving, strict=True)
        return [
            Geometric(probability=share) if isinstance(kind, Staying) and share > 0 else kind.distribution()
            for kind, share in pairs
        ]

    @property
    def means(self) -> Floats:
        """The mean of each state (K, columns), where states emit normal distributions."""
        return self._normal("means")

    @property
    def covariances(self) -> Floats:
        """The covariance of each state (K, columns, columns), where states emit normal distributions."""
        return self._normal("covariances")

    def _normal(self, name: str) -> Floats:
        if name not in self.parameters.emission:
            raise MissingAttributeError(
                f"The states emit no normal distributions and have no {name}. Read what they emit in emissions_."
            )
        return read_only(self.parameters.emission[name])

    @property
    def symbols(self) -> tuple[Hashable, ...]:
        """The symbols that states emit, in the order of their probabilities; empty where they emit none."""
        return tuple(self.emission.describe().get("states", ()))

    @property
    def symbol_probabilities(self) -> Floats:
        """P(symbol | state) (K, M), where symbols are emitted."""
        arrays = self.parameters.emission
        if set(arrays) != {"probabilities"}:
            raise MissingAttributeError("The states do not emit symbols. Read what they emit in emissions_.")
        return read_only(arrays["probabilities"])

    # -- sequences ---------------------------------------------------------------------------------------------------

    def form_of(self, sequences: object, form: SequenceForm) -> SequenceForm:
        """The form with the columns of a table that were learned from, where none were asked for.

        Of names in another order it is the order that was learned; arrays have the columns that were learned already.
        """
        table = is_table(sequences)
        if form.columns is None or self.columns is None:
            if form.columns is not None and not table:
                raise OptionError(
                    f"columns={shortened(form.columns)} names columns of a table; the model has learned from arrays "
                    f"without names, and this is a {type(sequences).__name__}. Leave it out."
                )
            return form.reading(self.columns) if table and form.columns is None else form
        names = list(listed_names(form.columns, "columns"))
        if not table and names != list(self.columns):
            raise OptionError(
                f"columns= names {listing(names)}; the observations of a step were learned as {listing(self.columns)}. "
                "Give arrays with these columns in this order, and leave columns= out, or give a table."
            )
        return form.reading(self.columns) if set(names) == set(self.columns) else form

    def open(self, sequences: object, form: SequenceForm) -> Opened[Data]:
        """Sequences as the emission reads them."""
        opened = open_observations(sequences, self.form_of(sequences, form))
        observed = opened.sequences.reading(self.emission.read(columns_of(opened.sequences)))
        return Opened(observed, opened.as_list, opened.alone)

    def score_samples(self, rows: object, *, threads: int | None = None, **form: Unpack[FormOptions]) -> Floats:
        """Log P(sequence) of each sequence (n,), states summed out; -inf where it is impossible."""
        observed = self.open(rows, SequenceForm(**form)).sequences
        return ChainExpectation(observed, self.emission, threads).log_likelihoods(self.parameters)

    def no_statistics(self) -> Statistics:
        """The statistics of no sequences."""
        size = len(self.states)
        data = self.emission.read([np.zeros(0)] * self.emission.width)
        emission = self.emission.statistics(data, np.zeros((0, size)), self.parameters.emission)
        none = SegmentCounts(np.zeros((0, size)), np.zeros((0, size))) if self.parameters.durations else None
        return Statistics(np.zeros(size), np.zeros((size, size)), emission, segments=none)

    # -- what may come -----------------------------------------------------------------------------------------------

    def forecast_distribution(self, shares: ArrayLike) -> MixtureDistribution:
        """The distribution of an observation whose state has the probabilities `shares` (K,): a mixture."""
        weights = np.atleast_1d(as_floats(shares, "shares"))
        if weights.shape != (len(self.states),):
            raise OptionError(f"shares has shape {weights.shape}; expected one probability for each state.")
        if (weights < 0).any() or not weights.sum() > 0:
            raise OptionError(f"shares is {shares!r}; expected numbers of at least 0, not all of them 0.")
        return MixtureDistribution(self.emissions, weights=weights / weights.sum())

    def sample(
        self, steps: int = 1, n: int | None = None, *, random_state: Any = None, frame: str | None = None
    ) -> tuple[Any, Any]:
        """Observations and states of a new sequence; with `n` lists of as many.

        frame: the package of frames that hold the observations of each sequence; None for arrays. One column by itself
                is an array.
        """
        steps, count = whole_number(steps, "steps"), 1 if n is None else whole_number(n, "n")
        draw_count(steps * count, "steps" if n is None else "steps times n")
        rng, parameters = generator(random_state), self.parameters
        codes = draw_paths(parameters, count, steps, rng) if parameters.durations else self._chain(count, steps, rng)
        columns = self.emission.draw(codes.ravel(), parameters.emission, rng)
        parts = [slice(start, start + steps) for start in range(0, steps * count, steps)]
        if frame is None or self.columns is None or len(columns) == 1:
            values = columns[0] if len(columns) == 1 else side_by_side(columns)
            seen = [values[part] for part in parts]
        else:
            named = dict(zip(self.columns, columns, strict=True))
            seen = [as_frame({name: values[part] for name, values in named.items()}, frame) for part in parts]
        states = list(self.named(codes))
        return (seen[0], states[0]) if n is None else (seen, states)

    def _chain(self, count: int, steps: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Numbers of states (count, steps) of a plain chain."""
        codes = np.empty((count, steps), np.intp)
        rows = np.vstack([self.parameters.initial, self.parameters.transitions]).cumsum(axis=1)
        rows[:, -1] = 1.0
        before = np.zeros(count, np.intp)
        for t in range(steps):
            u = rng.random(count)
            codes[:, t] = (u[:, None] >= rows[before]).sum(axis=1)
            before = codes[:, t] + 1
        return codes

    def named(self, codes: NDArray[np.intp]) -> NDArray[Any]:
        """States by name."""
        return take_states(self.states, codes)

    # -- files -------------------------------------------------------------------------------------------------------

    def portrait(self) -> Portrait:
        """What there is to see of it."""
        from suffice.models.hidden_markov.portrait import portrait_of

        return portrait_of(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file; what the emission is follows from the options and from what is known of the data."""
        return {
            "states": list(self.states),
            "columns": self.columns,
            "known": self.emission.describe(),
            "initial": self.parameters.initial,
            "transitions": self.parameters.transitions,
            "emission": self.parameters.emission,
            "n_params": self.n_params,
            "hidden": self.hidden,
            "scores": list(self.scores),
            "passes": self.passes,
            "durations": [to_plain(one) for one in self.parameters.durations],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], options: Mapping[str, Any]) -> HiddenMarkovFitted:
        """Rebuild from plain data and the options of the model; parts that do not fit one another are an error."""
        states, columns, known = tuple(plain["states"]), plain["columns"], plain["known"]
        size, hidden = len(states), bool(plain["hidden"])
        width = len(known.get("parts", known.get("centre", [0])))
        none = [np.zeros(0)] * max(width, 1)
        emission = emission_of(options, size, none, columns, hidden=hidden, known=known)
        initial = read_rows(plain["initial"], (size,), "initial")
        transitions = read_rows(plain["transitions"], (size, size), "transitions")
        if initial is None or transitions is None:
            raise FileFormatError("A hidden Markov model needs initial and transition probabilities.")
        distributions = {name: np.asarray(array, dtype=np.float64) for name, array in plain["emission"].items()}
        if set(distributions) != set(emission.kinds) or not emission.inside(distributions):
            raise FileFormatError(
                "The parameters of the emissions are not those of the distributions that the model has."
            )
        if not all(_belongs(array, emission.kinds[name], size) for name, array in distributions.items()):
            raise FileFormatError(f"The parameters of the emissions are not those of {size} states.")
        durations = tuple(from_plain(one) for one in plain["durations"])
        if len(durations) not in (0, size) or not all(one.inside() for one in durations):
            raise FileFormatError(f"The durations are not those of {size} states.")
        parameters = ChainParameters(initial, transitions, distributions, durations)
        rest = (int(plain["n_params"]), hidden, tuple(map(float, plain["scores"])), int(plain["passes"]))
        return cls(states, columns, emission, parameters, *rest)


def _belongs(array: Floats, kind: str, size: int) -> bool:
    """Whether an array has rows, or matrices, for each of so many states; those of mixtures have several for each."""
    axes = 2 if kind in ("simplex", "real") else max(array.ndim, 2)
    return array.ndim == axes and (kind == "shared" or (len(array) > 0 and len(array) % size == 0))
