"""The page that leads to the reports of the demo: one file that asks nothing of the network."""

from __future__ import annotations

import html
from collections.abc import Sequence

from suffice.demo.exhibits import Exhibit

#: The colours are those of the reports.
_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5d6776; --paper: #fbfaf7; --card: #fff; --line: #e2dfd8;
  --mark: #0b6e75; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #9aa5b4; --paper: #12161c; --card: #1a2029;
  --line: #2c3441; --mark: #4cc3c7; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 2.5rem 1.5rem 3rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 "Inter", "Segoe UI", system-ui, sans-serif; }
h1 { margin: 0; font-size: 2rem; letter-spacing: -.02em; }
h2 { margin: 0 0 .4rem; font-size: 1.1rem; line-height: 1.3; }
header p, .about { color: var(--soft); } p { margin: .35rem 0; font-size: .94rem; overflow-wrap: anywhere; }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }
article { display: flex; flex-direction: column; min-width: 0; padding: 1.1rem 1.2rem; background: var(--card);
  border: 1px solid var(--line); border-radius: 12px; }
.links { margin-top: auto; padding-top: .6rem; } a { color: var(--mark); } h2 a { text-decoration: none; }
h2 a:hover { text-decoration: underline; } a:focus-visible { outline: 2px solid var(--mark); outline-offset: 2px; }
pre { margin: .35rem 0; padding: .5rem .7rem; overflow-x: auto; background: var(--paper); border-radius: 8px;
  font: .76rem/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
footer { margin-top: 2.5rem; padding-top: 1rem; border-top: 1px solid var(--line); }
footer pre { background: var(--card); white-space: pre-wrap; overflow-wrap: anywhere; padding-left: 2rem; }
@media print { body { background: none; padding: 0; } article { break-inside: avoid; } }
"""


def index_page(exhibits: Sequence[Exhibit], commands: Sequence[str]) -> str:
    """The page as text."""
    cards = "\n".join(_card(exhibit) for exhibit in exhibits)
    shown = html.escape("\n".join(commands))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>suffice demo</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<header><h1>suffice demo</h1>"
        f"<p>{len(exhibits)} models, fitted to bundled data. Each has a report and a file.</p></header>\n"
        f"<main>\n{cards}\n</main>\n<footer><h2>Try next</h2><pre>{shown}</pre></footer>\n</body>\n</html>\n"
    )


def _card(exhibit: Exhibit) -> str:
    name = html.escape(exhibit.name)
    finding = "".join(f"<{tag}>{html.escape(part)}</{tag}>" for part in exhibit.finding for tag in [_tag(part)])
    return (
        f'<article><h2><a href="{name}.html">{html.escape(exhibit.title)}</a></h2>'
        f'<p class="about">{html.escape(exhibit.about)}</p>{finding}'
        f'<p class="links"><a href="{name}.html">Report</a> · <a href="{name}.json">Model</a></p></article>'
    )


def _tag(part: str) -> str:
    """Tables keep their columns, sentences wrap."""
    return "pre" if "\n" in part else "p"
