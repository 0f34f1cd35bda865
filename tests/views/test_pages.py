"""The page of a report: what it holds, that it stands alone, and how it looks in a real browser."""

import base64
import hashlib
import html.parser
import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.fitting.portrait import table_grid
from suffice.views.page import _marks

RNG = np.random.default_rng(7)
VALUES = RNG.normal(size=60)


class Outline(html.parser.HTMLParser):
    """Tags with their attributes, and the text of some elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def ids(self, tag: str) -> list[str | None]:
        return [attributes.get("id") for name, attributes in self.tags if name == tag]


def sections(text: str) -> list[str | None]:
    return Outline(text).ids("section")


def mixed() -> Any:
    a = RNG.choice(["u", "v"], 60)
    rows = {"a": a, "x": VALUES, "y": 2 * VALUES + (a == "u") + RNG.normal(size=60)}
    return sf.BayesianNetwork([("a", "y"), ("x", "y")]).fit(rows)


def models() -> dict[str, Callable[[], Any]]:
    """One fitted model of every kind."""
    words = [list("aabbabab"), list("bbbaab")]
    return {
        "table network": lambda: sf.BayesianNetwork([("a", "b")], prior=2.0).fit({"a": [0, 0, 1], "b": [1, 0, 1]}),
        "mixed network": mixed,
        "Markov network": lambda: sf.MarkovNetwork([("a", "b")]).fit({"a": [0, 0, 1, 1], "b": [1, 0, 1, 0]}),
        "Gaussian graph": lambda: sf.GaussianGraph([("a", "b")]).fit({"a": VALUES, "b": VALUES + RNG.normal(size=60)}),
        "normal": lambda: sf.Normal().fit(VALUES),
        "categorical": lambda: sf.Categorical(prior=1.0).fit(["u", "v", "u"]),
        "multivariate normal": lambda: sf.MultivariateNormal().fit(RNG.normal(size=(30, 3))),
        "regression": lambda: sf.GLM(family=sf.Poisson()).fit(VALUES[:, None], RNG.poisson(3, 60)),
        "hidden Markov": lambda: sf.HiddenMarkovModel(2, emission=sf.Categorical(), random_state=0).fit(words),
        "Gaussian hidden Markov": lambda: sf.HiddenMarkovModel(2, emission=sf.Normal(), random_state=0).fit([VALUES]),
        "hidden Markov of vectors": lambda: sf.HiddenMarkovModel(["u", "v"], emission=sf.MultivariateNormal()).fit(
            [RNG.normal(size=(20, 2))], states=[["u", "v"] * 10]
        ),
        "Markov chain": lambda: sf.MarkovChain(prior=1.0).fit(words),
        "CRF": lambda: sf.ChainCRF(prior=sf.Normal(variance=10.0)).fit([[{"w": "a"}, {"w": "b"}]], [["X", "Y"]]),
        "graph CRF": lambda: sf.GraphCRF(prior=sf.Normal(variance=10.0)).fit(
            [sf.GraphExample.grid([[1.0, 0.9], [-1.0, 0.2]])], [[1, 1, 0, 1]]
        ),
    }


@cache
def fitted(kind: str) -> Any:
    """The model of a kind; pages change nothing of it."""
    return models()[kind]()


EXPECTED = {
    "table network": ["graph", "distributions", "tables", "certificate", "estimates", "receipt"],
    "mixed network": ["graph", "distributions", "tables", "certificate", "receipt"],
    "Markov network": ["graph", "distributions", "tables", "certificate", "receipt"],
    "Gaussian graph": ["graph", "distributions", "tables", "certificate", "receipt"],
    "normal": ["distributions", "tables", "certificate", "receipt"],
    "categorical": ["distributions", "tables", "certificate", "estimates", "receipt"],
    "multivariate normal": ["tables", "certificate", "receipt"],
    "regression": ["tables", "convergence", "certificate", "estimates", "receipt"],
    "hidden Markov": ["distributions", "tables", "convergence", "certificate", "receipt"],
    "Gaussian hidden Markov": ["distributions", "tables", "convergence", "certificate", "receipt"],
    "hidden Markov of vectors": ["distributions", "tables", "certificate", "receipt"],
    "Markov chain": ["distributions", "tables", "certificate", "estimates", "receipt"],
    "CRF": ["distributions", "tables", "convergence", "certificate", "estimates", "receipt"],
    "graph CRF": ["distributions", "tables", "convergence", "certificate", "estimates", "receipt"],
}


@pytest.mark.parametrize("kind", list(EXPECTED))
def test_every_model_has_a_page(kind: str) -> None:
    model = fitted(kind)
    text = model.report_.to_html()
    assert sections(text) == EXPECTED[kind]
    assert text.count('<circle class="point"') == len(model.matched_statistics().names)
    # The policy of the page forbids styles in attributes.
    assert "style" not in {name for _, attributes in Outline(text).tags for name in attributes}
    assert text.count("<tr><th>maximum exists</th>") == 2


@pytest.mark.parametrize("kind", list(EXPECTED))
def test_every_page_fits_a_phone(kind: str, visit: Callable[..., Any]) -> None:
    model = fitted(kind)
    page = visit(model, width=360)
    assert page.overflow() <= 0
    assert page.page.locator("#receipt tr").count() == len(model.report_.lines())


def test_the_policy_names_the_parts_by_their_hashes(tmp_path: Path) -> None:
    net = sf.BayesianNetwork([("a", "b")]).fit({"a": [0, 1], "b": [1, 0]})
    written = net.report_.to_html(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text == written
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert found is not None
    policy = dict(part.split(" ", 1) for part in found[1].split("; "))
    assert policy["default-src"] == "'none'"
    style, script = re.search(r"<style>(.*?)</style>", text, re.S), re.search(r"<script>(.*?)</script>", text, re.S)
    assert style is not None
    assert script is not None
    for name, part in (("style-src", style[1]), ("script-src", script[1])):
        digest = base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        assert policy[name] == f"'sha256-{digest}'"
    assert not re.search(r"(src|href)=\"(?!#)", text)
    assert "http" not in re.sub(r"http-equiv|http://www\.w3\.org/2000/svg", "", text)


def test_a_script_from_elsewhere_does_not_run(browser: Any, tmp_path: Path) -> None:
    text = sf.Normal().fit(VALUES).report_.to_html()
    path = tmp_path / "changed.html"
    path.write_text(text.replace("</main>", "<script>document.title = 'changed'</script></main>"), encoding="utf-8")
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(path.as_uri())
    assert page.title() == "Normal · suffice"
    assert any("Content Security Policy" in text for text in said)
    page.close()


def test_warnings_come_first() -> None:
    net = sf.BayesianNetwork([("a", "c"), ("b", "c")]).fit({"a": [0, 0, 1], "b": [0, 1, 1], "c": [0, 1, 1]})
    text = net.report_.to_html()
    assert "1 parent configurations never occur" in text
    assert text.index('class="warnings"') < text.index('class="figures"') < text.index('id="graph"')
    stopped = sf.HiddenMarkovModel(2, emission=sf.Categorical(), random_state=0, max_iter=1)
    with pytest.warns(sf.ConvergenceWarning):
        stopped.fit([list("aabbabab"), list("bbbaab")])
    assert "The fit has not converged" in stopped.report_.to_html()
    edge = sf.Bernoulli().fit([1, 1, 1])
    assert "The maximum is not attained" in edge.report_.to_html()
    assert "No warnings." in sf.Normal().fit(VALUES).report_.to_html()


def test_a_report_alone_has_a_receipt(tmp_path: Path) -> None:
    report = sf.Report.from_dict(sf.Normal().fit(VALUES).report_.to_dict())
    assert sections(report.to_html(tmp_path / "alone.html")) == ["certificate", "receipt"]


def test_cells_are_coloured_by_their_probability(visit: Callable[..., Any]) -> None:
    net = sf.BayesianNetwork([("a", "b")]).fit({"a": [0] * 4 + [1] * 4, "b": [0, 1, 1, 1, 0, 0, 0, 0]})
    page = visit(net)
    table = page.page.locator("#tables details").nth(1)
    assert table.locator("summary").inner_text() == "P(b | a)"
    assert table.locator("td").all_inner_texts() == ["0.25", "0.75", "1", "0"]
    classes = [cell.get_attribute("class") for cell in table.locator("td").all()]
    assert classes == ["heat5", "heat15", "heat20", "heat0"]
    colours = [cell.evaluate("cell => getComputedStyle(cell).backgroundColor") for cell in table.locator("td").all()]
    assert len(set(colours)) == 4


def test_a_maximum_that_is_not_attained_is_said_once_and_explored(visit: Callable[..., Any]) -> None:
    rows = {"A": [0, 0, 1, 1, 1], "B": [0, 0, 1, 1, 1], "C": [0, 1, 0, 1, 1], "D": [0, 1, 0, 1, 0]}
    net = sf.MarkovNetwork([("A", "B"), ("B", "C"), ("C", "D"), ("D", "A")]).fit(rows)
    page = visit(net)
    warned = page.page.locator(".warnings li").all_inner_texts()
    assert sum("maximum is not attained" in text for text in warned) == 1
    assert all(text[0].isupper() for text in warned)
    page.row("C", 1).click()
    shown = page.shares()
    for name, table in net.marginals({"C": 1}).items():
        assert shown[name] == pytest.approx(table.values.tolist(), rel=1e-10, abs=1e-14)


def test_wide_tables_take_the_whole_width(visit: Callable[..., Any]) -> None:
    page = visit(fitted("regression"), width=1280)
    assert page.page.evaluate(
        "[...document.querySelectorAll('.tables .scroll')].every(part => part.scrollWidth <= part.clientWidth)"
    )
    cells = page.page.locator("#tables td").all()
    assert [cell.get_attribute("class") for cell in cells[1:6]] == ["plain"] * 5
    assert {cell.get_attribute("class") for cell in cells[::6]} & {"heat20", "low20"}


def test_a_wide_graph_fits_where_that_is_asked_for(visit: Callable[..., Any]) -> None:
    names = [f"variable {at}" for at in range(8)]
    net = sf.BayesianNetwork([("top", name) for name in names]).fit({name: [0, 1] for name in ["top", *names]})
    page = visit(net, width=390)
    inside = (
        "document.querySelector('#graph .scroll').scrollWidth <= document.querySelector('#graph .scroll').clientWidth"
    )
    assert not page.page.evaluate(inside)
    page.page.locator("#fit").check()
    assert page.page.evaluate(inside)


def test_factors_are_coloured_to_both_sides_of_one() -> None:
    domain = sf.Domain([sf.Variable.discrete("a", [0, 1, 2, 3])])
    factor = sf.Table(domain, [1.0, np.e, np.exp(-0.5), 0.0])
    assert _marks(table_grid(factor, "", "factor")) == [["heat0", "heat20", "low10", "low20"]]
    assert _marks(table_grid(sf.Table(domain, [2.0, -4.0, 0.0, np.nan]), "", "signed")) == [
        ["heat10", "low20", "heat0", "plain"]
    ]
    assert _marks(table_grid(factor, "", "none")) == [["plain"] * 4]


def test_both_schemes_and_print(visit: Callable[..., Any]) -> None:
    net = sf.BayesianNetwork([("a", "b")], prior=1.0).fit({"a": [0, 1, 1], "b": [1, 0, 1]})
    look = "getComputedStyle(document.body).backgroundColor"
    light, dark = visit(net, color_scheme="light"), visit(net, color_scheme="dark")
    brightness = [sum(map(int, re.findall(r"\d+", one.page.evaluate(look))[:3])) for one in (light, dark)]
    assert brightness[0] > 600
    assert brightness[1] < 150
    dark.page.emulate_media(media="print", color_scheme="dark")
    assert dark.page.evaluate(look) == "rgb(255, 255, 255)"
    dark.page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = false; })")
    dark.page.pdf()
    assert dark.page.locator("details:not([open])").count() == 0


def test_the_graph_points_down_and_leads_to_the_variables(visit: Callable[..., Any]) -> None:
    net = sf.BayesianNetwork([("top", "left"), ("top", "right"), ("left", "low"), ("right", "low")])
    page = visit(net.fit({name: RNG.choice(2, 50) for name in ("top", "left", "right", "low")}))
    boxes = {name: page.page.locator(f"svg.graph a:has-text('{name}')").bounding_box() for name in net.nodes}
    assert boxes["top"]["y"] < boxes["left"]["y"] == boxes["right"]["y"] < boxes["low"]["y"]
    page.page.locator("svg.graph a:has-text('low')").click()
    target = page.page.evaluate("document.querySelector(':target h3').textContent")
    assert target == "low"


def test_a_large_graph_is_not_drawn() -> None:
    rows = {f"n{k}": RNG.choice(2, 5) for k in range(260)}
    net = sf.BayesianNetwork([(f"n{k}", f"n{k + 1}") for k in range(259)]).fit(rows)
    text = net.report_.to_html()
    assert "A graph of 260 nodes and 259 edges is not drawn" in text
    assert "more tables are not shown" in text
    assert '<svg class="graph"' not in text


def test_a_network_of_many_weights_has_a_page() -> None:
    # 6,384 weights: the covariance of all features would take 326 MB, and nobody asks for it.
    names = [f"v{at}" for at in range(400)]
    net = sf.MarkovNetwork(list(pairwise(names))).fit({n: RNG.integers(0, 4, 200) for n in names})
    assert len(net.weights_) == 6384
    assert sections(net.report_.to_html()) == ["graph", "distributions", "tables", "certificate", "receipt"]


def test_a_mixture_is_drawn_as_a_mixture() -> None:
    bell, twin = (fitted(kind).report_.to_html() for kind in ("normal", "mixed network"))
    assert "components" not in bell
    assert "standard deviation" in twin
    assert ", 2 components" in twin


def test_columns_of_a_hidden_markov_model_have_tables_of_their_own() -> None:
    rows = {"x": VALUES, "c": RNG.choice(["a", "b"], 60)}
    model = sf.HiddenMarkovModel(["u", "v"], emission=[sf.Normal(), sf.Categorical()], prior=1.0)
    known = [["u", "v"] * 30]
    text = model.fit(rows, known, columns=["x", "c"]).report_.to_html()
    assert "<summary>Value of x, given the state</summary>" in text
    assert "<summary>Probabilities of c, given the state</summary>" in text
