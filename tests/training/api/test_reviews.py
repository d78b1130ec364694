"""Reviews over HTTP."""

import uuid
from typing import Any

import pytest

from tests.fixtures.evaluation import make_dataset
from tests.fixtures.registry import Caller, assert_problem, make_caller

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]

REVIEWS = "/api/v1/reviews"


@pytest.fixture
def caller(store: Any) -> Caller:
    make_dataset("tickets", "holdout", num=3)
    return make_caller("review", "read")


def create(caller: Caller, **changes: Any) -> dict[str, Any]:
    answer = caller.client.post(REVIEWS, {"dataset_version": "tickets@1"} | changes, format="json")
    assert answer.status_code == 201, answer.content
    document: dict[str, Any] = answer.json()
    return document


def test_the_whole_way(caller: Caller) -> None:
    review = create(caller, seed=3, reviewer=caller.user.username)
    assert (review["state"], review["num_examples"], review["num_open"]) == ("open", 3, 3)
    assert review["reviewer"] == review["created_by"] == caller.user.username
    first = review["items"][0]
    assert (first["position"], first["verdict"], first["revision"]) == (1, "", 0)
    assert first["example"]["id"] == first["example_id"]
    url = review["links"]["items"]
    item = caller.client.get(f"{url}/1")
    assert (item.json(), item["ETag"]) == (first, '"r0"')
    judged = caller.client.put(
        f"{url}/1", {"verdict": "good"}, format="json", headers={"If-Match": item["ETag"]}
    )
    assert (judged.status_code, judged["ETag"]) == (200, '"r1"')
    assert judged.json()["reviewer"] == caller.user.username
    body = {"verdict": "fix", "fixed_answer": '{"urgency": "low"}', "note": "Not urgent.", "revision": 0}
    assert caller.client.put(f"{url}/2", body, format="json").json()["note"] == "Not urgent."
    assert_problem(
        caller.client.post(f"{review['links']['self']}/close", {}, format="json"), 409, "review-incomplete"
    )
    caller.client.put(f"{url}/3", {"verdict": "bad", "revision": 0}, format="json")
    detail = caller.client.get("/api/v1/datasets/tickets").json()["latest"]
    assert (detail["num_reviewed"], detail["num_bad"], detail["num_to_fix"]) == (3, 1, 1)
    closed = caller.client.post(f"{review['links']['self']}/close", {}, format="json").json()
    assert (closed["state"], closed["result"]) == ("closed", "tickets@2")
    listed = caller.client.get(REVIEWS, {"dataset_version": "tickets@1"}).json()["results"]
    assert [it["id"] for it in listed] == [review["id"]]
    assert caller.client.get(REVIEWS, {"dataset_version": "tickets@2"}).json()["results"] == []
    assert [it["position"] for it in caller.client.get(url).json()["results"]] == [1, 2, 3]


def test_a_verdict_names_what_it_was_given_on(caller: Caller) -> None:
    url = create(caller)["links"]["items"]
    assert_problem(
        caller.client.put(f"{url}/1", {"verdict": "good"}, format="json"), 428, "precondition-required"
    )
    caller.client.put(f"{url}/1", {"verdict": "good", "revision": 0}, format="json")
    other = make_caller("review")
    answer = other.client.put(f"{url}/1", {"verdict": "bad"}, format="json", headers={"If-Match": '"r0"'})
    problem = assert_problem(answer, 412, "review-item-changed")
    assert (problem["reviewer"], problem["verdict"], problem["etag"]) == (caller.user.username, "good", "r1")


def test_faults(caller: Caller) -> None:
    bad = {"dataset_version": "tickets@1", "seed": -1, "num_examples": 0, "who": 1}
    problem = assert_problem(caller.client.post(REVIEWS, bad, format="json"), 422, "validation-failed")
    assert {fault["where"] for fault in problem["errors"]} == {"/seed", "/num_examples", "/who"}
    nobody = {"dataset_version": "tickets@1", "reviewer": "nobody"}
    problem = assert_problem(caller.client.post(REVIEWS, nobody, format="json"), 422, "review-invalid")
    assert [fault["where"] for fault in problem["errors"]] == ["/reviewer"]
    unknown = {"dataset_version": "ticket@1"}
    assert_problem(caller.client.post(REVIEWS, unknown, format="json"), 404, "dataset-version-not-found")
    url = create(caller)["links"]["items"]
    for body, where in (
        ({"verdict": "fix", "revision": 0}, "/fixed_answer"),
        ({"verdict": "good", "fixed_answer": "x", "revision": 0}, "/fixed_answer"),
    ):
        problem = assert_problem(caller.client.put(f"{url}/1", body, format="json"), 422, "verdict-invalid")
        assert [fault["where"] for fault in problem["errors"]] == [where]
    assert_problem(caller.client.get(f"{url}/4"), 404, "review-item-not-found")
    assert_problem(caller.client.get(f"{url}/{10**30}"), 404, "review-item-not-found")
    assert_problem(caller.client.get(f"{REVIEWS}/{uuid.uuid4()}"), 404, "review-not-found")


def test_scopes(caller: Caller) -> None:
    review = create(caller)
    reader, stranger = make_caller("read").client, make_caller("submit").client
    assert reader.get(review["links"]["self"]).status_code == 200
    assert_problem(stranger.get(REVIEWS), 403, "scope-missing")
    for method, url in (
        ("post", REVIEWS),
        ("put", f"{review['links']['items']}/1"),
        ("post", f"{review['links']['self']}/close"),
    ):
        assert_problem(getattr(reader, method)(url, {}, format="json"), 403, "scope-missing")
