"""The script that a scheduler is given: it starts the command under the node agent (pure).

POSIX sh. Values come through the environment only, so nothing of a parameter, a name or a secret is
ever text of this script. docs/agent.md says what the agent then does.
"""

import hashlib
from collections.abc import Sequence

ARGUMENT = "SLIPWAY_ARGUMENT_{}"

_SCRIPT = """\
#!/bin/sh
# Slipway: starts the command under the node agent, which brings its lines to the portal.
: "${{SLIPWAY_AGENT_DIR:=${{TMPDIR:-/tmp}}/slipway-$SLIPWAY_JOB_ID-$SLIPWAY_ATTEMPT}}"
export SLIPWAY_AGENT_DIR
own=$PATH:/usr/bin:/bin  # for this script's own needs, whatever PATH the job was given
(umask 077 && PATH=$own mkdir -p "$SLIPWAY_AGENT_DIR") || exit 125
if [ -n "${{SLIPWAY_CHECKPOINT_DIR:-}}" ]; then
  case $SLIPWAY_CHECKPOINT_DIR in
    /*) ;;
    *) SLIPWAY_CHECKPOINT_DIR=$PWD/$SLIPWAY_CHECKPOINT_DIR ;;
  esac
  PATH=$own mkdir -p "$SLIPWAY_CHECKPOINT_DIR" || exit 125
fi
{command}
agent=${{SLIPWAY_AGENT_FILE:-}}
python=$(PATH=$own command -v python3)
if [ -z "$agent" ] && [ -n "$python" ]; then
  agent=$SLIPWAY_AGENT_DIR/agent.py
  "$python" -I - "$agent" {sha256} <<'SLIPWAY_FETCH' || agent=
{fetch}SLIPWAY_FETCH
fi
if [ -n "$agent" ] && [ -n "$python" ]; then
  exec "$python" -I "$agent" run -- "$@"
fi
echo 'slipway: the node agent cannot run here, so there are no live lines and figures' >&2
exec "$@"
"""
_FETCH = """\
import hashlib, os, sys, urllib.request
address = os.environ["SLIPWAY_AGENT_URL"] + "/api/agent/v1/agent.py"
data = urllib.request.urlopen(address, timeout=30).read()
if hashlib.sha256(data).hexdigest() != sys.argv[2]:
    sys.exit("slipway: the agent that was fetched is not the one that was expected")
with open(sys.argv[1], "wb") as file:
    file.write(data)
"""
_FILE = """\
PATH=$own cat >"$SLIPWAY_AGENT_DIR/command" <<'{end}' || exit 125
{script}{end}
PATH=$own chmod 700 "$SLIPWAY_AGENT_DIR/command" || exit 125
set -- {interpreter}"$SLIPWAY_AGENT_DIR/command"\
"""


def render(*, script: str, arguments: int, agent_sha256: str) -> str:
    """Return the whole script for a definition's script, or for that many arguments of a command.

    The arguments are in `SLIPWAY_ARGUMENT_0` and so on.
    """
    command = _of_script(script) if script else _of_arguments(arguments)
    return _SCRIPT.format(command=command, sha256=agent_sha256, fetch=_FETCH)


def environment_of(arguments: Sequence[str]) -> dict[str, str]:
    """Return the variables that carry a command's arguments."""
    return {ARGUMENT.format(index): value for index, value in enumerate(arguments)}


def _of_script(script: str) -> str:
    text = script.replace("\r\n", "\n").rstrip("\n") + "\n"
    end = "SLIPWAY_" + hashlib.sha256(text.encode()).hexdigest()[:16].upper()
    interpreter = "" if text.startswith("#!") else "/bin/sh "
    return _FILE.format(script=text, end=end, interpreter=interpreter)


def _of_arguments(count: int) -> str:
    names = [ARGUMENT.format(index) for index in range(count)]
    words = " ".join(f'"${{{name}}}"' for name in names)
    return f"set -- {words}\nunset {' '.join(names)}"
