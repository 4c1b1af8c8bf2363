"""The log viewer in a real browser on a log of its own: size, following, searching, ugly lines."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import watch
from tests.doubles.log import ORIGIN, FakeLog, Piece

LONG = 1_000_000


@pytest.fixture(scope="module")
def million() -> FakeLog:
    """A million lines; each says its number."""
    data = b"".join(b"line %07d of the run\n" % n for n in range(1, LONG + 1))
    return FakeLog(pieces=[Piece(data=data)])


@pytest.fixture
def page(chromium: Browser):
    """A page without a portal that fails its test on any console error or CSP violation."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(15000)
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=ORIGIN)
    page = context.new_page()
    page.errors = []  # type: ignore[attr-defined] # collected for the assertion below
    watch(page)
    yield page
    assert page.errors == []  # type: ignore[attr-defined] # as above
    context.close()


NEAR = """(wanted) => {
  const { view, lines } = document.querySelector(".log").viewer;
  const [first] = view.seen();
  const number = Number((first === undefined ? "" : lines.textAt(first) ?? "").slice(5, 12));
  return Math.abs(number - wanted) < 10000;
}"""


def lines_of(count: int, word: str = "line") -> bytes:
    return b"".join(b"%s %d\n" % (word.encode(), n) for n in range(1, count + 1))


def texts(page: Page) -> list[str]:
    return page.locator(".ln > code").all_inner_texts()


def seen(page: Page) -> list[str]:
    """The lines that can be seen now, from top to bottom."""
    return page.evaluate(
        "(() => { const { view, lines } = document.querySelector('.log').viewer;"
        " return view.seen().map((n) => lines.textAt(n)); })()"
    )


def line(page: Page, text: str):
    return page.locator(".ln", has_text=text)


def test_a_million_lines_open_at_the_end_and_any_line_is_a_link(page: Page, million) -> None:
    """Buys logs of any length: seconds, and a page that stays small."""
    million.open(page)
    expect(line(page, "line 1000000 of")).to_be_in_viewport()
    expect(page.locator(".log-foot")).to_contain_text("1,000,000 lines, 22.9 MiB")
    assert page.locator(".ln").count() < 300
    page.evaluate("location.hash = '#L500000'")
    expect(line(page, "line 0500000 of")).to_be_in_viewport()
    expect(page.locator(".ln.picked > a")).to_have_text("500,000")
    page.reload()
    expect(page.locator(".ln.picked > code")).to_have_text("line 0500000 of the run")
    expect(page.locator(".ln.picked")).to_be_in_viewport()
    page.locator(".log-view").press("Home")
    expect(line(page, "line 0000001 of")).to_be_in_viewport()
    page.keyboard.press("End")
    expect(line(page, "line 1000000 of")).to_be_in_viewport()
    assert page.locator(".ln").count() < 300
    height = page.evaluate("document.querySelector('.log-view').scrollHeight")
    assert height < 10_000_000


def test_wheeling_up_shows_every_line_once_and_in_order(page: Page) -> None:
    """Buys that nothing jumps while older parts load above the reader."""
    log = FakeLog(pieces=[Piece(data=lines_of(60_000))])
    log.open(page)
    expect(line(page, "line 60000")).to_be_in_viewport()
    page.locator(".log-view").hover()
    last = int(seen(page)[0].split()[1])
    for _ in range(60):
        page.mouse.wheel(0, -380)
        page.wait_for_function(
            "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20, true)))"
        )
        numbers = [int(text.split()[1]) for text in seen(page)]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert numbers[0] < last <= numbers[-1] + 1
        last = numbers[0]
    assert last < 59_200


def test_dragging_the_bar_loads_what_is_there(page: Page, million) -> None:
    million.open(page)
    expect(line(page, "line 1000000 of")).to_be_in_viewport()
    for share in (0.5, 0.123, 0.9, 0.3):
        page.evaluate(
            "(share) => { const el = document.querySelector('.log-view');"
            " el.scrollTop = share * (el.scrollHeight - el.clientHeight); }",
            share,
        )
        page.wait_for_function(NEAR, arg=share * LONG)


def test_what_is_loaded_stays_bounded(page: Page, million) -> None:
    million.open(page, most=1 << 20)
    for number in (1, 250_000, 500_000, 750_000, 1_000_000, 1):
        page.evaluate("(n) => { location.hash = `#L${n}`; }", number)
        expect(page.locator(".ln.picked > code")).to_have_text(f"line {number:07d} of the run")
        loaded = page.evaluate("document.querySelector('.log').viewer.lines.loaded")
        assert loaded <= 2 << 20


def test_it_follows_until_the_reader_looks_back(page: Page) -> None:
    log = FakeLog(pieces=[Piece(data=lines_of(500))], complete=False)
    log.open(page)
    expect(page.locator(".live")).to_have_text("Live")
    log.write("line 501\n")
    expect(line(page, "line 501")).to_be_in_viewport()
    page.locator(".log-view").press("Home")
    expect(line(page, "line 1").first).to_be_in_viewport()
    log.write("line 502\nline 503\n")
    expect(page.get_by_role("button", name="Follow 2 new")).to_be_visible()
    assert seen(page)[0] == "line 1"
    page.keyboard.press("f")
    expect(line(page, "line 503")).to_be_in_viewport()
    log.write("line 504\n")
    expect(line(page, "line 504")).to_be_in_viewport()
    page.get_by_role("button", name="Follow", exact=True).click()
    log.write("".join(f"later {n}\n" for n in range(100)))
    expect(page.get_by_role("button", name="Follow 100 new")).to_be_visible()
    expect(line(page, "line 504")).to_be_in_viewport()
    log.sockets[-1].send('{"type": "end", "next_offset": 10000}')
    expect(page.locator(".live")).to_have_text("Complete")


def test_a_broken_socket_goes_on_where_it_was(page: Page) -> None:
    log = FakeLog(pieces=[Piece(data=lines_of(3))], complete=False)
    log.open(page)
    expect(page.locator(".live")).to_have_text("Live")
    log.write("line 4\n")
    expect(line(page, "line 4")).to_be_visible()
    log.sockets[-1].close(code=4008)
    expect(page.locator(".live")).to_have_text(re.compile("Reconnecting, [12] s"))
    expect(page.locator(".live")).to_have_text("Live")
    assert f"offset={len(log.whole())}" in log.sockets[-1].url
    twice = log.pieces.pop()
    log.write(twice.data.decode())
    log.write("line 5\n")
    expect(line(page, "line 5")).to_be_visible()
    assert texts(page) == [f"line {n}" for n in range(1, 6)]


def test_who_may_not_look_any_more_is_told_and_left_alone(page: Page) -> None:
    log = FakeLog(pieces=[Piece(data=lines_of(3))], complete=False)
    log.open(page)
    expect(page.locator(".live")).to_have_text("Live")
    page.clock.install()
    log.sockets[-1].close(code=4403)
    expect(page.locator(".live")).to_contain_text("Not yours to see any more")
    page.clock.run_for(120_000)
    assert len(log.sockets) == 1
    assert texts(page)[-1] == "line 3"


def test_a_reader_who_slept_gets_a_new_socket(page: Page) -> None:
    log = FakeLog(pieces=[Piece(data=lines_of(3))], complete=False)
    page.clock.install()
    log.open(page)
    expect(page.locator(".live")).to_have_text("Live")
    page.clock.fast_forward(3_600_000)
    page.clock.run_for(2000)
    expect(page.locator(".live")).to_have_text("Live")
    assert len(log.sockets) == 2


def test_search_finds_what_is_loaded_and_what_is_not(page: Page) -> None:
    data = (
        lines_of(40_000).replace(b"line 7\n", b"a Needle\n").replace(b"line 39990\n", b"NEEDLE\n")
    )
    log = FakeLog(pieces=[Piece(data=data)], complete=False)
    log.open(page)
    expect(page.locator(".live")).to_have_text("Live")
    page.keyboard.press("/")
    page.keyboard.type("needle")
    count = page.locator("[data-log=count]")
    expect(count).to_have_text("2 lines")
    page.keyboard.press("Enter")
    expect(line(page, "NEEDLE")).to_be_in_viewport()
    expect(page.locator("mark.now")).to_have_text("NEEDLE")
    page.locator(".log-view").focus()
    page.keyboard.press("n")
    expect(count).to_have_text("1 of 2")
    expect(line(page, "a Needle")).to_be_in_viewport()
    page.keyboard.press("p")
    expect(line(page, "NEEDLE")).to_be_in_viewport()
    log.write("one more needle\n")
    expect(count).to_have_text("2 of 3")
    expect(page.locator(".log-ruler .r-hit")).to_have_count(2)


def test_the_first_error_may_be_far_away(page: Page) -> None:
    data = lines_of(40_000).replace(b"line 9\n", b"0 errors so far\n")
    data = data.replace(b"line 99\n", b"ValueError: no\n").replace(b"line 39999\n", b"ERROR late\n")
    FakeLog(pieces=[Piece(data=data)]).open(page)
    expect(line(page, "ERROR late")).to_be_in_viewport()
    expect(page.locator(".log-ruler .r-err")).to_have_attribute("y", re.compile("^99"))
    page.keyboard.press("e")
    expect(page.locator(".ln.picked > code")).to_have_text("ValueError: no")
    expect(page.locator(".ln.picked")).to_be_in_viewport()
    expect(page.locator(".ln.picked")).to_have_class(re.compile(r"\berr\b"))


UGLY = [
    Piece(data=b"<script>window.hacked = 1</script><img src=x onerror='hacked = 2'>\n"),
    Piece(data=b"\x1b]8;;javascript:window.hacked=3\x07click\x1b]8;;\x07\x1b[31m red\n"),
    Piece(data=b"half of stdout, "),
    Piece(data=b"all of stderr\n", stream="stderr"),
    Piece(data=b"and its end\n"),
    Piece(data=bytes(range(256)) + b"\n"),
    Piece(data="تم تحميل ١٢٣ عينة 🎉\n".encode()),
    Piece(data=b"x" * (10 << 20) + b"the end\n"),
    Piece(data=b"\r" * (1 << 20) + b"\n"),
    Piece(data=b"".join(b"\r%d%%" % n for n in range(101)) + b"\n"),
    Piece(data=b"last\n"),
]


def test_ugly_lines_are_text_and_nothing_else(page: Page) -> None:
    """Buys mark-up, escapes, binary, a line of 10 MiB and one of returns alone, in one log."""
    FakeLog(pieces=UGLY).open(page, path="#L1")
    expect(page.locator(".ln.picked")).to_contain_text("<script>window.hacked = 1</script>")
    page.locator(".log-view").press("End")
    expect(line(page, "last")).to_be_in_viewport()
    page.evaluate("document.querySelector('.log-view').scrollTop = 0")
    expect(line(page, "click red")).to_be_visible()
    assert page.locator(".ln > code a").count() == 0
    expect(line(page, "half of stdout, and its end")).to_be_visible()
    expect(page.locator(".ln.stderr")).to_have_text(re.compile("all of stderr"))
    expect(line(page, "101 updates folded")).to_contain_text("100%")
    page.get_by_role("button", name="100 updates folded").or_(
        page.get_by_role("button", name="101 updates folded")
    ).click()
    expect(line(page, "updates folded")).to_contain_text("42%")
    expect(line(page, "xxxxx")).to_contain_text("more characters")
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.querySelector('.log-view').textContent.length") < 200_000


def test_streams_and_ranks_are_chosen(page: Page) -> None:
    pieces = [
        Piece(data=f"{stream} of rank {rank}, {n}\n".encode(), stream=stream, rank=rank)
        for n in range(20)
        for stream in ("stdout", "stderr")
        for rank in range(3)
    ]
    FakeLog(pieces=pieces).open(page)
    expect(line(page, "stderr of rank 2, 19")).to_be_in_viewport()
    page.get_by_label("Rank").select_option("1")
    expect(line(page, "rank 2,")).to_have_count(0)
    expect(line(page, "rank 1,")).to_have_count(40)
    page.get_by_role("button", name="stderr").click()
    expect(page.locator(".ln")).to_have_count(20)
    assert all("stderr of rank 1" in text for text in texts(page))


def test_links_lines_and_looks_are_kept(page: Page) -> None:
    log = FakeLog(pieces=[Piece(data=lines_of(200) + b"w" * 2000 + b"\n")])
    log.open(page)
    expect(line(page, "www")).to_be_visible()
    page.locator(".ln > a", has_text="195").click()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == f"{page.url.partition('#')[0]}#L195"
    expect(page.locator(".ln.picked > code")).to_have_text("line 195")
    page.get_by_role("button", name="Copy the lines in view").click()
    expect(page.locator(".toast").last).to_contain_text("lines copied")
    assert "line 195\nline 196\n" in page.evaluate("navigator.clipboard.readText()")
    page.keyboard.press("w")
    page.get_by_role("button", name="Times of lines").click()
    page.reload()
    expect(page.locator(".log-view")).to_have_class(re.compile("nowrap timeless"))
    expect(page.get_by_role("button", name="Wrap lines")).to_have_attribute("aria-pressed", "false")


def test_an_empty_log_and_one_that_cannot_be_read_say_so(page: Page) -> None:
    log = FakeLog(pieces=[], complete=False)
    log.open(page)
    expect(page.locator(".log-empty").first).to_contain_text("No lines yet")
    log.write("first\n")
    expect(page.locator(".log-empty").first).to_be_hidden()
    expect(line(page, "first")).to_be_visible()
    page.route("**/logs?**", lambda route: route.fulfill(status=503, json={"detail": "Away."}))
    page.reload()
    expect(page.locator(".log-empty").first).to_contain_text("could not be read. Away.")
    page.unroute("**/logs?**")
    page.get_by_role("button", name="Try again").click()
    expect(line(page, "first")).to_be_visible()
