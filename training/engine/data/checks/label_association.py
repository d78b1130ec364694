"""How well words of an input tell the labels of the rows around it, learned as the rows come.

One naive Bayes model (Bernoulli over hashed words, McCallum and Nigam, 1998) for each shift is asked about a
row before it learns it: prequential evaluation (Dawid, "Statistical theory: the prequential approach", 1984),
so that no row is judged by a model that has seen it.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from training.engine.data.checks.shift_scores import SHIFTS, Floats

NUM_BUCKETS = 1024
_SMOOTHING = 0.5
_MAX_FIELDS = 8
_MAX_VALUES = 50
_MAX_COLUMNS = 160

Labels = Mapping[int, int]
"""The column of the value by the number of the field."""


class _Field:
    """A field of answers and the columns of its values."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.columns: dict[str, int] = {}
        self.is_label = True

    def list_columns(self) -> npt.NDArray[np.int64]:
        return np.array(list(self.columns.values()), np.int64)


class LabelAssociation:
    """The models of all shifts and the numbering of fields and values."""

    def __init__(self) -> None:
        """Start with no field known."""
        self._fields: dict[str, _Field] = {}
        self._num_columns = 0
        self._counts = np.zeros((len(SHIFTS), NUM_BUCKETS, 0), np.float32)
        self._totals = np.zeros((len(SHIFTS), 0), np.float32)

    def number_labels(self, labels: Mapping[str, str]) -> dict[int, int]:
        """Return the columns of an example's labels, new values numbered.

        The first 8 fields count; one with more than 50 values, or without a place in 160 columns, is no label
        any more.
        """
        numbered = {}
        for path, value in labels.items():
            if path not in self._fields:
                if len(self._fields) >= _MAX_FIELDS:
                    continue
                self._fields[path] = _Field(len(self._fields))
            field = self._fields[path]
            if value not in field.columns and field.is_label:
                if len(field.columns) >= _MAX_VALUES or self._num_columns >= _MAX_COLUMNS:
                    field.is_label = False
                else:
                    field.columns[value] = self._num_columns
                    self._num_columns += 1
            if field.is_label:
                numbered[field.number] = field.columns[value]
        return numbered

    def judge_and_learn(
        self, presence: npt.NDArray[np.float32], labels: Sequence[Labels], first: int
    ) -> tuple[Floats, Floats]:
        """Ask about rows, then learn them.

        Args:
            presence: [n, 1024], 1 where a word of the row's input falls into the bucket.
            labels: Of the n rows and their neighbours.
            first: Place of the first of the n rows in ``labels``.

        Returns:
            Share of the fields that are told right, and share that the most frequent value gets right, both
            [n, 21] over the shifts; NaN where the neighbour does not exist or has no labels.
        """
        self._grow()
        num_rows = len(presence)
        scores = np.full((num_rows, len(SHIFTS)), np.nan)
        baselines = np.full((num_rows, len(SHIFTS)), np.nan)
        fields = [field for field in self._fields.values() if field.is_label and len(field.columns) > 1]
        if not fields:
            return scores, baselines
        true_columns = _list_columns(fields, labels)
        words = _Words(*np.nonzero(presence), num_rows=num_rows)
        for number, shift in enumerate(SHIFTS):
            places = np.arange(num_rows) + first + shift
            exists = (places >= 0) & (places < len(labels))
            truth = np.where(exists, true_columns[:, np.where(exists, places, 0)], -1)
            self._judge(number, fields, words, truth, scores[:, number], baselines[:, number])
            self._learn(number, words, truth)
        return scores, baselines

    def _grow(self) -> None:
        missing = self._num_columns - self._totals.shape[1]
        if missing > 0:
            self._counts = np.pad(self._counts, ((0, 0), (0, 0), (0, missing)))
            self._totals = np.pad(self._totals, ((0, 0), (0, missing)))

    def _judge(
        self,
        number: int,
        fields: Sequence[_Field],
        words: "_Words",
        truth: npt.NDArray[np.int64],
        scores: Floats,
        baselines: Floats,
    ) -> None:
        used = np.concatenate([field.list_columns() for field in fields])
        counts = self._counts[number][:, used].astype(np.float64)
        totals = self._totals[number][used].astype(np.float64)
        absent = np.log(totals - counts + _SMOOTHING)
        weights = np.log(counts + _SMOOTHING) - absent
        constant = (
            absent.sum(axis=0) - NUM_BUCKETS * np.log(totals + 2 * _SMOOTHING) + np.log(totals + _SMOOTHING)
        )
        # Rounded, so that the order of additions decides no tie.
        evidence = np.round(words.add_up(weights) + constant, 6)
        num_right, num_guessed, num_fields = (np.zeros(words.num_rows) for _ in range(3))
        begin = 0
        for field, true_columns in zip(fields, truth, strict=True):
            columns = used[begin : begin + len(field.columns)]
            own = slice(begin, begin + len(columns))
            begin += len(columns)
            has_label = true_columns >= 0
            told = columns[np.argmax(evidence[:, own], axis=1)]
            guess = columns[int(np.argmax(totals[own]))]
            num_right += has_label & (told == true_columns)
            num_guessed += has_label & (guess == true_columns)
            num_fields += has_label
        is_judged = num_fields > 0
        scores[is_judged] = num_right[is_judged] / num_fields[is_judged]
        baselines[is_judged] = num_guessed[is_judged] / num_fields[is_judged]

    def _learn(self, number: int, words: "_Words", truth: npt.NDArray[np.int64]) -> None:
        num_columns = self._counts.shape[2]
        # One index instead of a pair of them: numpy adds thirty times as fast then.
        counts = self._counts[number].reshape(-1)
        for columns in truth:
            taught = columns[words.rows]
            is_taught = taught >= 0
            np.add.at(counts, words.buckets[is_taught] * num_columns + taught[is_taught], np.float32(1))
            np.add.at(self._totals[number], columns[columns >= 0], 1)


class _Words:
    """Which buckets the rows fall into, as two lists of equal length, sorted by row.

    A row has some fifty of 1024 buckets. Sums over these few are less work than a matrix product, and no
    library starts threads for them, which on a busy machine cost many times the work.
    """

    def __init__(self, rows: npt.NDArray[np.int64], buckets: npt.NDArray[np.int64], *, num_rows: int) -> None:
        self.rows, self.buckets, self.num_rows = rows, buckets, num_rows
        self._filled, self._starts = np.unique(rows, return_index=True)

    def add_up(self, weights: Floats) -> Floats:
        """Return for each row the sum of its buckets' weights: [1024, k] to [num_rows, k]."""
        sums = np.zeros((self.num_rows, weights.shape[1]))
        if len(self._filled):
            sums[self._filled] = np.add.reduceat(weights[self.buckets], self._starts, axis=0)
        return sums


def _list_columns(fields: Sequence[_Field], labels: Sequence[Labels]) -> npt.NDArray[np.int64]:
    """Return [fields, rows] of columns, -1 where a row has no such label."""
    columns = np.full((len(fields), len(labels)), -1, np.int64)
    for number, field in enumerate(fields):
        for row, item in enumerate(labels):
            columns[number, row] = item.get(field.number, -1)
    return columns


def make_presence(buckets: Sequence[Sequence[int]]) -> npt.NDArray[np.float32]:
    """Return [n, 1024] with 1 in the buckets of each row."""
    presence = np.zeros((len(buckets), NUM_BUCKETS), np.float32)
    for row, items in enumerate(buckets):
        presence[row, list(items)] = 1
    return presence
