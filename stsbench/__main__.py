"""`python -m stsbench` is the command `stsbench`."""

from stsbench.cli.app import main

if __name__ == "__main__":
    main()
