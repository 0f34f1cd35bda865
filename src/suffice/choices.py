"""What options of a few words may be: each list stands once, as a type for checkers and as the tuple for checks.

Solvers, engines and families are registered by name, and other packages may add some: a checker takes a name that it
does not know as `Registered`, as in ``GLM(solver=Registered("mine"))``.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, NewType, get_args

#: The name of something that another package, or a call of `suffice.extend`, has registered.
Registered = NewType("Registered", str)

# -- estimates and data ------------------------------------------------------------------------------------------------

#: Of parameters with a prior; None is the posterior mean where that has a closed form.
Estimate = Literal["mean", "map"]
MissingValues = Literal["em", "raise"]
UnseenRow = Literal["uniform", "nan", "raise"]
#: What takes the place of missing values.
Imputation = Literal["map", "mean", "draws"]
ParentOrder = Literal["forward", "reversed"]

# -- solvers -----------------------------------------------------------------------------------------------------------

#: Those that see a vector and a function: every model that climbs has them.
ObjectiveSolver = Literal["lbfgs", "newton", "newton-cg", "cg", "ascent", "owlqn"]
MarkovSolver = Literal[
    "auto",
    "closed-form",
    "ipf",
    "gis",
    "gis-cyclic",
    "ascent-potentials",
    "sml",
    "pseudolikelihood",
    "cd",
    "loopy-bp",
    ObjectiveSolver,
]
GaussianSolver = Literal["auto", "closed-form", "regression", "ipf", ObjectiveSolver]
RegressionSolverName = Literal["auto", "irls", "sgd", "cd", ObjectiveSolver]
FieldSolver = Literal["auto", "sgd", "adam", "perceptron", ObjectiveSolver]
Squarem = Literal["squarem"]
Acceleration = Literal["squarem", "lbfgs"]

# -- models ------------------------------------------------------------------------------------------------------------

FamilyName = Literal[
    "gaussian",
    "binomial",
    "poisson",
    "gamma",
    "inverse_gaussian",
    "negative_binomial",
    "quasipoisson",
    "quasibinomial",
    "multinomial",
    "multivariate_gaussian",
    "ordinal",
]
LinkName = Literal["identity", "log", "logit", "probit", "cloglog", "loglog", "inverse", "inverse_square", "sqrt"]
Covariance = Literal["expected", "observed", "robust", "HC0", "HC1", "HC2", "HC3"]
ClusterCorrection = Literal["full", "groups", "none"]
LagKernel = Literal["bartlett", "uniform"]
UnknownLevel = Literal["raise", "pool"]
Collinear = Literal["raise", "drop"]
MissingRows = Literal["raise", "drop"]
Dispersion = Literal["pearson", "ml"]
Predicted = Literal["response", "link", "class"]
Residual = Literal["response", "pearson", "deviance", "working", "quantile"]
CellResidual = Literal["raw", "pearson", "deviance", "adjusted"]
Interval = Literal["wald", "profile"]
Contrasts = Literal["treatment", "sum"]
TableStatistic = Literal["G2", "X2"]
TermTest = Literal["wald", "likelihood-ratio"]
BootstrapKind = Literal["case", "parametric"]
ConfidenceMethod = Literal["wald", "profile", "bootstrap", "posterior"]
ExactEngine = Literal["exact"]
Objective = Literal["joint", "conditional"]
ConditionalSolver = Literal["auto", ObjectiveSolver]
QueryEngine = Literal[ExactEngine, "sampling"]
#: Of intervals of answers.
IntervalMethod = Literal["delta", "posterior"]
OnInconsistent = Literal["raise", "warn"]
Coding = Literal["spin", "binary"]
Scan = Literal["systematic", "random"]
Topology = Literal["left-right", "linear"]
CovarianceShape = Literal["full", "diagonal", "spherical", "tied"]
PathMethod = Literal["viterbi", "posterior"]
EdgeWeights = Literal["full", "symmetric", "equal"]
ChainExpectations = Literal["exact", "sampled", "gibbs"]
Expectations = Literal["auto", ChainExpectations]
GraphMethod = Literal["auto", "exact", "pseudo-likelihood", "loopy", "gibbs"]
GraphFrame = Literal["precision", "covariance", "correlations", "partial_correlations", "standard_errors"]
SmoothingName = Literal["deleted", "interpolation", "held-out", "absolute", "katz", "kneser-ney"]


@cache
def choices(kind: Any) -> tuple[str, ...]:
    """The values of a `Literal`, in order.

    >>> choices(Collinear)
    ('raise', 'drop')
    """
    return get_args(kind)
