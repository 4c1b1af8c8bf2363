"""`./slipway bench`: measures, prints one table, writes bench-results.json.

`--quick` uses the caches of earlier installs, `--jobs` measures jobs alone.
"""

import contextlib
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from tests.bench import jobs, portal

RESULTS = portal.ROOT / "bench-results.json"
IDLE_SECONDS = 20
REQUESTS = 40
PAGES = (
    "/",
    "/me",
    "/teams/bench",
    "/teams/bench/quotas",
    "/teams/bench/secrets",
    "/teams/bench/tokens",
    "/teams/bench/events",
    "/teams/bench/notices",
    "/notices",
    "/admin/users",
    "/admin/teams",
    "/admin/audit",
    "/api/docs",
)
MOST = {
    "first start, bare and without caches (s)": 100.0,
    "second start (s)": 6.0,
    "memory of all processes, idle (MiB PSS)": 500.0,
    "CPU of all processes, idle (% of a core)": 3.0,
    "GET /api/v1/me p50 (ms)": 12.0,
    **{f"page {path} p50 (ms)": 60.0 for path in PAGES},
    **jobs.MOST,
}


def main(arguments: list[str]) -> int:
    """Measure and report; 1 when a figure is over what it may be."""
    folder = Path(tempfile.mkdtemp(prefix="slipway bench "))
    figures: dict[str, float] = {}
    try:
        checkout = portal.clone(folder)
        bare = portal.clean_environment(folder, caches="--quick" in arguments)
        with portal.up(checkout, bare) as running:
            figures["first start, bare and without caches (s)"] = running.seconds
        with portal.up(checkout, bare) as running:
            figures["second start (s)"] = running.seconds
            _arrange(running)
            if "--jobs" not in arguments:
                figures |= _requests(running)
                figures |= _idle(running)
            figures |= jobs.measure(running, checkout)
    finally:
        portal.remove(folder)
    _report(figures)
    return int(any(_ratio(name, value) > 1 for name, value in figures.items()))


def _ratio(name: str, value: float) -> float:
    """Return how near a figure is to what it may be; above 1 it misses."""
    return jobs.LEAST[name] / value if name in jobs.LEAST else value / MOST[name]


def _arrange(running: portal.Running) -> None:
    """A team with people, secrets and events, so that pages have something to show."""
    with _api(running) as api:
        made = api.post("/teams", json={"slug": "bench", "name": "Bench"})
        made.raise_for_status()
        for number in range(30):
            api.post(
                "/teams/bench/secrets", json={"name": f"KEY_{number}", "value": "v"}
            ).raise_for_status()
            email = f"person-{number}@example.org"
            api.post("/teams/bench/members", json={"email": email, "role": "member"})


def _api(running: portal.Running) -> httpx.Client:
    headers = {"Authorization": f"Bearer {portal.TOKEN}"}
    return httpx.Client(base_url=f"{running.url}/api/v1", headers=headers, timeout=30)


def _requests(running: portal.Running) -> dict[str, float]:
    figures = {}
    figures["GET /api/v1/me p50 (ms)"] = _me(running)
    with portal.signed_in(running) as browser:
        for path in PAGES:
            figures[f"page {path} p50 (ms)"] = _median(lambda path=path: browser.get(path))  # type: ignore[misc] # bound now
    return figures


def _me(running: portal.Running) -> float:
    """Ask by the plain client of the standard library, so that the portal is measured alone."""
    address = httpx.URL(running.url)
    connection = http.client.HTTPConnection(address.host, address.port, timeout=30)
    times = []
    for _ in range(2 * REQUESTS):
        begun = time.perf_counter()
        connection.request("GET", "/api/v1/me", headers={"Authorization": f"Bearer {portal.TOKEN}"})
        answer = connection.getresponse()
        answer.read()
        times.append(1000 * (time.perf_counter() - begun))
        if answer.status != 200:
            raise RuntimeError(f"/api/v1/me answered {answer.status}")
    connection.close()
    return statistics.median(times)


def _median(call: Callable[[], httpx.Response]) -> float:
    times = []
    for _ in range(REQUESTS):
        begun = time.perf_counter()
        answer = call()
        times.append(1000 * (time.perf_counter() - begun))
        if answer.status_code != 200 or "/account/login/" in str(answer.url):
            raise RuntimeError(f"{answer.url} answered {answer.status_code}")
    return statistics.median(times)


def _idle(running: portal.Running) -> dict[str, float]:
    """Memory as the kernel shares it out (PSS), and processor time while nobody asks."""
    processes = running.tree()
    before, begun = portal.cpu_seconds(processes), time.monotonic()
    running.process.poll()
    with contextlib.suppress(subprocess.TimeoutExpired):
        running.process.wait(timeout=IDLE_SECONDS)
    used = portal.cpu_seconds(processes) - before
    pss = sum(p.memory_full_info().pss for p in processes if p.is_running())
    return {
        "memory of all processes, idle (MiB PSS)": pss / 2**20,
        "CPU of all processes, idle (% of a core)": 100 * used / (time.monotonic() - begun),
    }


def _report(figures: dict[str, float]) -> None:
    table = Table("figure", "measured", "bound", "ratio")
    results: dict[str, Any] = {}
    for name, value in figures.items():
        ratio, bound = _ratio(name, value), jobs.LEAST.get(name) or MOST[name]
        style = "red" if ratio > 1 else ""
        table.add_row(name, f"{value:.2f}", f"{bound:g}", f"{ratio:.2f}", style=style)
        results[name] = {"value": round(value, 3), "bound": bound, "ratio": round(ratio, 3)}
    Console().print(table)
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
