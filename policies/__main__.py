"""`python -m policies`, and the start of the policy pack: Pulumi runs this file by the path of its folder."""

import sys
from pathlib import Path

if __package__:
    from policies.command import main
else:
    # Pulumi has put this folder in front of all modules; what is wanted is the one above it.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from policies.pack import main

main()
