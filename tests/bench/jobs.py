"""Jobs under load: starts, lines to followers, floods, many quiet jobs, long lists."""

import asyncio
import base64
import contextlib
import json
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import websockets

from tests.bench import portal

MOST = {
    "POST /jobs, alone p50 (ms)": 30.0,
    "submit to process started p50 (ms)": 700.0,
    "line to 1 follower p50 (ms)": 80.0,
    "line to 1 follower p95 (ms)": 250.0,
    "line to 50 followers p50 (ms)": 80.0,
    "line to 50 followers p95 (ms)": 250.0,
    "200,000 lines, follower complete after the end (s)": 2.5,
    "200,000 lines, lost or doubled": 0.5,
    "500 quiet jobs, all server processes (% of a core)": 50.0,
    "20 clients read 50 MB, growth of a process (MiB)": 60.0,
    "GET /jobs?limit=100, 1,000 stored p50 (ms)": 30.0,
    "GET /jobs?limit=100, 1,000,000 against 1,000 (ratio)": 1.3,
    "page /jobs, 1,000,000 stored p50 (ms)": 80.0,
    "sweep with 5,000 steady jobs (s of CPU)": 1.0,
}
LEAST = {"POST /jobs, 8 clients (per s)": 60.0}
MANY, QUIET = 200_000, 500
LINES, EVERY_SECONDS = 100, 0.1


class Site:
    """The portal under test, and what the bench does with it over REST and sockets."""

    def __init__(self, running: portal.Running, checkout: Path) -> None:
        self.running, self.checkout = running, checkout
        headers = {"Authorization": f"Bearer {portal.TOKEN}"}
        self.api = httpx.Client(base_url=f"{running.url}/api/v1", headers=headers, timeout=60)

    def prepare(self) -> None:
        """Make the team, and let it launch on this machine."""
        self.api.post("/teams", json={"slug": "load", "name": "Load"})
        self.pause(None)

    def pause(self, running_jobs: int | None) -> None:
        """Limit the running jobs; 0 pauses the team."""
        self.api.put("/teams/load/quotas", json={"running_jobs": running_jobs}).raise_for_status()

    def submit(self, command: str, **more: Any) -> str:
        """Submit a shell command; return the job's id."""
        body = {"definition": "shell-script", "team": "load", "cluster": "local", **more}
        answer = self.api.post("/jobs", json={**body, "parameters": {"command": command}})
        answer.raise_for_status()
        return str(answer.json()["id"])

    def wait(self, job: str, *phases: str) -> dict[str, Any]:
        """Wait until the job is in one of the phases."""
        until = time.monotonic() + 120
        while time.monotonic() < until:
            found: dict[str, Any] = self.api.get(f"/jobs/{job}").json()
            if found["phase"] in phases:
                return found
            _pause(0.05)
        raise RuntimeError(f"{job} did not come to {phases}: {found}")

    def text(self, job: str) -> str:
        """Return the whole log."""
        return self.api.get(f"/jobs/{job}/logs", headers={"Accept": "text/plain"}).text

    def manage(self, code: str) -> str:
        """Run Python in the portal's own Django; return what it prints."""
        done = subprocess.run(
            ["./slipway", "manage", "shell", "-v0", "-c", code],
            cwd=self.checkout,
            env=portal.clean_environment(self.checkout, caches=True),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        return done.stdout

    def servers(self) -> list[psutil.Process]:
        """All processes of the portal and its services, without jobs."""
        return [p for p in self.running.tree() if p.is_running()]

    @contextlib.contextmanager
    def stopped(self, job: str) -> Iterator[None]:
        """Stop the job at the end of the block."""
        try:
            yield
        finally:
            self.api.post(f"/jobs/{job}/stop")


def measure(running: portal.Running, checkout: Path) -> dict[str, float]:
    """Measure all; figure → value."""
    site = Site(running, checkout)
    site.prepare()
    figures: dict[str, float] = {}
    for part in (_starts, _latency, _flood, _reading, _submitting, _quiet, _sweep, _lists):
        figures |= part(site)
    return figures


def _submitting(site: Site) -> dict[str, float]:
    site.pause(0)
    alone = [_timed(lambda: site.submit("true")) for _ in range(60)]
    begun, count = time.perf_counter(), 400
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _n: site.submit("true"), range(count)))
    rate = count / (time.perf_counter() - begun)
    _stop_all(site)
    site.pause(None)
    return {
        "POST /jobs, alone p50 (ms)": statistics.median(alone),
        "POST /jobs, 8 clients (per s)": rate,
    }


def _stop_all(site: Site) -> None:
    site.manage(
        "from jobs.models import Job\n"
        "Job.objects.filter(phase='QUEUED').update(phase='CANCELLED', due_at=None)"
    )


def _starts(site: Site) -> dict[str, float]:
    taken = []
    for _ in range(15):
        begun = time.time()
        job = site.submit("date +%s.%N")
        site.wait(job, "SUCCEEDED")
        taken.append(1000 * (float(site.text(job)) - begun))
    return {"submit to process started p50 (ms)": statistics.median(taken)}


PRINTER = (
    "python3 -c 'import time\n"
    "time.sleep(1.5)\n"
    f"for n in range({LINES}):\n"
    "    print(n, time.time(), flush=True)\n"
    f"    time.sleep({EVERY_SECONDS})'"
)


def _latency(site: Site) -> dict[str, float]:
    figures = {}
    for followers in (1, 50):
        job = site.submit(PRINTER)
        late = asyncio.run(_follow_many(site, job, followers))
        words = f"line to {followers} follower{'s' * (followers > 1)}"
        figures[f"{words} p50 (ms)"] = statistics.median(late)
        figures[f"{words} p95 (ms)"] = statistics.quantiles(late, n=20)[-1]
        site.wait(job, "SUCCEEDED")
    return figures


async def _follow_many(site: Site, job: str, followers: int) -> list[float]:
    found = await asyncio.gather(*(_latencies(site, job) for _ in range(followers)))
    if any(len(late) != LINES for late in found):
        raise RuntimeError(f"lines are missing: {[len(late) for late in found]}")
    return [value for late in found for value in late]


async def _latencies(site: Site, job: str) -> list[float]:
    late, rest = [], ""
    async for frame in _frames(site, job):
        now = time.time()
        *lines, rest = (rest + frame.get("text", "")).split("\n")
        late += [1000 * (now - float(line.split()[1])) for line in lines]
    return late


async def _frames(site: Site, job: str) -> Any:
    url = site.running.url.replace("http", "ws", 1) + f"/ws/v1/jobs/{job}/logs?offset=0"
    protocols: Any = ["bearer", portal.TOKEN]
    async with websockets.connect(url, subprotocols=protocols, max_size=None) as socket:
        async for message in socket:
            frame = json.loads(message)
            if frame["type"] == "end":
                return
            yield frame


def _flood(site: Site) -> dict[str, float]:
    job = site.submit(f"seq 1 {MANY}; date +%s.%N")

    async def follow() -> tuple[str, float]:
        text = [frame["text"] async for frame in _timing(site, job, seen)]
        return "".join(text), seen[-1]

    seen: list[float] = []
    text, complete_at = asyncio.run(follow())
    *lines, ended = text.splitlines()
    wrong = sum(a != str(b) for a, b in zip(lines, range(1, MANY + 1), strict=False))
    return {
        "200,000 lines, follower complete after the end (s)": complete_at - float(ended),
        "200,000 lines, lost or doubled": float(wrong + abs(len(lines) - MANY)),
    }


async def _timing(site: Site, job: str, seen: list[float]) -> Any:
    async for frame in _frames(site, job):
        seen.append(time.time())
        yield frame


def _reading(site: Site) -> dict[str, float]:
    job = site.submit("head -c 37500000 /dev/urandom | base64 -w 99")
    site.wait(job, "SUCCEEDED")
    web = [p for p in site.servers() if "uvicorn" in " ".join(p.cmdline())]
    before = {p.pid: p.memory_info().rss for p in web}
    peak: dict[int, int] = dict(before)

    async def watch() -> None:
        while True:
            for process in web:
                peak[process.pid] = max(peak[process.pid], process.memory_info().rss)
            await asyncio.sleep(0.05)

    async def read() -> int:
        size = 0
        async for frame in _frames(site, job):
            size += frame["next_offset"] - frame["offset"]
        return size

    async def all_of_it() -> list[int]:
        watching = asyncio.create_task(watch())
        sizes = await asyncio.gather(*(read() for _ in range(20)))
        watching.cancel()
        return sizes

    sizes = asyncio.run(all_of_it())
    if len(set(sizes)) != 1 or sizes[0] < 50_000_000:
        raise RuntimeError(f"not all was read: {sizes}")
    growth = max(peak[pid] - before[pid] for pid in before)
    return {"20 clients read 50 MB, growth of a process (MiB)": growth / 2**20}


MAKE_QUIET = """
from jobs.models import Job, JobDefinition
from jobs.services import attempts
from jobs.selectors import built_in, newest_of
from clusters.services import ensure_local
from portal.teams.models import Team
team, version = Team.objects.get(slug="load"), newest_of(built_in("shell-script"))
for number in range({count}):
    job = Job.objects.create(team=team, cluster=ensure_local(), version=version, name="quiet",
        resources={{}}, nodes=1, gpus=0, time_limit_seconds=9999, phase="SUCCEEDED", due_at=None)
    print("TOKEN", attempts.token_of(job))
"""


def _quiet(site: Site) -> dict[str, float]:
    found = site.manage(MAKE_QUIET.format(count=QUIET))
    tokens = [line.split()[1] for line in found.splitlines() if line.startswith("TOKEN")]
    return {"500 quiet jobs, all server processes (% of a core)": asyncio.run(_load(site, tokens))}


async def _load(site: Site, tokens: list[str]) -> float:
    """Speak as so many agents for a while; measure once the pace has settled."""
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=200)
    async with httpx.AsyncClient(base_url=site.running.url, limits=limits, timeout=60) as client:
        agents = [asyncio.create_task(_agent(client, token, n)) for n, token in enumerate(tokens)]
        await asyncio.sleep(20)
        servers = site.servers()
        before, begun = portal.cpu_seconds(servers), time.monotonic()
        await asyncio.sleep(20)
        used = portal.cpu_seconds(servers) - before
        taken = time.monotonic() - begun
        for agent in agents:
            agent.cancel()
        await asyncio.gather(*agents, return_exceptions=True)
    return 100 * used / taken


async def _agent(client: httpx.AsyncClient, token: str, number: int) -> None:
    """One line a second and a sample each five, sent as the answers say."""
    headers, offset, flush = {"Authorization": f"Bearer {token}"}, 0, 1.0
    await asyncio.sleep(number / QUIET)
    begun = sampled = time.time()
    while True:
        await asyncio.sleep(flush)
        now = time.time()
        lines = b"".join(b"%.3f a quiet line of a quiet job\n" % now for _ in range(round(flush)))
        data = base64.b64encode(lines).decode()
        chunk = {"stream": "stdout", "offset": offset, "at": begun, "data": data}
        samples = []
        if now - sampled >= 5:
            sampled = now
            samples = [{"at": now, "series": dict.fromkeys(SERIES, 0.5)}]
        body = {"rank": 0, "restart": 0, "chunks": [chunk], "samples": samples}
        answer = await client.post("/api/agent/v1/posts", json=body, headers=headers)
        answer.raise_for_status()
        offset += len(lines)
        flush = max(1.0, answer.json()["flush_after_ms"] / 1000)


SERIES = (
    "cpu_utilization_ratio",
    "memory_used_bytes",
    "memory_total_bytes",
    "nic_receive_bytes_per_second",
    "nic_transmit_bytes_per_second",
    "disk_read_bytes_per_second",
    "disk_write_bytes_per_second",
    'gpu_utilization_ratio{gpu="0"}',
    'gpu_memory_used_bytes{gpu="0"}',
    'gpu_power_watts{gpu="0"}',
)

STEADY = """
import json, os, time
from pathlib import Path
from django.conf import settings
from django.db import connection
from clusters import connect
from clusters.services import ensure_local, look_soon
from jobs import reconcile, selectors
from jobs.models import Job
from jobs.selectors import built_in, newest_of
from jobs.values import seen_to_json
from portal.core import wakeups
from portal.teams.models import Team
cluster = ensure_local()
team, version = Team.objects.get(slug="load"), newest_of(built_in("shell-script"))
jobs = Job.objects.bulk_create([Job(team=team, cluster=cluster, version=version, name="steady",
    resources={}, nodes=1, gpus=0, time_limit_seconds=9999, phase="RUNNING", due_at=None)
    for _ in range(5000)])
me = os.getpid()
ticks = int(Path(f"/proc/{me}/stat").read_text().rsplit(")", 1)[1].split()[19])
boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
for job in jobs:
    folder = Path(settings.LOCAL_JOBS_FOLDER) / selectors.key_of(job)
    (folder / "run").mkdir(parents=True)
    (folder / "spec.json").write_text("{}")
    pid = {"runner": me, "ticks": ticks, "child": me, "boot_id": boot, "started_at": 1.0}
    (folder / "pid.json").write_text(json.dumps(pid) + "\\n")
reconcile.observe(cluster.pk)
look_soon(cluster.pk)
wakeups.outbox.drain(timeout=120)  # the knocks of the first look are not this one's work
begun = time.process_time()
reconcile.observe(cluster.pk)
print("CPU", time.process_time() - begun)
Job.objects.filter(name="steady").delete()
"""


def _sweep(site: Site) -> dict[str, float]:
    found = site.manage(STEADY)
    line = next(line for line in found.splitlines() if line.startswith("CPU"))
    return {"sweep with 5,000 steady jobs (s of CPU)": float(line.split()[1])}


COPY = """
from django.db import connection
from jobs.models import Job
with connection.cursor() as cursor:
    cursor.execute("SELECT count(*) FROM jobs_job")
    there = cursor.fetchone()[0]
    names = [f.column for f in Job._meta.concrete_fields if f.column not in ("id", "due_at")]
    listed = ", ".join(names)
    cursor.execute(f"INSERT INTO jobs_job (id, due_at, {{listed}}) SELECT"
        f" upper(lpad(to_hex(n), 26, '0')), NULL, {{listed}} FROM (SELECT * FROM jobs_job WHERE"
        f" phase IN ('CANCELLED', 'SUCCEEDED', 'FAILED') ORDER BY id LIMIT 1) j,"
        f" generate_series({start}, {count}) n")
    cursor.execute("ANALYZE jobs_job")
"""


def _lists(site: Site) -> dict[str, float]:
    site.manage(COPY.format(start=1, count=600))
    small = _listing(site)
    site.manage(COPY.format(start=601, count=1_000_000))
    large = _listing(site)
    return {
        "GET /jobs?limit=100, 1,000 stored p50 (ms)": small,
        "GET /jobs?limit=100, 1,000,000 against 1,000 (ratio)": large / small,
        "page /jobs, 1,000,000 stored p50 (ms)": _page(site),
    }


def _listing(site: Site) -> float:
    times = [_timed(lambda: site.api.get("/jobs?limit=100").raise_for_status()) for _ in range(60)]
    return statistics.median(times)


def _page(site: Site) -> float:
    with portal.signed_in(site.running) as browser:
        return statistics.median(
            _timed(lambda: browser.get("/jobs").raise_for_status()) for _ in range(40)
        )


def _timed(call: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - begun)


def _pause(seconds: float) -> None:
    asyncio.run(asyncio.sleep(seconds))
