"""`./slipway up`: from nothing to a page that answers, and its end."""

import http.client
import json
import os
import time
from collections.abc import Callable

from portal import env as environment
from portal.env import Env
from portal.env_parsers import REPOSITORY
from portal.supervisor import assets, home, install, ports, services
from portal.supervisor.terminal import Failure, say
from portal.supervisor.tree import Program, Stopped, Tree

READY_SECONDS = 120
PROBE_SECONDS = 5
ROOT_WARNING = "You're running the worker with superuser privileges"  # JSON only: no harm
MANAGE = (str(install.PYTHON), "manage.py")


def up(*, stops_jobs: bool = False) -> int:
    """Install what is missing, start everything, and watch it until somebody stops it.

    Local jobs go on afterwards and are found again by the next start, unless `stops_jobs`.
    """
    begun = time.monotonic()
    env = environment.load(need_keys=False)
    lock = home.prepare(env)
    try:
        lock.write(f"{os.getpid()}\n{env.public_url}\n")
        ports.check(env)
        with assets.bundling() as wait_for_bundle:
            install.ensure()
            with Tree(keep=(lock.descriptor,)) as tree:
                return _run(tree, env, wait_for_bundle, begun=begun, stops_jobs=stops_jobs)
    finally:
        lock.release()


def programs(env: Env) -> tuple[Program, Program, Program]:
    """Describe web, worker and beat."""
    celery = (str(install.PYTHON), "-m", "celery", "-A", "portal.celery", "--quiet")
    proxies: tuple[str, ...] = ("--no-proxy-headers",)
    if env.trusted_proxies:
        proxies = ("--proxy-headers", "--forwarded-allow-ips", ",".join(env.trusted_proxies))
    web = Program(
        name="web",
        command=(
            *(str(install.PYTHON), "-m", "uvicorn", "portal.asgi:application"),
            *("--host", env.host, "--port", str(env.port)),
            *("--no-access-log", "--log-level", "warning", "--timeout-graceful-shutdown", "5"),
            *proxies,
        ),
        ready=lambda: _get(env, "/healthz")[0] == 200,
    )
    worker = Program(
        name="worker",
        command=(
            *celery,
            *("worker", "-Q", "reconcile,stream,notify", "--concurrency", "2", "-l", "WARNING"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        ),
        stop_seconds=15,
        environ={"PYTHONWARNINGS": f"ignore:{ROOT_WARNING}"},
    )
    schedule = str(env.home / "beat" / "schedule")
    beat = Program(
        name="beat", command=(*celery, "beat", "-s", schedule, "--pidfile=", "-l", "WARNING")
    )
    return web, worker, beat


def _run(
    tree: Tree,
    env: Env,
    wait_for_bundle: Callable[[], None],
    *,
    begun: float,
    stops_jobs: bool,
) -> int:
    is_ready = False
    try:
        is_new = services.start(tree, env)
        wait_for_bundle()
        assets.collect(lambda command: tree.run(Program(name="static", command=command)))
        admin = _migrate(tree, env, is_new=is_new)
        (env.home / "beat").mkdir(exist_ok=True)
        for program in programs(env):
            tree.start(program)
        tree.wait_ready()
        _wait_for_all_parts(tree, env)
        is_ready = True
        say(f"Ready after {time.monotonic() - begun:.1f} s. Ctrl-C stops it.")
        say(f"Open {env.public_url}")
        _print_admin(admin)
        tree.watch(lambda: home.disk_worry(env.home))
    except Stopped:
        say("Stopping …" if is_ready else "Stopping; the next ./slipway up goes on from here …")
        if is_ready and _live_jobs(env) and stops_jobs:
            _stop_jobs(tree)
        if left := _live_jobs(env):
            jobs = "1 local job goes" if left == 1 else f"{left} local jobs go"
            say(f"{jobs} on; the next ./slipway up finds them again, --stop-jobs would stop them.")
    return 0 if is_ready else 130


def _stop_jobs(tree: Tree) -> None:
    """Ask every local job to stop and wait for their ends; a second Ctrl-C leaves them."""
    say("Stopping the local jobs; Ctrl-C again leaves them …")
    try:
        tree.run(Program(name="jobs", command=(*MANAGE, "stop_jobs")), afresh=True)
    except (Stopped, Failure):
        say("Some jobs are left.")


def _live_jobs(env: Env) -> int:
    """Return how many local jobs wait or run: each has a mark in the folder of jobs."""
    try:
        return sum(
            not path.name.startswith(".") for path in (env.local_jobs_folder / "live").iterdir()
        )
    except OSError:
        return 0


def _migrate(tree: Tree, env: Env, *, is_new: bool) -> dict[str, str | None]:
    """Bring the schema up to date and see that there is an admin; give what the latter says.

    The embedded database remembers in the home what was applied, so an unchanged start skips both.
    """
    stamp = env.home / "migrated"
    applied = _schema_digest()
    is_embedded = services.uses_embedded("DATABASE_URL")
    if is_embedded and not is_new and stamp.exists() and stamp.read_text() == applied:
        return {}
    stamp.unlink(missing_ok=True)
    say("Bringing the database schema up to date …")
    tree.run(Program(name="migrate", command=(*MANAGE, "migrate", "--noinput", "-v0")))
    said = tree.run(Program(name="admin", command=(*MANAGE, "bootstrap")), capture=True)
    tree.run(Program(name="site", command=(*MANAGE, "ensure_site", "--local")), capture=True)
    try:
        admin: dict[str, str | None] = json.loads(said.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise Failure(f"`manage.py bootstrap` printed no JSON but: {said!r}") from None
    _print_admin(admin)
    stamp.write_text(applied)
    return admin


def _schema_digest() -> str:
    rooms = ("portal", "billing", "clusters", "jobs")
    found = [path for room in rooms for path in (REPOSITORY / room).rglob("migrations/*.py")]
    found += [path for path in (REPOSITORY / "jobs" / "builtin").iterdir() if path.is_file()]
    return install.digest_of(*sorted(found), REPOSITORY / "requirements.lock")


def _print_admin(admin: dict[str, str | None]) -> None:
    if admin.get("created"):
        say(f"First admin: {admin['email']}")
        if admin.get("password"):
            say(f"One-time password: {admin['password']}")


def _wait_for_all_parts(tree: Tree, env: Env) -> None:
    answer = (0, "no answer")

    def is_so() -> bool:
        nonlocal answer
        answer = _get(env, "/readyz")
        return answer[0] == 200

    try:
        tree.wait_until(is_so, seconds=READY_SECONDS, what="Not every part was ready")
    except Failure as failure:
        raise Failure(f"{failure}; /readyz says {answer[1][:500]}") from None


def _get(env: Env, path: str) -> tuple[int, str]:
    """Ask web on its own port; (0, reason) when it does not answer."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(env.host, env.host)  # noqa: S104 - not bound
    connection = http.client.HTTPConnection(host, env.port, timeout=PROBE_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return 0, str(error)
    finally:
        connection.close()
