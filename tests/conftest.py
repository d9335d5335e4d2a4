"""What holds for every test."""

from __future__ import annotations

import os

# What a developer set for their own terminal would change what the programs under test print, also
# those in processes of their own. Removed here, before any test is collected.
for _variable in ("CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
    os.environ.pop(_variable, None)
