"""A browser for the tests of pages; without one they are skipped, and say what is missing."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's chromium, driven by Playwright."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (the extra 'browser')")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser is installed: none of {', '.join(BROWSERS)}")
    with driver.sync_playwright() as play:
        launched = play.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield launched
        launched.close()


class Visit:
    """An open page, with all that it asked for and complained about."""

    def __init__(self, page: Any, path: Path) -> None:
        self.page, self.path = page, path
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        page.goto(path.as_uri())

    def row(self, name: object, state: object) -> Any:
        """The button of a state."""
        card = self.page.locator(".card").filter(has=self.page.get_by_role("heading", name=str(name), exact=True))
        return card.locator(".row").filter(has=self.page.locator(".state", has_text=str(state)))

    def shares(self) -> dict[str, list[float | None]]:
        """What the bars of each variable say, to the last digit."""
        found: dict[str, list[float | None]] = self.page.evaluate(
            """() => Object.fromEntries([...document.querySelectorAll(".card")].map((card) => [
                card.querySelector("h3").textContent,
                [...card.querySelectorAll(".row")].map((row) => row.dataset.probability)
                    .map((said) => said === "" ? null : Number(said)),
            ]))"""
        )
        return found

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Visit]]:
    """Write the page of a model and open it; at the end nothing may have been asked for or complained about."""
    opened: list[Visit] = []

    def go(model: Any, *, width: int = 1200, **options: Any) -> Visit:
        path = tmp_path / f"page{len(opened)}.html"
        model.report_.to_html(path)
        opened.append(Visit(browser.new_page(viewport={"width": width, "height": 900}, **options), path))
        return opened[-1]

    yield go
    for one in opened:
        one.page.close()
        assert one.requests == [one.path.as_uri()]
        assert one.complaints == []
