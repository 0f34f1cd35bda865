"""The kinds of node a network can have: which columns each takes, how it is learned, and how it is given.

A kind is a small object with the options of its nodes. Another kind of node enters by one call of `register`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from suffice.domain import Domain, Variable
from suffice.errors import FileFormatError, OptionError, listing
from suffice.models.bayesian.label_indexed import by_label
from suffice.models.bayesian.nodes.contract import Node, NodeKind, NodeLearner, NodeOptions
from suffice.models.bayesian.nodes.glm_kind import GLMKind, is_glm
from suffice.models.bayesian.nodes.linear_gaussian import LinearGaussianNode
from suffice.models.bayesian.nodes.linear_gaussian_batch import BatchLearner
from suffice.models.bayesian.nodes.linear_gaussian_learner import JointPrior
from suffice.models.bayesian.nodes.noisy_or import NoisyOrNode, given_noisy_or
from suffice.models.bayesian.nodes.noisy_or_chain import factor_scopes
from suffice.models.bayesian.nodes.noisy_or_learner import NoisyOrLearner, read_active
from suffice.models.bayesian.nodes.table import TableNode
from suffice.models.bayesian.nodes.table_learner import TableLearner
from suffice.models.bayesian.priors import linear_prior, noisy_or_prior, table_prior
from suffice.registry import Registry


@dataclass(frozen=True)
class TableKind(NodeKind):
    """P(node | parents) as a table: one row for each joint state of discrete parents."""

    kind: ClassVar[str] = TableNode.kind
    node_class: ClassVar[type[Node]] = TableNode
    column: ClassVar[Literal["discrete", "real"]] = "discrete"

    def check(self, family: Domain) -> None:
        """Node and parents have states."""
        check_discrete(self.kind, family)

    def learner(self, family: Domain, options: NodeOptions) -> NodeLearner:
        """Row by row."""
        prior = table_prior(options.prior, family, options.sample_size)
        return TableLearner(prior, options.estimate or "mean", options.unseen)

    def given(self, family: Domain, values: Any, options: NodeOptions) -> TableNode:
        """An array with axes (parents, node), values by label in any order, or a fitted node."""
        if isinstance(values, TableNode):
            if _same_layout(values.domain, family):
                return values
            values = values.table_
        return TableNode.given(family, by_label(values, family, "given table"))


@dataclass(frozen=True)
class LinearGaussianKind(NodeKind):
    """A linear regression on the real parents, one for each joint state of the discrete parents."""

    kind: ClassVar[str] = LinearGaussianNode.kind
    node_class: ClassVar[type[Node]] = LinearGaussianNode
    column: ClassVar[Literal["discrete", "real"]] = "real"

    def check(self, family: Domain) -> None:
        """The node holds numbers; parents may hold anything."""
        if family.variables[-1].kind == "discrete":
            raise _unfit(self.kind, family, "a column of numbers", "Declare states={...: 'real'} or choose 'table'.")

    def learner(self, family: Domain, options: NodeOptions) -> NodeLearner:
        """From moments, those of the pool where there are no discrete parents."""
        name = family.names[-1]
        prior = linear_prior(options.prior, family, options.pool)
        if options.tied and isinstance(prior, JointPrior):
            raise OptionError(
                f"{name!r} is tied, and a NormalWishart prior gives every node a prior of its own. Use a "
                "LinearGaussianPrior."
            )
        # Tied nodes read the moments of their own family, which add up by position.
        return BatchLearner(prior, options.estimate or "mean", options.unseen, () if options.tied else options.pool)

    def given(self, family: Domain, values: Any, options: NodeOptions) -> LinearGaussianNode:
        """A pair (weights, variance) in the shapes of `weights_` and `variance_`, or a fitted node."""
        if isinstance(values, LinearGaussianNode):
            _refuse_other_layout(values, family)
            # The pool says where the node reads its moments in this network; it is no parameter.
            return replace(values, pool=options.pool)
        if not isinstance(values, tuple | list) or len(values) != 2:
            raise OptionError(
                f"fixed[{family.names[-1]!r}] is {values!r}; a linear-Gaussian node is given as (weights, variance), "
                "intercept first, or as a fitted node."
            )
        return replace(LinearGaussianNode.given(family, *values), pool=options.pool)


@dataclass(frozen=True)
class NoisyOr(NodeKind):
    """A noisy-OR node: each active parent may cause the node by itself; parameters grow linearly with the parents.

    P(absent | parents) = exp(-(w_0 + sum of w[state])), w >= 0. The node has two states; its parents two or more.

    Args:
        leak: whether the node may be present when no parent is active.
        active: by name, the state of the node that means present, and the active state of a parent (a list of them
            where it has more than two states; exactly one is inactive). Where a name is left out, the first state is
            absent or inactive.

    A prior is a number of pseudo-counts: each cause fails and works that many times by itself. The estimate is then the
    MAP in the inhibition probabilities, whose prior is Beta(1 + number, 1 + number).

    >>> import suffice as sf
    >>> rows = {"flu": [0, 0, 1, 1, 1, 1], "fever": [0, 0, 0, 1, 1, 1]}
    >>> net = sf.BayesianNetwork([("flu", "fever")], nodes={"fever": sf.NoisyOr(leak=False)}).fit(rows)
    >>> net.node("fever").inhibitors_["flu"][1].__round__(6)
    0.25
    """

    leak: bool = True
    active: Mapping[Any, Any] | None = None

    kind: ClassVar[str] = NoisyOrNode.kind
    node_class: ClassVar[type[Node]] = NoisyOrNode
    column: ClassVar[Literal["discrete", "real"]] = "discrete"

    def __post_init__(self) -> None:
        """Check the options."""
        if not isinstance(self.leak, bool) or not isinstance(self.active, Mapping | None):
            raise OptionError(
                f"NoisyOr takes leak=True or False and active={{name: state}}; found {self.leak!r}, {self.active!r}."
            )

    def check(self, family: Domain) -> None:
        """Node and parents have states; that the node has two of them is checked when they are known."""
        check_discrete(self.kind, family)
        unknown = [name for name in self.active or () if name not in family]
        if unknown:
            raise OptionError(
                f"NoisyOr(active=...) of {family.names[-1]!r} names {listing(unknown)}; expected the node or one of "
                f"its parents {listing(family.names[:-1])}."
            )

    def learner(self, family: Domain, options: NodeOptions) -> NodeLearner:
        """By Newton's method from the counts of the family."""
        pseudo = noisy_or_prior(options.prior, family)
        if options.estimate == "mean" and pseudo is not None:
            raise OptionError(
                f"estimate='mean': the posterior mean of the noisy-OR node {family.names[-1]!r} has no closed form. "
                "Use estimate='map', or leave it out: such nodes then have the MAP estimate."
            )
        return NoisyOrLearner(self._active(family), self.leak, pseudo, options.unseen)

    def given(self, family: Domain, values: Any, options: NodeOptions) -> NoisyOrNode:
        """A dict {"leak": probability, "inhibitors": {parent: probability or {state: probability}}}, or a node."""
        if isinstance(values, NoisyOrNode):
            _refuse_other_layout(values, family)
            return values
        if not isinstance(values, Mapping) or set(values) != {"leak", "inhibitors"}:
            raise OptionError(
                f"fixed[{family.names[-1]!r}] is {values!r}; a noisy-OR node is given as {{'leak': probability, "
                "'inhibitors': {parent: probability}}, or as a fitted node."
            )
        return given_noisy_or(family, *read_active(family, self._active(family)), values["leak"], values["inhibitors"])

    def n_params(self, family: Domain) -> int:
        """Weights of a node over a family: one for each active state of each parent, and the leak."""
        return int(self.leak) + sum(card - 1 for card in family.shape(family.names[:-1]))

    def factor_scopes(self, family: Domain) -> list[tuple[Hashable, ...]]:
        """Variables of the tables that a node over a family brings into the junction tree."""
        return factor_scopes(family, self.leak)

    def _active(self, family: Domain) -> tuple[tuple[Hashable, ...] | None, ...]:
        """The active states at each place of the family, None where nothing is said."""
        active = self.active or {}
        listed = (active.get(name) for name in family.names)
        return tuple(
            None if states is None else tuple(states) if isinstance(states, list | set) else (states,)
            for states in listed
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        return {"leak": self.leak, "active": None if self.active is None else dict(self.active)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> NoisyOr:
        """Rebuild from plain data."""
        return cls(leak=plain["leak"], active=plain["active"])


# --------------------------------------------------------------------------------------------------------------------
# The register
# --------------------------------------------------------------------------------------------------------------------

#: The kinds with the options they have by default, by name.
KINDS: Registry[NodeKind] = Registry("suffice.node_kinds", "a kind of node")


def register(kind: NodeKind) -> None:
    """Let networks have another kind of node."""
    KINDS.register(kind.kind, lambda: kind)


register(TableKind())
register(LinearGaussianKind())
register(NoisyOr())
register(GLMKind())


def read_node(plain: Mapping[str, Any]) -> Any:
    """A fitted node from the plain data of a file, which name its kind."""
    kind = KINDS.find(plain["kind"])
    if kind is None:
        raise FileFormatError(f"The file holds a node of the kind {plain['kind']!r}; known: {listing(KINDS.names())}.")
    return kind.node_class.from_dict(plain)


def read_kind(node: Hashable, given: object) -> NodeKind:
    """The kind that a user names: by its name, or as an object with options."""
    kind = KINDS.find(given) if isinstance(given, str) else None
    if kind is not None:
        return kind
    if is_glm(given):
        return GLMKind(given)
    if isinstance(given, NodeKind) and KINDS.find(given.kind) is not None:
        return given
    raise OptionError(
        f"nodes[{node!r}] is {given!r}; expected one of {listing(KINDS.names())}, or a kind with options such as "
        "NoisyOr(...) or GLM(family=...)."
    )


def kind_of(family: Domain, given: object = None) -> NodeKind:
    """The kind of a node: the one named, else a regression for a column of numbers and a table for one of states."""
    name = family.names[-1]
    default = LinearGaussianNode.kind if family.variables[-1].kind != "discrete" else TableNode.kind
    chosen = read_kind(name, default if given is None else given)
    chosen.check(family)
    return chosen


def required_column(node: Hashable, given: object, declared: Variable | None) -> Variable | None:
    """The variable to read a node's column as, where its kind is named; a declaration that contradicts is an error."""
    kind = read_kind(node, given)
    states = kind.states
    if kind.column is None:
        return declared
    if declared is None:
        if states is not None:
            return Variable.discrete(node, states)
        return Variable(node, "real") if kind.column == "real" else Variable(node, "discrete")
    if states is not None and declared.kind == "discrete" and declared != Variable.discrete(node, states):
        raise OptionError(
            f"nodes[{node!r}] declares the states {listing(states)}, and states= {listing(declared.states)}. Declare "
            "them once."
        )
    if (declared.kind == "discrete") != (kind.column == "discrete"):
        raise OptionError(
            f"nodes[{node!r}] is {kind.kind!r}, whose column is {kind.column}; states= declares it {declared.kind}. "
            "Change one of the two."
        )
    return declared


def check_discrete(kind: str, family: Domain) -> None:
    """Raise unless node and parents have states."""
    name = family.names[-1]
    if family.variables[-1].kind != "discrete":
        raise _unfit(kind, family, "a column of states", f"Declare states={{{name!r}: [...]}}.")
    real = [variable.name for variable in family.variables[:-1] if variable.kind != "discrete"]
    if real:
        raise OptionError(
            f"{name!r} is discrete and has the real parents {listing(real)}; a {kind} node needs discrete parents. "
            "Declare the states of the parents, turn the edge, or make the node a regression: "
            f"nodes={{{name!r}: 'glm'}}."
        )


def _unfit(kind: str, family: Domain, expected: str, hint: str) -> OptionError:
    variable = family.variables[-1]
    held = f"the states {listing(variable.states)}" if variable.kind == "discrete" else f"{variable.kind} numbers"
    return OptionError(f"nodes[{variable.name!r}] is {kind!r}, which needs {expected}; found {held}. {hint}")


def _same_layout(mine: Domain, theirs: Domain) -> bool:
    return mine.names == theirs.names and mine.variables == theirs.variables


def _refuse_other_layout(node: Node, family: Domain) -> None:
    if not _same_layout(node.domain, family):
        raise OptionError(
            f"The fixed node {family.names[-1]!r} is over {node.domain!r}; expected {family!r}, with the same states "
            "in the same order."
        )
