"""``python -m evaluation.engine.triage``: a triage of a base model on this machine, without a server."""

import sys

from evaluation.engine.triage.program import main

if __name__ == "__main__":
    sys.exit(main())
