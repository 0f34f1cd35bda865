"""Thirty-three mistakes that new users were seen to make: each says what was found, what was expected, what to do."""

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from mistakes.checking import Row, assert_grammar, check, rows_of

BAD_BIF = """network n { }
variable a { type discrete [ 2 ] { x, y }; }
probability ( a ) {
  table 0.6, 0.6;
}
"""
TRUTHS = """network n { }
variable a { type discrete [ 2 ] { TRUE, FALSE }; }
probability ( a ) { table 0.5, 0.5; }
"""


@cache
def names() -> dict[str, Any]:
    rain, wet = ["no", "yes", "yes", "no"] * 3, ["no", "yes", "no", "no"] * 3
    df = pd.DataFrame({"rain": rain, "wet": wet, "t": np.arange(12.0) + 0.25})
    x = np.concatenate([np.zeros((4, 2)), np.ones((4, 2)) * 5]) + np.arange(16.0).reshape(8, 2) / 10
    wide = [(f"n{i}", f"n{j}") for i in range(60) for j in range(i + 1, 60)]
    net = sf.BayesianNetwork([("rain", "wet")], prior=1.0)
    hmm = sf.HiddenMarkovModel(2, sf.MultivariateNormal(), variance_floor=0.1).fit(x)
    glm = sf.GLM("gaussian", formula="t ~ wet").fit(df)
    poisson = sf.HiddenMarkovModel(2, "poisson", prior=1.0).fit([[1, 2, 9, 8, 1, 2, 9]])
    files = {"bad": "bad.bif", "truths": "truths.bif", "json": "bad.json", "commas": "commas.csv"}
    return {
        "df": df,
        "raw": net,
        "net": net.clone().fit(df),
        "hmm": hmm,
        "poisson": poisson,
        "glm": glm,
        "x": x,
        "wide": wide,
        **files,
    }


N, C = "sf.BayesianNetwork([('rain', 'wet')]", "sf.CallError"
TABLE: list[Row] = [
    (
        "raw.fit(df.rename(columns={'rain': 'rian'}))",
        sf.MissingColumnError,
        "no column 'rain' ... Did you mean 'rian'? ... columns are",
    ),
    ("net.query('rian')", sf.MissingColumnError, "no variable 'rian' ... Did you mean 'rain'? ... 'rain', 'wet'"),
    (
        "net.query('rain', {'wet': 'damp'})",
        sf.UnknownStateError,
        "evidence gives 'wet' the state 'damp' ... states are: 'no', 'yes'",
    ),
    (
        "sf.BayesianNetwork([('a', 'b'), ('b', 'c'), ('c', 'a')])",
        sf.OptionError,
        "cycle: 'a' -> 'b' -> 'c' -> 'a' ... Remove or turn",
    ),
    ("sf.BayesianNetwork([('a', 'a')])", sf.OptionError, "'a' is its own parent ... Remove"),
    ("sf.BayesianNetwork([('a', 'b'), ('a', 'b')])", sf.OptionError, "'a' ... 'b' ... more than once ... Give it once"),
    (
        "raw.query('rain')",
        sf.NotFittedError,
        "not learned 'rain', 'wet' yet. Call fit first, or give all nodes in fixed=",
    ),
    ("poisson.means_", sf.MissingAttributeError, "no means ... Read ... emissions_"),
    (f"{N}, priors=1)", sf.CallError, "no option 'priors' ... Did you mean 'prior'? ... options are"),
    (f"{N}).set_params(priors=1)", sf.OptionError, "no option 'priors' ... Did you mean 'prior'? ... options are"),
    (
        "sf.MarkovNetwork([('rain', 'wet')], solver='l-bfgs').fit(df)",
        sf.OptionError,
        "solver is 'l-bfgs' ... expected one of ... Did you mean 'lbfgs'?",
    ),
    (f"{N}, prior='bde').fit(df)", sf.OptionError, "prior is 'bde' ... 'bdeu', 'k2', 'jeffreys'"),
    (f"{N}, prior=-2.0).fit(df)", sf.OptionError, "prior ... -2.0 ... above 0 ... Leave prior= out"),
    (
        "sf.GLM('gaussian').fit(df[['t']].mask(df.t == 1.25), df.t)",
        sf.MissingValueError,
        "'t' has a missing value ... (row 1) ... fill",
    ),
    (
        "raw.fit(df, sample_weight=[-1.0] + [1.0] * 11)",
        sf.DataError,
        "sample_weight holds -1.0 (row 0) ... finite and at least 0",
    ),
    (
        "raw.fit(df, sample_weight=np.ones(11))",
        sf.DataError,
        "sample_weight has 11 values for 12 rows ... one weight a row",
    ),
    (
        "raw.fit({'rain': ['no', 'yes'], 'wet': ['no']})",
        sf.DataError,
        "'rain' has 2 rows and column 'wet' has 1 ... equally long",
    ),
    ("raw.fit(df.iloc[:0])", sf.DataError, "no rows ... Give rows"),
    (
        "raw.fit(df[['rain', 'wet']].to_numpy())",
        sf.MissingColumnError,
        "'rain', 'wet' ... Its columns are: 0, 1 ... by columns=",
    ),
    ("raw.fit('nosuch.csv')", sf.DataError, "no file 'nosuch.csv' ... Check the path"),
    ("sf.read(bad)", sf.FileFormatError, "bad.bif, line 3, column 1: node 'a' sums to 1.2 ... expected 1"),
    ("sf.read(json)", sf.FileFormatError, "Cannot read ... no valid JSON ... line 1 column 2"),
    (
        "sf.BayesianNetwork([('t', 'wet')]).fit(df)",
        sf.OptionError,
        "'wet' is discrete and has the real parents 't' ... nodes={'wet': 'glm'}",
    ),
    (
        "sf.read(truths).score(pd.DataFrame({'a': [True, False]}))",
        sf.UnknownStateError,
        "'a' holds True (bool) ... 'TRUE', 'FALSE' ... Did you mean 'TRUE'? ... "
        "map({True: 'TRUE', False: 'FALSE'}), or by dtype=str",
    ),
    (
        "sf.MarkovNetwork(wide, states={f'n{i}': [0, 1, 2] for i in range(60)}).fit({f'n{i}': [0, 1] for i "
        "in range(60)})",
        sf.SizeError,
        "limit is ... solver='sml'",
    ),
    (
        "sf.GLM('gaussian', formula='t ~ tt').fit(df)",
        sf.MissingColumnError,
        "'t ~ tt' ... 'tt' ... Did you mean 't'? ... 'rain', 'wet', 't'",
    ),
    ("glm.predict(df[['rain']])", sf.MissingColumnError, "'wet' ... Its columns are: 'rain'"),
    ("hmm.clone().fit(x, lengths=[4, 5])", sf.DataError, "lengths ... 9 ... 8"),
    ("net.predict(df)", sf.OptionError, "which node ... predict(rows, 'node'), or ... target="),
    (
        "sf.plot.netwrok(net)",
        sf.MissingAttributeError,
        "suffice.plot has no 'netwrok'. Did you mean 'network'? Its plots",
    ),
    ("sf.plot.states(hmm, x, truth=['F', 'U'] * 4)", sf.UnknownStateError, "truth ... 'F' ... 0, 1"),
    ("sf.ChainCRF().fit(['a', 'b'], ['X', 'Y'])", sf.DataError, "A single sequence goes into a list"),
    (
        "sf.GLM('binomial').fit({'x': [1.0, 2, 3]}, ['a', 'b', 'c'])",
        sf.DataError,
        "3 labels ... use family='multinomial'",
    ),
    (
        "sf.BayesianNetwork([('rain', 't')]).fit(commas)",
        sf.DataError,
        "'t' ... holds '1,5' ... decimal point ... pandas.read_csv",
    ),
]


@pytest.mark.parametrize("row", rows_of(TABLE, 33))
def test_a_mistake_says_what_was_found_and_what_to_do(
    row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    contents = {"bad.bif": BAD_BIF, "truths.bif": TRUTHS, "bad.json": "{x", "commas.csv": "rain;t\nno;1,5\nyes;2,25\n"}
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    check(row, names())


WITHOUT: dict[str, tuple[str, str, Callable[[], Any]]] = {
    "pandas for a formula": (
        "pandas",
        "formula",
        lambda: sf.GLM("gaussian", formula="t ~ wet").fit({"t": [1.0, 2], "wet": [0.0, 1]}),
    ),
    "formulaic": ("formulaic", "formula", lambda: sf.GLM("gaussian", formula="t ~ wet").fit(names()["df"])),
    "pandas for a summary": ("pandas", "all", lambda: names()["glm"].summary().to_frame()),
    "matplotlib": ("matplotlib", "viz", lambda: sf.plot.network(names()["net"])),
    "networkx": ("networkx", "graphs", lambda: names()["net"].to_networkx()),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_a_package_that_is_not_installed_is_named_with_its_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names()  # What is fitted before needs the package.
    package, extra, call = WITHOUT[name]
    for loaded in [module for module in sys.modules if module.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, loaded, None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(sf.MissingExtraError, match=f"'{package}'.*not installed.*suffice\\[{extra}\\]") as caught:
        call()
    assert_grammar(str(caught.value))


@pytest.mark.parametrize(
    ("ending", "mark"), [(".csv", ","), (".csv", ";"), (".csv", "\t"), (".csv", "|"), (".tsv", "\t")]
)
def test_the_line_of_names_tells_what_stands_between_fields(ending: str, mark: str, tmp_path: Path) -> None:
    frame = names()["df"]
    path = tmp_path / f"rows{ending}"
    frame.to_csv(path, sep=mark, index=False)
    net = sf.BayesianNetwork([("rain", "wet"), ("rain", "t")])
    assert net.clone().fit(path).log_likelihood_ == net.fit(frame).log_likelihood_
