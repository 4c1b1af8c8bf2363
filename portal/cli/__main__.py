"""`python -m portal.cli`: the client without its console script."""

from portal.cli.app import main

main()
