"""`python -m fedanon.cli` does the same as `fedanon`."""

from fedanon.cli import main

main()
