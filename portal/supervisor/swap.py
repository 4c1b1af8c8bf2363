"""Puts a prepared state in the place of the present one, by renames that can be finished later."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

PARTS = ("postgres", "secrets", "files", "valkey", "migrated", "beat")


def draft_folder(home: Path) -> Path:
    """Where a restored state is prepared."""
    return home / "restoring"


def mark_ready(draft: Path) -> None:
    """Note that the draft is whole; from now on `finish` completes the swap, whatever happens."""
    aside = time.strftime("before-restore-%Y%m%d-%H%M%S", time.gmtime())
    plan = {"aside": aside, "new": [name for name in PARTS if (draft / name).exists()]}
    (draft / "ready.part").write_text(json.dumps(plan))
    (draft / "ready.part").replace(draft / "ready")


def plan_of(draft: Path) -> dict[str, Any]:
    """Give what `mark_ready` noted: the folder for the earlier state, the parts of the new one."""
    plan: dict[str, Any] = json.loads((draft / "ready").read_text())
    return plan


def finish(home: Path) -> Path | None:
    """Complete a swap whose draft is ready; do nothing otherwise. Idempotent.

    Gives the folder in which the earlier state is kept.
    """
    draft = draft_folder(home)
    if not (draft / "ready").exists():
        return None
    plan = plan_of(draft)
    aside: Path = home / plan["aside"]
    aside.mkdir(mode=0o700, exist_ok=True)
    for name in PARTS:
        present, new = home / name, draft / name
        is_earlier = new.exists() or name not in plan["new"]
        if present.exists() and is_earlier:
            present.rename(aside / name)
        if new.exists():
            new.rename(present)
    shutil.rmtree(draft)
    return aside
