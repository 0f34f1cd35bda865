"""Files that are cut short, damaged or made up: a network or a `FileFormatError`, never anything else.

And networks with any labels and numbers: what is written is read back to the bit.
"""

import io
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from network_files import DATA, same, shared, sprinkler
from suffice.domain import Domain, Variable
from suffice.errors import FileFormatError
from suffice.formats import bif, dsl, net, streams, uai, xdsl, xmlbif
from suffice.formats.networks import FactorNetwork, TableNetwork
from suffice.formats.tokens import Scanner

Parse = Callable[[str], TableNetwork | FactorNetwork]

SMALL = TableNetwork(
    Domain([Variable.discrete("a", ["x", "y z"]), Variable.discrete("b-c", ['"', "/", "é"])]),
    {"a": (), "b-c": ("a",)},
    {"a": np.array([0.25, 0.75]), "b-c": np.array([[0.5, 0.25, 0.25], [1e-05, 0.99999, 0.0]])},
    (),
    {
        "name": "small",
        "network": ("about = it",),
        "variables": {"a": ("two words",)},
        "tables": {"b-c": ("label = 1",)},
    },
)

DSL = """net n { HEADER = { ID = n; }; // words
 node a { TYPE = CPT; HEADER = { ID = a; NAME = "A; b"; }; PARENTS = ();
  DEFINITION = { NAMESTATES = (x, y); PROBABILITIES = (0.25, 0.75); }; };
 node b { TYPE = TRUTHTABLE; PARENTS = (a); DEFINITION = { NAMESTATES = (p, q); RESULTINGSTATES = (q, p); }; };
 node m { TYPE = NOISY_MAX; PARENTS = (a); DEFINITION = { NAMESTATES = (p, q); STRENGTHS = (1, 0);
  PROBABILITIES = (0.5, 0.5, 0, 1, 0.25, 0.75); }; };
};
"""

XDSL = """<?xml version="1.0" encoding="UTF-8"?>
<smile version="1.0" id="n"><nodes>
<cpt id="a"><state id="x"/><state id="y"/><probabilities>0.25 0.75</probabilities></cpt>
<deterministic id="b"><state id="p"/><state id="q"/><parents>a</parents><resultingstates>q p</resultingstates>
</deterministic><noisymax id="m"><state id="p"/><state id="q"/><parents>a</parents><strengths>1 0</strengths>
<parameters>0.5 0.5 0 1 0.25 0.75</parameters></noisymax></nodes>
<extensions><genie><node id="a"><name>A &amp; b</name></node></genie></extensions></smile>
"""

BIF_EXTRA = """
// words
variable c { type discrete[2] { p, q }; property "a; b" ; }
probability ( c | a, b-c ) { default 0.5 0.5; (x, /) 0.25, 0.75; /* more */ ("y z", é) 1 0; }
"""

MARKOV = "MARKOV\n2\n2 3 # words\n2\n2 0 1\n1 1\n6\n1 2 3 4 5 6\n3 0.5 1e-3 0\n"

TEXTS: dict[str, tuple[Parse, str]] = {
    "bif": (bif.parse, bif.render(SMALL) + BIF_EXTRA),
    "xmlbif": (xmlbif.parse, xmlbif.render(SMALL)),
    "net": (net.parse, net.render(SMALL)),
    "bayes": (uai.parse, uai.render(SMALL)),
    "markov": (uai.parse, MARKOV),
    "evidence": (uai.parse_evidence, "2\n0 1\n3 0\n"),  # type: ignore[dict-item]
    "dsl": (dsl.parse, DSL),
    "xdsl": (xdsl.parse, XDSL),
}
SIGNS = ["", " ", "\n", '"', "\\", "{", "}", "(", ")", ";", ",", "|", "=", "/", "*", "%", "#", "&", "<", ">", "0", "9"]
SIGNS += ["-", ".", "e", "_", "\x00", "é", "\ud800", "\u0661", "\u00a0"]


def outcome(parse: Parse, text: str) -> str:
    """What became of a text; any error but a `FileFormatError` fails the test."""
    try:
        parse(text)
    except FileFormatError:
        return "refused"
    return "read"


@pytest.mark.parametrize("name", TEXTS)
def test_the_whole_text_is_read(name: str) -> None:
    assert outcome(*TEXTS[name]) == "read"


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_is_cut_short_anywhere(name: str) -> None:
    parse, text = TEXTS[name]
    outcomes = [outcome(parse, text[:place]) for place in range(len(text))]
    assert "refused" in outcomes
    assert [outcome(parse, text[place:]) for place in range(1, len(text), 3)]
    # Nothing but blanks, or a block that stands by itself, may be missing at the end.
    needed = len(text.rstrip()) - 1
    if name in ("xmlbif", "net", "xdsl"):
        assert set(outcomes[:needed]) == {"refused"}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_with_one_character_changed_anywhere(name: str) -> None:
    parse, text = TEXTS[name]
    signs = itertools.cycle(SIGNS)
    outcomes = [
        outcome(parse, text[:place] + sign + text[place + 1 :])
        for place in range(len(text))
        for sign in itertools.islice(signs, 5)
    ]
    assert set(outcomes) == {"refused", "read"}


@pytest.mark.parametrize("name", TEXTS)
@given(data=st.data())
@settings(max_examples=150)
def test_a_text_with_pieces_moved_and_repeated(name: str, data: st.DataObject) -> None:
    parse, text = TEXTS[name]
    for _ in range(data.draw(st.integers(1, 4))):
        start, end, to = (data.draw(st.integers(0, len(text))) for _ in range(3))
        piece = data.draw(st.sampled_from([text[min(start, end) : max(start, end)], *SIGNS]))
        text = text[:to] + piece + text[to + data.draw(st.integers(0, 30)) :]
    outcome(parse, text)


@pytest.mark.parametrize("name", TEXTS)
@given(text=st.text(max_size=60))
def test_any_text(name: str, text: str) -> None:
    outcome(TEXTS[name][0], text)


@given(content=st.binary(max_size=60))
@example(b"\x1f\x8b")
@example(b"\xff\xfe\x00")
@example(b'<?xml version="1.0" encoding="cp037"?>')
def test_any_bytes(content: bytes) -> None:
    for module in (bif, xmlbif, net, uai, dsl, xdsl):
        load: Any = module.load
        outcome(load, io.BytesIO(content))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    ['"' * 20_000, '\\"' * 20_000, '"\\"' * 20_000, "/*" * 20_000, "(" * 20_000, "1" * 40_000 + " x", "{" * 20_000],
    ids=lambda text: text[:4],
)
@pytest.mark.parametrize(
    "head", ["", "network n { property ", "variable v { type discrete [ 2 ] { x, y }; } probability ( v ) { table "]
)
def test_long_runs_of_one_mark_are_read_once(head: str, text: str) -> None:
    # Reading the rest of the text again at every mark would take these from milliseconds to minutes.
    for parse in (bif.parse, net.parse, dsl.parse, uai.parse):
        outcome(parse, head + text)
    scanner = Scanner("//" + text, "", marks="()", comments=("//", "/*", "%"))
    assert scanner.take().kind == "end"


REAL = ["child.bif.gz", "alarm.net", "alarm.bifxml", "alarm.dsl", "benefits.xdsl", "asia.agrum.uai"]


@pytest.mark.parametrize("name", REAL)
def test_a_real_file_that_is_cut_short(name: str) -> None:
    text, _ = streams.decoded(streams.read(shared(f"bn/{name}")))
    modules = {"bif": bif, "net": net, "bifxml": xmlbif, "dsl": dsl, "xdsl": xdsl, "uai": uai}
    parse: Any = modules[name.removesuffix(".gz").rpartition(".")[2]].parse
    assert outcome(parse, text) == "read"
    places = np.linspace(0, len(text.rstrip()) - 2, 60).astype(int)
    assert {outcome(parse, text[:place]) for place in places} == {"refused"}


# --------------------------------------------------------------------------------------------------------------------
# Round trips
# --------------------------------------------------------------------------------------------------------------------

LABELS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\x00"), max_size=6)
XML_LABELS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=6
).filter(lambda text: text == text.strip())


@st.composite
def networks(draw: st.DrawFn, labels: st.SearchStrategy[str]) -> TableNetwork:
    """Up to four nodes with up to two parents each; rows are anything that sums to one."""
    names = draw(st.lists(labels, min_size=1, max_size=4, unique=True))
    variables = [Variable.discrete(name, draw(st.lists(labels, min_size=1, max_size=3, unique=True))) for name in names]
    parents, tables = {}, {}
    for place, variable in enumerate(variables):
        chosen = draw(st.lists(st.sampled_from(variables[:place]), max_size=2, unique_by=id)) if place else []
        shape = (*(parent.card for parent in chosen), variable.card)
        weights = np.random.default_rng(draw(st.integers(0, 2**32))).gamma(
            draw(st.sampled_from([0.01, 1.0])), size=shape
        )
        weights[..., 0] += np.finfo(float).tiny
        parents[variable.name] = tuple(parent.name for parent in chosen)
        tables[variable.name] = weights / weights.sum(axis=-1, keepdims=True)
    texts = st.lists(labels.map(str.strip), max_size=2).map(tuple)
    about: dict[str, Any] = {"name": draw(labels).strip().replace("unknown", ""), "network": draw(texts)}
    domain = Domain(draw(st.permutations(variables)))
    order = domain.names
    for part in ("variables", "tables"):
        about[part] = {name: found for name in order if (found := draw(texts))}
    kept = {key: value for key, value in about.items() if value}
    return TableNetwork(
        domain, {name: parents[name] for name in order}, {name: tables[name] for name in order}, (), kept
    )


@given(network=networks(LABELS))
def test_what_is_written_in_bif_is_read_back_to_the_bit(network: TableNetwork) -> None:
    assert same(bif.parse(bif.render(network)), network)


@given(network=networks(LABELS))
def test_what_is_written_in_net_is_read_back_to_the_bit(network: TableNetwork) -> None:
    assert same(net.parse(net.render(network)), network)


@given(network=networks(XML_LABELS))
def test_what_is_written_in_xmlbif_is_read_back_to_the_bit(network: TableNetwork) -> None:
    assert same(xmlbif.parse(xmlbif.render(network)), network)
    assert same(xmlbif.parse(xmlbif.render(network).encode()), network)


@given(network=networks(LABELS))
def test_what_is_written_in_uai_is_read_back_to_the_bit(network: TableNetwork) -> None:
    found = uai.parse(uai.render(network))
    assert isinstance(found, TableNetwork)
    names = network.domain.names
    for place, name in enumerate(names):
        assert tuple(names[parent] for parent in found.parents[place]) == network.parents[name]  # type: ignore[call-overload]
        assert found.tables[place].tobytes() == network.tables[name].tobytes()


def test_every_network_of_the_shared_data_is_read() -> None:
    if not DATA.exists():
        pytest.skip("shared data: not here")
    modules = {".bif": bif, ".net": net, ".bifxml": xmlbif, ".dsl": dsl, ".xdsl": xdsl, ".uai": uai}
    paths = [path for path in (*DATA.glob("bn/*"), *DATA.glob("uai/*.uai")) if not path.name.endswith(".json")]
    for path in paths:
        if path.stat().st_size < 100_000 or path.suffix == ".uai":
            load: Any = modules["." + path.name.removesuffix(".gz").rpartition(".")[2]].load
            network = load(path)
            assert len(network.domain) > 4


def test_one_network_goes_through_all_formats() -> None:
    network = sprinkler()
    for module in (bif, xmlbif, net, bif):
        network = module.parse(module.render(network))
    assert same(network, sprinkler())
