"""What bounds and optima are about, in one sentence.

Two worked examples show that what is left out can be better.

*A pause.*  M = 10; a request that arrives at 0 with no prompt and 10 tokens to produce, and one
that arrives at 6 with a prompt of 5 and 1 token.  The optimum is 14, with starts at 3 and 6.  Let
the first start at 0 and pause at time 7, its 6 tokens kept outside of the cache.  The second then
holds 6 tokens at time 7 and is done, the first is back with 7 to 10 tokens at the times 8 to 11:
11 + 1 = 12.

*Pieces.*  A round that processes b tokens lasts max(100, 10 b) ns, M = 200; a request with no
prompt and 20 tokens to produce, and one with a prompt of 90 and 1 token, both there at 0.  The
bound in seconds is 3,720 ns.  Nine rounds that each process 9 tokens of the prompt beside the
token of the first request last 100 ns each; the tenth processes the other 9, the token of
the second request and one of the first, and lasts 110 ns; ten more last 100 ns each:
1,010 + 2,010 = 3,020 ns.
"""

from __future__ import annotations

from kvopt.model.scopes import Scope

COVERED = Scope.RUNS.sentence
"""Said, word for word, wherever a bound for ``runs`` is reported."""
