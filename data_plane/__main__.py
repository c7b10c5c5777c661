"""Runs the data plane: python -m data_plane."""

import sys

from data_plane.server import run
from data_plane.settings import DataSettings
from mediaplane.process import main

sys.exit(main(DataSettings, run))
