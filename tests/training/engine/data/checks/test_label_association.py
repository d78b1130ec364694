import numpy as np

from training.engine.data.checks.label_association import NUM_BUCKETS, LabelAssociation, make_presence
from training.engine.data.checks.shift_scores import MAX_SHIFT


def test_what_was_learned_is_told() -> None:
    association = LabelAssociation()
    labels = [association.number_labels({"kind": "ab"[row % 2]}) for row in range(20)]
    presence = make_presence([[row % 2] for row in range(20)])
    untold, _ = association.judge_and_learn(presence, labels, 0)
    told, guessed = association.judge_and_learn(presence, labels, 0)
    # The first time nothing was known and the first value is told always.
    assert untold[:, MAX_SHIFT].mean() == 0.5
    assert told[:, MAX_SHIFT].mean() == 1.0 and guessed[:, MAX_SHIFT].mean() == 0.5
    # One row further down the labels alternate, and are told as well; beyond the end there are none.
    assert told[:-1, MAX_SHIFT + 1].mean() == 1.0 and np.isnan(told[-1, MAX_SHIFT + 1])


def test_fields_with_many_values_are_no_labels() -> None:
    association = LabelAssociation()
    numbered = [association.number_labels({"name": f"n{row}"}) for row in range(60)]
    assert numbered[49] and not numbered[50]
    scores, _ = association.judge_and_learn(make_presence([[0]] * 60), numbered, 0)
    assert np.isnan(scores).all()


def test_only_the_first_fields_count() -> None:
    numbered = LabelAssociation().number_labels({f"f{number}": "x" for number in range(12)})
    assert len(numbered) == 8


def test_rows_without_words_are_told_the_most_frequent_value() -> None:
    association = LabelAssociation()
    labels = [association.number_labels({"kind": value}) for value in ("a", "a", "b", "a")]
    presence = make_presence([[1], [1, 2], [], []])
    association.judge_and_learn(presence, labels, 0)
    told, guessed = association.judge_and_learn(presence, labels, 0)
    # Row 3 has no words and label b, row 4 none and label a: without words the guess is a for both.
    assert told[2:, MAX_SHIFT].tolist() == guessed[2:, MAX_SHIFT].tolist() == [0.0, 1.0]


def test_presence() -> None:
    presence = make_presence([[1, 3, 1], []])
    assert presence.shape == (2, NUM_BUCKETS) and presence.sum() == 2 and presence[0, 3] == 1
