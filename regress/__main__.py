"""`python -m regress`."""

from regress.cli import main

main()
