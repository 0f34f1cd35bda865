"""The code blocks of Markdown documents: read them, and run them in one namespace.

Every ```python block of a file runs in order. The expected output is an ```output block anywhere before the next
```python block, or a ```text block that follows with nothing but blank lines in between.
"""

import contextlib
import io
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace

FENCE = re.compile(r"^```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    """A block of code, the line it starts on (from 1), where it ends in the text, and the promised output, if any."""

    code: str
    line: int
    end: int
    output: str | None = None


def examples_of(text: str) -> list[Example]:
    """Read the examples of a Markdown text, in order."""
    examples: list[Example] = []
    code_end: int | None = None  # where the code block ends, if that was the last block seen
    for fence in FENCE.finditer(text):
        language, body = fence["language"], fence["body"]
        adjacent = code_end is not None and not text[code_end : fence.start()].strip()
        code_end = fence.end() if language == "python" else None
        if language == "python":
            examples.append(Example(body, text.count("\n", 0, fence.start("body")) + 1, fence.end()))
        elif language == "output" or (language == "text" and adjacent):
            assert examples, "an output block comes before any code"
            assert examples[-1].output is None, f"the block of line {examples[-1].line} has two outputs"
            examples[-1] = replace(examples[-1], output=body)
    return examples


def run_examples(examples: list[Example], name: str, after: Callable[[Example], None] | None = None) -> None:
    """Run the examples in one namespace and a folder of their own, and compare what they print.

    `after` is called after each of them. Files that they write are gone at the end, whoever runs them.
    """
    namespace: dict[str, object] = {"__name__": "example"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for example in examples:
            printed = io.StringIO()
            # Empty lines in front, so that a traceback gives the line of the document.
            code = compile("\n" * (example.line - 1) + example.code, name, "exec")
            with contextlib.redirect_stdout(printed):
                exec(code, namespace)
            if example.output is not None:
                assert printed.getvalue() == example.output, f"{name}, line {example.line}: another output"
            if after is not None:
                after(example)
