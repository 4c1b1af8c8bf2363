"""The definitions that every site has, made of the files in jobs/builtin."""

from pathlib import Path
from typing import Any

from django.db import transaction

from jobs.models import DefinitionVersion, JobDefinition
from jobs.services.definitions import check_spec
from portal.core import yamls

FOLDER = Path(__file__).resolve().parent.parent / "builtin"
END = "END_OF_FILE_OF_SLIPWAY"


def ensure_definitions() -> list[str]:
    """Make the built-in definitions, and a new version of each that has changed; return those."""
    return [path.stem for path in sorted(FOLDER.glob("*.yaml")) if _ensure(path)]


@transaction.atomic
def _ensure(path: Path) -> bool:
    raw = yamls.load(path.read_text())
    spec = check_spec(_with_files(raw["spec"], raw.get("files", {})))
    definition, made = JobDefinition.objects.get_or_create(
        team=None, slug=path.stem, archived_at=None, defaults={"name": raw["name"]}
    )
    if made:
        DefinitionVersion.objects.create(definition=definition, number=1, spec=spec)
        return True
    newest = definition.versions.get(number=definition.latest)
    if newest.spec == spec:
        return False
    number = definition.latest + 1
    DefinitionVersion.objects.create(definition=definition, number=number, spec=spec)
    JobDefinition.objects.filter(pk=definition.pk).update(latest=number, name=raw["name"])
    return True


def _with_files(spec: dict[str, Any], files: dict[str, str]) -> dict[str, Any]:
    """Put the files into the script, so that the definition stands alone."""
    parts = [
        f"cat > {name} <<'{END}'\n{(FOLDER / source).read_text()}{END}\n"
        for name, source in files.items()
    ]
    return {**spec, "script": "".join(parts) + spec["script"]}
