"""Replay ``kvopt.record/1``: a line for each arrival and round, and for its tokens.

The first line describes the server.  Lines are in the order of events; with asynchronous
scheduling a round begins before the tokens of the last one are known.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from kvopt.errors import InvalidInput, placed, shown
from kvopt.files.reading import check_fields, parse_json
from kvopt.problem.batch_time import MILLISECOND
from kvopt.problem.hardware.fitting import Measured
from kvopt.problem.prefixes import Block, checked_prefix
from kvopt.problem.requests import LARGEST_INTEGER, checked_integer
from kvopt.timetable.sweep import blocks_for

_LOGGER = logging.getLogger("kvopt")
SCHEMA = "kvopt.record/1"

_SETTINGS = ("schema", "engine", "policy", "block", "blocks", "prefix_caching", "speculation",
     "sliding_window")  # fmt: skip
_MORE_SETTINGS = (
    "budget", "max_seqs", "chunked", "watermark", "asynchronous", "ns", "admission", "slack",
)  # fmt: skip
_KINDS = {
    "arrived": ("arrived", "round", "prompt"),
    "processed": ("processed", "round", "preempted"),
    "tokens": ("tokens", "round", "finished"),
}
"""Fields of the lines, by the field that identifies the kind of a line."""
_MORE = ("ns", "priority", "prefix", "hits", "took")
_SHAPES = {
    "processed": dict, "tokens": dict, "hits": dict, "took": dict, "preempted": list,
    "finished": list,
}  # fmt: skip


@dataclass
class Seen:
    """Recorded events of a request.

    Parameters
    ----------
    name, arrival, prompt, priority
        Data at its arrival; the prompt as the server counts it.
    since, ended
        Nanoseconds of the record at its arrival and at its end, if it has times.
    tokens
        Rounds that yielded a token.
    stored
        Tokens in the cache now.
    preempted
        Rounds of preemptions since its last token.
    processed
        The last round that processed its tokens.
    pieces
        Tokens that rounds processed without yielding one.
    is_finished
        Whether it is finished, after at least one token.
    prefix
        Ids of the whole blocks of its prompt that others may share.
    table
        The server's numbers of its blocks, if they can be shared.
    """

    name: str
    arrival: int
    prompt: int
    priority: int
    since: float = math.inf
    ended: float = math.inf
    tokens: list[int] = field(default_factory=list)
    stored: int = 0
    preempted: list[int] = field(default_factory=list)
    processed: int = -1
    pieces: dict[int, int] = field(default_factory=dict)
    is_finished: bool = False
    prefix: tuple[Block, ...] = ()
    table: list[int] = field(default_factory=list)


class Replay:
    """The state of the server that a record is about.

    Parameters
    ----------
    settings
        The first line.

    Attributes
    ----------
    seen
        Requests by name, in the order of arrival.
    round
        The last round.
    batches
        Rounds with their lengths, from the end of the one before or, after an idle time, from the
        last arrival that it processes; empty if the record has no times.
    has_gaps
        Whether a prompt waited half processed, was restarted at once, or was cached in part: runs
        cannot express that.
    cached
        Tokens found in the prefix cache.
    outside
        First use of a block of another request that is not in the prompts of both: of an output, or
        the last of a prompt.
    """

    def __init__(self, settings: object) -> None:
        self.settings = check_fields(settings, "record", _SETTINGS, _MORE_SETTINGS, SCHEMA)
        self.block = checked_integer(self.settings["block"], "block", 1)
        self.blocks = checked_integer(self.settings["blocks"], "blocks", 1)
        self.seen: dict[str, Seen] = {}
        self.round = self.preemptions = 0
        self.batches: list[Measured] = []
        self.has_gaps, self.cached, self.outside = False, 0, ""
        self._users: Counter[int] = Counter()  # of each block
        self._filled: dict[int, Block | None] = {}  # content of whole blocks, None if unknown
        self._used = self._held = self._ended = 0
        # By round, until its tokens are known: requests with their tokens in the cache, the numbers
        # of processed tokens, and of tokens in the cache.
        self._rounds: dict[int, tuple[dict[str, int], int, int]] = {}

    def take(self, event: object) -> None:
        """Apply a line of the record."""
        kind = next((k for k in _KINDS if isinstance(event, dict) and k in event), None)
        if kind is None:
            reason = f"must have one of the fields {', '.join(_KINDS)}, got {shown(event)}"
            raise InvalidInput(reason)
        line = check_fields(event, "line", _KINDS[kind], _MORE)
        number = checked_integer(line["round"], "round", 0)
        checked_integer(line.get("ns", 0), "ns", 0)
        for name, shape in _SHAPES.items():
            if not isinstance(line.get(name, shape()), shape):
                wanted = "an object" if shape is dict else "a list of names"
                raise InvalidInput(f"must be {wanted}, got {shown(line[name])}", field=name)
            if not all(isinstance(entry, str) for entry in line.get(name, ())):
                raise InvalidInput(f"must hold names, got {shown(line[name])}", field=name)
        getattr(self, f"_{kind}")(line, number)

    def _arrived(self, line: dict[str, Any], number: int) -> None:
        name = line["arrived"]
        if not isinstance(name, str) or not name:
            raise InvalidInput(f"must be a name, got {shown(name)}", field="arrived")
        if name in self.seen:
            raise InvalidInput("arrives twice", request=repr(name))
        prompt = checked_integer(line["prompt"], "prompt", 1)
        priority = checked_integer(line.get("priority", 0), "priority", -LARGEST_INTEGER)
        with placed(request=repr(name)):
            path = checked_prefix(line.get("prefix", ()))[: (prompt - 1) // self.block]
        since = line.get("ns", math.inf)
        self.seen[name] = Seen(name, number, prompt, priority, since, prefix=path)

    def _processed(self, line: dict[str, Any], number: int) -> None:
        """Take the work of a round: preempted requests lose their tokens first."""
        if number <= self.round:
            raise InvalidInput(f"must ascend, got {number} after {self.round}", field="round")
        self.round = number
        shares = bool(self.settings["prefix_caching"])
        for field_name in ("hits", "took"):
            if (field_name in line) != shares:
                reason = "must be there with prefix caching, and only there"
                raise InvalidInput(reason, field=field_name)
            for name in line.get(field_name, {}).keys() - line["processed"].keys():
                reason = f"is in {field_name} of round {number}, which did not process it"
                raise InvalidInput(reason, request=repr(name))
        stored: dict[str, int] = {}
        for name in line["preempted"]:
            seen = self._request(name, number)
            self.preemptions += 1
            seen.preempted.append(number)
            self._store(seen, 0)
        for name, tokens in line["processed"].items():
            seen = self._request(name, number, "is processed")
            count = checked_integer(tokens, "processed", 1)
            self.has_gaps |= (seen.processed == number - 1) != (seen.stored > 0)
            seen.processed, seen.pieces[number] = number, count
            if shares:
                self._take(seen, line["took"].get(name, []), line["hits"].get(name, 0), number)
            self._store(seen, seen.stored + count)
            stored[name] = seen.stored
            if self._used > self.blocks:
                reason = f"takes a block in round {number}, where {self._used} are needed"
                self._refuse(seen, f"{reason}; memory has {self.blocks}")
        self._rounds[number] = stored, sum(line["processed"].values()), self._held

    def _tokens(self, line: dict[str, Any], number: int) -> None:
        """Take the tokens that a round yielded, the requests that it finished, and its time."""
        if (counts := self._rounds.pop(number, None)) is None:
            raise InvalidInput(f"has tokens twice, or was not processed: {number}", field="round")
        stored, processed, held = counts
        for name, tokens in line["tokens"].items():
            seen = self._request(name, number, "yields a token")
            if tokens != 1:
                self._refuse(seen, f"yields {shown(tokens)} tokens in round {number}")
            self._refuse_impossible(seen, stored.get(name), number)
            seen.tokens.append(number)
            del seen.pieces[number]
            seen.preempted = [p for p in seen.preempted if p > number]
        for name in line["finished"]:
            seen = self._request(name, number)
            seen.is_finished = bool(seen.tokens)
            seen.ended = line.get("ns", math.inf)
            self._store(seen, 0)
        ended = line.get("ns", 0)
        took = ended - max([self._ended, *(self.seen[name].since for name in stored)])
        self._ended = ended
        if took > 0:
            prompts = processed - len(line["tokens"])  # work without a token is on a prompt
            self.batches.append(Measured(processed, took / MILLISECOND, prompts, held))

    def _refuse_impossible(self, seen: Seen, stored: int | None, number: int) -> None:
        """Refuse a token of an unprocessed request, or after a gap without a preemption.

        By priority vLLM 0.32 ends a round at a request that preempts itself: later ones keep their
        blocks and wait, which is a pause with memory held.
        """
        needed = seen.prompt + len(seen.tokens)
        if seen.is_finished:
            self._refuse(seen, f"yields a token in round {number}, after its end")
        if stored is None:
            self._refuse(seen, f"yields a token in round {number}, which did not process it")
        if stored != needed:
            reason = f"yields a token in round {number} with {stored} tokens processed"
            self._refuse(seen, f"{reason} of {needed}")
        last = seen.tokens[-1] if seen.tokens else number
        is_paused = any(last < p <= number for p in seen.preempted)
        if number > last + 1 and not is_paused and self.settings["policy"] != "priority":
            reason = f"yields no token from round {last + 1} to {number - 1}"
            self._refuse(seen, f"{reason}, and was not preempted")

    def _take(self, seen: Seen, blocks: object, hit: object, number: int) -> None:
        """Give a request blocks: cached ones with the tokens of its prompt, then free ones."""
        cached, where = checked_integer(hit, "hits", 0), f"in round {number}"
        if not isinstance(blocks, list):
            raise InvalidInput(f"must hold lists of blocks, got {shown(blocks)}", field="took")
        if cached and (
            seen.stored or cached % self.block or cached >= seen.prompt + len(seen.tokens)
        ):
            self._refuse(seen, f"hits {cached} tokens {where}: not whole blocks at its begin")
        for block in blocks:
            place, users = len(seen.table), self._users[checked_integer(block, "took", 0)]
            if place * self.block < cached:
                wanted = seen.prefix[place] if place < len(seen.prefix) else None
                if block not in self._filled:
                    self._refuse(seen, f"hits block {block} {where}, which is not full")
                content = self._filled[block]
                if wanted != content and None not in (wanted, content):
                    self._refuse(seen, f"hits block {block} {where}, which holds other tokens")
                if users and None in (wanted, content):
                    self.outside = self.outside or f"request {seen.name!r} {where}"
                self._filled[block] = content if wanted is None else wanted
            elif users:
                self._refuse(seen, f"takes block {block} {where}, which is held")
            else:
                self._filled.pop(block, None)
            self._used += not users
            self._users[block] += 1
            seen.table.append(block)
        self.cached += cached
        self.has_gaps |= cached > 0
        self._held += cached
        seen.stored += cached

    def _store(self, seen: Seen, tokens: int) -> None:
        """Set the cached tokens of a request, and drop its blocks without tokens."""
        needed, before = blocks_for(tokens, self.block), blocks_for(seen.stored, self.block)
        if not self.settings["prefix_caching"]:
            self._used += needed - before
        elif len(seen.table) < needed:
            self._refuse(seen, f"stores {tokens} tokens in {len(seen.table)} blocks")
        for place in range(seen.stored // self.block, tokens // self.block * bool(seen.table)):
            path = seen.prefix
            self._filled[seen.table[place]] = path[place] if place < len(path) else None
        if not tokens:
            self._users.subtract(seen.table)
            self._used -= sum(not self._users[block] for block in seen.table)
            seen.table.clear()
        self._held += tokens - seen.stored
        seen.stored = tokens

    def _request(self, name: str, number: int, does: str | None = None) -> Seen:
        """Return a request with an event in a round; it must have arrived before."""
        if name not in self.seen:
            raise InvalidInput(f"is in round {number} and never arrived", request=repr(name))
        seen = self.seen[name]
        if does is not None and number <= seen.arrival:
            self._refuse(seen, f"{does} in round {number}, arrives at {seen.arrival}")
        return seen

    @staticmethod
    def _refuse(seen: Seen, reason: str) -> None:
        raise InvalidInput(reason, request=repr(seen.name))


def replayed(text: str, file: str) -> Replay:
    """Return the state after the last complete line of a record."""
    whole, _, last = text.rpartition("\n")
    try:
        parse_json(last.strip() or "{}")
    except InvalidInput:  # the server was stopped while it wrote
        _LOGGER.info("%s: left out the last line, which ends in the middle", file)
        text = whole
    replay = None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            event = parse_json(line)
            if replay is None:
                replay = Replay(event)
            else:
                replay.take(event)
        except InvalidInput as error:
            reason = f"{error.reason} (line {number})"
            raise InvalidInput(reason, field=error.field, request=error.request) from None
    if replay is None:
        raise InvalidInput("is empty")
    return replay
