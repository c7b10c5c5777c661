"""The command line with all its commands."""

from mediaplane.cli.root import make_app

app = make_app()
