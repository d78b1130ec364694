"""The report page of an evaluation run."""
