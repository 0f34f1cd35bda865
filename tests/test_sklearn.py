"""scikit-learn's tools, and its estimators beside ours; its own checks are in `test_sklearn_checks`."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf

pytest.importorskip("sklearn")
from sklearn import linear_model, metrics, model_selection, naive_bayes, pipeline, preprocessing
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibrationDisplay
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError

RNG = np.random.default_rng(5)
N = 240
X = RNG.normal(size=(N, 3))
FRAME = pd.DataFrame(X, columns=["u", "v", "w"])
TRUTH = np.where(RNG.random(N) < 1 / (1 + np.exp(-2 * X[:, 0] + X[:, 1])), "yes", "no")


def logistic() -> Any:
    return sf.GLM("binomial")


def bayes() -> Any:
    return sf.BayesianNetwork("gaussian-naive-bayes", target="answer")


PEERS: dict[str, tuple[Any, Any]] = {
    "glm": (logistic, lambda: linear_model.LogisticRegression(C=np.inf, tol=1e-10)),
    "network": (bayes, lambda: naive_bayes.GaussianNB(var_smoothing=0.0)),
}
BOTH = pytest.mark.parametrize("kind", PEERS)


@pytest.mark.parametrize(
    ("kind", "scoring"),
    [(kind, scoring) for kind in PEERS for scoring in ("accuracy", "roc_auc", "neg_log_loss")],
)
def test_cross_validation_gives_the_figures_of_the_peer(kind: str, scoring: str) -> None:
    own, peer = (model_selection.cross_val_score(make(), FRAME, TRUTH, cv=3, scoring=scoring) for make in PEERS[kind])
    np.testing.assert_allclose(own, peer, rtol=1e-6)


@BOTH
def test_roles_names_and_classes(kind: str) -> None:
    model = PEERS[kind][0]()
    assert is_classifier(model)
    assert not is_regressor(model)
    with pytest.raises(NotFittedError):
        model.predict(FRAME)
    assert not hasattr(model, "n_features_in_")
    fitted = model.fit(FRAME, TRUTH)
    assert fitted is model
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == ["u", "v", "w"]
    assert model.classes_.tolist() == ["no", "yes"]
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(FRAME), model.predict(FRAME))
    assert again.n_features_in_ == 3
    copied = clone(model)
    assert copied.get_params().keys() == model.get_params().keys()
    assert not hasattr(copied, "n_features_in_")
    copied.max_iter = 5
    assert copied.get_params()["max_iter"] == 5


def test_regressors() -> None:
    for model in (sf.GLM("poisson"), sf.BayesianNetwork("naive-bayes", target="z", states={"z": "real"})):
        assert is_regressor(model)
        assert not hasattr(model, "predict_proba")
    with pytest.raises(sf.OptionError, match="has no classes"):
        sf.GLM("poisson").predict_proba(X)


@BOTH
def test_pipeline_and_columns(kind: str) -> None:
    make, peer = PEERS[kind]
    steps = ColumnTransformer([("scale", preprocessing.StandardScaler(), ["u", "v"])], remainder="passthrough")
    steps.set_output(transform="pandas")
    own = pipeline.make_pipeline(clone(steps), make()).fit(FRAME, TRUTH)
    other = pipeline.make_pipeline(clone(steps), peer()).fit(FRAME, TRUTH)
    np.testing.assert_allclose(own.predict_proba(FRAME), other.predict_proba(FRAME), atol=1e-5)
    assert own[-1].feature_names_in_.tolist() == ["scale__u", "scale__v", "remainder__w"]
    assert metrics.accuracy_score(TRUTH, own.predict(FRAME)) == other.score(FRAME, TRUTH)


def test_grid_search_chooses_what_the_peer_chooses() -> None:
    strengths = [0.001, 0.01, 0.1, 10.0]
    own = model_selection.GridSearchCV(
        sf.GLM("binomial", prior=sf.Normal(variance=1.0)), {"prior__variance": strengths}, cv=3, scoring="neg_log_loss"
    ).fit(X, TRUTH)
    peer = model_selection.GridSearchCV(
        linear_model.LogisticRegression(tol=1e-10), {"C": strengths}, cv=3, scoring="neg_log_loss"
    ).fit(X, TRUTH)
    np.testing.assert_allclose(own.cv_results_["mean_test_score"], peer.cv_results_["mean_test_score"], rtol=1e-5)
    assert own.best_params_["prior__variance"] == peer.best_params_["C"]


def test_a_search_over_objectives_of_a_network() -> None:
    states = pd.DataFrame((X > 0).astype(int), columns=["u", "v", "w"])
    net = sf.BayesianNetwork("naive-bayes", target="answer", prior=1.0)
    search = model_selection.GridSearchCV(net, {"objective": ["joint", "conditional"], "prior": [0.5, 5.0]}, cv=3)
    search.fit(states, TRUTH)
    best = net.clone().set_params(**search.best_params_)
    folds = model_selection.cross_val_score(best, states, TRUTH, cv=3)
    assert search.best_score_ == folds.mean()


def test_options_that_are_wrong_are_refused_at_once_or_by_the_search() -> None:
    with pytest.raises(sf.OptionError, match="solver is 'magic'"):
        sf.GLM("binomial").set_params(solver="magic")
    search = model_selection.GridSearchCV(sf.GLM("binomial"), {"solver": ["irls", "magic"]}, cv=3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(X, TRUTH)
    assert any("solver is 'magic'" in str(one.message) for one in caught)
    assert search.best_params_ == {"solver": "irls"}


@BOTH
def test_calibration_curves(kind: str) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    make, peer = PEERS[kind]
    own = CalibrationDisplay.from_estimator(make().fit(FRAME, TRUTH), FRAME, TRUTH, n_bins=5)
    other = CalibrationDisplay.from_estimator(peer().fit(FRAME, TRUTH), FRAME, TRUTH, n_bins=5)
    np.testing.assert_allclose(own.prob_true, other.prob_true, rtol=1e-12)
    np.testing.assert_allclose(own.prob_pred, other.prob_pred, rtol=1e-4)


def test_weights_are_routed_where_they_are_asked_for() -> None:
    from sklearn import config_context

    weights = RNG.integers(1, 4, N).astype(float)
    with config_context(enable_metadata_routing=True):
        unweighted: Any = sf.GLM("binomial")
        own = unweighted.clone().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        routed = model_selection.cross_validate(
            own, X, TRUTH, cv=model_selection.KFold(2), params={"sample_weight": weights}
        )
        with pytest.raises(ValueError, match="sample_weight"):
            model_selection.cross_validate(unweighted, X, TRUTH, params={"sample_weight": weights})
        with pytest.raises(TypeError, match="Unexpected args"):
            unweighted.set_fit_request(weights=True)
        assert clone(own).get_metadata_routing().fit.requests["sample_weight"] is True
    expected = []
    for train, test in model_selection.KFold(2).split(X):
        fold = sf.GLM("binomial").fit(X[train], TRUTH[train], sample_weight=weights[train])
        expected.append(fold.score(X[test], TRUTH[test], sample_weight=weights[test]))
    np.testing.assert_allclose(routed["test_score"], expected, rtol=1e-12)


def test_exposures_and_weights_of_named_rows_are_routed_to_scores_too() -> None:
    from sklearn import config_context

    counts, exposure = RNG.poisson(2.0, N), RNG.uniform(0.5, 2.0, N)
    with config_context(enable_metadata_routing=True):
        model: Any = sf.GLM("poisson").set_fit_request(exposure=True).set_score_request(exposure=True)
        routed = model_selection.cross_validate(
            model, X, counts, cv=model_selection.KFold(2), params={"exposure": exposure}
        )
    expected = []
    for train, test in model_selection.KFold(2).split(X):
        fold = sf.GLM("poisson").fit(X[train], counts[train], exposure=exposure[train])
        expected.append(fold.score(X[test], counts[test], exposure=exposure[test]))
    np.testing.assert_allclose(routed["test_score"], expected, rtol=1e-12)


def test_what_a_model_takes_beside_rows_can_be_routed() -> None:
    def asked(model: Any, method: str) -> list[str]:
        return sorted(getattr(model.get_metadata_routing(), method).requests)

    hidden, glm = sf.HiddenMarkovModel(2, sf.Normal()), sf.GLM("poisson")
    assert asked(hidden, "fit") == ["group", "lengths", "order", "sample_weight", "states"]
    assert asked(hidden, "score") == ["group", "lengths", "order", "sample_weight", "states"]
    assert asked(hidden, "predict") == ["group", "lengths", "order"]
    assert asked(glm, "fit") == asked(glm, "score") == ["exposure", "offset", "sample_weight", "trials"]
    assert asked(sf.BayesianNetwork("a -> b"), "partial_fit") == ["sample_weight"]


# -- sequences in folds ------------------------------------------------------------------------------------------------

LENGTHS = RNG.integers(4, 8, 12)
GROUPS = np.repeat(np.arange(12), LENGTHS)
WORDS = RNG.choice(["a", "b", "c"], len(GROUPS))
TAGS = np.where(WORDS == "a", "A", RNG.choice(["B", "C"], len(GROUPS)))
STEPS = pd.DataFrame({"sentence": GROUPS, "word": WORDS})
SENTENCES = [[{"word": word} for word in words] for words in np.split(WORDS, np.cumsum(LENGTHS)[:-1])]
LABELS = [tags.tolist() for tags in np.split(TAGS, np.cumsum(LENGTHS)[:-1])]
CRF = sf.ChainCRF(sf.Normal(variance=1.0))
MODELS_OF_WORDS: dict[str, Any] = {
    "hidden Markov model": sf.HiddenMarkovModel(2, sf.Categorical(["a", "b", "c"]), prior=1.0, tolerance=1e-2),
    "Markov chain": sf.MarkovChain(1, prior=1.0, states=["a", "b", "c"]),
}


def test_a_search_over_lists_of_sequences_is_that_of_folds_by_hand() -> None:
    folds, variances = model_selection.KFold(3), [0.1, 10.0]
    search = model_selection.GridSearchCV(CRF, {"prior__variance": variances}, cv=folds).fit(SENTENCES, LABELS)
    for place, variance in enumerate(variances):
        scores = []
        for train, test in folds.split(SENTENCES):
            fold = CRF.clone().set_params(prior__variance=variance)
            fold.fit([SENTENCES[k] for k in train], [LABELS[k] for k in train])
            scores.append(fold.score([SENTENCES[k] for k in test], [LABELS[k] for k in test]))
        assert search.cv_results_["mean_test_score"][place] == pytest.approx(np.mean(scores), rel=1e-12)
    right = model_selection.cross_val_score(CRF, SENTENCES, LABELS, cv=3, scoring=lambda m, X, y: m.accuracy(X, y))
    assert (right > 0.5).all()


@pytest.mark.parametrize("name", MODELS_OF_WORDS)
def test_tables_of_sequences_are_cut_between_groups(name: str) -> None:
    """`group` is the name of a column, which every fold keeps; `groups` tells scikit-learn what belongs together."""
    from sklearn import config_context

    words, folds = np.split(WORDS, np.cumsum(LENGTHS)[:-1]), model_selection.GroupKFold(3)
    with config_context(enable_metadata_routing=True):
        model: Any = MODELS_OF_WORDS[name].clone().set_fit_request(group=True).set_score_request(group=True)
        routed = model_selection.cross_validate(model, STEPS, cv=folds, params={"group": "sentence", "groups": GROUPS})
    expected = []
    for train, test in folds.split(STEPS, groups=GROUPS):
        fold = MODELS_OF_WORDS[name].clone().fit([words[k].tolist() for k in np.unique(GROUPS[train])])
        expected.append(fold.score([words[k].tolist() for k in np.unique(GROUPS[test])]))
    np.testing.assert_allclose(routed["test_score"], expected, rtol=1e-9)


def test_labels_of_a_table_of_tokens_may_be_given_beside_it() -> None:
    from sklearn import config_context

    folds = model_selection.GroupKFold(3)
    with config_context(enable_metadata_routing=True):
        model: Any = CRF.clone().set_fit_request(group=True).set_score_request(group=True)
        beside = {"group": "sentence", "groups": GROUPS}
        routed = model_selection.cross_validate(model, STEPS, pd.Series(TAGS), cv=folds, params=beside)
    expected = []
    for train, test in folds.split(STEPS, groups=GROUPS):
        fold = CRF.clone().fit(STEPS.assign(tag=TAGS).iloc[train], "tag", group="sentence")
        expected.append(fold.score(STEPS.assign(tag=TAGS).iloc[test], "tag", group="sentence"))
    np.testing.assert_allclose(routed["test_score"], expected, rtol=1e-9)


def test_a_column_that_holds_the_labels_is_no_feature() -> None:
    frame = STEPS.assign(tag=TAGS)
    named = CRF.clone().fit(frame, "tag", group="sentence")
    given = CRF.clone().fit(frame, frame["tag"], group="sentence")
    assert given.feature_names_ == named.feature_names_
    np.testing.assert_array_equal(given.state_weights_, named.state_weights_)
    np.testing.assert_array_equal(
        given.score_samples(frame, TAGS.tolist(), group="sentence"), named.score_samples(frame, "tag", group="sentence")
    )
    with pytest.raises(sf.DataError, match=r"y has 3 labels for \d+ rows of X"):
        CRF.clone().fit(frame, ["A", "B", "C"], group="sentence")


@pytest.mark.parametrize("name", [*MODELS_OF_WORDS, "CRF"])
def test_values_of_a_column_are_no_name(name: str) -> None:
    model: Any = CRF if name == "CRF" else MODELS_OF_WORDS[name]
    rows = (STEPS, TAGS) if name == "CRF" else (STEPS,)
    for values in (GROUPS, STEPS["sentence"], GROUPS.tolist()):
        with pytest.raises(sf.OptionError, match=r"group is a \w+; expected the name of a column"):
            model.clone().fit(*rows, group=values)
