"""`python -m tests.integration.enqueue_check FOLDER NUMBER`: puts a check job into the stack of ASSAY_HOME.

Prints the job's id. The number makes the job another one than those before.
"""

import sys
from pathlib import Path

import django

django.setup()

from tests.workers.job_folders import enqueue_check  # noqa: E402 - after the set-up

folder, number = Path(sys.argv[1]), int(sys.argv[2])
job = enqueue_check(folder / str(number), config={"target_form": "merged", "number": number})
sys.stdout.write(f"{job.pk}\n")
