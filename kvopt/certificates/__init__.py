"""Certificates: an instance with what is proved of its optimum, in one file.

`kvopt.verify` checks them and shares no code with what is here.
"""

from kvopt.certificates.building import Certificate, JudgedRun, certify
from kvopt.certificates.writing import write_certificate

__all__ = ["Certificate", "JudgedRun", "certify", "write_certificate"]
