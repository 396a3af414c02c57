"""`python -m stsbench`: the command line."""

from stsbench.cli.app import main

main()
