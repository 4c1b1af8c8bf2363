"""Numbers teams 1, 2, 3 …, for what outside knows a team by a number."""

from django.db import migrations, models
from django.db.models.expressions import RawSQL


class Migration(migrations.Migration):
    dependencies = [("teams", "0002_audit_is_insert_only")]

    operations = [
        migrations.RunSQL(
            "CREATE SEQUENCE teams_team_number MAXVALUE 1000000",
            "DROP SEQUENCE teams_team_number",
        ),
        migrations.AddField(
            "team",
            "number",
            models.PositiveIntegerField(
                unique=True,
                editable=False,
                db_default=RawSQL("nextval('teams_team_number')", []),
                help_text="1, 2, 3 …; local jobs run as user 50000 + number",
            ),
        ),
    ]
