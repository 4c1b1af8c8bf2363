#!/usr/bin/env python
"""Django's commands and Slipway's own; `verify-audit` and `verify_audit` are the same one."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    command = [
        name.replace("-", "_") if not name.startswith("-") else name for name in sys.argv[1:2]
    ]
    execute_from_command_line([sys.argv[0], *command, *sys.argv[2:]])
