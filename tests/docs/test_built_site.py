"""The site as a reader meets it, in a browser: it is complete, quiet and fits on a phone."""

import os

import pytest

from tests.support import browser
from tests.support.pages import DOCS

SITE = DOCS / "_build" / "html"
PAGES = sorted(SITE.rglob("*.html"))

pytestmark = pytest.mark.slow


@pytest.mark.skipif("CI" not in os.environ, reason="the site need not be built here")
def test_the_site_is_built():
    assert SITE / "index.html" in PAGES, "run make docs before the tests"
    assert SITE / "gallery" / "index.html" in PAGES


@pytest.fixture(scope="module")
def page():
    with browser.page() as opened:
        opened.ask(
            "Emulation.setDeviceMetricsOverride",
            width=390,
            height=844,
            deviceScaleFactor=1,
            mobile=True,
        )
        yield opened


@pytest.mark.skipif(not PAGES, reason="the site is not built: run make docs")
@pytest.mark.skipif(browser.find() is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(SITE).as_posix())
def test_a_page_is_complete_quiet_and_fits_on_a_phone(page, path):
    page.events.clear()
    page.open(path.as_uri())
    asked = [request["request"]["url"] for request in page.told("Network.requestWillBeSent")]
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert page.told("Network.loadingFailed") == []
    assert page.complaints() == []
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) <= 0
