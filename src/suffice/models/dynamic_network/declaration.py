"""`DynamicBayesianNetwork`: a Bayesian network for each slice of time, linked to the slices before."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack

from suffice.attributes import Read, computed, reads
from suffice.checks import is_name, whole_number
from suffice.choices import Estimate, MissingValues, Squarem, UnseenRow
from suffice.domain import Variable
from suffice.errors import OptionError, unknown_variable
from suffice.fitting.estimator import SummaryEstimator, as_frame, delegated, delegated_property, frame_of
from suffice.fitting.samples import unused_target
from suffice.fitting.sklearn_face import role_of_sequences
from suffice.models.bayesian.declaration import BayesianNetwork
from suffice.models.bayesian.learning import plain_fixed, read_fixed
from suffice.models.bayesian.options import check_mappings
from suffice.models.bayesian.posterior import LearnedParameters, told_parameters
from suffice.models.dynamic_network.fitted import DynamicFitted
from suffice.models.dynamic_network.learning import learning_of
from suffice.models.dynamic_network.options import IDLE, read_options
from suffice.models.dynamic_network.series import SeriesForm, SeriesOptions, read_series_again
from suffice.models.dynamic_network.structure import arcs_of_chains, chain_cards, names_of, read_slices
from suffice.options import RunOptions, own_options
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait
    from suffice.models.dynamic_network.task import DynamicTask


class DynamicBayesianNetwork(SummaryEstimator):
    """P(slices) = product over slices and nodes of P(node | parents), parents in the same slice or in slices before.

    The parameters are the same in all slices, so that statistics add over slices and series. A node whose oldest parent
    lies k slices back has tables of their own in the first k slices, where those parents do not exist: they are called
    ``(node, 0)`` to ``(node, k - 1)``. Series that show everything have a closed form. Hidden nodes and missing values
    are learned by EM with exact expectations: what has to be known of the past goes from slice to slice, so that a long
    series costs no more memory a slice than a short one. Where what is not seen are numbers of linear-Gaussian nodes,
    and all states are seen, the expectations are those of Kalman's recursions.

    Args:
        structure: arcs ``(parent, child)`` or a dict ``{child: parents}``. A parent is a name, in the same slice, or
            ``(name, -1)`` in the slice before, ``(name, -2)`` in the one before that.
        first: the arcs inside the first slice, in the same forms, where it is a network of its own: all its nodes then
            have tables of their own. By default it has the arcs of all slices that do not come from before.
        inputs: names of variables that are given in every slice and have no distribution, such as covariates.
        carry: those inputs whose last value holds on in slices without one, as gaps in time have.
        states: by node or input a list of states, ``"discrete"`` for those seen, or ``"real"``, as in
            `BayesianNetwork`.
        nodes: kinds by node, as in `BayesianNetwork`: ``"table"``, ``"linear-gaussian"``, ``"noisy-or"``,
            ``"noisy-max"``, ``"glm"``, or a kind with options. By default columns of states
            have tables and columns of numbers regressions.
        tied: groups of nodes that share one set of parameters; their families have the same states place by place.
        prior: as in `BayesianNetwork`. In a dict a number or a name is for all tables of a node, an array for the one
            table of that name: ``{"x": 1.0}``, ``{"x": array, ("x", 0): array}``.
        equivalent_sample_size: the weight of ``"bdeu"``, in slices.
        estimate: ``"mean"`` (default with a prior) or ``"map"``.
        unseen: the row of a parent configuration without data and without prior: ``"uniform"``, ``"nan"`` or
            ``"raise"``.
        fixed: tables that stay as they are, by name, as in `BayesianNetwork`. A network of fixed tables alone, whose
            states are declared, needs no fit.
        hidden: number of states, list of states, or ``"real"``, of nodes that are never observed; columns of their
            names are not read.
        missing: what missing values do: ``"em"`` or ``"raise"``.
        start: tables to begin EM with, by name, as in `fixed`, or a fitted network through time; used as they are.
        n_init: number of EM runs from random starts where nodes are hidden; the best is kept. The first begins at
            `start` where it is given.
        random_state: seed of the random starts.
        acceleration: None, or ``"squarem"``: fewer steps where much is missing; the objective still never falls.
        variance_floor: share of the variance of a column below which EM lets no variance of it fall.
        threads: threads of the E-step, None for all cores; the result does not depend on them.
        memory_limit: most bytes of series from files in memory, or a text such as "2GB"; beyond it they wait in a
            scratch folder.
        max_iter: most EM steps of a run.
        tolerance: EM stops when no probability changes by more, nor any weight or log variance in units of its columns.
        run: see `RunOptions`.

    >>> days = {"rain": ["no", "yes", "yes", "no"], "wet": ["no", "yes", "yes", "yes"]}
    >>> net = DynamicBayesianNetwork([(("rain", -1), "rain"), ("rain", "wet")]).fit(days)
    >>> net.table("rain").at({("rain", -1): "yes", "rain": "yes"})
    0.5
    >>> net.table(("rain", 0)).at({("rain", 0): "no"})
    1.0
    """

    _idle = IDLE
    _role = role_of_sequences

    def __init__(
        self,
        structure: Any,
        *,
        first: Any = None,
        inputs: Iterable[Hashable] = (),
        carry: Iterable[Hashable] = (),
        states: Mapping[Any, Any] | None = None,
        nodes: Mapping[Any, Any] | None = None,
        tied: Any = None,
        prior: Any = None,
        equivalent_sample_size: float = 10.0,
        estimate: Estimate | None = None,
        unseen: UnseenRow = "uniform",
        fixed: Mapping[Any, Any] | None = None,
        hidden: Mapping[Any, Any] | None = None,
        missing: MissingValues = "em",
        start: Any = None,
        n_init: int = 1,
        random_state: Any = 0,
        acceleration: Squarem | None = None,
        variance_floor: float = 1e-6,
        threads: int | None = None,
        memory_limit: int | str | None = None,
        max_iter: int = 1000,
        tolerance: float = 1e-6,
        **run: Unpack[RunOptions],
    ) -> None:
        """See the class."""
        super().__init__(**own_options(locals()))
        options = self._options
        check_mappings(options)
        self._structure = read_slices(structure, first, inputs, states or (), carry)
        self._variables: dict[Hashable, Variable] = read_options(options, self._structure)
        self._learning = learning_of(self._structure, options)
        self._learning.groups  # noqa: B018  Groups that are none are refused here.
        self._all_fixed: DynamicFitted | None = None

    # -- well-known structures ---------------------------------------------------------------------------------------

    @classmethod
    def hmm(cls, hidden: Any, observed: Any, *, node: Hashable = "state", **options: Any) -> Self:
        """A hidden Markov model: a hidden node of so many states (or a list of them), on which it and all seen depend.

        observed: names of the nodes that are seen; node: name of the hidden one; options: those of the class.
        """
        return cls(arcs_of_chains([node], observed), hidden={node: hidden}, **options)

    @classmethod
    def factorial_hmm(cls, hidden: Sequence[Any], observed: Any, *, node: Hashable = "state", **options: Any) -> Self:
        """A factorial hidden Markov model: hidden chains of so many states, ``state0``, ..., all of them seen together.

        observed: names of the nodes that are seen; node: what chains are called before their number.
        """
        chains = chain_cards(hidden, node)
        return cls(arcs_of_chains(list(chains), observed), hidden=chains, **options)

    @classmethod
    def linear_system(cls, hidden: int, observed: Any, *, node: Hashable = "state", **options: Any) -> Self:
        """A linear dynamical system: so many hidden numbers, ``state0``, ..., move together and are seen with noise.

        observed: names of the nodes that are seen, which hold numbers; node: as in `factorial_hmm`.
        """
        numbers = [f"{node}{number}" for number in range(whole_number(hidden, "hidden"))]
        seen = names_of(observed)
        arcs = arcs_of_chains(numbers, seen, coupled=True)
        check_mappings(options)
        kinds = dict.fromkeys(seen, "real") | dict(options.pop("states", None) or {})
        return cls(arcs, hidden=dict.fromkeys(numbers, "real"), states=kinds, **options)

    # -- structure ---------------------------------------------------------------------------------------------------

    @property
    def nodes_(self) -> tuple[Hashable, ...]:
        """The nodes of a slice, in the order in which the structure names them."""
        return self._structure.nodes

    @property
    def tables_(self) -> tuple[Hashable, ...]:
        """The names of all tables: those of the first slices, then those of all others."""
        return tuple(self._structure.families)

    def parents(self, name: Hashable) -> tuple[Hashable, ...]:
        """The parents of a node, or of one in the first slices, in declared order."""
        return self._structure.families[self._family(name)]

    def states(self, node: Hashable) -> tuple[Hashable, ...]:
        """The states of a node or input."""
        domain = self.fitted_.domain
        if node not in domain:
            raise unknown_variable(node, domain.names)
        return domain[node].states

    def _family(self, name: Hashable) -> Hashable:
        families = self._structure.families
        if not is_name(name) or name not in families:
            raise unknown_variable(name, tuple(families))
        return name

    # -- what was learned --------------------------------------------------------------------------------------------

    def _task(self) -> DynamicTask:
        from suffice.models.dynamic_network.task import DynamicTask

        return DynamicTask(self._options, self._learning, self._structure, self._variables)

    @property
    def fitted_(self) -> DynamicFitted:
        """The fitted tables: a frozen value. Tables that are all fixed need no fit, once their states are known."""
        if self._fit is not None:
            fitted: DynamicFitted = self._fit.fitted
            return fitted
        if self._all_fixed is None:
            from suffice.models.dynamic_network.all_fixed import all_fixed

            self._all_fixed = all_fixed(self._learning, self._structure, self._variables)
        return self._all_fixed

    def node(self, name: Hashable) -> Any:
        """The fitted node: its table or regression; after EM its standard errors are of the observed information."""
        return self.parameters.node(self._family(name))

    def table(self, name: Hashable) -> Table:
        """P(node | parents) with axes (parents in declared order, node); the last axis sums to one.

        Of a linear-Gaussian node the coefficients, with axes (discrete parents, coefficient). ``(node, 0)`` is the
        table of a node in the first slice, where it has one of its own.
        """
        return self.fitted_.table(self._family(name))

    n_params_: Read[int] = computed(told_parameters)

    scores_: Read[tuple[float, ...]] = reads(
        "fitted_.network.climbed.scores", "The objective of each run of EM, -inf for one that failed."
    )

    @property
    def parameters(self) -> LearnedParameters:
        """What is known about the parameters of all tables, as those of one network."""
        return LearnedParameters(self.fitted_.network, self._learning, self._fit)

    posterior_: Read[dict[Hashable, Any]] = delegated_property(LearnedParameters.posterior_, of="parameters")
    standard_errors_: Read[dict[Hashable, Table]] = delegated_property(
        LearnedParameters.standard_errors_, of="parameters"
    )

    # -- learning ----------------------------------------------------------------------------------------------------

    def fit(  # type: ignore[override]
        self, data: Any, y: Any = None, *, sample_weight: Any = None, **form: Unpack[SeriesOptions]
    ) -> Self:
        """Learn the tables from series.

        Args:
            data: one table whose rows are slices, with a column for each node and input; a list of tables, one a
                series; or a `Summary` made for this model.
            y: what scikit-learn hands to every model; it is not used here, and a warning says so.
            sample_weight: one weight a series; a weight of 2 counts as two series.
            form: `group`, the column that tells the series of one table apart; `order`, the column that orders the rows
                of a series; or `time`, which orders them too, and makes missing slices of its gaps: whole numbers, or
                dates; `step`, how long a slice of dates is, such as ``"1 day"`` or ``"1 month"``. By default it is the
                shortest step of the series; what joins, leaves or is asked later has slices of the same length.

        Returns:
            self
        """
        return self._learn(data, y, sample_weight=sample_weight, form=SeriesForm(**form))

    def _learn(self, data: object, y: object, **more: object) -> Self:
        from suffice.fitting.contract import Inputs

        self._refuse_idle()
        unused_target(self, y)
        return self._solve(self._task().read(Inputs(data, more), None, "fit"), frame_of(_first_table(data)))

    _read_again = read_series_again

    def partial_fit(  # type: ignore[override]
        self, data: Any, y: Any = None, *, sample_weight: Any = None, keep: float = 1.0, **form: Unpack[SeriesOptions]
    ) -> Self:
        """Add series to those already learned; the result equals one fit on all of them.

        `keep` below 1 weights the earlier ones down first (forgetting). The rest is as in `fit`.
        """
        return self._join(keep, data, y, sample_weight=sample_weight, form=SeriesForm(**form))

    def unlearn(self, data: Any, *, sample_weight: Any = None, **form: Unpack[SeriesOptions]) -> Self:  # type: ignore[override]
        """Take series out again; the result equals a fit that never saw them."""
        return self._leave(data, sample_weight=sample_weight, form=SeriesForm(**form))

    def score(  # type: ignore[override]
        self, data: Any, y: Any = None, *, sample_weight: Any = None, **form: Unpack[SeriesOptions]
    ) -> float:
        """Mean log-likelihood of a slice (weighted), natural logarithm; the rest is as in `fit`."""
        unused_target(self, y)
        series = self.fitted_.open(data, form, sample_weight)
        if not series.weight > 0:
            raise OptionError("The score of no slices is undefined: the series have no weight. Give some.")
        return self.fitted_.log_likelihood_of(series) / series.weight

    score_samples = delegated(DynamicFitted.score_samples)

    # -- questions ---------------------------------------------------------------------------------------------------

    filter = delegated(DynamicFitted.filter)
    smooth = delegated(DynamicFitted.smooth)
    forecast = delegated(DynamicFitted.forecast)
    map_query = delegated(DynamicFitted.map_query)
    query = delegated(DynamicFitted.query)

    # -- draws and other networks ------------------------------------------------------------------------------------

    def sample(
        self, slices: int, n: int | None = None, *, inputs: Any = None, do: Any = None, random_state: Any = None
    ) -> Any:
        """A series of so many slices as a table; with `n` a list of so many, which `fit` takes as it is.

        A model that was fitted to frames gives frames of that kind, any other, and one that was read from a file, dicts
        of arrays. inputs: of a network that has inputs, a table of them with a row for each slice. do: nodes that are
        set from outside, by name in all slices, by ``(node, slice)`` in one.
        """
        drawn = self.fitted_.sample(slices, n, inputs=inputs, do=do, random_state=random_state)
        package = None if self._fit is None else self._fit.frame
        return as_frame(drawn, package) if isinstance(drawn, dict) else [as_frame(one, package) for one in drawn]

    def unroll(self, slices: int) -> BayesianNetwork:
        """All slices as one Bayesian network, whose nodes are called ``(node, slice)``: any question, of few slices."""
        network = self.fitted_.unrolled(slices)
        return BayesianNetwork(network.parents)._with_nodes(network.nodes)

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        from suffice.models.dynamic_network.portrait import portrait_of_model

        return portrait_of_model(self)

    # -- files -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Options, tables, statistics and report as plain data."""
        plain = super().to_dict()
        options: dict[str, Any] = plain["options"]
        options |= self._structure.plain()
        options["fixed"], options["start"] = plain_fixed(options["fixed"]), _plain_start(options["start"])
        return plain

    def _fitted_from(self, plain: Mapping[str, Any]) -> DynamicFitted:
        return DynamicFitted.from_dict(plain, self._structure, self._learning)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data."""
        options = dict(plain["options"])
        options |= {name: read_fixed(options[name]) for name in ("fixed", "start")}
        return super().from_dict({**plain, "options": options})


def _plain_start(start: Any) -> Any:
    """A start for a file: a fitted network as its tables."""
    fitted = getattr(start, "fitted_", start)
    return plain_fixed(getattr(fitted, "nodes", fitted))


def _first_table(data: Any) -> Any:
    """The table whose kind draws have: the first of a list."""
    return data[0] if isinstance(data, list | tuple) and data else data
