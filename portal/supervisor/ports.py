"""The TCP port of web: free, or taken by whom."""

import errno
import socket
from contextlib import suppress
from pathlib import Path

from portal.env import Env
from portal.supervisor.terminal import Failure


def check(env: Env) -> None:
    """Raise `Failure` when web cannot listen on its port."""
    family = socket.AF_INET6 if ":" in env.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((env.host, env.port))
        except PermissionError:
            raise Failure(
                f"port {env.port} needs root; set SLIPWAY_PORT to a port above 1023"
            ) from None
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise Failure(
                    f"SLIPWAY_HOST={env.host} is no address of this machine ({error.strerror}); "
                    "set it to 127.0.0.1 or to 0.0.0.0"
                ) from None
            raise Failure(
                f"port {env.port} is taken by {_holder(env.port)}; stop it or start with "
                f"SLIPWAY_PORT={env.port + 1 if env.port < 65535 else 8000} ./slipway up"
            ) from None


def _holder(port: int) -> str:
    """Name the process that listens on a port, as far as this user may see it."""
    sockets = _listening_sockets(port)
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            for descriptor in (folder / "fd").iterdir():
                if str(descriptor.readlink()) in sockets:
                    name = (folder / "comm").read_text().strip()
                    return f"{name} (process {folder.name})"
    return "another process"


def _listening_sockets(port: int) -> set[str]:
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == "0A" and int(words[1].rpartition(":")[2], 16) == port:
                    found.add(f"socket:[{words[9]}]")
    return found
