"""The report page in a real browser: it loads, filters and sorts, and its plots are there."""

import os
import shutil

import pytest

import house

playwright = pytest.importorskip("playwright.sync_api")

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# The page shows all papers: the tests run where the last paper's environment was made.
pytestmark = pytest.mark.xdist_group(house.slugs()[-1] if house.slugs() else "none")


@pytest.fixture(scope="module")
def page_file(installed, tmp_path_factory):
    slugs = house.slugs()
    first = installed(slugs[-1])
    folders = [installed(slug).reports for slug in slugs[-2:]]
    out = tmp_path_factory.mktemp("page") / "index.html"
    house.call([house.program(first.python, "paperworks"), "report", *folders, "--out", out])
    return out


@pytest.fixture(scope="module")
def browser():
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("no chromium: apt-get install chromium")
        pytest.skip("no chromium on this machine")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser, page_file):
    made = browser.new_page(viewport={"width": 1200, "height": 900})
    problems = []
    made.on("console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else 0)
    made.on("pageerror", lambda error: problems.append(str(error)))
    made.on("request", lambda r: problems.append(r.url) if r.url.startswith("http") else 0)
    made.goto(page_file.as_uri())
    yield made
    assert problems == []
    made.close()


def shown(page):
    return page.locator("#claims tbody tr:visible")


def test_loads_with_plots(page):
    assert shown(page).count() >= 3
    assert page.locator("article").count() == shown(page).count()
    plots = page.locator("figure svg")
    assert plots.count() >= 2
    for index in range(plots.count()):
        box = plots.nth(index).bounding_box()
        assert box["width"] > 200
        assert box["height"] > 100
    assert "Python 3" in page.locator("footer").inner_text()


def test_filters(page):
    total = shown(page).count()
    page.select_option("#verdict", "holds")
    held = shown(page).count()
    assert 0 < held <= total
    assert set(shown(page).locator(".verdict").all_inner_texts()) == {"✓ holds"}
    assert page.locator("article:visible").count() == held
    page.select_option("#verdict", "")
    for option in page.locator("#paper option").all_inner_texts()[1:]:
        page.select_option("#paper", option)
        assert set(shown(page).locator("td:first-child").all_inner_texts()) == {option}
        assert page.locator("section:visible").count() == 1
    page.select_option("#paper", "")
    page.fill("#text", "no such words in any statement")
    assert shown(page).count() == 0
    assert page.locator("#shown").inner_text().startswith("0 of ")


@pytest.mark.parametrize(("column", "numeric"), [(1, False), (6, True)])
def test_sorts(page, column, numeric):
    head = page.locator("#claims th").nth(column)

    def values():
        if numeric:
            cells = page.locator(f"#claims tbody td:nth-child({column + 1})")
            return [float(cell.get_attribute("data-sort")) for cell in cells.all()]
        return page.locator(f"#claims tbody td:nth-child({column + 1})").all_inner_texts()

    def order(texts):
        return texts if numeric else [text.lower() for text in texts]

    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    first = order(values())
    assert first[0] == min(first)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert order(values()) == first[::-1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_in_light_and_dark(page, scheme):
    page.set_viewport_size({"width": 360, "height": 740})
    page.emulate_media(color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    colours = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    ink, paper = (sum(map(int, c[4:-1].split(","))) for c in colours)
    assert (ink < paper) == (scheme == "light")
    assert abs(ink - paper) > 400
