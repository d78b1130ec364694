"""The audit log over REST."""

import pytest

from tests.fixtures.registry import assert_problem, make_caller

pytestmark = pytest.mark.django_db


def test_changes_are_listed_newest_first_and_filtered() -> None:
    admin = make_caller("admin")
    for name in ("one", "two", "three"):
        admin.client.post("/api/v1/channels", {"name": name}, format="json")
    page = admin.client.get("/api/v1/audit-events", {"action": "channel.create", "page_size": 2}).json()
    assert [row["after"]["name"] for row in page["results"]] == ["three", "two"]
    assert page["results"][0]["actor"] == admin.actor.name
    assert page["results"][0]["object_type"] == "registry.channel"
    rest = admin.client.get(page["next"]).json()
    assert [row["after"]["name"] for row in rest["results"]] == ["one"] and rest["next"] is None
    assert admin.client.get("/api/v1/audit-events", {"actor": "nobody"}).json()["results"] == []


@pytest.mark.parametrize("value", ["a\x00b", "x" * 200])
def test_faulty_filters(value: str) -> None:
    answer = make_caller("admin").client.get("/api/v1/audit-events", {"actor": value})
    assert_problem(answer, 400, "query-invalid")
