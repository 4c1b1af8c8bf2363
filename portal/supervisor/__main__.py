"""The verbs of `./slipway`; run by the machine's own python3, so standard library only."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from portal import env as environment
from portal.env_parsers import REPOSITORY
from portal.supervisor import archive, install, services
from portal.supervisor.terminal import Failure, fail, use_stderr
from portal.supervisor.tree import Stopped
from portal.supervisor.up import up

USAGE = """\
usage: ./slipway VERB

  up [--stop-jobs]    install what is missing and run the portal; Ctrl-C stops it
  test [ARGUMENTS]    install what the tests need and run them
  bench               run the benchmarks
  backup FILE         save the whole state of the embedded default
  restore FILE        put a saved state back (--force: over an existing one)
  manage COMMAND      Django's commands, and createtoken
  anything else       the command-line client; ./slipway client --help lists its verbs
"""
CLIENT = "import sys; from portal.cli.app import main; sys.argv[0] = 'slipway'; sys.exit(main())"
# Commands of manage that need no database, so none is started for them.
OFFLINE_COMMANDS = {"makemigrations", "collectstatic", "help", "--help", "--version", "version"}


def main(arguments: list[str]) -> int:
    """Run one verb and give the exit status."""
    verbs: dict[str, Callable[[list[str]], int]] = {
        "up": _up,
        "test": _test,
        "bench": _bench,
        "backup": archive.backup_command,
        "restore": archive.restore_command,
        "manage": _manage,
        "services": _services,
    }
    signal.signal(signal.SIGTERM, _interrupt)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0
    try:
        if arguments[0] in verbs:
            return verbs[arguments[0]](arguments[1:])
        return _client(arguments)
    except (Failure, environment.EnvError) as failure:
        fail(str(failure))
        return 1
    except (KeyboardInterrupt, Stopped):
        fail("stopped; the same command goes on from here")
        return 130


def _up(arguments: list[str]) -> int:
    unknown = [word for word in arguments if word != "--stop-jobs"]
    if unknown:
        raise Failure(f"`up` does not know {unknown[0]}; it takes --stop-jobs only")
    return up(stops_jobs=bool(arguments))


def _test(arguments: list[str]) -> int:
    _execute([sys.executable, "-P", "-m", "tests", *arguments])


def _bench(arguments: list[str]) -> int:
    install.ensure("requirements-test.lock")
    _execute([str(install.PYTHON), "-P", "-m", "tests.bench", *arguments])


def _client(arguments: list[str]) -> int:
    use_stderr()
    install.ensure()
    words = arguments[1:] if arguments[0] == "client" else arguments
    _execute([str(install.PYTHON), "-P", "-c", CLIENT, *words])


def _manage(arguments: list[str]) -> int:
    use_stderr()
    env = environment.load(need_keys=False)
    install.ensure()
    command = [str(install.PYTHON), str(REPOSITORY / "manage.py"), *arguments]
    is_offline = not arguments or arguments[0] in OFFLINE_COMMANDS
    if is_offline or not (
        services.uses_embedded("DATABASE_URL") and (env.home / "postgres").exists()
    ):
        _execute(command)
    with services.running(env) as tree:
        return tree.foreground(command) if tree else subprocess.call(command)


def _services(arguments: list[str]) -> int:
    is_throwaway = "--throwaway" in arguments
    return services.serve(environment.load(need_keys=False), is_throwaway=is_throwaway)


def _execute(command: list[str]) -> NoReturn:
    sys.stdout.flush()
    os.execv(command[0], command)  # noqa: S606 - the program takes over


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
