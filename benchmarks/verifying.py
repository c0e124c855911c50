"""What a certificate costs those who check it."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from kvopt import Certificate, verify
from kvopt.certificates import write_certificate


def verified(certificate: Certificate) -> tuple[float, int]:
    """Write a certificate, verify it, and return the seconds that took and its bytes."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "certificate.json"
        write_certificate(certificate, path)
        began = time.monotonic()
        verdict = verify(path)
        seconds, size = time.monotonic() - began, path.stat().st_size
    assert verdict.valid, verdict
    return seconds, size
