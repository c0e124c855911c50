"""The problem: requests that grow by a token a round, and caches of ``memory`` tokens.

All fields are integers, checked once at construction and never changed.  No solver is
imported.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from kvopt.errors import InvalidInput, placed, shown
from kvopt.files.reading import without_nulls
from kvopt.problem.prefixes import Forest, check_forest, forest_of, numbered
from kvopt.problem.requests import (
    COLUMNS,
    LARGEST_INTEGER,
    Prediction,
    Request,
    can_be_written,
    checked_integer,
    checked_number,
)
from kvopt.show.dataframes import any_known, frame, rows_of, whole
from kvopt.show.summary import Facts, Summarised, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from networkx import DiGraph
    from pandas import DataFrame

    from kvopt.show.plots.timeline import Timeline


MAX_WORKERS = 10_000
"""Limit of the workers of a fleet: results have a list entry for each."""

_LEVELS = ("ttft", "tpot", "e2e")
_MORE_COLUMNS = (
    *("predicted_lower", "predicted_upper", "arrival_seconds", "priority"),
    *_LEVELS,
)
_EXTRA_COLUMNS = ("weight", "prefix")
"""Columns of a DataFrame."""

DEEPEST_NOTES = 100
"""Limit of the levels of notes, so that they can also be written and compared."""


@dataclass(frozen=True, repr=False)
class Instance(Summarised):
    """Workers with a cache of ``memory`` tokens each, and the requests that share them.

    Parameters
    ----------
    memory
        Capacity ``M >= 1`` in tokens.
    requests
        The requests; their order is the order of every ``starts`` list.
    name, notes
        Labels for people; they do not enter the content hash.
    round_ms
        Length of a round on the clock of the trace, if there is one.
    workers
        Number of machines, each with a cache of its own: every request runs on one.
    block_size
        Tokens of a block ``B``.  Memory is given out in whole blocks, of which there are
        ``floor(M / B)``: a request that holds h tokens takes ``ceil(h / B)``.
    max_active
        Requests that may be active together on a worker; None for no limit.
    block_tokens
        Tokens of a block of a prefix, the unit of sharing: the prompt of a request begins with the
        blocks of its ``prefix``.  Needed if a request has one, else None.

    Examples
    --------
    >>> from kvopt import Instance, Request
    >>> instance = Instance(memory=7, requests=[Request(0, 1, o) for o in (1, 2, 3, 4)])
    >>> len(instance), instance.requests[3].id, instance.requests[3].peak
    (4, 'r3', 5)
    """

    memory: int
    requests: Sequence[Request]
    name: str | None = None
    notes: object = None
    round_ms: float | None = None
    workers: int = 1
    block_size: int = 1
    max_active: int | None = None
    block_tokens: int | None = None

    def __post_init__(self) -> None:
        fields = vars(self)  # checked as given, before any use
        if not isinstance(self.requests, Iterable):
            swapped = "; memory comes first: Instance(memory, requests)"
            reason = f"must be a list of requests, got {shown(self.requests)}"
            raise InvalidInput(
                reason + swapped * isinstance(self.memory, Iterable), field="requests"
            )
        fields["requests"] = tuple(_named(self.requests))
        for name in ("memory", "workers", "block_size"):
            fields[name] = checked_integer(fields[name], name, 1)
        if self.max_active is not None:
            fields["max_active"] = checked_integer(self.max_active, "max_active", 1)
        if self.block_tokens is not None:
            fields["block_tokens"] = checked_integer(self.block_tokens, "block_tokens", 1)
        if self.workers > MAX_WORKERS:
            reason = f"must be at most {MAX_WORKERS:,}, got {self.workers:,}"
            raise InvalidInput(reason, field="workers")
        self._check_labels()
        if self.round_ms is not None:
            fields["round_ms"] = checked_number(self.round_ms, "round_ms", positive=True)
        self._check_requests()

    def _check_labels(self) -> None:
        if self.name is not None and not isinstance(self.name, str):
            raise InvalidInput(f"must be a string, got {shown(self.name)}", field="name")
        if self.notes is not None and not isinstance(self.notes, (str, dict)):
            raise InvalidInput(f"must be text or an object, got {shown(self.notes)}", field="notes")
        for field, value in (("name", self.name), ("notes", self.notes)):
            if not can_be_written(value):
                raise InvalidInput("holds what no JSON file in UTF-8 can carry", field=field)
        if _deeper_than(self.notes, DEEPEST_NOTES):
            raise InvalidInput(f"has more than {DEEPEST_NOTES} levels", field="notes")

    def _check_requests(self) -> None:
        if self.block_size > 1 and self.memory + self.block_size - 1 > LARGEST_INTEGER:
            both = f"{self.block_size} and {self.memory}"  # `inflated` adds them
            raise InvalidInput(
                f"must be at most 2^53 together with memory, got {both}", field="block_size"
            )
        seen: set[str | None] = set()
        for request in self.requests:
            if request.id in seen:
                raise InvalidInput("is used twice", field="id", request=repr(request.id))
            seen.add(request.id)
            needed = -(-request.peak // self.block_size)
            if request.peak > self.memory:
                reason = f"needs {request.peak} tokens (prompt + output), memory is {self.memory}"
            elif needed > self.blocks:
                reason = f"needs {needed} blocks of {self.block_size} tokens"
                reason += f", memory has {self.blocks}"
            else:
                continue
            raise InvalidInput(reason, field="output", request=repr(request.id))
        if "prefix" in self.extras:
            self._check_prefixes()
        else:
            vars(self)["block_tokens"] = None  # nothing is in such blocks
        if self.blocks == 0:  # also without requests
            reason = f"is {self.block_size}, memory has {self.memory} tokens: not one block"
            raise InvalidInput(reason, field="block_size")

    def _check_prefixes(self) -> None:
        """Refuse blocks that no prompt can contain, and blocks that do not form a forest."""
        size = self.block_tokens
        if size is None:
            raise InvalidInput("is missing: a request has a prefix", field="block_tokens")
        if size % self.block_size:
            reason = f"is {size}, no multiple of block_size, {self.block_size}"
            raise InvalidInput(reason, field="block_tokens")
        for request in self.requests:
            count = len(request.prefix)
            if count * size > request.prompt:
                reason = f"has {count} blocks of {size} tokens, its prompt {request.prompt} tokens"
                raise InvalidInput(reason, field="prefix", request=repr(request.id))
        check_forest(self._paths, [request.id for request in self.requests])

    @property
    def _paths(self) -> list[Sequence[int | str]]:
        return [request.prefix for request in self.requests]

    @cached_property
    def forest(self) -> Forest:
        """The forest of shared blocks, and private tokens."""
        prompts = [request.prompt for request in self.requests]
        return forest_of(self._paths, prompts, self.block_tokens or 1)

    def prefix_forest(self) -> DiGraph:
        """Return the shared blocks as a graph of networkx, with an edge from parent to child.

        A node is a run of blocks that the same requests use, at least two of them.  It has its
        ``tokens``, held once, and its ``users``, the positions of these requests; blocks of a
        single request are private tokens and have no node.  Each root begins a tree.

        Examples
        --------
        >>> from kvopt import Instance, Request
        >>> paths = ["system", "tools"], ["system", "tools"], ["system", "chat"]
        >>> requests = [Request(0, 40, 5, prefix=path) for path in paths]
        >>> forest = Instance(200, requests, block_tokens=16).prefix_forest()
        >>> list(forest.nodes(data=True))
        [(0, {'tokens': 16, 'users': (0, 1, 2)}), (1, {'tokens': 16, 'users': (0, 1)})]
        >>> list(forest.edges)
        [(0, 1)]
        """
        return self.forest.graph()

    @cached_property
    def extras(self) -> tuple[str, ...]:
        """Fields beyond the problem of the papers: ``weight``, ``prefix`` and so on."""
        used = {
            "weight": any(request.weight > 1 for request in self.requests),
            "max_active": self.max_active is not None,
            "prefix": any(request.prefix for request in self.requests),
        }
        return tuple(name for name, is_used in used.items() if is_used)

    def without_prefixes(self) -> Instance:
        """Return the instance without shared prefixes, for the scope ``runs``."""
        if "prefix" not in self.extras:
            return self
        return replace(self, requests=tuple(replace(r, prefix=()) for r in self.requests))

    def without_common_prefix(self) -> Instance:
        """Return an instance with the same schedules in which no block is on every path.

        Such blocks are held once while anything is active, so they are subtracted from memory and
        every prompt.  If nothing else is shared, the instance has no prefixes.
        """
        if "prefix" not in self.extras:
            return self
        common = len(set.intersection(*map(set, self._paths)))
        tokens = common * (self.block_tokens or 0)
        requests = tuple(
            replace(r, prompt=r.prompt - tokens, prefix=r.prefix[common:]) for r in self.requests
        )
        shorter = replace(self, memory=self.memory - tokens, requests=requests)
        return shorter if shorter.forest.weights else shorter.without_prefixes()

    @property
    def blocks(self) -> int:
        """Number of whole blocks of the memory."""
        return self.memory // self.block_size

    @property
    def more_sizes(self) -> dict[str, int]:
        """Fields that files have only if above 1, if they are."""
        sizes = {"workers": self.workers, "block_size": self.block_size}
        return {name: size for name, size in sizes.items() if size > 1}

    @property
    def in_blocks(self) -> str:
        """Memory as a number of blocks, in words."""
        return f"memory in {self.blocks:,} whole blocks of {self.block_size:,} tokens"

    def __len__(self) -> int:
        return len(self.requests)

    def __iter__(self) -> Iterator[Request]:
        return iter(self.requests)

    @overload
    def __getitem__(self, which: int) -> Request: ...
    @overload
    def __getitem__(self, which: slice) -> Instance: ...
    def __getitem__(self, which: int | slice) -> Request | Instance:
        """Return a request, or the instance of some of them."""
        if not isinstance(which, slice):
            return self.requests[which]
        return replace(self, requests=self.requests[which], name=None, notes=None)

    def facts(self) -> Facts:
        """Return the facts of a summary."""
        requests = self.requests
        return {
            "name": self.name,
            "requests": len(requests),
            "memory": f"{self.memory:,} tokens",
            "workers": self.workers if self.workers > 1 else None,
            "blocks": f"{self.blocks:,} of {self.block_size:,} tokens"
            if self.block_size > 1
            else None,
            "prompts": spread([request.prompt for request in requests]),
            "outputs": spread([request.output for request in requests]),
            "arrivals": spread([request.arrival for request in requests]),
            "active at most": self.max_active,
            "shared prefixes": self._facts_of_prefixes(),
            "with predictions": sum(r.predicted is not None for r in requests) or None,
        }

    def _facts_of_prefixes(self) -> str | None:
        if "prefix" not in self.extras:
            return None
        weights = sum(self.forest.weights)
        saved = sum(r.prompt for r in self.requests) - sum(self.forest.private) - weights
        return f"{weights:,} tokens in blocks of {self.block_tokens:,}, saving {saved:,} of prompts"

    def __hash__(self) -> int:
        return hash(self.hash)  # not from the fields: notes may be a dict

    @property
    def schema(self) -> str:
        """The schema of its file: the second one only if needed."""
        has_more = any((r.priority, r.ttft, r.tpot, r.e2e) != (None,) * 4 for r in self.requests)
        has_more |= bool(self.more_sizes or self.extras)
        return f"kvopt.instance/{2 if has_more else 1}"

    @cached_property
    def hash(self) -> str:
        """``sha256:...`` of the problem: labels, ids and notes do not count."""
        rows = [_content(request) for request in self.requests]
        if "prefix" in self.extras:
            rows = [*map(_content, self.requests, numbered(self._paths))]
        content: dict[str, object] = {
            "schema": self.schema,
            "memory": self.memory,
            "requests": rows,
            "max_active": self.max_active,
            "block_tokens": self.block_tokens,
            "round_ms": self.round_ms,
            **self.more_sizes,
        }
        content = without_nulls(content)
        text = json.dumps(content, separators=(",", ":"), sort_keys=True, allow_nan=False)
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def total_weight(self) -> int:
        """How many latencies are in a total: each as often as its weight."""
        return sum(request.weight for request in self.requests)

    @cached_property
    def total_output(self) -> int:
        """Sum of all outputs: no schedule has a smaller total latency."""
        return sum(request.output for request in self.requests)

    @property
    def used_workers(self) -> int:
        """Useful workers: no more than requests."""
        return min(self.workers, max(1, len(self)))

    @property
    def total_memory(self) -> int:
        """Memory of all useful workers together."""
        return self.memory * self.used_workers

    @cached_property
    def first_arrival(self) -> int:
        """Round of the first arrival, 0 without requests."""
        return min((request.arrival for request in self.requests), default=0)

    @cached_property
    def last_arrival(self) -> int:
        """Round of the last arrival, 0 without requests."""
        return max((request.arrival for request in self.requests), default=0)

    def to_dataframe(self) -> DataFrame:
        """Return a row for each request, as a DataFrame of pandas.

        Columns: ``id``, ``arrival``, ``prompt``, ``output``, and ``predicted_lower``,
        ``predicted_upper``, ``arrival_seconds``, ``priority``, ``ttft``, ``tpot``, ``e2e``,
        ``weight`` and
        ``prefix`` if a request has them.
        """
        columns: dict[str, list[Any]] = {
            name: [getattr(r, name) for r in self.requests] for name in ("id", *COLUMNS)
        }
        others: dict[str, list[Any]] = {
            f"predicted_{end}": [getattr(r.predicted, end, None) for r in self.requests]
            for end in ("lower", "upper")
        }
        others |= {name: [getattr(r, name) for r in self.requests] for name in _MORE_COLUMNS[2:]}
        if "weight" in self.extras:
            others["weight"] = [request.weight for request in self.requests]
        others["prefix"] = [list(request.prefix) or None for request in self.requests]
        return frame(
            columns | {name: column for name, column in others.items() if any_known(column)}
        )

    @classmethod
    def from_dataframe(
        cls,
        df: DataFrame,
        memory: int,
        *,
        name: str | None = None,
        round_ms: float | None = None,
        block_tokens: int | None = None,
    ) -> Instance:
        """Return the instance whose requests are the rows of a DataFrame, in their order.

        Parameters
        ----------
        df
            With the columns ``arrival``, ``prompt`` and ``output``, and any other columns of
            `to_dataframe`.  Unknown columns are refused.
        memory
            Capacity in tokens.
        name, round_ms, block_tokens
            As in `Instance`.

        Raises
        ------
        InvalidInput
            With the row and the column at fault.
        """
        requests = []
        for place, row in rows_of(df, COLUMNS, ("id", *_MORE_COLUMNS, *_EXTRA_COLUMNS)):
            with placed(request=place):
                requests.append(_request_from_row(row))
        return cls(memory, requests, name, round_ms=round_ms, block_tokens=block_tokens)

    def plot(self) -> Figure:
        """Draw the requests: shapes, arrivals, and memory if all started on arrival."""
        from kvopt.show.plots import plot_instance

        return plot_instance(self)

    def timeline(self) -> Timeline:
        """Return the demand of memory, as plain numbers, if every request started on arrival."""
        from kvopt.show.plots.timeline import Timeline, WorkPiece

        starts = [request.arrival for request in self]
        rows = enumerate(zip(starts, self, strict=True))
        work = [WorkPiece(i, 0, k, k + 1, k + r.output, 0, r.output) for i, (k, r) in rows]
        return Timeline(self, work, starts)

    def replace(self, **changes: Any) -> Instance:
        """Return the same instance with other fields: ``instance.replace(memory=100)``."""
        return replace(self, **changes)

    def shifted(self, rounds: int) -> Instance:
        """Return the same instance with every arrival moved by ``rounds``."""
        moved = [replace(request, arrival=request.arrival + rounds) for request in self.requests]
        return replace(self, requests=tuple(moved))

    def pooled(self) -> Instance:
        """Return the instance with one cache as large as all caches together.

        This worker allows every schedule of the fleet in rounds, so a bound for it holds for the
        fleet.
        """
        return replace(self, memory=self.memory * self.workers, workers=1)

    def of_one_worker(self, members: Iterable[int]) -> Instance:
        """Return the instance of one worker and the given requests, in the given order."""
        return replace(self, requests=tuple(self.requests[i] for i in members), workers=1)

    def in_tokens(self) -> Instance:
        """Return the instance with the memory of all blocks, counted in tokens.

        Requests that fit into blocks fit into their tokens, so a bound for it holds with blocks.
        """
        if self.block_size == 1:
            return self
        return replace(self, memory=self.blocks * self.block_size, block_size=1)

    def inflated(self) -> Instance:
        """Return an instance that counts tokens, and whose schedules all fit into the blocks.

        Each request, and the memory of the blocks, gets B - 1 tokens more.  For integers
        ``ceil(h / B) <= (h + B - 1) / B``; so blocks in use, an integer, are below
        ``blocks + 1`` if these larger holdings fit.
        """
        if self.block_size == 1:
            return self
        more = self.block_size - 1
        memory = self.blocks * self.block_size + more
        requests = tuple(replace(r, prompt=r.prompt + more) for r in self.requests)
        return replace(self, memory=memory, requests=requests, block_size=1)


def refuse_blocks(instance: Instance, what: str) -> None:
    """Refuse an instance of whole blocks for code that counts tokens."""
    if instance.block_size > 1:
        reason = f"is {instance.block_size}: {what} counts tokens, not whole blocks"
        raise InvalidInput(reason, field="block_size")


def refuse_extras(instance: Instance, what: str, supported: Collection[str] = ()) -> None:
    """Refuse weights, a limit or shared prefixes for code that supports none of these."""
    for field in instance.extras:
        if field not in supported:
            ids = (r.id for r in instance if getattr(r, field, 1) not in (1, None, ()))
            first = next(map(repr, ids), None)
            raise InvalidInput(f"is not known by {what}", field=field, request=first)


def refuse_fleet(instance: Instance, what: str) -> None:
    """Refuse an instance of several workers for code that supports one."""
    if instance.workers > 1:
        raise InvalidInput(f"is {instance.workers}: {what} knows one worker only", field="workers")


def _request_from_row(row: dict[str, Any]) -> Request:
    if "id" in row and row["id"] is None:
        raise InvalidInput("is missing", field="id")
    ends = _MORE_COLUMNS[:2]
    has_ends = any_known([row.get(name) for name in ends])
    needed = {*COLUMNS, *(ends if has_ends else ())}
    numbers = {
        name: checked_integer(whole(row.get(name), name), name, -LARGEST_INTEGER)
        for name in (*COLUMNS, *ends, "priority", *_LEVELS, "weight")
        if name in needed or row.get(name) is not None
    }
    predicted = Prediction(*(numbers.pop(name) for name in ends)) if has_ends else None
    label = row.get("id")
    return Request(
        **numbers,
        id=str(label) if type(label) is int else label,
        predicted=predicted,
        arrival_seconds=row.get("arrival_seconds"),
        prefix=() if row.get("prefix") is None else row["prefix"],
    )


def _named(requests: Iterable[Request]) -> Iterator[Request]:
    for position, request in enumerate(requests):
        if not isinstance(request, Request):
            reason = f"must hold Request objects, got {shown(request)}"
            raise InvalidInput(reason, field="requests", request=f"at position {position}")
        if request.id is not None:
            yield request
            continue
        renamed = object.__new__(Request)  # nothing is checked again
        for field in Request.__slots__:
            object.__setattr__(renamed, field, getattr(request, field))
        object.__setattr__(renamed, "id", f"r{position}")
        yield renamed


def _deeper_than(value: object, levels: int) -> bool:
    """Whether objects and lists are nested in more than so many levels."""
    if not isinstance(value, (dict, list, tuple)):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_deeper_than(part, levels - 1) for part in inner)


def _content(request: Request, blocks: Sequence[int] = ()) -> list[object]:
    content: list[object] = [request.arrival, request.prompt, request.output]
    if request.predicted is not None or request.arrival_seconds is not None:
        predicted = request.predicted
        content.append(None if predicted is None else [predicted.lower, predicted.upper])
    if request.arrival_seconds is not None:
        content.append(request.arrival_seconds)
    newer = {
        "priority": request.priority,
        "deadline": request.e2e,  # its name in the first files, and so in hashes
        "ttft": request.ttft,
        "tpot": request.tpot,
        "weight": request.weight if request.weight > 1 else None,
        "prefix": blocks or None,
    }
    if further := without_nulls(newer):
        content.append(further)
    return content
