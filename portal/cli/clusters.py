"""Commands about clusters."""

from typing import Annotated

import typer

from portal.cli.session import session_of

clusters = typer.Typer(no_args_is_help=True, help="Where jobs run.")
Slug = Annotated[str, typer.Argument(metavar="SLUG")]


@clusters.command("list")
def list_clusters(context: typer.Context) -> None:
    """List the clusters that you may see."""
    session = session_of(context)
    session.show(
        session.portal().every("clusters"),
        ["slug", "name", "scheduler", "seen_at", "unavailable_since"],
    )


@clusters.command("show")
def show_cluster(context: typer.Context, cluster: Slug) -> None:
    """Show a cluster."""
    session = session_of(context)
    session.show_one(session.portal().get("clusters", cluster))


@clusters.command("nodes")
def list_nodes(context: typer.Context, cluster: Slug) -> None:
    """List a cluster's machines and what of them is taken."""
    session = session_of(context)
    rows = session.portal().get("clusters", cluster, "nodes")
    columns = ["name", "state", "gpus", "gpu_type", "gpus_allocated", "cpus", "memory_bytes"]
    session.show(rows, columns)
