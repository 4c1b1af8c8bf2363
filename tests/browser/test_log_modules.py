"""The pure parts of the log viewer in a browser: escapes, folding, lines of many sources."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.doubles.log import STATIC

ORIGIN = "http://localhost:9"
Run = Callable[..., Any]
PART = """
const part = (offset, line, text, more = {}) => {
  const next_offset = offset + new TextEncoder().encode(text).length;
  return { offset, next_offset, line, text, stream: "stdout", rank: 0, attempt: 1, at: 0, ...more };
};
"""


@pytest.fixture(scope="module")
def module_page(chromium: Browser):
    """A page that can import the viewer's modules."""
    page = chromium.new_page()

    def serve(route) -> None:
        file = STATIC / route.request.url.removeprefix(f"{ORIGIN}/")
        empty = {"body": "<!doctype html><title>x</title>", "content_type": "text/html"}
        route.fulfill(**({"path": file} if file.is_file() else empty))

    page.route(f"{ORIGIN}/**", serve)
    page.goto(ORIGIN)
    yield page
    page.close()


@pytest.fixture
def run(module_page: Page) -> Run:
    """Run the body of a function that sees the modules `ansi` and `lines`."""

    def call(body: str, given: Any = None) -> Any:
        head = "const ansi = await import('/js/log/ansi.js');"
        head += "const lines = await import('/js/log/lines.js');" + PART
        return module_page.evaluate(f"async (given) => {{ {head} {body} }}", given)

    return call


SPANS = [
    ("plain", [["plain", {}]]),
    ("\x1b[31mred\x1b[m x", [["red", {"fg": 1}], [" x", {}]]),
    (
        "\x1b[1;4;3;2;7mall",
        [["all", dict.fromkeys(("bold", "underline", "italic", "dim", "inverse"), True)]],
    ),
    ("\x1b[1mb\x1b[22mn", [["b", {"bold": True}], ["n", {}]]),
    ("\x1b[91;104mx", [["x", {"fg": 9, "bg": 12}]]),
    ("\x1b[38;5;9mx", [["x", {"fg": 9}]]),
    ("\x1b[38;5;196mx", [["x", {"fg": "255 0 0"}]]),
    ("\x1b[48;5;244mx", [["x", {"bg": "128 128 128"}]]),
    ("\x1b[38;2;1;2;3mx\x1b[39my", [["x", {"fg": "1 2 3"}], ["y", {}]]),
    ("\x1b[38:2::1:2:3mx", [["x", {"fg": "1 2 3"}]]),
    ("\x1b[38:5:196;1mx", [["x", {"fg": "255 0 0", "bold": True}]]),
    ("\x1b[4:3mx\x1b[4:0my", [["x", {"underline": True}], ["y", {}]]),
    ("\x1b[38;5;999mx", [["x", {}]]),
    ("\x1b[38;5mx", [["x", {}]]),
    ("\x1b[999999999999mx", [["x", {}]]),
    ("\x1b[?25l\x1b[2J\x1b[1;1Hx\x1b(B\x1b=", [["x", {}]]),
    ("\x1b]0;title\x07x\x1b]52;c;aGk=\x1b\\y", [["x", {}], ["y", {}]]),
    ("\x1bPq...\x1b\\x\x1b_apc\x1b\\", [["x", {}]]),
    ("\x1b", []),
    ("x\x1b[", [["x", {}]]),
    ("a\x1b]8;;never ended", [["a", {}], ["8;;never ended", {}]]),
    ("a\x00\x01\x7fb\x07\x08", [["a␀␁␡b", {}]]),
    ("\x9b31mx", [["31mx", {}]]),
]


@pytest.mark.parametrize(("line", "spans"), SPANS)
def test_escapes_become_styles_or_nothing(run: Run, line: str, spans: list[Any]) -> None:
    body = "return ansi.parse(given).spans.map(({ text, style }) => [text, style])"
    assert run(body, line) == spans


@pytest.mark.parametrize(
    ("address", "link"),
    [
        ("https://example.org/a?b=c", "https://example.org/a?b=c"),
        ("http://example.org", "http://example.org/"),
        ("javascript:alert(1)", ""),
        ("data:text/html,x", ""),
        ("file:///etc/passwd", ""),
        ("/relative", ""),
    ],
)
def test_links_lead_to_the_web_alone(run: Run, address: str, link: str) -> None:
    line = f"\x1b]8;id=1;{address}\x1b\\text\x1b]8;;\x07 after"
    spans = run("return ansi.parse(given).spans.map(({ text, link }) => [text, link])", line)
    assert spans == [["text", link], [" after", ""]]


@pytest.mark.parametrize(
    ("line", "shown", "updates"),
    [
        ("plain", "plain", 0),
        ("windows\r", "windows", 0),
        ("10%\r20%\r30%", "30%", 2),
        ("\r10%\r20%\r", "20%", 2),
        ("\r\r\r\r", "", 0),
        ("50%\r\x1b[K", "50%\r\x1b[K", 0),
        ("one\x1b[1G\x1b[2Ktwo", "\x1b[2Ktwo", 1),
    ],
)
def test_a_line_that_was_written_over_shows_its_last_state(run, line, shown, updates) -> None:
    body = "const f = ansi.fold(given); return [given.slice(f.from, f.end), f.updates]"
    assert run(body, line) == [shown, updates]


def test_a_line_of_ten_million_returns_is_folded_at_once(run: Run) -> None:
    body = """const line = "5%\\r".repeat(3 << 20), began = performance.now(), f = ansi.fold(line);
    return [line.slice(f.from, f.end), f.isMany, performance.now() - began]"""
    shown, is_many, took = run(body)
    assert (shown, is_many) == ("5%", True)
    assert took < 1000


PIECES = ("a", "b", "\n", "é", "\x1b[3", "1m", "\x1b[0m", "🦙", "\r")


def _random_log(seed: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Parts of up to four sources, and the lines by the order of their ends."""
    choose = random.Random(seed)
    parts, lines, unfinished = [], [], {}
    offset = 0
    for number in range(choose.randint(1, 60)):
        stream, rank = choose.choice(("stdout", "stderr")), choose.randint(0, 1)
        text = "".join(choose.choices(PIECES, k=choose.randint(1, 12)))
        size = len(text.encode())
        place = {"offset": offset, "next_offset": offset + size, "line": len(lines), "text": text}
        origin = {"stream": stream, "rank": rank, "attempt": 1, "at": number, "gap": None}
        parts.append({**place, **origin})
        offset += size
        *ended, last = text.split("\n")
        for piece in ended:
            lines.append(unfinished.pop((stream, rank), "") + piece)
        unfinished[stream, rank] = unfinished.get((stream, rank), "") + last
    return parts, lines


def test_lines_are_whole_in_whatever_order_parts_come(run: Run) -> None:
    """Buys that no line is lost, doubled or torn: 200 random logs, each in a random order."""
    body = """const store = new lines.Lines();
    for (const part of given) store.add(part);
    const found = []; for (let n = 0; n < store.end.line; n++) found.push(store.textAt(n));
    return [found, store.segments.length]"""
    for seed in range(200):
        parts, wanted = _random_log(seed)
        shuffled = parts + parts[::3]
        random.Random(seed).shuffle(shuffled)
        assert run(body, shuffled) == [wanted, 1], seed


def test_styles_are_carried_over_lines_of_one_source_alone(run: Run) -> None:
    body = """const store = new lines.Lines();
    let [offset, line] = [0, 0];
    for (const [stream, text] of given) {
      store.add(part(offset, line, text, { stream }));
      offset += text.length;
      line += text.split("\\n").length - 1;
    }
    return [0, 1, 2, 3].map((n) => [store.at(n).text, store.at(n).state.fg ?? null]);"""
    given = [
        ("stdout", "\x1b[3"),
        ("stderr", "calm\n"),
        ("stdout", "1mred\n"),
        ("stdout", "still\x1b[0m\n"),
        ("stdout", "plain\n"),
    ]
    wanted = [["calm", None], ["\x1b[31mred", None], ["still\x1b[0m", 1], ["plain", None]]
    assert run(body, given) == wanted


def test_unfinished_lines_come_last_and_grow(run: Run) -> None:
    body = """const store = new lines.Lines();
    const texts = (...numbers) => numbers.map((n) => store.at(n)?.text ?? null);
    store.add(part(0, 0, "half"));
    store.add(part(4, 0, "whole\\nrest", { stream: "stderr" }));
    const before = texts(0, 1, 2);
    store.add(part(14, 1, " and end\\n"));
    return [before, store.total, texts(0, 1, 2, 3)];"""
    before, total, after = run(body)
    assert before == ["whole", "half", "rest"]
    assert (total, after) == (3, ["whole", "half and end", "rest", None])


def test_a_hole_stands_for_all_lines_in_it(run: Run) -> None:
    body = """const store = new lines.Lines();
    store.add(part(0, 0, "one\\ntwo\\n"));
    store.add(part(8, 5000, "[not kept]\\n", { next_offset: 1000008, gap: "size_cap" }));
    store.add(part(1000008, 5000, "aaa\\nbbb\\nccc\\n"));
    const texts = [0, 1, 2, 4999, 5000].map((n) => [store.at(n).text, store.at(n).gap]);
    const steps = [store.step(1, 1), store.step(2, 1), store.step(5000, -1)];
    return [texts, ...steps, store.segments.length];"""
    texts, *steps = run(body)
    gap = ["[not kept]", "size_cap"]
    assert texts == [["one", None], ["two", None], gap, gap, ["aaa", None]]
    assert steps == [2, 5000, 2, 1]


def test_what_is_far_is_forgotten_and_can_come_again(run: Run) -> None:
    body = """const store = new lines.Lines({ most: 200 });
    const text = `${"x".repeat(99)}\\n`;
    const nth = (n) => part(100 * n, n, text, { stream: n % 2 ? "stdout" : "stderr" });
    for (let n = 0; n < 10; n++) store.add(nth(n));
    store.trim(9);
    const kept = [store.loaded, Boolean(store.at(9)), Boolean(store.at(0)), store.hole(0).to];
    store.add(nth(0));
    store.trim(0);
    return [kept, store.loaded, Boolean(store.at(0)), store.hole(5).from];"""
    kept, loaded, came_again, hole = run(body)
    assert kept == [200, True, False, {"offset": 800, "line": 8}]
    assert (loaded, came_again, hole) == (200, True, {"offset": 100, "line": 1})
