"""One module for each kind of job: a thin bridge from the task's folders and config to an engine.

Each has `run(task, report) -> RunnerResult`. Only the module of the job's own kind is loaded.
"""
