"""A preparation from raw files to dataset versions, by the worker and a real job process."""

from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from registry.models import DatasetVersion, Job
from registry.services.actors import SYSTEM
from tests.fixtures.evaluation import make_dataset
from tests.fixtures.preparations import RECIPE, make_preparation, make_raw, ticket_log
from tests.fixtures.registry import make_base_model, store_files
from training.models import DataPreparation
from training.selectors.preparations import read_card, read_report
from training.services.preparations import retry_preparation
from workers import lifecycle

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.integration]


def run(job: Job | None) -> str | None:
    assert job is not None
    return lifecycle.run_job(job_id=job.pk, worker="cpu@machine", should_stop=lambda: False)


def prepare(files: dict[str, bytes], **changes: Any) -> DataPreparation:
    return make_preparation(raw=make_raw("log", files), recipe=RECIPE, **changes)


def test_the_whole_way(tmp_path: Path) -> None:
    row = prepare({"tickets.csv": ticket_log(60)})
    assert run(row.job) == "succeeded"
    row.refresh_from_db()
    assert row.state == "succeeded", row.failure
    train, holdout = row.sets.all()
    assert (train.role, str(train.dataset_version)) == ("train", "tickets@1")
    assert (holdout.role, str(holdout.dataset_version)) == ("holdout", "tickets-holdout@1")
    assert train.num_examples + holdout.num_examples == row.values["sets"]["train"] + holdout.num_examples
    card = train.dataset_version.card
    assert (card["preparation"], card["code_version"]) == (str(row.pk), "prepare@1")
    assert card["recipe_digest"] == read_report(row)["recipe_digest"]
    assert read_card(row).startswith("# ")
    # The same files and recipe again: no second job, the same versions.
    again = prepare({"tickets.csv": ticket_log(60)})
    again.refresh_from_db()
    assert (again.state, Job.objects.count(), DatasetVersion.objects.count()) == ("succeeded", 1, 2)


def test_every_input_is_used(tmp_path: Path) -> None:
    words = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = Whitespace()
    model = make_base_model()
    files = {"config.json": b"{}", "tokenizer.json": words.to_str().encode()}
    model.artifact = store_files(files, kind="base_model")
    model.save()
    make_dataset("chat", "general", num=20)
    make_dataset("short", "train", num=10)
    make_dataset("tickets-ood", "ood", num=5)
    row = make_preparation(
        raw=make_raw("log", {"tickets.csv": ticket_log(60)}),
        recipe={**RECIPE, "mix": {"general_fraction": 0.1, "unchanged_fraction": 0.05}},
        general="chat@1",
        unchanged="short@1",
        evaluation_sets=["tickets-ood@1"],
        base_model_name="tiny",
    )
    assert run(row.job) == "succeeded"
    row.refresh_from_db()
    assert row.state == "succeeded", row.failure
    report = read_report(row)
    card = row.sets.get(role="train").dataset_version.card
    # 0.1 and 0.05 of about 60 examples.
    assert 4 <= card["num_general"] <= 8
    assert report["tokenizer"] is not None and card["lengths"]["total_tokens"]["num_values"] > 50
    compared = {name for pair in report["leakage"]["matrix"] for name in (pair["left"], pair["right"])}
    assert compared == {"train", "holdout", "tickets-ood@1"}
    assert [file["name"] for file in report["inputs"]["sources"]] == ["tickets.csv"]


def test_a_user_fault_can_be_retried(tmp_path: Path) -> None:
    row = prepare({"tickets.csv": b"ticket,text,structured\nT-1,,\n"})
    assert run(row.job) == "failed"
    row.refresh_from_db()
    assert row.failure is not None
    assert (row.state, row.failure["failure_class"]) == ("failed", "user")
    assert not DatasetVersion.objects.exists()
    retried = retry_preparation(preparation=row, actor=SYSTEM)
    assert (retried.state, Job.objects.count()) == ("queued", 2)
