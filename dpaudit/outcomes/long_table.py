"""Tables of outcomes of different shapes: all entries in one list, sorted by path. The memory is
proportional to the number of entries, not to rows times paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.outcomes.columns import (
    ABSENT,
    KIND,
    CodeArray,
    Column,
    FloatArray,
    KeyArray,
    PlaceEntries,
    PlacePath,
    RowArray,
    entry_keys,
    kind_word,
    label_keys,
    mix,
    recoded,
    text_key,
)
from dpaudit.outcomes.representation import SIGN, Entry, sign_keys, signs_differ, written
from dpaudit.outcomes.tables import (
    MAX_WIDTH,
    READ_SHARE,
    NamedColumns,
    Outcomes,
    Table,
    form_differs,
    is_repeated,
    need_forms,
)
from dpaudit.outcomes.texts import NUMBERS

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """The paths and labels of a `LongTable`, with their hashes. Tables of some of its rows share
    it.

    index: maps the name of a path to its index in `paths`.
    path_keys: hashes of the names of the paths, (paths,).
    label_keys: hashes of the labels, (labels + 1,): label k, counted from 1, is at index k.
    """

    paths: tuple[PlacePath, ...]
    labels: tuple[str, ...]
    index: dict[str, int] = field(init=False)
    path_keys: KeyArray = field(init=False)
    label_keys: KeyArray = field(init=False)

    def __post_init__(self) -> None:
        names = [path.name for path in self.paths]
        object.__setattr__(self, "index", {name: index for index, name in enumerate(names)})
        keys = np.array([text_key(name) for name in names], dtype=np.uint64)
        object.__setattr__(self, "path_keys", keys)
        object.__setattr__(self, "label_keys", label_keys(self.labels))


@dataclass(frozen=True, slots=True, eq=False)
class LongTable(Outcomes):
    """Outcomes of different shapes as one list of entries, at most one for each outcome and path.

    offsets: (paths + 1,); the entries `offsets[p]:offsets[p + 1]` belong to path p.
    rows: index of the outcome of each entry, (entries,).
    numbers, codes: (entries,), as in a column, with labels in `vocabulary.labels`.
    """

    vocabulary: Vocabulary
    offsets: IntArray
    rows: RowArray
    numbers: FloatArray
    codes: CodeArray
    size: int

    def trimmed(self) -> LongTable:
        used, indices = np.unique(self.codes, return_inverse=True)
        codes = (indices + bool(len(used) and used[0])).astype(np.int32)
        labels = tuple(self.vocabulary.labels[code - 1] for code in used if code)
        is_there = np.diff(self.offsets) > 0
        is_there[:1] = True  # a long table has at least one path
        paths = tuple(compress(self.vocabulary.paths, is_there.tolist()))
        offsets = np.append(0, self.offsets[1:][is_there])
        vocabulary = Vocabulary(paths, labels)
        return LongTable(vocabulary, offsets, self.rows, self.numbers, codes, self.size)

    @property
    def columns(self) -> Sequence[Column]:
        return NamedColumns(self, self._telling())

    @property
    def width(self) -> int:
        return int(np.count_nonzero(self._counts()))

    def _counts(self) -> IntArray:
        """Return the number of outcomes with an entry at each path, (paths,); 0 for forms."""
        is_form = [path.step == "form" for path in self.vocabulary.paths]
        return np.where(is_form, 0, np.diff(self.offsets))

    @property
    def representations(self) -> Sequence[Column]:
        often = np.argsort(-self._counts(), kind="stable")[:MAX_WIDTH]
        signed = [int(index) for index in np.sort(often) if signs_differ(self._numbers(int(index)))]
        signs = [SIGN + self.vocabulary.paths[index].name for index in signed]
        return NamedColumns(self, [*signs, *(path.name for path in self._forms())])

    def _numbers(self, index: int) -> FloatArray:
        return self.numbers[self.offsets[index] : self.offsets[index + 1]]

    def _forms(self) -> list[PlacePath]:
        """Return the paths of the forms that differ between outcomes that are equal by ==."""
        counts, paths = np.diff(self.offsets), self.vocabulary.paths
        forms = [
            path for path, count in zip(paths, counts, strict=True) if path.step == "form" and count
        ]
        return [path for path in forms[:MAX_WIDTH] if not self._is_common(path)]

    def _is_common(self, path: PlacePath) -> bool:
        """Return whether a property is the same for all values of one kind at its path."""
        index = self.vocabulary.index[path.name]
        inside = slice(self.offsets[index], self.offsets[index + 1])
        codes, numbers = self.codes[inside], self.numbers[inside]
        parent = -1 if path.parent is None else self.vocabulary.index[path.parent.name]
        is_whole = len(codes) == self.offsets[parent + 1] - self.offsets[parent]
        if is_whole and (codes == codes[0]).all() and (codes[0] or (numbers == numbers[0]).all()):
            return True
        return not form_differs(self, path)

    def plain(self) -> LongTable:
        is_form = np.array([path.step == "form" for path in self.vocabulary.paths], dtype=bool)
        entries = np.flatnonzero(~np.repeat(is_form, np.diff(self.offsets)))
        offsets = np.concatenate([[0], np.cumsum(self._counts())])
        numbers = self.numbers[entries] + 0.0
        rows, codes = self.rows[entries], self.codes[entries]
        return LongTable(self.vocabulary, offsets, rows, numbers, codes, self.size)

    def _telling(self) -> list[str]:
        """Return the names of the columns from which events are learned."""
        counts, repeated = self._counts(), self._repeated_texts()
        if repeated:
            is_repeated_text = [
                not repeated.isdisjoint(path.texts) for path in self.vocabulary.paths
            ]
            counts[is_repeated_text] = 0
        often = np.argsort(-counts, kind="stable")[:MAX_WIDTH]
        often = np.sort(often[counts[often] > 1])
        # Columns of values come before columns of their properties, such as lengths.
        paths = sorted(
            often.tolist(), key=lambda index: self.vocabulary.paths[index].step == "about"
        )
        names = [name for index in paths for name in self._telling_of(index)]
        return names or [self.vocabulary.paths[0].name]

    def _repeated_texts(self) -> set[str]:
        """Return the columns of texts that repeat so often that contents tell nothing more."""
        names = {name for path in self.vocabulary.paths for name in path.texts}
        indices = [(name, self.vocabulary.index[name]) for name in names]
        return {name for name, index in indices if self._is_repeated(index)}

    def _is_repeated(self, index: int) -> bool:
        codes = self.codes[self.offsets[index] : self.offsets[index + 1]]
        return is_repeated(int(np.count_nonzero(np.bincount(codes)[1:])), len(codes))

    @property
    def contents(self) -> frozenset[str]:
        repeated, paths = self._repeated_texts(), self.vocabulary.paths
        there = compress(paths, (np.diff(self.offsets) > 0).tolist())
        return frozenset(
            word for path in there if repeated.isdisjoint(path.texts) for word in path.contents
        )

    @property
    def texts_read(self) -> frozenset[str]:
        counts, paths = np.diff(self.offsets), self.vocabulary.paths
        read: dict[str, int] = {}
        for path, count in zip(paths, counts.tolist(), strict=True):
            if path.step == "content" and path.word != NUMBERS:
                text = path.texts[-1]
                read[text] = read.get(text, 0) + count
        repeated, index = self._repeated_texts(), self.vocabulary.index
        return frozenset(
            name
            for name, count in read.items()
            if name not in repeated and count >= READ_SHARE * counts[index[name]]
        )

    def _telling_of(self, index: int) -> Iterator[str]:
        """Yield the names of the columns of the entries and kinds at a path, if they differ."""
        inside = slice(self.offsets[index], self.offsets[index + 1])
        codes, path = self.codes[inside], self.vocabulary.paths[index]
        numbers = self.numbers[inside][codes == 0]
        used = np.flatnonzero(np.bincount(codes))
        kinds = {kind_word(self.vocabulary.labels[code - 1]) if code else "" for code in used}
        if len(used) > len(kinds) or (len(numbers) and (numbers != numbers[0]).any()):
            yield path.name
        if len(codes) < self.size and path.tells_by_absence:
            kinds.add(ABSENT)
        if len(kinds) > 1:
            yield KIND + path.name

    def _known(self) -> Callable[[str], Column]:
        return self._find

    def _find(self, name: str) -> Column:
        index = self.vocabulary.index.get(name)
        return Column.constant(name, ABSENT, self.size) if index is None else self.at(index)

    def at(self, place: int) -> Column:
        """Return the column at the path with an index in `vocabulary.paths`."""
        inside = slice(self.offsets[place], self.offsets[place + 1])
        rows, codes, path = self.rows[inside], self.codes[inside], self.vocabulary.paths[place]
        numbers = np.full(self.size, np.nan)
        numbers[rows] = self.numbers[inside]
        if len(rows) == self.size and not codes.any():
            return Column(path.name, numbers)
        is_used = np.bincount(codes) > 0
        used, local = np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[codes]
        labels = (ABSENT, *(self.vocabulary.labels[code - 1] for code in used if code))
        every = np.ones(self.size, dtype=np.int32)
        # In `every`, 0 stands for a number, 1 for `absent`, and 2, 3, … for the labels in use.
        # `local` counts the codes in use from 0. If there are numbers, they have 0 in `local`, and
        # the labels follow from 1, so 1 is added for `every`. Without numbers, the labels begin at
        # 0, and 2 is added.
        every[rows] = np.where(codes > 0, local + (2 if used[:1].any() else 1), 0)
        return Column(path.name, numbers, every, labels)

    def take(self, index: NDArray[Any] | slice) -> LongTable:
        if isinstance(index, slice) and index.step in (None, 1):
            return self._between(*index.indices(self.size)[:2])
        taken = np.arange(self.size, dtype=np.int32)[index]
        order = np.argsort(taken, kind="stable").astype(np.int32)
        times = np.bincount(taken, minlength=self.size)
        first = np.cumsum(times) - times
        repeats = times[self.rows]
        entries = np.repeat(np.arange(len(self.rows)), repeats)
        within = np.arange(len(entries)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        rows = order[first[self.rows[entries]] + within]
        offsets = np.searchsorted(entries, self.offsets)
        numbers, codes = self.numbers[entries], self.codes[entries]
        return LongTable(self.vocabulary, offsets, rows, numbers, codes, len(taken))

    def _between(self, start: int, stop: int) -> LongTable:
        entries = np.flatnonzero((self.rows >= start) & (self.rows < stop))
        offsets = np.searchsorted(entries, self.offsets)
        numbers, codes = self.numbers[entries], self.codes[entries]
        rows, size = self.rows[entries] - np.int32(start), max(0, stop - start)
        return LongTable(self.vocabulary, offsets, rows, numbers, codes, size)

    def keys_beside(self, names: frozenset[str]) -> KeyArray:
        known = self.vocabulary
        path_keys = np.repeat(known.path_keys, np.diff(self.offsets))
        numbers, codes, rows = self.numbers, self.codes, self.rows
        more: list[tuple[RowArray, KeyArray]] = []
        for name in names & known.index.keys():
            index = known.index[name]
            signs = sign_keys(name, self._numbers(index))
            if signs is not None:
                more.append((rows[self.offsets[index] : self.offsets[index + 1]], signs))
        left_out = [path.name in names or not path.is_in_keys for path in known.paths]
        if any(left_out):
            entries = np.flatnonzero(~np.repeat(left_out, np.diff(self.offsets)))
            numbers, codes, rows = numbers[entries], codes[entries], rows[entries]
            path_keys = path_keys[entries]
        keys = entry_keys(numbers, codes, known.label_keys) + path_keys
        total = np.zeros(self.size, dtype=np.uint64)
        np.add.at(total, rows, mix(keys))
        for sign_rows, signs in more:
            total[sign_rows] += signs  # `sign_rows` has no row twice: a path has one entry per row
        return total

    def words(self, rows: Iterable[int]) -> list[str]:
        wanted = list(rows)
        part = self.take(np.array(wanted, dtype=np.intp))
        forms = self._forms() if wanted else []
        entries: list[list[Entry]] = [[] for _ in wanted]
        indices = np.repeat(np.arange(len(part.vocabulary.paths)), np.diff(part.offsets))
        every = zip(part.rows, indices, part.numbers, part.codes, strict=True)
        for row, index, number, code in every:
            entry = part.vocabulary.labels[code - 1] if code else float(number)
            path = part.vocabulary.paths[index]
            if path.step != "form":
                entries[row].append((path, entry))
        columns = [(path, part.column(path.name)) for path in forms]
        shown = need_forms(self)[wanted].tolist() if forms else []
        for row in compress(range(part.size), shown):
            for path, column in columns:
                if column.word(row) != ABSENT:
                    entries[row].append((path, column.word(row)))
        return [written(outcome) for outcome in entries]


def long_table(parts: Sequence[PlaceEntries], size: int) -> LongTable:
    """Return a `LongTable` of `size` outcomes, from the entries at each place."""
    paths = {part.path.name: part.path for part in parts}
    index = {name: indices for indices, name in enumerate(paths)}
    known: dict[str, int] = {}
    everything = np.arange(size, dtype=np.int32)
    indices = np.array([index[part.path.name] for part in parts], dtype=np.int64)
    order = np.argsort(indices, kind="stable")
    ordered = [parts[i] for i in order]
    columns = [part.column for part in ordered]
    counts = np.zeros(len(paths), dtype=np.int64)
    np.add.at(counts, indices[order], [len(column.numbers) for column in columns])
    codes = [recoded(known, column.labels, column.codes, len(column.numbers)) for column in columns]
    rows = [everything if part.rows is None else part.rows for part in ordered]
    return LongTable(
        Vocabulary(tuple(paths.values()), tuple(known)),
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate(rows) if rows else everything[:0],
        np.concatenate([column.numbers for column in columns] or [np.empty(0)]),
        np.concatenate(codes) if codes else everything[:0],
        size,
    )


def lengthened(table: Outcomes) -> LongTable:
    """Return a `LongTable` with the outcomes of a `Table` or a `LongTable`."""
    if isinstance(table, LongTable):
        return table
    if not isinstance(table, Table):
        raise TypeError(f"{type(table).__name__} is no table of outcomes")
    fixed = [(path, Column.constant(path.name, entry, table.size)) for path, entry in table.fixed]
    pairs = [*fixed, *zip(table.paths, table.all_columns, strict=True)]
    parts = [PlaceEntries(path, None, column) for path, column in pairs]
    return long_table([*parts, *(_where_there(*form) for form in table.forms)], table.size)


def _where_there(path: PlacePath, column: Column) -> PlaceEntries:
    """Return the entries of a column, except entries equal to `absent`, as a `PlaceEntries`."""
    if column.codes is None or ABSENT not in column.labels:
        return PlaceEntries(path, None, column)
    rows = np.flatnonzero(column.codes != column.labels.index(ABSENT) + 1).astype(np.int32)
    return PlaceEntries(path, rows, column.take(rows))


def joined(tables: Sequence[LongTable]) -> LongTable:
    """Return one `LongTable` with the outcomes of all given tables, one table after the other."""
    paths: dict[str, PlacePath] = {}
    for table in tables:
        paths.update((path.name, path) for path in table.vocabulary.paths if path.name not in paths)
    index = {name: indices for indices, name in enumerate(paths)}
    known: dict[str, int] = {}
    indices, rows, codes, start = [], [], [], 0
    for table in tables:
        table_indices = np.array(
            [index[path.name] for path in table.vocabulary.paths], dtype=np.int64
        )
        indices.append(np.repeat(table_indices, np.diff(table.offsets)))
        codes.append(recoded(known, table.vocabulary.labels, table.codes, len(table.rows)))
        rows.append(table.rows + np.int32(start))
        start += table.size
    every = np.concatenate(indices)
    order = np.argsort(every, kind="stable")
    offsets = np.searchsorted(every[order], np.arange(len(paths) + 1))
    numbers = np.concatenate([table.numbers for table in tables])[order]
    return LongTable(
        Vocabulary(tuple(paths.values()), tuple(known)),
        offsets,
        np.concatenate(rows)[order],
        numbers,
        np.concatenate(codes)[order],
        start,
    )
