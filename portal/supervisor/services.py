"""PostgreSQL and Redis, embedded or given: started together, or reached."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from portal import env as environment
from portal.env import Env
from portal.supervisor import home, install, postgres, valkey
from portal.supervisor.terminal import Failure
from portal.supervisor.tree import Stopped, Tree


def uses_embedded(name: str) -> bool:
    """Tell whether the embedded service stands in for `DATABASE_URL` or `REDIS_URL`."""
    return not environment.child_environ().get(name)


def start(tree: Tree, env: Env, *, is_throwaway: bool = False) -> bool:
    """Start the embedded services that are wanted and wait for them; reach the given ones.

    `is_throwaway` trades safety for speed, for tests. Tells whether the database is new. Raises
    `Failure`.
    """
    is_new = False
    has_database = uses_embedded("DATABASE_URL")
    if has_database:
        server = postgres.find_server()
        is_new = postgres.prepare(env, server)
        tree.start(postgres.program(env, server, is_throwaway=is_throwaway))
    if uses_embedded("REDIS_URL"):
        tree.start(valkey.program(env))
    tree.wait_ready()
    if has_database:
        postgres.make_database(env)
    _reach_given()
    return is_new


@contextmanager
def running(env: Env) -> Iterator[Tree | None]:
    """Have the embedded services for a while: those of a running supervisor, or own ones.

    Gives the tree that carries them, or `None` when another supervisor does.
    """
    if home.is_running(env):
        yield None
        return
    lock = home.prepare(env)
    try:
        with Tree(keep=(lock.descriptor,)) as tree:
            start(tree, env)
            yield tree
    finally:
        lock.release()


def serve(env: Env, *, is_throwaway: bool) -> int:
    """Run the embedded services alone until a signal: for the tests.

    Prints one line of JSON with their addresses when both are ready.
    """
    lock = home.prepare(env)
    try:
        with Tree(keep=(lock.descriptor,)) as tree:
            start(tree, env, is_throwaway=is_throwaway)
            found = environment.load(need_keys=False)
            addresses = {"database_url": found.database_url, "redis_url": found.redis_url}
            print(json.dumps(addresses), flush=True)
            tree.watch()
    except Stopped:
        return 0
    finally:
        lock.release()
    return 0


def _reach_given() -> None:
    """Connect once to the services that the environment names, so that a mistake shows at once."""
    if uses_embedded("DATABASE_URL") and uses_embedded("REDIS_URL"):
        return
    command = [str(install.PYTHON), "-P", "-m", "portal.supervisor.reach"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, process_group=0)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"{sys.executable}: no reason given"]
        raise Failure(lines[-1])
