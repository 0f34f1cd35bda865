"""Generalised linear models as a kind of node: the columns they take, how they are learned, and how they are given."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.errors import OptionError, listing
from suffice.models.bayesian.nodes.contract import Node, NodeKind, NodeLearner, NodeOptions
from suffice.models.bayesian.nodes.glm import GLMNode, check_fits, n_shapes
from suffice.models.bayesian.nodes.glm_rows import design_of


@dataclass(frozen=True, eq=False)
class GLMKind(NodeKind):
    """A node that is a `GLM` of its parents. Without a model: logistic, softmax or Gaussian, as the column is."""

    model: Any = None

    kind: ClassVar[str] = GLMNode.kind
    node_class: ClassVar[type[Node]] = GLMNode

    def __post_init__(self) -> None:
        """Take a copy of the model: what becomes of the user's own later is no concern of this node."""
        if self.model is not None:
            object.__setattr__(self, "model", self.model.clone())

    @property
    def column(self) -> Literal["discrete", "real"] | None:
        """What the node's own column holds; None where the column says."""
        if self.model is None:
            return None
        return "discrete" if self.model._task().options.family.labels else "real"

    @property
    def counts(self) -> bool:
        """Whether the node's column holds counts."""
        return self.model is not None and self.model._task().options.family.name in ("poisson", "negative_binomial")

    @property
    def states(self) -> tuple[Hashable, ...] | None:
        """The states that the family declares: Bernoulli(states=...), Categorical(states=...)."""
        states = None if self.model is None else self.model._task().options.states
        return None if states is None or self.column != "discrete" else tuple(states)

    def _model(self, family: Domain) -> Any:
        if self.model is not None:
            return self.model
        from suffice.models.glm.declaration import GLM

        node = family.variables[-1]
        return GLM("gaussian" if node.kind != "discrete" else "binomial" if node.card == 2 else "multinomial")

    def check(self, family: Domain) -> None:
        """The node's column is what the family of the model takes, and no option asks for what a node has not."""
        name, variable = family.names[-1], family.variables[-1]
        if self.model is None:
            return
        if self.model._task().options.family.name == "multivariate_gaussian":
            raise OptionError(f"nodes[{name!r}] is a GLM of vectors; a node is one column. Use family='gaussian'.")
        if self.model._task().options.family.name == "ordinal":
            raise OptionError(
                f"nodes[{name!r}] is a GLM of ordered labels, which is not offered as a node. Use "
                "family='multinomial', or fit the GLM by itself."
            )
        if not self.model._task().options.family.has_likelihood:
            raise OptionError(
                f"nodes[{name!r}] is a GLM of the {self.model._task().options.family.name} family, which is no "
                "distribution, and a node is one. Use family='negative_binomial', 'poisson' or 'binomial'."
            )
        self._check_effects(name)
        if self.model._options["formula"] is not None:
            raise OptionError(f"nodes[{name!r}] has a formula; the parents of a node say what explains it.")
        asked = self.model._options["categorical"] or ()
        real = [n for n in ([asked] if isinstance(asked, str) else asked) if n in family and _is_real(family, n)]
        if real:
            raise OptionError(
                f"nodes[{name!r}] has categorical={listing(real)}, which the network reads as numbers. Declare the "
                "states of these columns: states={name: [...]}."
            )
        if (variable.kind == "discrete") != (self.column == "discrete"):
            held = (
                f"the states {listing(variable.states)}" if variable.kind == "discrete" else f"{variable.kind} numbers"
            )
            distribution = self.model._task().options.family.name
            raise OptionError(
                f"nodes[{name!r}] is a GLM of the {distribution} family, whose column is {self.column}; found {held}. "
                "Declare states=, or choose another family."
            )

    def _check_effects(self, name: Hashable) -> None:
        """Refuse options of the model that mean nothing for a node."""
        assert self.model is not None
        covariance = self.model._options["covariance"]
        if covariance not in ("expected", "observed", "robust", "HC0"):
            raise OptionError(
                f"nodes[{name!r}] is a GLM with covariance={covariance!r}, which is made from single rows after a fit "
                "of its own, and a network makes none. Use 'robust', or fit the GLM by itself."
            )
        if isinstance(self.model._options["reference"], Mapping):
            raise OptionError(
                f"nodes[{name!r}] is a GLM with reference= by column, which has no effect: levels of parents keep the "
                "order of their states. Declare it: states={name: [...]}."
            )
        if self.model._options["missing"] != "raise":
            raise OptionError(
                f"nodes[{name!r}] is a GLM with missing='drop', which has no effect: missing= of the network says what "
                "missing values do. Leave it out."
            )
        if self.model._options["unknown"] != "raise":
            raise OptionError(
                f"nodes[{name!r}] is a GLM with unknown={self.model._options['unknown']!r}, which has no effect: a "
                "network knows all states of the parents. Leave it out, and say by unseen= what states without rows do."
            )

    def learner(self, family: Domain, options: NodeOptions) -> NodeLearner:
        """By the fit of the model; its prior is its own, or that of the network for this node alone."""
        from suffice.models.bayesian.nodes.glm_learner import GLMLearner

        model, name = self._model(family), family.names[-1]
        own = options.prior.get(name) if isinstance(options.prior, Mapping) else None
        if own is not None:
            if model._options["prior"] is not None:
                raise OptionError(f"{name!r} has a prior in prior= and one in its GLM; give one of them.")
            model = type(model)(**{**model._options, "prior": own})
        if options.estimate == "mean" and model._options["prior"] is not None:
            raise OptionError(
                f"estimate='mean': the posterior mean of the GLM node {name!r} has no closed form. Use estimate='map', "
                "or leave it out: such nodes then have the MAP estimate."
            )
        learner: NodeLearner = GLMLearner(model, options.unseen)
        return learner

    def given(self, family: Domain, values: Any, options: NodeOptions) -> GLMNode:
        """A fitted node, a fitted GLM of the parents, or numbers.

        Numbers are a dict with "coefficients" (by name, or an array with the intercept first; of a softmax a row for
        each coefficient with a number for each state but the reference) and, where the distribution has one,
        "dispersion" or "size".
        """
        if isinstance(values, GLMNode):
            if values.domain.names != family.names or values.domain.variables != family.variables:
                raise OptionError(
                    f"The fixed node {family.names[-1]!r} is over {values.domain!r}; expected {family!r}, with the "
                    "same states in the same order."
                )
            return values
        model = self._model(family)
        if is_glm(values):
            return _from_fitted(family, values)
        if not isinstance(values, Mapping) or not {"coefficients"} <= set(values) <= _KEYS:
            raise OptionError(
                f"fixed[{family.names[-1]!r}] is {values!r}; a GLM node is given as {{'coefficients': ..., "
                "'dispersion': ...}}, as a fitted GLM, or as a fitted node."
            )
        return _from_numbers(family, model, values)

    def n_params(self, family: Domain) -> int:
        """Coefficients of a node over a family, and its dispersion or size."""
        model = self._model(family)
        design = design_of(family, model._options["fit_intercept"])
        name = model._task().options.family.name
        outputs = family.variables[-1].card - 1 if name == "multinomial" else 1
        return design.size * outputs + n_shapes(model)

    def factor_scopes(self, family: Domain) -> list[tuple[Hashable, ...]]:
        """Variables of the table that a node over a family brings into the junction tree."""
        return [tuple(v.name for v in family.variables if v.kind == "discrete")]


def is_glm(value: object) -> bool:
    """Whether a user has given a `GLM`."""
    from suffice.models.glm.declaration import GLM

    return isinstance(value, GLM)


_KEYS = {"coefficients", "dispersion", "size"}


def _is_real(family: Domain, name: Hashable) -> bool:
    return family[name].kind != "discrete"


def _from_fitted(family: Domain, fitted: Any) -> GLMNode:
    learned = fitted.fitted_
    names = [column.variable.name if hasattr(column, "variable") else column for column in learned.design.columns]
    if tuple(names) != family.names[:-1]:
        raise OptionError(
            f"fixed[{family.names[-1]!r}] is a GLM of the columns {listing(names)}; expected the parents "
            f"{listing(family.names[:-1])}, in their order."
        )
    model = type(fitted)(**fitted._options)
    from suffice.models.bayesian.nodes.glm_learner import GLMLearner, check_states

    if family.variables[-1].kind == "discrete":
        check_states(model, family)
        if learned.classes != tuple(family.variables[-1].states):
            raise OptionError(
                f"fixed[{family.names[-1]!r}] is a GLM of the labels {listing(learned.classes or ())}; expected the "
                f"states {listing(family.variables[-1].states)}, in their order."
            )
    node = GLMNode(family, model, learned, dispersion=GLMLearner(model)._dispersion(learned))
    check_fits(node)
    return node


def _from_numbers(family: Domain, model: Any, values: Mapping[str, Any]) -> GLMNode:
    from suffice.models.bayesian.nodes.glm_learner import check_states
    from suffice.models.glm.fitted import GLMFitted
    from suffice.solvers.information import Information

    options = model._task().options
    node, distribution = family.variables[-1], options.family.name
    discrete = node.kind == "discrete"
    if discrete:
        check_states(model, family)
    design = design_of(family, model._options["fit_intercept"])
    reference = None
    if distribution == "multinomial":
        wanted = model._options["reference"]
        reference = node.card - 1 if wanted is None else node.index(wanted)
    beta = _coefficients(
        family, design.names, values["coefficients"], node.card - 1 if distribution == "multinomial" else 1
    )
    free = options.family.free_dispersion
    dispersion = _positive(family, values, "dispersion") if free else 1.0
    size = _positive(family, values, "size") if distribution == "negative_binomial" else None
    odd = set(values) - {"coefficients"} - ({"dispersion"} if free else set()) - ({"size"} if size else set())
    if odd:
        raise OptionError(f"fixed[{node.name!r}] has {listing(sorted(odd))}, which the {distribution} family has not.")
    learned = GLMFitted(
        design=design,
        family=distribution,
        link=options.link.name,
        beta=beta,
        information=Information(np.zeros((0, 0))),
        dispersion=dispersion,
        ml_dispersion=dispersion,
        size=size,
        n_params=beta.size,
        classes=tuple(node.states) if discrete else None,
        reference=reference,
    )
    return GLMNode(family, model, learned, dispersion=dispersion)


def _coefficients(family: Domain, names: tuple[str, ...], given: Any, outputs: int) -> Floats:
    """Coefficients (k, outputs) from numbers by name or in order."""
    node = family.names[-1]
    if isinstance(given, Mapping):
        if set(given) != set(names):
            raise OptionError(
                f"fixed[{node!r}] gives coefficients of {listing(given)}; expected {listing(names)}, one each."
            )
        given = [given[name] for name in names]
    beta = np.asarray(given, dtype=np.float64)
    beta = beta[:, None] if beta.ndim == 1 and outputs == 1 else beta
    if beta.shape != (len(names), outputs) or not np.isfinite(beta).all():
        raise OptionError(
            f"fixed[{node!r}] has coefficients of shape {beta.shape}; expected finite numbers for {listing(names)}"
            + (f", {outputs} each." if outputs > 1 else ".")
        )
    return beta


def _positive(family: Domain, values: Mapping[str, Any], what: str) -> float:
    value = values.get(what)
    if (
        not isinstance(value, int | float | np.integer | np.floating)
        or isinstance(value, bool)
        or not 0 < value < np.inf
    ):
        raise OptionError(f"fixed[{family.names[-1]!r}] needs a positive {what!r}; found {value!r}.")
    return float(value)
