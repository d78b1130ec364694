import io
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.training.engine.data.cleaning.steps import make_example
from tests.training.engine.data.planted.backgrounds import compose
from training.engine.data.cleaning import batches, run
from training.engine.data.cleaning.catalogue import DEFAULT_STEPS, STEPS
from training.engine.data.cleaning.run import PlannedStep, plan_passes, read_parameters, run_passes, run_step
from training.engine.data.cleaning.step import Outcome, StepContext, StepKind
from training.engine.data.cleaning.workers import Workers
from training.engine.data.example_files import iterate_examples, write_examples
from training.engine.data.examples import ChatMessage, Example
from training.engine.errors import ConfigInvalid

ROOT = Path(__file__).parents[5]
CONTEXT = StepContext(seed=1, scratch=Path("unused"))


def plan(*names: str) -> list[PlannedStep]:
    kinds = [STEPS[name] for name in names]
    return [
        PlannedStep(kind=kind, parameters=read_parameters(kind, {}, kind.name), context=CONTEXT)
        for kind in kinds
    ]


def read_rows(num_rows: int) -> list[Example]:
    """Clean tickets, some of them with something for each step to do."""
    rows = [
        Example(
            example_id=row["id"],
            messages=tuple(ChatMessage(item["role"], item["content"]) for item in row["messages"]),
            fields={"tags": row["tags"]},
        )
        for row in compose("tickets-en", num_rows)
    ]
    for number, row in enumerate(rows):
        user, answer = row.messages[0].content, row.answer or ""
        changed = {
            3: (f"{user}\u200b mail anna.schmidt@firma-mail.de", answer),
            5: (user, "N/A"),
            7: (user, "I'm sorry, but I cannot assist with that."),
            11: (rows[0].messages[0].content, rows[0].answer or ""),
            13: (f"{user}  \uff12\uff10 ", json.dumps(dict(reversed(json.loads(answer).items())))),
            17: ("...", answer),
        }.get(number % 20)
        if changed is not None:
            rows[number] = row.with_contents(dict(enumerate(changed)))
    return rows


def run_one_by_one(steps: Sequence[PlannedStep], source: Path) -> tuple[bytes, str, list[dict[str, Any]]]:
    dropped, reports = io.StringIO(), []
    for number, step in enumerate(steps):
        target = source.with_name(f"alone-{number}.jsonl")
        report, _ = run_step(
            step.kind, step.parameters, source=source, target=target, dropped=dropped, context=CONTEXT
        )
        reports.append(report.to_json())
        source = target
    return source.read_bytes(), dropped.getvalue(), reports


def run_together(
    steps: Sequence[PlannedStep], source: Path, *, num_processes: int = 1
) -> tuple[bytes, str, list[dict[str, Any]]]:
    folder = source.with_suffix(".passes")
    folder.mkdir()
    copy = folder / "source.jsonl"
    copy.write_bytes(source.read_bytes())
    dropped = io.StringIO()
    passes = list(
        run_passes(
            plan_passes(steps), source=copy, folder=folder, dropped=dropped, num_processes=num_processes
        )
    )
    written = passes[-1][1]
    # What lies between the passes has gone.
    assert list(folder.iterdir()) == [written.path]
    reports = [report.to_json() for found, _ in passes for report in found]
    return written.path.read_bytes(), dropped.getvalue(), reports


def test_passes_end_before_steps_that_see_all_first() -> None:
    passes = plan_passes(plan(*DEFAULT_STEPS))
    assert [[step.kind.name for step in group] for group in passes] == [
        ["repair_text"],
        ["normalise"],
        ["canonical_json", "drop_empty"],
        ["drop_wrong_language", "drop_stock_answers", "screen_sensitive"],
        ["drop_duplicates"],
        ["limit_outputs"],
        ["cut_lengths"],
    ]
    assert plan_passes([]) == ()


def test_steps_in_passes_do_what_they_do_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Several batches, so that what is counted in each must add up.
    monkeypatch.setattr(batches, "MAX_EXAMPLES", 7)
    source = write_examples(tmp_path / "source.jsonl", read_rows(60)).path
    steps = plan(*DEFAULT_STEPS)
    alone, together = run_one_by_one(steps, source), run_together(steps, source)
    assert together == alone
    assert {json.loads(line)["step"] for line in together[1].splitlines()} >= {
        "drop_empty", "drop_stock_answers", "drop_duplicates",
    }  # fmt: skip


def test_what_a_step_drops_comes_before_what_the_next_one_drops(tmp_path: Path) -> None:
    examples = [make_example("hello there", "I cannot assist with that."), make_example("hi", "N/A")]
    source = write_examples(tmp_path / "source.jsonl", examples).path
    _, dropped, _ = run_together(plan("drop_empty", "drop_stock_answers"), source)
    assert [json.loads(line)["step"] for line in dropped.splitlines()] == [
        "drop_empty", "drop_stock_answers",
    ]  # fmt: skip


def test_processes_do_what_one_process_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_EXAMPLES", 9)
    monkeypatch.setattr(run, "MIN_BYTES_FOR_WORKERS", 0)
    source = write_examples(tmp_path / "source.jsonl", read_rows(60)).path
    # No languages are told apart, whose models take a second to load.
    steps = plan(*(name for name in DEFAULT_STEPS if name != "drop_wrong_language"))
    shared: list[batches.Treatment] = []
    treat_all = Workers.treat_all

    def watched(
        workers: Workers, treatment: batches.Treatment, given: Iterable[batches.Batch]
    ) -> Iterator[batches.TreatedBatch]:
        shared.append(treatment)
        return treat_all(workers, treatment, given)

    monkeypatch.setattr(Workers, "treat_all", watched)
    assert run_together(steps, source, num_processes=2) == run_one_by_one(steps, source)
    # repair_text; normalise; then canonical_json, which sees all first, to screen_sensitive.
    assert len(shared) == 3


def test_an_end_of_workers_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_EXAMPLES", 5)
    source = write_examples(tmp_path / "source.jsonl", read_rows(40)).path
    treatment = make_treatment("repair_text")
    with Workers(2) as workers:
        treated = []
        for number, item in enumerate(workers.treat_all(treatment, batches.cut_into_batches(source))):
            treated.append(item.lines)
            if number == 1:
                for worker in workers._workers:
                    worker._process.kill()
    alone = map(make_treatment("repair_text").treat, batches.cut_into_batches(source))
    assert treated == [item.lines for item in alone]
    assert len(treated) == 8


def make_treatment(name: str) -> batches.Treatment:
    [step] = plan(name)
    return batches.Treatment(
        [(name, step.kind.build(step.parameters, CONTEXT))], observer=None, mask=run._show_as_it_is
    )


def test_a_fault_in_a_worker_is_told_as_in_one_process(tmp_path: Path) -> None:
    source = write_examples(tmp_path / "source.jsonl", read_rows(3)).path
    treatment = batches.Treatment([("fails", _Failing())], observer=None, mask=run._show_as_it_is)
    with Workers(1) as workers, pytest.raises(ConfigInvalid, match="no library"):
        list(workers.treat_all(treatment, batches.cut_into_batches(source)))


class _Failing:
    def observe(self, example: Example) -> None: ...

    def apply(self, example: Example) -> Outcome:
        raise ConfigInvalid("library-missing", "no library")

    def facts(self) -> dict[str, Any]:
        return {}


PROGRAM = """
import sys
from training.engine.data.cleaning import workers

if __name__ == "__main__":
    with workers.Workers(2) as started:
        started._workers = [workers._Worker() for _ in range(2)]
        print(*(worker._process.pid for worker in started._workers), flush=True)
        sys.stdin.read()
"""


def test_workers_end_when_their_process_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with subprocess.Popen(
        [sys.executable, str(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    ) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        assert len(pids) == 2
        assert all(is_running(pid) for pid in pids)
        process.send_signal(signal.SIGKILL)
        process.wait()
        deadline = time.monotonic() + 20
        while any(is_running(pid) for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.05)
    assert not any(is_running(pid) for pid in pids)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize(
    "kind", [kind for kind in STEPS.values() if kind.is_local], ids=lambda kind: kind.name
)
def test_copies_of_local_steps_do_what_the_step_does(kind: StepKind) -> None:
    examples = read_rows(40)
    step = kind.build(read_parameters(kind, {}, kind.name), CONTEXT)
    if kind.needs_first_pass:
        for example in examples:
            step.observe(example)
    copy = pickle.loads(pickle.dumps(step))  # noqa: S301 (our own bytes)
    assert [copy.apply(example) for example in examples] == [step.apply(example) for example in examples]
    assert copy.facts() == step.facts()


def test_files_are_cut_by_number_and_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = [make_example("x" * size) for size in (1, 1, 1, 500, 1, 1)]
    path = write_examples(tmp_path / "source.jsonl", examples).path
    monkeypatch.setattr(batches, "MAX_EXAMPLES", 2)
    monkeypatch.setattr(batches, "MAX_BYTES", 400)
    cut = [list(batch.iterate_examples()) for batch in batches.cut_into_batches(path)]
    assert [len(batch) for batch in cut] == [2, 1, 1, 2]
    assert list(chain.from_iterable(cut)) == list(iterate_examples(path)) == examples
    assert list(batches.cut_into_batches(write_examples(tmp_path / "empty.jsonl", []).path)) == []
