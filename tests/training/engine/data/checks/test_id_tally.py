from training.engine.data.checks.id_tally import IdTally, KeyedTally, merge_ids


def test_counts_and_first_ids() -> None:
    tally = IdTally()
    for number in range(7):
        tally.add(f"e{number}")
        tally.add(f"e{number}")
    assert (tally.count, tally.ids) == (7, ["e0", "e1", "e2", "e3", "e4"])


def test_keys_are_bounded() -> None:
    tallies: KeyedTally[str] = KeyedTally(2)
    for number, key in enumerate("abbcab"):
        tallies.add(key, f"e{number}")
    assert [(key, tally.count) for key, tally in tallies.most_common()] == [("b", 3), ("a", 2)]
    assert (tallies.num_keys, tallies.num_other, tallies.total) == (2, 1, 6)
    assert tallies.get("c").count == 0


def test_ids_are_merged_once_each() -> None:
    left, right = IdTally(2, ["a", "b"]), IdTally(5, ["b", "c", "d", "e", "f"])
    assert merge_ids([left, right]) == ("a", "b", "c", "d", "e")
