"""The fixtures of tests that speak to a control plane, or look at what it does bite by bite."""

from tests.support.bites import bites_of_one_row as bites_of_one_row
from tests.support.control import control as control
