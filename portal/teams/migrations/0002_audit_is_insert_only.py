"""Lets the database itself refuse to change the audit log, for every role, the owner included."""

from django.db import migrations

REFUSE = """
CREATE FUNCTION slipway_insert_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the audit log is insert-only: % on % is refused', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'insufficient_privilege';
END $$;
"""
TABLES = ("teams_auditevent", "teams_auditseal")


def _guard(table: str) -> str:
    return f"""
CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE ON {table}
  FOR EACH ROW EXECUTE FUNCTION slipway_insert_only();
CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}
  FOR EACH STATEMENT EXECUTE FUNCTION slipway_insert_only();
ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_no_change;
ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_no_truncate;
"""


def _unguard(table: str) -> str:
    return (
        f"DROP TRIGGER {table}_no_change ON {table}; DROP TRIGGER {table}_no_truncate ON {table};"
    )


class Migration(migrations.Migration):
    dependencies = [("teams", "0001_people_teams_and_events")]

    operations = [
        migrations.RunSQL(
            REFUSE + "".join(map(_guard, TABLES)),
            "".join(map(_unguard, TABLES)) + "DROP FUNCTION slipway_insert_only();",
        )
    ]
