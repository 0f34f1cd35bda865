"""How a GLM node is learned: by the fit of the generalised linear model itself, from the rows of its family."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from suffice import storage
from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.errors import DataError, EstimateError, OptionError, Remark, SufficeError, after, holding_remarks, listing
from suffice.fitting.report import Certificate, Report
from suffice.models.bayesian.nodes.contract import Columns, NodeLearner
from suffice.models.bayesian.nodes.glm import GLMNode
from suffice.models.bayesian.nodes.glm_rows import ask_rows, design_of, places_of, question_of, state_weights
from suffice.sources.reduction import Answers
from suffice.statistics import Statistic, Summary

if TYPE_CHECKING:
    from suffice.models.glm.design import Design
    from suffice.models.glm.family import Family
    from suffice.models.glm.fitted import GLMFitted


@dataclass(frozen=True, eq=False)
class GLMLearner(NodeLearner):
    """Learns a generalised linear model of the parents; `model` holds its options, its prior among them.

    `unseen` says what becomes of a state of a parent that never occurs where there is no prior: it counts as the first
    level, noted (``"uniform"``), NaN (``"nan"``), or an error (``"raise"``). `in_steps` says that `learn` is a step of
    EM, which takes nodes of states with parents of states; `weighted` that its rows come with every joint state of
    what they do not show, weighted by how probable it is, so that numbers are taken too.
    """

    model: Any
    unseen: str = "uniform"
    in_steps: bool = False
    weighted: bool = False

    def __eq__(self, other: object) -> bool:
        """Alike where models are told apart by their options, not by being one object."""
        return isinstance(other, GLMLearner) and self._said == other._said

    def __hash__(self) -> int:
        """Of what is compared."""
        return hash(self._said)

    @property
    def _said(self) -> tuple[str, str, bool, bool]:
        return storage.dumps(self.model.to_dict()["options"]), self.unseen, self.in_steps, self.weighted

    @property
    def asks_rows(self) -> bool:
        """Rows may stay where they are."""
        return True

    def needs_rows(self, domain: Domain) -> bool:
        """Whether the node is learned from whole rows, which EM has only where all rows show the family."""
        return not self.weighted and any(variable.kind != "discrete" for variable in domain.variables)

    def on_weighted_rows(self) -> Self:
        """Each row counts by its weight, as in any weighted regression."""
        return replace(self, weighted=True)

    def for_em(self, *, filled: bool) -> Self:
        """A step of EM."""
        return replace(self, in_steps=True, unseen="uniform" if filled else self.unseen)

    def statistics(self, domain: Domain) -> tuple[Statistic, ...]:
        """The counts of the family, or its distinct rows where some of it is real."""
        if self.in_steps and self.needs_rows(domain):
            raise OptionError(
                f"{domain.names[-1]!r} is a tied GLM node with real columns in its family, and rows have missing "
                "values or hidden nodes; EM does not take both. Untie it, or leave those rows out."
            )
        return (question_of(domain),)

    def learn(self, domain: Domain, summary: Summary) -> GLMNode:
        """The fitted node."""
        from suffice.engines.workers import with_one_blas_thread
        from suffice.fitting.driver import solve
        from suffice.models.bayesian.nodes.glm_blocks import FamilyBlock, regression_rows
        from suffice.models.glm.rows import RegressionData, codes_of, reference_of

        name, task = domain.names[-1], self.model._task()
        classes = self._classes(domain)
        family = None if classes is not None else task.options.one_family
        weight, live, *seen = ask_rows(domain, summary, _Opening(domain, family)).parts
        if not weight > 0:
            raise EstimateError(f"There are no rows to learn the GLM node {name!r} from: the data have no weight.")
        discrete = [parent.name for parent in domain.variables[:-1] if parent.kind == "discrete"]
        constant = self.model._options["fit_intercept"]
        design = design_of(domain, constant, dict(zip(discrete, seen, strict=True)))
        reference, order = None, None
        if classes is not None and task.options.family.response == "labels":
            reference = reference_of(task.options, classes)
            order = codes_of(len(classes), reference)
        rows = regression_rows(summary, FamilyBlock(domain, design, order), live)
        data = RegressionData(design, rows, weight, classes, rows=summary.rows, reference=reference)
        try:
            with holding_remarks() as remarks:
                fit = with_one_blas_thread(lambda: solve(task.problem(data, None), data, self.model._control()))
        except SufficeError as error:
            raise type(error)(f"The GLM node {name!r}: {error}") from error
        report = fit.report
        assert report is not None
        learned = _with_all_states(domain, fit.fitted) if self.in_steps else fit.fitted
        return GLMNode(
            domain,
            self.model,
            learned,
            dispersion=self._dispersion(learned),
            unseen="nan" if self.unseen == "nan" and self.model._options["prior"] is None else "uniform",
            size=weight,
            estimate="mle" if self.model._options["prior"] is None else "map",
            notes=self._notes(domain, design, report, remarks),
            directions=_directions(domain, report.certificate),
            undecided=report.certificate.exists is None,
            report=report,
        )

    def _classes(self, domain: Domain) -> tuple[Any, ...] | None:
        """The states of the node; None where it holds numbers."""
        variable = domain.variables[-1]
        if variable.kind != "discrete":
            return None
        check_states(self.model, domain)
        return tuple(variable.states)

    def _dispersion(self, learned: GLMFitted) -> float:
        """That of the largest likelihood; a conjugate prior and a known number bring their own."""
        known = self.model._task().options.known_dispersion is not None or learned.posterior is not None
        return float(learned.dispersion if known or not learned.free_dispersion else learned.ml_dispersion)

    def _notes(self, domain: Domain, design: Design, report: Report, remarks: list[Remark]) -> tuple[str, ...]:
        name = domain.names[-1]
        plain = [line for line in report.warnings if not any(line in remark for remark in remarks)]
        notes = [after(f"{name!r}: ", line) for line in (*remarks, *plain)]
        for parent, places in zip(domain.variables[:-1], places_of(domain, design), strict=True):
            never = [] if places is None else [parent.states[code] for code in np.flatnonzero(places < 0).tolist()]
            if not never:
                continue
            if self.unseen == "raise" and self.model._options["prior"] is None:
                raise EstimateError(
                    f"The states {listing(never)} of {parent.name!r} never occur, so their effect on {name!r} is "
                    "undefined. Give the GLM a prior=, or unseen='uniform' or 'nan'."
                )
            what = "NaN" if self.unseen == "nan" and self.model._options["prior"] is None else "that of the first level"
            notes.append(
                f"The states {listing(never)} of {parent.name!r} never occur; their effect on {name!r} is {what}."
            )
        if not report.converged:
            notes.append(f"The coefficients of {name!r} did not come to rest: {report.stop_reason}.")
        return tuple(notes)


@dataclass(frozen=True)
class _Opening:
    """Of the rows of a node: their weight, how many have any, and the weight of each state of its discrete parents.

    A number that the distribution of the node does not take is an error.
    """

    domain: Domain
    family: Family | None

    def __call__(self, columns: Columns, weights: Floats, _: None) -> Answers:
        if self.family is not None:
            self._check(np.asarray(columns[self.domain.names[-1]], dtype=np.float64), self.family)
        seen = state_weights(self.domain, columns, weights).values()
        return Answers((float(weights.sum()), int(np.count_nonzero(weights)), *seen))

    def _check(self, values: Floats, family: Family) -> None:
        wrong = ~family.allowed(values)
        if wrong.any():
            raise DataError(
                f"Column {self.domain.names[-1]!r} holds {float(values[wrong][0])!r}; the {family.name} family of its "
                f"node takes {family.support}. Correct the value, leave its row out, or choose another family."
            )


def check_states(model: Any, domain: Domain) -> None:
    """Raise unless the node has as many states as its family needs."""
    node = domain.variables[-1]
    if model._task().options.family.name == "binomial" and node.card != 2:
        raise OptionError(
            f"nodes[{node.name!r}] is a GLM of the binomial family, which has two states; found {node.card}: "
            f"{listing(node.states)}. Declare two states=, the second being success, or use family='multinomial'."
        )
    if node.card < 2:
        raise OptionError(
            f"nodes[{node.name!r}] is a softmax GLM and has the single state {listing(node.states)}; nothing can be "
            "learned. Declare all its states=."
        )


def _with_all_states(domain: Domain, learned: GLMFitted) -> GLMFitted:
    """The same distribution with a coefficient for every state of the parents, equal for all steps of EM.

    A state without weight has the effect of the first level.
    """
    from suffice.solvers.information import Information

    design = design_of(domain, learned.design.constant)
    if design.size == learned.design.size:
        return learned
    wide = [
        None if values is None else np.zeros((design.size, values.shape[1])) for values in _of_coefficients(learned)
    ]
    here, there = int(design.constant), int(design.constant)
    columns: Any = zip(design.columns, learned.design.columns, places_of(domain, learned.design), strict=True)
    for column, own, places in columns:
        for values, wider in zip(_of_coefficients(learned), wide, strict=True):
            if values is None or wider is None:
                continue
            wider[: int(design.constant)] = values[: int(design.constant)]
            if places is None:
                wider[here] = values[there]
                continue
            effects = own.effects(values[there : there + own.coded])[np.maximum(places, 0)]
            wider[here : here + column.coded] = effects if column.full else effects[1:]
        one = places is None
        here, there = here + (1 if one else column.coded), there + (1 if one else own.coded)
    beta, direction = wide
    assert beta is not None  # Every model has coefficients.
    return replace(learned, design=design, beta=beta, direction=direction, information=Information(np.zeros((0, 0))))


def _of_coefficients(learned: GLMFitted) -> tuple[Floats, Floats | None]:
    return learned.beta, learned.direction


def _directions(domain: Domain, certificate: Certificate) -> tuple[str, ...]:
    """What runs to infinity, by coefficient and node."""
    if certificate.exists is not False:
        return ()
    directions = tuple(
        f"{'coefficient ' if words.endswith('infinity') else ''}{words} in {domain.names[-1]!r}"
        for words in certificate.directions
    )
    return directions or (f"the likelihood of {domain.names[-1]!r} rises for ever",)
