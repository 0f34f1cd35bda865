"""What a network through time learns: the families of its nodes; and what they answer together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.checks import choice, generator, whole_number
from suffice.choices import QueryEngine, choices
from suffice.domain import Domain
from suffice.errors import FileFormatError, MissingColumnError, OptionError, listing
from suffice.models.bayesian.fitted import NetworkFitted
from suffice.models.dynamic_network.clock import Step
from suffice.models.dynamic_network.learning import score_slices
from suffice.models.dynamic_network.series import SeriesOptions
from suffice.models.dynamic_network.structure import SliceStructure, name_of, place_of, renamed
from suffice.records import record, replace
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait
    from suffice.models.dynamic_network.learning import FamilyLearning
    from suffice.models.dynamic_network.questions import SliceAnswers
    from suffice.models.dynamic_network.series import Series
    from suffice.statistics import Summary

#: How many particles answer, and their generator; None where answers are exact.
Particles = tuple[int, np.random.Generator] | None
#: Kinds of node that can be written under other names, as `unroll` does.
BY_PLACE = ("table", "linear-gaussian")
#: Nodes of the largest network that is unrolled.
MOST_UNROLLED = 10_000


@record(frozen=True, eq=False)
class DynamicFitted:
    """P(all slices) = product over slices and nodes of P(node | parents): the families, and where each holds.

    `network` has the families as nodes; `domain` the nodes of a slice and the inputs, `hidden` those never observed.
    `step` is how long a slice is, where series with dates were learned.
    """

    network: NetworkFitted
    structure: SliceStructure
    domain: Domain
    hidden: tuple[Hashable, ...] = ()
    step: Step | None = None

    title: ClassVar[str] = "DynamicBayesianNetwork"

    @classmethod
    def of(cls, network: NetworkFitted, structure: SliceStructure, step: Step | None = None) -> DynamicFitted:
        """The families of a structure, once they are learned."""
        variables = (variable for node in network.nodes.values() for variable in node.domain.variables)
        known = {name_of(variable.name): variable for variable in variables}
        names = (*structure.nodes, *structure.inputs)
        domain = Domain(renamed(known[name], name) for name in names if name in known)
        return cls(network, structure, domain, tuple(name for name in structure.nodes if name in network.hidden), step)

    @property
    def nodes(self) -> Mapping[Hashable, Any]:
        """The families by name."""
        return self.network.nodes

    @property
    def n_params(self) -> int:
        """Free parameters of all families that are not fixed; those that tied ones share count once."""
        return self.network.n_params

    @cached_property
    def observed(self) -> Domain:
        """The nodes that are not hidden, as variables."""
        return Domain(self.domain[name] for name in self.structure.nodes if name not in self.hidden)

    def table(self, family: Hashable) -> Table:
        """P(node | parents) with axes (parents in declared order, node)."""
        return self.network.table(family)

    # -- series ------------------------------------------------------------------------------------------------------

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over the slices of a summary, natural logarithm."""
        return self.network.log_likelihood(summary)

    def open(self, data: Any, form: Mapping[str, Any], sample_weight: Any = None) -> Series:
        """Series as this value knows its nodes; columns that are not there are missing."""
        from suffice.models.dynamic_network.reading import read_known

        return read_known(self, data, form, sample_weight)

    def log_likelihoods(self, series: Series) -> Floats:
        """Of each series (n_series,)."""
        if self.hidden or not series.is_complete or len(series.columns) < len(self.domain):
            # Engines load with the first series that does not show everything.
            from suffice.models.dynamic_network.questions import log_likelihoods

            return log_likelihoods(self, series)
        scores = score_slices(series, self.nodes, self.structure)
        return np.bincount(series.owner, scores, minlength=series.n_series).astype(np.float64, copy=False)

    def log_likelihood_of(self, series: Series) -> float:
        """Of all of them, weighted."""
        counted = series.weights > 0
        return float(series.weights[counted] @ self.log_likelihoods(series)[counted])

    def score_samples(self, data: Any, **form: Unpack[SeriesOptions]) -> Floats:
        """Log-likelihood of each series (n_series,)."""
        return self.log_likelihoods(self.open(data, form))

    # -- questions about series --------------------------------------------------------------------------------------

    def filter(
        self,
        data: Any,
        nodes: Any = None,
        *,
        do: Any = None,
        engine: QueryEngine = "exact",
        n: int | None = None,
        random_state: Any = None,
        **form: Unpack[SeriesOptions],
    ) -> Any:
        """P(node in a slice | the series up to this slice): by node an array (slices, states).

        Of a node of numbers that is not seen mean and variance (slices, 2) in a linear system, and `NormalMixtures`
        beside states that are not seen. nodes: a node or a list of them; by default those that some slice does not
        show. do: nodes that are set from outside, by name in all slices, by ``(node, slice)`` in one, counted from 0.
        engine: ``"exact"``, or ``"sampling"``, a particle filter, for interfaces that are too wide, hidden numbers
        beside hidden states and nodes of any kind; `n` and `random_state` are the number of its particles (10,000) and
        its seed, and numbers are then told by their weighted draws. Of a list of tables, or of a table with a group, a
        list of such dicts.
        """
        return self._asked(data, form, do, _particles(engine, n, random_state)).filtered(nodes)

    def smooth(self, data: Any, nodes: Any = None, *, do: Any = None, **form: Unpack[SeriesOptions]) -> Any:
        """P(node in a slice | the whole series): by node an array (slices, states); the rest is as in `filter`."""
        return self._asked(data, form, do).smoothed(nodes)

    def forecast(
        self,
        data: Any,
        slices: int = 1,
        nodes: Any = None,
        *,
        inputs: Any = None,
        do: Any = None,
        engine: QueryEngine = "exact",
        n: int | None = None,
        random_state: Any = None,
        **form: Unpack[SeriesOptions],
    ) -> Any:
        """P(node in a later slice | the series): by node an array (slices, states), or what `filter` says of numbers.

        inputs: of a network that has inputs, a table of those of the later slices, of several series a list of such
        tables. do: nodes that are set from outside in the later slices, of which ``(node, 0)`` is the first; what was
        seen is left as it was. The rest is as in `filter`.
        """
        asked = self._asked(data, form, None, _particles(engine, n, random_state))
        return asked.ahead(whole_number(slices, "slices"), nodes, inputs, do)

    def map_query(self, data: Any, *, do: Any = None, **form: Unpack[SeriesOptions]) -> Any:
        """The most probable states of all nodes in all slices together: by node an array (slices,) of labels.

        Values that are seen stay as they are; numbers that are not are their means, under these states where states are
        not seen either. The rest is as in `filter`.
        """
        return self._asked(data, form, do).best()

    def query(self, variable: Any, given: Any = None, *, do: Any = None, inputs: Any = None) -> Any:
        """P(node in a slice | what is given): a `Table` of its states; of a number mean, variance and quantiles.

        Args:
            variable: node and slice, such as ``("rain", 5)``; slices are counted from 0.
            given: states and numbers by ``(node, slice)``.
            do: nodes that are set from outside, by name in all slices, by ``(node, slice)`` in one.
            inputs: of a network that has inputs, a table of those of all slices up to the last one that is named.
        """
        from suffice.models.dynamic_network.questions import answer_one

        return answer_one(self, variable, given, do, inputs)

    def _asked(self, data: Any, form: Mapping[str, Any], do: Any = None, particles: Particles = None) -> SliceAnswers:
        from suffice.models.dynamic_network.intervention import under
        from suffice.models.dynamic_network.questions import SliceAnswers

        return SliceAnswers(self, under(self, self.open(data, form), do), particles=particles)

    # -- draws -------------------------------------------------------------------------------------------------------

    def sample(
        self, slices: int, n: int | None = None, *, inputs: Any = None, do: Any = None, random_state: Any = None
    ) -> list[dict[Hashable, NDArray[Any]]] | dict[Hashable, NDArray[Any]]:
        """A series of so many slices, as columns by node; with `n` a list of so many series.

        inputs: a table with a row for each slice, of a network that has inputs. do: nodes that are set from outside, by
        name in all slices, by ``(node, slice)`` in one.
        """
        slices, count = whole_number(slices, "slices"), 1 if n is None else whole_number(n, "n")
        rng, given = generator(random_state), self._inputs(inputs, slices)
        values: dict[tuple[Hashable, int], NDArray[Any]] = {
            (name, time): np.full(count, column[time]) for name, column in given.items() for time in range(slices)
        }
        fixed = self._interventions(do, slices)
        for (name, time), (family, above) in self.structure.unrolled(slices).items():
            if (name, time) in fixed:
                values[name, time] = np.full(count, fixed[name, time])
                continue
            columns = {p: values[seen] for p, seen in zip(self.structure.families[family], above, strict=True)}
            values[name, time] = self.nodes[family].sample(columns, rng, count)
        drawn = {name: np.stack([values[name, t] for t in range(slices)]) for name in self.structure.nodes}
        series = [{name: self.labels(name, codes[:, i]) for name, codes in drawn.items()} for i in range(count)]
        if given:
            names = {name: self.labels(name, column) for name, column in given.items()}
            series = [{**names, **one} for one in series]
        return series[0] if n is None else series

    def _interventions(self, do: Any, slices: int) -> dict[tuple[Hashable, int], Any]:
        """By node and slice what it is set to; what is said of one slice outweighs what is said of all."""
        if do is None:
            return {}
        from suffice.models.dynamic_network.intervention import read_do

        read = read_do(self, do, slices)
        whole = {node: value for (node, time), value in read.items() if time is None}
        everywhere = {(node, time): value for node, value in whole.items() for time in range(slices)}
        return everywhere | {(node, time): v for (node, time), v in read.items() if time is not None}

    def labels(self, name: Hashable, codes: NDArray[Any]) -> NDArray[Any]:
        """The states of a node or input by their labels, numbers as they are."""
        if name in self.structure.inputs:
            variable = self.domain[name]
            return codes if variable.kind != "discrete" else np.array(variable.states, object)[codes]
        return self.network.labels_of(name, codes)

    def _inputs(self, inputs: Any, slices: int) -> dict[Hashable, NDArray[Any]]:
        """The inputs of so many slices."""
        names = self.structure.inputs
        if not names:
            if inputs is not None:
                raise OptionError("inputs= has no effect: the network has none. Leave it out.")
            return {}
        if inputs is None:
            raise MissingColumnError(
                f"The network has the inputs {listing(names)}: give them for {slices} slices, inputs=a table with "
                "these columns and a row for each slice."
            )
        from suffice.models.dynamic_network.reading import read_inputs

        return read_inputs(self, inputs, slices)

    # -- one large network -------------------------------------------------------------------------------------------

    def unrolled(self, slices: int) -> NetworkFitted:
        """All slices as one network, whose nodes are (node, slice)."""
        slices = whole_number(slices, "slices")
        others = {name: node.kind for name, node in self.nodes.items() if node.kind not in BY_PLACE}
        if others:
            raise OptionError(
                f"{listing(others)} cannot be written under other names; unroll takes tables and linear-Gaussian nodes."
            )
        if self.structure.inputs:
            raise OptionError(
                f"The network has the inputs {listing(self.structure.inputs)}, which have no distribution: only "
                "networks without inputs can be unrolled. Make them nodes."
            )
        size = slices * len(self.structure.nodes)
        if size > MOST_UNROLLED:
            raise OptionError(
                f"{slices} slices are {size:,} nodes; unroll makes {MOST_UNROLLED:,}. Ask for fewer slices."
            )
        nodes: dict[Hashable, Any] = {}
        for (name, time), (family, _) in self.structure.unrolled(slices).items():
            node = self.nodes[family]
            moved = Domain(renamed(v, place_of(v.name, time)) for v in node.domain.variables)
            nodes[name, time] = replace(node, domain=moved)
        return NetworkFitted(nodes)

    # -- files -------------------------------------------------------------------------------------------------------

    def portrait(self) -> Portrait:
        """What there is to see of it."""
        from suffice.models.dynamic_network.portrait import portrait_of

        return portrait_of(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file; the structure is an option."""
        step = None if self.step is None else (self.step.unit, self.step.count)
        return {**self.network.to_dict(), "domain": self.domain, "step": step}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], structure: SliceStructure, learning: FamilyLearning) -> DynamicFitted:
        """Rebuild from plain data, checking that it belongs to the structure."""
        network = NetworkFitted.from_dict(plain, learning)
        domain = plain["domain"]
        if not isinstance(domain, Domain) or set(domain.names) != {*structure.nodes, *structure.inputs}:
            raise FileFormatError("The variables do not belong to the structure of the network.")
        step = plain.get("step")
        hidden = tuple(name for name in structure.nodes if name in network.hidden)
        return cls(network, structure, domain, hidden, None if step is None else Step(*step))


def _particles(engine: Any, n: Any, random_state: Any) -> Particles:
    """How many particles answer, and their generator; None where answers are exact."""
    from suffice.models.dynamic_network.particles import PARTICLES

    if choice(engine, "engine", choices(QueryEngine)) == "sampling":
        return (PARTICLES if n is None else whole_number(n, "n")), generator(random_state)
    for name, value in (("n", n), ("random_state", random_state)):
        if value is not None:
            raise OptionError(
                f"{name}= is about the particles of engine='sampling', which engine='exact' does not have."
            )
    return None
