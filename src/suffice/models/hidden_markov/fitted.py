"""What a hidden Markov model learns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import FileFormatError, OptionError
from suffice.models.hidden_markov.build import emission_of
from suffice.models.hidden_markov.chains import Observed
from suffice.models.hidden_markov.emissions.contract import Emission
from suffice.models.hidden_markov.expectation import Expectation
from suffice.models.hidden_markov.input import Opened, open_observations
from suffice.models.hidden_markov.parameters import Parameters, Statistics
from suffice.models.hidden_markov.structure import read_rows
from suffice.sources.sequences import SequenceForm, is_table

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait

Floats = NDArray[np.float64]


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
    parameters: Parameters
    n_params: int
    hidden: bool
    scores: tuple[float, ...] = ()
    passes: int = 0

    @property
    def title(self) -> str:
        """The first line of the receipt."""
        return "HiddenMarkovModel"

    @property
    def initial(self) -> Floats:
        """P(first state) (K,)."""
        return shown(self.parameters.initial)

    @property
    def transitions(self) -> Floats:
        """P(next state | state) (K, K)."""
        return shown(self.parameters.transitions)

    @property
    def emissions(self) -> list[Any]:
        """The distribution of each state."""
        return self.emission.laws({name: array.copy() for name, array in self.parameters.emission.items()})

    @property
    def symbols(self) -> tuple[Hashable, ...]:
        """The symbols that states emit; empty where they emit none."""
        return tuple(self.emission.describe().get("states", ()))

    @property
    def symbol_probabilities(self) -> Floats:
        """P(symbol | state) (K, M), where symbols are emitted."""
        found = self.parameters.emission
        if set(found) != {"probabilities"}:
            raise OptionError("The states do not emit symbols; read their laws in emissions_.")
        return shown(found["probabilities"])

    # -- sequences ---------------------------------------------------------------------------------------------------

    def columns_of(self, sequences: Any, columns: Any) -> Any:
        """The columns to read: those that were asked for, else those of a table that were learned from."""
        return self.columns if columns is None and is_table(sequences) else columns

    def open(self, sequences: Any, form: SequenceForm) -> tuple[Opened, Observed]:
        """Sequences as they were given, and as the emission reads them."""
        opened = open_observations(sequences, form.reading(self.columns_of(sequences, form.columns)))
        return opened, opened.sequences.reading(self.emission.read(opened.columns))

    def score_samples(self, rows: Any, form: SequenceForm | None = None, *, threads: int | None = None) -> Floats:
        """Log P(sequence) of each sequence (n,), states summed out; -inf where it is impossible."""
        observed = self.open(rows, form or SequenceForm())[1]
        return Expectation(observed, self.emission, threads).log_likelihoods(self.parameters)

    def no_statistics(self) -> Statistics:
        """The statistics of no sequences."""
        size = len(self.states)
        data = self.emission.read([np.zeros(0)] * self.emission.width)
        emission = self.emission.statistics(data, np.zeros((0, size)), self.parameters.emission)
        return Statistics(np.zeros(size), np.zeros((size, size)), emission)

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
        laws = {name: np.asarray(array, dtype=np.float64) for name, array in plain["emission"].items()}
        if set(laws) != set(emission.kinds) or not emission.inside(laws):
            raise FileFormatError("The parameters of the emissions are not those of the laws that the model has.")
        if not all(_belongs(array, emission.kinds[name], size) for name, array in laws.items()):
            raise FileFormatError(f"The parameters of the emissions are not those of {size} states.")
        parameters = Parameters(initial, transitions, laws)
        rest = (int(plain["n_params"]), hidden, tuple(map(float, plain["scores"])), int(plain["passes"]))
        return cls(states, columns, emission, parameters, *rest)


def shown(array: Floats) -> Floats:
    """A view that cannot be written to, since answers are made from the array."""
    view = array.view()
    view.flags.writeable = False
    return view


def _belongs(array: Floats, kind: str, size: int) -> bool:
    """Whether an array has rows, or matrices, for each of so many states; those of mixtures have several for each."""
    axes = 2 if kind in ("simplex", "real") else max(array.ndim, 2)
    return array.ndim == axes and (kind == "shared" or (len(array) > 0 and len(array) % size == 0))
