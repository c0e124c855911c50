"""Certificates: an instance with proofs about its optimum, in one file.

`kvopt.verify` checks them and shares no code with this package.
"""

from kvopt.certificates.building import certify
from kvopt.certificates.certificate_files import read_certificate, write_certificate
from kvopt.incumbent.certificate import Certificate

__all__ = ["Certificate", "certify", "read_certificate", "write_certificate"]
