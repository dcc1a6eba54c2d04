"""Starts the program."""

import json
import sys

from .collector import run

run(json.loads(sys.argv[1]))
