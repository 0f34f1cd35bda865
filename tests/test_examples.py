"""The code blocks of the documents run, and print what the documents say they print.

Every ```python block of a file runs in order, in one namespace. The expected output is an ```output block anywhere
before the next ```python block, or a ```text block that follows with nothing but blank lines in between.
"""

import contextlib
import io
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [path for path in (ROOT / "README.md", ROOT / "ARCHITECTURE.md") if path.exists()]
DOCUMENTS += sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)
# A document that shows one of these is skipped by name where the package is absent.
OPTIONAL = {"dask", "distributed", "duckdb", "matplotlib", "networkx", "pyspark", "sklearn"}

FENCE = re.compile(r"^```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    """A block of code, the line it starts on (from 1), and the output the document promises, if it does."""

    code: str
    line: int
    output: str | None


def examples_of(text: str) -> list[Example]:
    """Read the examples of a Markdown text, in order."""
    examples: list[Example] = []
    code_end: int | None = None  # where the code block ends, if that was the last block seen
    for fence in FENCE.finditer(text):
        language, body = fence["language"], fence["body"]
        adjacent = code_end is not None and not text[code_end : fence.start()].strip()
        code_end = fence.end() if language == "python" else None
        if language == "python":
            examples.append(Example(body, text.count("\n", 0, fence.start("body")) + 1, None))
        elif language == "output" or (language == "text" and adjacent):
            assert examples, "an output block comes before any code"
            assert examples[-1].output is None, f"the block of line {examples[-1].line} has two outputs"
            examples[-1] = Example(examples[-1].code, examples[-1].line, body)
    return examples


def run_examples(examples: list[Example], name: str) -> None:
    """Run the examples in one namespace and compare what they print."""
    namespace: dict[str, object] = {"__name__": "example"}
    for example in examples:
        printed = io.StringIO()
        # Empty lines in front, so that a traceback gives the line of the document.
        code = compile("\n" * (example.line - 1) + example.code, name, "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        if example.output is not None:
            assert printed.getvalue() == example.output, f"{name}, line {example.line}: another output"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_document(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
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


def test_another_output_is_found() -> None:
    with pytest.raises(AssertionError, match="document, line 17: another output"):
        run_examples(examples_of(DOCUMENT.replace("\n4\n", "\n5\n")), "document")
