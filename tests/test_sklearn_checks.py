"""scikit-learn's own checks of estimators, with all that they refuse named together with its reason."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import suffice as sf

pytest.importorskip("sklearn")
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator

RIDGE = sf.Normal(variance=1.0)
VAGUE = sf.NormalWishart(mean=[0.0], strength=1.0, dof=2.0, inverse_scale=[[1.0]])


#: Estimators of which no check may fail.
ESTIMATORS: dict[str, Callable[[], Any]] = {
    "network, classifier": lambda: sf.BayesianNetwork("gaussian-naive-bayes", target="class"),
    "tables, classifier": lambda: sf.BayesianNetwork("naive-bayes", target="class"),
    "tables with a prior, classifier": lambda: sf.BayesianNetwork("naive-bayes", target="class", prior=1.0),
    "network with a prior, classifier": lambda: sf.BayesianNetwork("gaussian-naive-bayes", target="class", prior=1.0),
    "network, regressor": lambda: sf.BayesianNetwork("gaussian-naive-bayes", target="z", states={"z": "real"}),
    "Gaussian graph": lambda: sf.GaussianGraph([(0, 1)]),
    "Gaussian graph, ridge": lambda: sf.GaussianGraph([(0, 1)], prior=RIDGE),
    "Gaussian graph, Wishart": lambda: sf.GaussianGraph([(0, 1)], prior=sf.Wishart(dof=4, inverse_scale=np.eye(2))),
    "gaussian": lambda: sf.GLM("gaussian", prior=RIDGE),
    "binomial": lambda: sf.GLM("binomial", prior=RIDGE),
    "multinomial": lambda: sf.GLM("multinomial", prior=RIDGE),
    "poisson": lambda: sf.GLM("poisson", prior=RIDGE),
    "negative binomial": lambda: sf.GLM("negative_binomial", prior=RIDGE),
    "geometric": lambda: sf.GLM(sf.Geometric(), prior=RIDGE),
    "gamma": lambda: sf.GLM("gamma", dispersion=1.0, prior=RIDGE),
    "exponential": lambda: sf.GLM(sf.Exponential(), prior=RIDGE),
    "inverse gaussian": lambda: sf.GLM("inverse_gaussian", dispersion=1.0, prior=RIDGE),
    "quasi-Poisson": lambda: sf.GLM("quasipoisson", dispersion=1.0, prior=RIDGE),
    "quasi-binomial": lambda: sf.GLM("quasibinomial", dispersion=1.0, prior=RIDGE),
}

#: Families without a prior, where the checks have rows that do not tell all columns apart, and fits that are perfect.
FREE: dict[str, Callable[[], Any]] = {
    "gaussian": lambda: sf.GLM("gaussian", dispersion=1.0, collinear="drop"),
    "multinomial": lambda: sf.GLM("multinomial", collinear="drop"),
    "poisson": lambda: sf.GLM("poisson", collinear="drop"),
    "negative binomial": lambda: sf.GLM("negative_binomial", collinear="drop"),
}

ORDER = {"check_classifiers_classes": "its labels are words, and their order has to be said"}
BOTH_WEIGHTS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")

#: Estimators of which some checks fail, which ones, and why.
EXCEPT: dict[str, tuple[Callable[[], Any], dict[str, str]]] = {
    "ordinal": (lambda: sf.GLM("ordinal", prior=RIDGE), ORDER),
    "ordinal without a prior": (lambda: sf.GLM("ordinal", collinear="drop"), ORDER),
    "binomial without a prior": (
        lambda: sf.GLM("binomial", collinear="drop"),
        dict.fromkeys(BOTH_WEIGHTS, "27 rows of 30 columns are separated, by many directions at once"),
    ),
    "vectors": (
        lambda: sf.GLM("multivariate_gaussian", prior=VAGUE),
        {"check_regressor_multioutput": "its responses are five numbers, and the prior is of one"},
    ),
    "normal distribution": (
        lambda: sf.MultivariateNormal(),
        {"check_sample_weight_equivalence_on_dense_data": "27 rows of 30 columns have a singular covariance"},
    ),
    "network for the target": (
        lambda: sf.BayesianNetwork("naive-bayes", target="class", prior=1.0, objective="conditional"),
        dict.fromkeys(
            ("check_estimators_nan_inf", "check_sample_weight_equivalence_on_dense_data"),
            "the columns are real, and this objective learns tables",
        ),
    ),
    "network": (
        lambda: sf.BayesianNetwork([(0, 1)]),
        {
            "check_n_features_in_after_fitting": "it reads its own columns, whatever columns are beside them",
            "check_all_zero_sample_weights_error": "the error says that the data have no weight, and not 'zero'",
        },
    ),
}


def failures(estimator: Any) -> dict[str, Exception]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert len(results) > 45
    return {one["check_name"]: one["exception"] for one in results if one["status"] == "failed"}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_check_fails(name: str) -> None:
    assert failures(ESTIMATORS[name]()) == {}


@pytest.mark.parametrize("name", EXCEPT)
def test_what_fails_has_a_reason(name: str) -> None:
    make, reasons = EXCEPT[name]
    assert failures(make()).keys() == reasons.keys()


@pytest.mark.parametrize("name", FREE)
def test_no_check_fails_without_a_prior(name: str) -> None:
    assert failures(FREE[name]()) == {}


ONE_COLUMN = r"describes one column|Did not raise"  # The latter of rows that are one column and should be an error.
#: Models that the rows of most checks do not suit, and the words in which they say so.
UNSUITED: dict[str, tuple[Callable[[], Any], str]] = {
    "Markov network": (lambda: sf.MarkovNetwork([(0, 1)]), "needs states|could be the table of counts"),
    "Dirichlet": (lambda: sf.Dirichlet(), "add up to|expected positive values|two or more columns"),
    "normal": (lambda: sf.Normal(), ONE_COLUMN),
    "gamma": (lambda: sf.Gamma(), ONE_COLUMN + "|expected positive"),
    "beta": (lambda: sf.Beta(), ONE_COLUMN + "|expected below one"),
    "Poisson": (lambda: sf.Poisson(), ONE_COLUMN + "|expected a count"),
    "negative binomial": (lambda: sf.NegativeBinomial(size=1), ONE_COLUMN + "|expected a count"),
    "categorical": (lambda: sf.Categorical(), ONE_COLUMN),
    "Bernoulli": (lambda: sf.Bernoulli(), ONE_COLUMN + "|a success is 1"),
}


@pytest.mark.parametrize("name", UNSUITED)
def test_what_fails_says_that_the_rows_do_not_suit(name: str) -> None:
    make, words = UNSUITED[name]
    found = failures(make())
    assert len(found) < 32
    for check, error in found.items():
        cause: BaseException = error
        while (before := cause.__cause__ or cause.__context__) is not None:
            cause = before
        assert re.search(words, str(cause)), (check, cause)


#: Models of sequences and graphs, whose X is no matrix of rows: scikit-learn asks nothing of these by itself.
SEQUENCES: dict[str, Callable[[], Any]] = {
    "chain CRF": lambda: sf.ChainCRF(prior=RIDGE),
    "graph CRF": lambda: sf.GraphCRF(prior=RIDGE),
    "network through time": lambda: sf.DynamicBayesianNetwork([(("a", -1), "a")]),
    "hidden Markov model": lambda: sf.HiddenMarkovModel(2, sf.Normal()),
    "Markov chain": lambda: sf.MarkovChain(),
}
#: Checks that need no rows: no model may fail one.
WITHOUT_ROWS = {
    *("check_do_not_raise_errors_in_init_or_set_params", "check_estimator_cloneable", "check_estimator_repr"),
    *("check_estimator_tags_renamed", "check_estimators_unfitted", "check_get_params_invariance"),
    *("check_mixin_order", "check_no_attributes_set_in_init", "check_parameters_default_constructible"),
    *("check_set_params", "check_valid_tag_types"),
}
#: All others, by the reason for which sequences do not take them.
NOT_OF_SEQUENCES = {
    "a matrix is no list of sequences, and y has one label a step": {
        *("check_classifier_data_not_an_array", "check_classifiers_classes", "check_classifiers_one_label"),
        *("check_classifiers_regression_target", "check_classifiers_train", "check_complex_data"),
        *("check_decision_proba_consistency", "check_dict_unchanged", "check_dont_overwrite_parameters"),
        *("check_dtype_object", "check_estimators_dtypes", "check_estimators_empty_data_messages"),
        *("check_estimators_fit_returns_self", "check_estimators_nan_inf", "check_estimators_overwrite_params"),
        *("check_estimators_partial_fit_n_features", "check_estimators_pickle", "check_f_contiguous_array_estimator"),
        *("check_fit1d", "check_fit2d_1feature", "check_fit2d_1sample", "check_fit2d_predict1d"),
        *("check_fit_check_is_fitted", "check_fit_idempotent", "check_fit_score_takes_y", "check_n_features_in"),
        *("check_n_features_in_after_fitting", "check_non_transformer_estimators_n_iter", "check_pipeline_consistency"),
        *("check_positive_only_tag_during_fit", "check_readonly_memmap_input", "check_requires_y_none"),
        *("check_supervised_y_2d", "check_supervised_y_no_nan"),
    },
    "what is predicted of a row hangs on the rows beside it": {
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
    },
    "weights are of sequences, one for each": {
        *("check_all_zero_sample_weights_error", "check_classifiers_one_label_sample_weights"),
        *("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"),
        *("check_sample_weights_list", "check_sample_weights_not_an_array", "check_sample_weights_not_overwritten"),
        *("check_sample_weights_pandas_series", "check_sample_weights_shape"),
    },
    "sparse matrices are those of single sequences, inside of a list": {
        *("check_estimator_sparse_array", "check_estimator_sparse_matrix", "check_estimator_sparse_tag"),
    },
    "it is skipped where no array library but NumPy is there": {"check_array_api_input"},
}


@pytest.mark.filterwarnings("ignore:Estimator .* does not inherit from")
def test_every_check_is_made_of_sequences_or_has_a_reason() -> None:
    estimators = (sf.GaussianGraph([(0, 1)]), sf.GLM("multinomial"))
    drawn = {
        getattr(check, "func", check).__name__
        for estimator in estimators
        for _, check in estimator_checks.estimator_checks_generator(estimator)
    }
    assert drawn <= WITHOUT_ROWS.union(*NOT_OF_SEQUENCES.values())


@pytest.mark.parametrize("check", sorted(WITHOUT_ROWS))
@pytest.mark.parametrize("name", SEQUENCES)
def test_checks_without_rows(name: str, check: str) -> None:
    make = getattr(estimator_checks, check, None)
    if make is None:
        pytest.skip(f"this scikit-learn has no {check}")
    make(type(SEQUENCES[name]()).__name__, SEQUENCES[name]())
