from django.db import migrations

# No models: clusters.samples writes them, and clusters.samples.tables makes the partitions.
SAMPLES = """
    CREATE TABLE clusters_sample (
        subject varchar(64) COLLATE "C" NOT NULL,
        at timestamptz NOT NULL,
        received timestamptz NOT NULL DEFAULT now(),
        series text NOT NULL,
        PRIMARY KEY (subject, at)
    ) PARTITION BY RANGE (at);
    CREATE INDEX clusters_sample_received ON clusters_sample USING brin (received)
        WITH (pages_per_range = 16);
"""
ROLLUP = """
    CREATE TABLE {name} (
        subject varchar(64) COLLATE "C" NOT NULL,
        part varchar(8) NOT NULL,
        at timestamptz NOT NULL,
        data bytea NOT NULL,
        PRIMARY KEY (subject, part, at)
    ) PARTITION BY RANGE (at);
    ALTER TABLE {name} ALTER COLUMN data SET STORAGE EXTERNAL;
"""
ROLLED = """
    CREATE TABLE clusters_sample_rolled (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        until timestamptz NOT NULL
    );
    INSERT INTO clusters_sample_rolled (until) VALUES ('epoch');
"""


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0002_nodes_seen"),
    ]

    operations = [
        migrations.RunSQL(SAMPLES, "DROP TABLE clusters_sample"),
        migrations.RunSQL(
            ROLLUP.format(name="clusters_sample_minutes"), "DROP TABLE clusters_sample_minutes"
        ),
        migrations.RunSQL(
            ROLLUP.format(name="clusters_sample_quarters"), "DROP TABLE clusters_sample_quarters"
        ),
        migrations.RunSQL(ROLLED, "DROP TABLE clusters_sample_rolled"),
    ]
