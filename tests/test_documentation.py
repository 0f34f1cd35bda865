"""The site of `docs/`: every page is listed, every public name has its entry, every page of theory shows its result.

Sphinx checks the rest when it builds the site with warnings as errors; nothing here needs it.
"""

import importlib
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

import suffice
from documents import examples_of

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = {str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md") if "_build" not in path.parts}
THEORY = sorted(path for path in (DOCS / "theory").glob("*.md") if path.stem != "index")

TOCTREE = re.compile(r"^```\{toctree\}\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)(?P<path>[^)#\s]+)")
AUTO = r"(?:class|exception|function):: suffice|module:: suffice\.views"
ENTRY = re.compile(rf"^\.\. auto(?:{AUTO})\.(\w+)$", re.MULTILINE)


def entries(page: str) -> list[str]:
    """The pages that the toctrees of a page list, from the folder of the documents."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    lines = [line for tree in TOCTREE.finditer(text) for line in tree["body"].splitlines()]
    folder = Path(page).parent
    return [str(folder / line) for line in lines if line.strip() and not line.startswith(":")]


def test_every_page_is_listed_once_and_every_listed_page_is_there() -> None:
    listed, waiting = Counter({"index": 1}), ["index"]
    while waiting:
        for page in entries(waiting.pop()):
            assert page in PAGES, f"a toctree lists {page}, and there is no such page"
            listed[page] += 1
            waiting.append(page)
    assert set(listed) == PAGES, f"in no toctree: {sorted(PAGES - set(listed))}"
    assert max(listed.values()) == 1, f"listed twice: {[page for page, times in listed.items() if times > 1]}"


def test_every_public_name_has_one_entry_in_the_reference() -> None:
    found = Counter(name for path in (DOCS / "api").glob("*.md") for name in ENTRY.findall(path.read_text("utf-8")))
    assert sorted(found.elements()) == sorted(suffice.__all__)


@pytest.mark.parametrize("page", sorted(PAGES))
def test_links_lead_to_files(page: str) -> None:
    path = DOCS / f"{page}.md"
    links = [found["path"] for found in LINK.finditer(path.read_text(encoding="utf-8"))]
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("path", THEORY, ids=lambda path: path.stem)
def test_pages_of_theory_state_derive_and_show(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["The result", "Why", "In numbers"]
    examples = examples_of(text)
    assert any(example.output for example in examples), "no figures are shown"
    assert any("plt.subplots" in example.code for example in examples), "nothing is plotted"


def test_signs_of_docstrings_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(DOCS / "extensions"))
    monkeypatch.delitem(sys.modules, "docstrings", raising=False)
    docstrings = importlib.import_module("docstrings")

    assert (
        docstrings.escape("P(a | b) * c, `mean_`, ``x * y`` and mean_")
        == "P(a \\| b) \\* c, `mean_`, ``x * y`` and mean\\_"
    )
    lines = ["A distribution.", "", ">>> 2 * 3", "6 * 1", "", "Also a_."]
    docstrings.keep_signs(None, "class", "Law", None, None, lines)
    assert lines == ["A distribution.", "", ">>> 2 * 3", "6 * 1", "", "Also a\\_."]
