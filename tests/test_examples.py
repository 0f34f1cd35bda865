"""The code blocks of the documents run, and print what the documents say they print; `documents` says how."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from documents import examples_of, run_examples

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [path for path in (ROOT / "README.md", ROOT / "ARCHITECTURE.md") if path.exists()]
DOCUMENTS += sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)
# A document that shows one of these is skipped by name where the package is absent.
OPTIONAL = {"dask", "distributed", "duckdb", "matplotlib", "networkx", "pyspark", "ray", "sklearn"}


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    """Plots of one document do not add up with those of the next."""
    yield
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
        pyplot.close("all")


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
# Of an option that Ray sets itself, and of processes of its own that it leaves to end.
@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context", "ignore::ResourceWarning:subprocess")
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_document(path: Path) -> None:
    try:
        run_examples(examples_of(path.read_text(encoding="utf-8")), str(path))
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in OPTIONAL:
            raise
        pytest.skip(f"{path.relative_to(ROOT)} needs {error.name}")


def test_readme_shows_an_example_with_its_output() -> None:
    examples = examples_of((ROOT / "README.md").read_text(encoding="utf-8"))
    assert any(example.output for example in examples)


DOCUMENT = """\
```python
x = 3
print(x)
```

```text
3
```

A drawing, not an output:

```text
+--+
```

```python
print(x + 1)
```

It prints

```output
4
```
"""


def test_blocks_share_a_namespace_and_match_their_outputs() -> None:
    examples = examples_of(DOCUMENT)
    assert [(example.line, example.output) for example in examples] == [(2, "3\n"), (17, "4\n")]
    run_examples(examples, "document")


def test_a_second_output_and_an_output_without_code_are_refused() -> None:
    with pytest.raises(AssertionError, match="the block of line 17 has two outputs"):
        examples_of(DOCUMENT + "```output\n4\n```\n")
    with pytest.raises(AssertionError, match="before any code"):
        examples_of("```output\n4\n```\n")


def test_files_of_examples_stay_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = "from pathlib import Path\nPath('rows.csv').write_text('x')\nprint(Path('rows.csv').exists())"
    run_examples(examples_of(f"```python\n{code}\n```\n\n```output\nTrue\n```\n"), "document")
    assert Path.cwd() == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_another_output_is_found() -> None:
    with pytest.raises(AssertionError, match="document, line 17: another output"):
        run_examples(examples_of(DOCUMENT.replace("\n4\n", "\n5\n")), "document")
