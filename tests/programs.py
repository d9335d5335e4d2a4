"""The command `dpaudit`, as a program that tests start."""

import sys
from pathlib import Path

DPAUDIT = str(Path(sys.executable).with_name("dpaudit"))
