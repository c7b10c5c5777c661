"""Runs the control plane: python -m control_plane."""

import sys

from control_plane.server import run
from control_plane.settings import ControlSettings
from mediaplane.process import main

sys.exit(main(ControlSettings, run))
