"""`python -m policies`, and the start of the policy pack: Pulumi runs this file by the path of its folder."""

import sys
from pathlib import Path

if __package__:
    from policies.command import main
else:
    # Pulumi has put this folder first on sys.path; imports need the folder above it.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from policies.pack import main

main()
