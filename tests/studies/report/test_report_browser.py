"""The page of a report in a real browser: silent, alone, and usable by mouse and by keyboard."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from browsing import CHROMIUM, DRIVER, MISSING, Browser
from traced import traced

from kvopt.studies.record_lines import FILE, Record, read_records
from kvopt.studies.report import write_report

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason=MISSING),
]

PHONE = 360


@pytest.fixture(scope="module")
def page(finished_study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = shutil.copytree(finished_study, tmp_path_factory.mktemp("report") / "study")
    return write_report(folder).page


def points(browser: Browser) -> list[tuple[str, str]]:
    """Return what each run in the pictures of ratios says, and where it leads."""
    found: list[tuple[str, str]] = browser.ask(
        "return [...document.querySelectorAll('#runs .chart a')]"
        ".map(a => [a.querySelector('title').textContent, a.getAttribute('href')])"
    )
    return found


def test_page_loads_in_silence_and_asks_for_nothing(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.messages() == []
    asked = [url for url in browser.requests() if not url.startswith("data:")]
    assert [unquote(urlparse(url).path) for url in asked] == [str(page)]


def test_text_of_files_does_not_run(browser: Browser, studied: Path) -> None:
    taken = "document.title='taken'"
    text = f'</script><script>{taken}</script><img src=x onerror="{taken}">'

    def hostile(record: Record) -> Record:
        instance = replace(record.instance, name=text, family=text)
        return replace(record, instance=instance, policy=text + str(record.policy), study=text)

    lines = [json.dumps(hostile(record).to_json()) for record in read_records(studied)]
    (studied / FILE).write_text("\n".join(lines))
    browser.open(write_report(studied).page)
    assert browser.messages() == []
    assert browser.ask("return document.title") == f"kvopt study {text}"
    assert browser.ask("return document.images.length + document.scripts.length") == 1
    assert all(text in said for said, _ in points(browser))


def test_policy_of_content_stops_what_is_not_ours(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.ask(
        "const s = document.createElement('script'); s.textContent = 'document.title = 1';"
        "document.body.append(s)"
    )
    assert browser.ask("return document.title") == "kvopt study half-open"
    assert any("Content Security Policy" in message for message in browser.messages())


def test_headings_sort_the_table(browser: Browser, page: Path) -> None:
    browser.open(page)
    column = 3  # the mean
    values = f"""
        return [...document.querySelectorAll("#schedulers tbody tr")]
          .map(row => row.cells[{column}].dataset.value);
        """
    headings = 'document.querySelectorAll("#schedulers th[aria-sort]")'
    before = browser.ask(values)
    for order, down in (("ascending", False), ("descending", True)):
        browser.ask(f"{headings}[{column}].querySelector('button').click()")
        found = browser.ask(values)
        known = [float(value) for value in found if value]
        assert known == sorted(known, reverse=down)
        assert found[len(known) :] == [""] * (len(found) - len(known)) != []
        assert sorted(found) == sorted(before)
        assert browser.ask(f"return {headings}[{column}].ariaSort") == order
    browser.ask(f"{headings}[1].querySelector('button').click()")
    names = browser.ask(
        "return [...document.querySelectorAll('#schedulers tbody tr')]"
        ".map(row => row.cells[1].textContent)"
    )
    assert names == sorted(names)
    assert browser.ask(f"return [...{headings}].filter(h => h.ariaSort !== 'none').length") == 1


def test_a_point_shows_its_numbers_and_leads_to_its_certificate(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    runs = {
        (record.instance.name, f"total latency {record.value:,}"): record.certificate
        for record in read_records(page.parent)
        if record.value is not None
    }
    found = points(browser)
    assert len(found) > 10
    for words, address in found:
        name, size, optimum, said = words.splitlines()
        assert " requests, M = " in size
        assert optimum.startswith("optimum ")
        assert runs[name, said.partition(":")[0]] == address
    browser.ask(
        "const a = document.querySelector('#runs .chart a'); a.scrollIntoView({block: 'center'});"
        "a.focus({focusVisible: true})"
    )
    browser.press("Enter")
    assert unquote(browser.driver.current_url).endswith(found[0][1])


def test_everything_can_be_reached_by_keyboard(browser: Browser, page: Path) -> None:
    browser.open(page)
    reached = []
    for _ in range(400):
        browser.press("Tab")
        where = browser.ask(
            "const e = document.activeElement; window.seen ??= new Set();"
            "if (e === document.body || window.seen.has(e)) return null; window.seen.add(e);"
            "const style = getComputedStyle(e);"
            "return [e.getAttribute('class') || e.tagName, style.outlineStyle !== 'none']"
        )
        if where is None:
            break
        reached.append(where)
    assert reached[0][0] == "skip"
    assert all(outlined for _, outlined in reached), "the focus can be seen"
    kinds = [kind for kind, _ in reached]
    assert kinds.count("BUTTON") == browser.ask(
        "return [...document.querySelectorAll('button')].filter(b => b.checkVisibility()).length"
    )
    links = "return [...document.querySelectorAll('.chart a')].filter(a => a.checkVisibility())"
    assert sum(kind == "a" for kind in kinds) == browser.ask(f"{links}.length") > 10
    assert kinds.count("SUMMARY") == browser.ask(
        "return document.querySelectorAll('summary').length"
    )
    assert "scroll" in kinds


@pytest.mark.parametrize("width", [PHONE, 768, 1280])
def test_page_is_never_wider_than_its_window(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width=width)
    browser.ask("for (const each of document.querySelectorAll('details')) each.open = true")
    assert browser.ask("return document.documentElement.scrollWidth") <= width
    beyond = browser.ask(
        f"""
        return [...document.querySelectorAll("main *")]
          .filter(each => !each.closest(".scroll, pre, .cards thead, .chart"))
          .filter(each => each.getBoundingClientRect().right > {width})
          .map(each => each.outerHTML.slice(0, 80));
        """
    )
    assert beyond == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_the_ground(browser: Browser, page: Path, scheme: str) -> None:
    browser.open(page, prefers_color_scheme=scheme)
    contrasts = browser.ask(
        """
        const light = text => {
          const parts = text.match(/[\\d.]+/g).slice(0, 3).map(part => part / 255)
            .map(part => part <= .03928 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4);
          return .2126 * parts[0] + .7152 * parts[1] + .0722 * parts[2];
        };
        const ground = each => {
          for (; each; each = each.parentElement) {
            const colour = getComputedStyle(each).backgroundColor;
            if (colour !== "rgba(0, 0, 0, 0)") return colour;
          }
        };
        return [...document.querySelectorAll("p, a, th, td, caption, span, strong, dt, dd, text")]
          .map(each => {
            const style = getComputedStyle(each);
            const own = each.tagName === "text" ? style.fill : style.color;
            const pair = [light(own), light(ground(each.closest("body *")))].sort((a, b) => b - a);
            return (pair[0] + .05) / (pair[1] + .05);
          });
        """
    )
    assert len(contrasts) > 100
    assert min(contrasts) >= 4.5


def test_paper_shows_what_is_folded(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.ask(
        "window.opened = null; window.addEventListener('beforeprint', () => {"
        "window.opened = document.querySelectorAll('details:not([open])').length})"
    )
    folded = "return document.querySelectorAll('details:not([open])').length"
    before = browser.ask(folded)
    assert before > 0
    assert len(browser.call("Page.printToPDF", printBackground=True)["data"]) > 10_000
    assert browser.ask("return window.opened") == 0
    assert browser.ask(folded) == before
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.ask("return getComputedStyle(document.querySelector('nav')).display") == "none"


def test_landmarks_and_names_are_there(browser: Browser, page: Path) -> None:
    browser.open(page)
    for landmark in ("header", "nav", "main", "footer"):
        assert browser.ask("return document.querySelectorAll(arguments[0]).length", landmark) == 1
    nameless = browser.ask(
        """
        const named = each => each.getAttribute("aria-label") || each.textContent.trim()
          || document.getElementById(each.getAttribute("aria-labelledby"));
        return [...document.querySelectorAll("section, nav, [role], a, button, svg.chart")]
          .filter(each => !named(each))
          .map(each => each.outerHTML.slice(0, 80));
        """
    )
    assert nameless == []
    levels = browser.ask(
        "return [...document.querySelectorAll('h1, h2, h3')].map(h => +h.tagName[1])"
    )
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert browser.ask("return [...document.querySelectorAll('table')].every(t => t.caption)")


@pytest.fixture(scope="module")
def page_of_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(traced(tmp_path_factory.mktemp("traced") / "study")).page


@pytest.mark.parametrize("width", [PHONE, 2560])
def test_a_study_of_a_trace_uses_the_whole_width(
    browser: Browser, page_of_trace: Path, width: int
) -> None:
    browser.open(page_of_trace, width=width, prefers_color_scheme="dark")
    assert browser.messages() == []
    assert browser.ask("return document.documentElement.scrollWidth") <= width
    said = browser.ask("return document.querySelector('main p').innerText")
    assert said.startswith("On average over all 6 instances, svf cert")
    boxes = browser.ask(
        "return [...document.querySelectorAll('#by-memory svg, #by-rate svg')]"
        ".map(svg => svg.getBoundingClientRect()).map(box => [box.left, box.right])"
    )
    assert len(boxes) == 2 + 3
    assert max(right for _, right in boxes) > 0.6 * width
    broken = "return /NaN|Infinity|undefined/.test(document.querySelector('main').innerHTML)"
    assert browser.ask(broken) is False


def test_a_name_of_the_legend_hides_its_marks_and_a_picture_fills_the_page(
    browser: Browser, page_of_trace: Path
) -> None:
    browser.open(page_of_trace)
    shown = """
        const find = (what) => document.querySelector(`#by-memory ${what}`);
        const colour = `var(--${find(".legend li:nth-child(3) b").className})`;
        const chart = find(".chart");
        return [...chart.querySelectorAll(`[fill="${colour}"]`)]
          .filter(mark => mark.checkVisibility()).length;
        """
    before = browser.ask(shown)
    press = "document.querySelector('#by-memory .legend li:nth-child(3) button').click()"
    browser.ask(press)
    assert before > browser.ask(shown) == 0
    browser.ask(press)
    assert browser.ask(shown) == before
    width = "return document.querySelector('#by-memory figure').getBoundingClientRect().width"
    narrow = browser.ask(width)
    browser.ask("document.querySelector('#by-memory figcaption button').click()")
    assert browser.ask(width) > 1.5 * narrow
    assert browser.ask("return document.documentElement.scrollWidth") <= 1280


@pytest.fixture(scope="module")
def page_in_seconds(study_in_seconds: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = shutil.copytree(study_in_seconds, tmp_path_factory.mktemp("timed") / "study")
    return write_report(folder).page


@pytest.mark.parametrize("width", [PHONE, 1280])
def test_a_study_in_seconds_is_shown(browser: Browser, page_in_seconds: Path, width: int) -> None:
    browser.open(page_in_seconds, width=width)
    assert browser.messages() == []
    assert len([url for url in browser.requests() if not url.startswith("data:")]) == 1
    assert browser.ask("return document.documentElement.scrollWidth") <= width
    parts = browser.ask("return [...document.querySelectorAll('section')].map(s => s.id)")
    assert {"latency", "volume"} <= {*parts}
    assert "worst" not in parts
    empty = """
        return [...document.querySelectorAll("#latency svg, #volume svg")]
          .filter(s => !s.getBBox().width || /NaN|Infinity/.test(s.outerHTML)).length;
        """
    assert browser.ask(empty) == 0
    assert "stand-in" in browser.ask("return document.querySelector('header').innerText")
