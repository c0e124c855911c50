"""A scheduler behind a router, as one name: ``least-volume + svf``."""

from __future__ import annotations

_BETWEEN = " + "


def label_of(router: str, policy: str) -> str:
    """Return what a scheduler is called behind a router.

    Examples
    --------
    >>> label_of("least-volume", "svf")
    'least-volume + svf'
    """
    return f"{router}{_BETWEEN}{policy}"


def parts_of(label: str) -> tuple[str, str]:
    """Return router and scheduler of such a name; without a router it is the central line.

    Examples
    --------
    >>> parts_of("least-volume + svf"), parts_of("svf")
    (('least-volume', 'svf'), ('central', 'svf'))
    """
    router, between, policy = label.partition(_BETWEEN)
    return (router, policy) if between else ("central", label)
