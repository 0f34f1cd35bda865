"""What a column is that nobody has declared: one rule for every kind of storage, and no missing value changes it."""

import datetime as dt
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suffice as sf
from suffice.errors import DataError, KindWarning
from suffice.sources import open_source
from suffice.sources.kinds import Declarations, WholeFloats

#: By name: 60 values of a column, and the kind that the rule gives it; None where somebody has to say.
COLUMNS: dict[str, tuple[list[Any], str | None]] = {
    "text": ([f"t{k}" for k in range(60)], "discrete"),
    "truths": ([k % 3 == 0 for k in range(60)], "discrete"),
    "50 integers": ([k % 50 for k in range(60)], "discrete"),
    "51 integers": ([k % 51 for k in range(60)], None),
    "20 whole floats": ([float(k % 20 - 3) for k in range(60)], "discrete"),
    "21 whole floats": ([float(k % 21 - 3) for k in range(60)], "real"),
    "50 whole floats": ([float(k % 50 - 3) for k in range(60)], "real"),
    "51 whole floats": ([float(k % 51 - 3) for k in range(60)], "real"),
    "20 floats": ([k % 20 / 2 for k in range(60)], "real"),
    "floats": ([k / 7 for k in range(60)], "real"),
}
#: Whole floats that are numbers, though integers would be states: told where a missing value may have widened them.
WIDENED = ("21 whole floats", "50 whole floats")


def pandas_frame(values: list[Any], missing: bool) -> pd.DataFrame:
    held = [None if missing and row == 7 else value for row, value in enumerate(values)]
    return pd.DataFrame({"a": pd.Series(held, dtype={int: "Int64", bool: "boolean"}.get(type(values[0])))})


def forms(values: list[Any], folder: Path, *, missing: bool) -> dict[str, Any]:
    """The same column in every form of data; where a value is missing, only those that keep the type of the others."""
    held = [None if missing and row == 7 else value for row, value in enumerate(values)]
    frame, table = pandas_frame(values, missing), pa.table({"a": held})
    pq.write_table(table, folder / "rows.parquet", row_group_size=16)
    frame.to_csv(folder / "rows.csv", index=False)
    forms: dict[str, Any] = {
        "lists": {"a": held},
        "rows": [{"a": value} for value in held],
        "pandas": frame,
        "Arrow-backed": frame.convert_dtypes(dtype_backend="pyarrow") if type(values[0]) is not float else frame,
        "polars": pl.DataFrame({"a": held}),
        "polars lazy": pl.LazyFrame({"a": held}),
        "Arrow": table,
        "Parquet": folder / "rows.parquet",
        "CSV": folder / "rows.csv",
        "DuckDB": duckdb.from_arrow(table),
        "Dask": dd.from_pandas(frame, npartitions=3),
    }
    if not missing:
        reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=10))
        forms |= {
            "NumPy": {"a": np.array(values)},
            "plain pandas": pd.DataFrame({"a": np.array(values)}),
            "reader": reader,
        }
    if missing and type(values[0]) is float:
        forms["NumPy"] = {"a": np.array([np.nan if value is None else value for value in held])}
    return forms


def kind_of(data: Any) -> tuple[str | None, int]:
    """The kind that a network gives the column of a table, None where it refuses to; and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            net = sf.BayesianNetwork({"a": []}, max_iter=3, tolerance=1e9).fit(data)
        except DataError as error:
            assert "more than 50 different integers" in str(error)  # noqa: PT017
            assert "states={'a': 'discrete'} for states, or states={'a': 'real'} for numbers" in str(error)  # noqa: PT017
            return None, len(caught)
    assert all(warning.filename == __file__ for warning in caught)
    said = [line for line in net.report_.warnings if "holds floats" in line]
    assert said == [str(warning.message) for warning in caught if warning.category is KindWarning]
    return net.fitted_.domain["a"].kind, len(said)


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "with a missing value"])
@pytest.mark.parametrize("name", COLUMNS)
def test_the_kind_of_a_column_is_the_same_everywhere(name: str, missing: bool, tmp_path: Path) -> None:
    values, expected = COLUMNS[name]
    for form, data in forms(values, tmp_path, missing=missing).items():
        assert kind_of(data) == (expected, told(name, missing=missing)), form


def told(name: str, *, missing: bool) -> int:
    return int(name == "20 whole floats" or (missing and name in WIDENED))


#: By what a message calls them: values that stand on an axis.
TIMES: dict[str, list[Any]] = {
    "dates": [dt.date(2024, 1, 1) + dt.timedelta(k) for k in range(60)],
    "moments": [dt.datetime(2024, 1, 1) + dt.timedelta(hours=k) for k in range(60)],
    "few": [dt.date(2024, 1, 1 + k % 2) for k in range(60)],
    "durations": [dt.timedelta(k) for k in range(60)],
}


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "with a missing value"])
def test_dates_and_durations_are_neither_states_nor_numbers_until_declared(
    name: str, missing: bool, tmp_path: Path
) -> None:
    word = "durations" if name == "durations" else "dates"
    found = forms(TIMES[name], tmp_path, missing=missing)
    for form in ("CSV", "Dask"):  # CSV holds text, and so does Dask where pandas holds objects.
        del found[form]
    for form in found:
        for model in (sf.BayesianNetwork({"a": []}), sf.MarkovNetwork(["a"])):
            data = forms(TIMES[name], tmp_path, missing=missing)[form]  # A reader gives its rows once.
            with pytest.raises(DataError, match=f"'a' holds {word} .* nobody has declared which. Declare it: states="):
                model.fit(data)
    for form in ("lists", "pandas", "Arrow-backed", "polars", "Arrow", "NumPy", "plain pandas") * (not missing):
        with pytest.raises(DataError, match=rf"'a' holds {word} .* Declare it: categorical=\['a'\] for levels, or"):
            sf.GLM("poisson").fit(found[form], np.arange(60.0))
    states = {"a": "discrete"}
    assert sf.BayesianNetwork({"a": []}, states=states, max_iter=2, tolerance=1e9).fit(found["pandas"]).n_params_ > 0
    declared = sf.GLM("poisson", categorical=["a"], prior=sf.Normal(variance=1.0)).fit({"a": TIMES[name]}, np.ones(60))
    assert len(declared.parameters_) == len(set(TIMES[name]))


def test_dates_of_files_are_no_levels_until_declared(tmp_path: Path) -> None:
    pd.DataFrame({"a": TIMES["moments"], "y": np.arange(60.0)}).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(DataError, match=r"'a' holds dates .* Declare it: categorical=\['a'\] for levels, or"):
        sf.GLM("poisson").fit(tmp_path / "rows.parquet", "y")


@pytest.mark.parametrize("make", [pd.DataFrame, dict], ids=["pandas", "dict"])
def test_complex_numbers_are_refused(make: Any) -> None:
    numbers = np.exp(1j * np.arange(60))
    for held in (numbers, numbers.tolist(), numbers.astype(object), numbers.astype("c8")):
        data = make({"a": held})
        for model in (sf.BayesianNetwork({"a": []}), sf.MarkovNetwork(["a"])):
            with pytest.raises(DataError, match=r"'a' (holds complex numbers|has the type complex)"):
                model.fit(data)
        with pytest.raises(DataError, match=r"'a' (holds complex numbers|has the type complex)"):
            sf.GLM("poisson").fit(data, np.ones(60))


def test_integers_that_a_missing_value_has_widened_are_told(tmp_path: Path) -> None:
    whole = [k % 25 for k in range(60)]
    frame = pd.DataFrame({"a": [None if row == 7 else value for row, value in enumerate(whole)]})
    assert frame["a"].dtype == float
    frame.to_parquet(tmp_path / "widened.parquet")
    assert kind_of({"a": whole}) == ("discrete", 0)
    for data in (frame, tmp_path / "widened.parquet", pl.from_pandas(frame, nan_to_null=False), dd.from_pandas(frame)):
        assert kind_of(data) == ("real", 1)
    message = "would be states, and a missing value makes floats of them"
    with pytest.warns(KindWarning, match=rf"'a' holds floats.*{message}.* states=\{{'a': 'discrete'\}} for states, or"):
        sf.BayesianNetwork({"a": []}, max_iter=3, tolerance=1e9).fit(frame)
    for kind in ("discrete", "real"):
        net = sf.BayesianNetwork({"a": []}, states={"a": kind}, max_iter=3, tolerance=1e9).fit(frame)
        assert not any("holds floats" in line for line in net.report_.warnings)


def test_a_missing_value_widens_all_columns_of_a_matrix() -> None:
    matrix = np.column_stack([np.arange(60) % 25, np.arange(60) % 3, np.arange(60) % 51]).astype(float)
    names = ["a", "b", "c"]

    def kinds() -> list[str]:
        net = sf.BayesianNetwork({name: [] for name in names}, max_iter=3, tolerance=1e9).fit(matrix, columns=names)
        return [line.split(" holds")[0] for line in net.report_.warnings if "holds floats" in line]

    with pytest.warns(KindWarning, match="'b'"):
        assert kinds() == ["'b'"]
    matrix[7, 1] = np.nan
    with pytest.warns(KindWarning, match="'a'"):
        assert kinds() == ["'b'", "'a'"]


@pytest.mark.parametrize(
    "storage", ["float32", "float16", "longdouble", "Float64", "decimal", "objects", "Arrow halves"]
)
def test_the_width_of_floats_does_not_matter(storage: str) -> None:
    for name in ("20 whole floats", "21 whole floats", "20 floats"):
        values, expected = COLUMNS[name]
        made: dict[str, Any] = {
            "Float64": lambda values: pd.array([*values, None], dtype="Float64"),
            "decimal": lambda values: [Decimal(str(value)) for value in values],
            "objects": lambda values: np.array([*values, None], dtype=object),
            "Arrow halves": lambda values: pa.array(np.array(values, np.float16)),
        }
        column = made[storage](values) if storage in made else np.array(values, storage)
        kind, said = kind_of({"a": column})
        assert (kind, said) == (expected, told(name, missing=storage in ("Float64", "objects")))


def test_states_are_labelled_alike_however_they_are_stored(tmp_path: Path) -> None:
    values, _ = COLUMNS["20 whole floats"]
    for form, data in forms(values, tmp_path, missing=True).items():
        with pytest.warns(KindWarning):
            states = sf.BayesianNetwork({"a": []}, max_iter=3, tolerance=1e9).fit(data).states("a")
        assert states == tuple(range(-3, 17)), form
        assert {type(state) for state in states} == {int}, form


def test_declared_kinds_win() -> None:
    for name in ("51 integers", "50 integers", "20 whole floats", "21 whole floats"):
        data = {"a": np.array(COLUMNS[name][0])}
        for kind in ("discrete", "real"):
            net = sf.BayesianNetwork({"a": []}, states={"a": kind}).fit(data)
            assert net.fitted_.domain["a"].kind == kind
            assert net.report_.warnings == ()
        assert len(sf.BayesianNetwork({"a": []}, states={"a": "discrete"}).fit(data).states("a")) == int(name[:2])


def test_a_markov_network_names_what_it_takes() -> None:
    data = {"a": np.arange(60), "b": np.arange(60) % 2}
    with pytest.raises(DataError, match=r"Column 'a' .*states=\{'a': 'discrete'\} for states, or cut its numbers into"):
        sf.MarkovNetwork([("a", "b")]).fit(data)
    net = sf.MarkovNetwork([("a", "b")], states={"a": "discrete"}).fit(data)
    assert net.states("a") == tuple(range(60))
    whole = {"a": data["a"] % 3.0, "b": data["b"]}
    with pytest.warns(KindWarning, match=r"'a' holds floats .*states=\{'a': 'discrete'\} for states") as caught:
        assert sf.MarkovNetwork([("a", "b")]).fit(whole).states("a") == (0, 1, 2)
    assert [warning.filename for warning in caught] == [__file__]


def test_models_that_say_what_they_take_ask_nobody() -> None:
    many = np.arange(200)
    assert sf.Normal().fit(many).mean_ == pytest.approx(99.5)
    assert sf.Normal().fit(np.array([0.0, 1.0, 1.0, 3.0])).mean_ == 1.25
    assert len(sf.Categorical().fit(many).states_) == 200
    assert sf.GaussianGraph([("a", "b")]).fit({"a": many, "b": many % 7}).mean_[0] == pytest.approx(99.5)
    assert sf.BayesianNetwork({"a": []}, nodes={"a": "linear-gaussian"}).fit({"a": many}).n_params_ == 2
    assert sf.BayesianNetwork({"a": []}, nodes={"a": "table"}).fit({"a": many}).n_params_ == 199
    glm = sf.GLM("poisson").fit({"x": many % 3}, many % 5)
    assert glm.parameters_.names == ("intercept", "x")


def test_statistics_by_name_follow_the_rule() -> None:
    with pytest.raises(DataError, match="more than 50 different integers"):
        sf.summarize(sf.Counts(("a",)), {"a": range(60)})
    assert sf.summarize(sf.Counts(("a",)), {"a": range(60)}, states={"a": "discrete"}).rows == 60
    with pytest.warns(KindWarning, match="'a' holds floats") as caught:
        sf.summarize(sf.Counts(("a",)), {"a": [1.0, 2.0]})
    assert [warning.filename for warning in caught] == [__file__]


# What reading costs ---------------------------------------------------------------------------------------------------


def passes(path: Path) -> int:
    """Passes over a file until the kind of its column is known."""
    source = open_source(path)
    source.decide_kinds(source.infer(), {"a": Declarations("", "")})
    return source.passes


def test_footers_tell_fractions_without_a_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.sources.stream.BATCH_ROWS", 4)
    late = tmp_path / "late.parquet"
    pq.write_table(pa.table({"a": [0.0] * 50 + [0.5]}), late, row_group_size=10)
    assert passes(late) == 0
    pq.write_table(pa.table({"a": [0.0] * 50 + [0.5]}), late, row_group_size=10, write_statistics=False)
    assert passes(late) == 1
    pq.write_table(pa.table({"a": [0.5] + [0.0] * 50}), late, row_group_size=10, write_statistics=False)
    assert passes(late) == 0


def test_a_reader_that_shows_its_kind_at_once_is_read_once() -> None:
    def reader(values: list[float]) -> Any:
        table = pa.table({"a": values})
        return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=4))

    source = open_source(reader([0.5, 1.0] * 10))
    assert source.decide_kinds(source.infer(), {"a": Declarations("", "")})[0]["a"].kind == "real"
    assert source.one_pass
    source = open_source(reader([1.0, 2.0] * 10 + [0.5]))
    assert source.decide_kinds(source.infer(), {"a": Declarations("", "")})[0]["a"].kind == "real"
    assert sum(batch.rows for batch in source.batches(source.infer())) == 21


def test_many_integers_are_refused_before_all_rows_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.sources.stream.BATCH_ROWS", 64)
    path = tmp_path / "many.parquet"
    pq.write_table(pa.table({"a": range(1000)}), path)
    read: list[int] = []
    source = open_source(path)
    chunks = source._chunks  # type: ignore[attr-defined]

    def counted(*given: Any) -> Any:
        for chunk in chunks(*given):
            read.append(chunk.rows)
            yield chunk

    monkeypatch.setattr(source, "_chunks", counted)
    domain = source.decide_kinds(source.infer(), {"a": Declarations("as states", "as numbers")}).domain
    with pytest.raises(DataError, match=r"different integers.* Declare it: as states, or as numbers\."):
        source.reduce(lambda batch: 0, domain, threads=1)
    assert sum(read) < 1000


def test_surveys_of_floats_add_up() -> None:
    rng = np.random.default_rng(5)
    for _ in range(120):
        values = rng.integers(0, rng.integers(1, 90), 80) / rng.choice([1.0, 1.0, 2.0])
        values[rng.random(80) < 0.1] = np.nan
        left, right, whole = WholeFloats(), WholeFloats(), WholeFloats()
        left.read(values[:37])
        right.read(values[37:])
        whole.read(values)
        held = {value for value in values.tolist() if value == value}
        integral = all(value.is_integer() for value in held)
        expected = integral and 0 < len(held) <= 20
        widened = integral and 20 < len(held) <= 50 and bool(np.isnan(values).any())
        assert (left + right).few == (right + left).few == whole.few == expected
        assert (left + right).widened == (right + left).widened == whole.widened == widened
