"""The fixture of tests that speak to a control plane."""

from tests.support.control import control as control
