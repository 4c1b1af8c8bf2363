from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("jobs", "0004_forgotten")]

    operations = [
        AddIndexConcurrently(
            model_name="job",
            index=models.Index(fields=["owner", "-id"], name="job_of_owner"),
        ),
        AddIndexConcurrently(
            model_name="job",
            index=GinIndex(fields=["tags"], name="job_by_tag"),
        ),
        AddIndexConcurrently(
            model_name="job",
            index=models.Index(
                fields=["team", "-id"],
                name="job_ended_badly",
                condition=models.Q(phase__in=["FAILED", "CANCELLED"]),
            ),
        ),
    ]
