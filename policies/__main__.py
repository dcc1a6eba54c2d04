"""The start of the policy pack: Pulumi runs this file by the path of its folder."""

import sys
from pathlib import Path

if __package__:
    sys.exit("write `ray-platform policies`: this module starts the policy pack for Pulumi")
# Pulumi has put this folder first on sys.path; imports need the folder above it.
sys.path[0] = str(Path(__file__).resolve().parents[1])
from policies.pack import main  # noqa: E402

main()
