"""Certificates: an instance with what is proved of its optimum, in one file.

`kvopt.verify` checks them and shares no code with what is here.
"""

from kvopt.certificates.building import certify
from kvopt.certificates.certificate import Certificate
from kvopt.certificates.judged import JudgedRun
from kvopt.certificates.reading import read_certificate
from kvopt.certificates.writing import write_certificate

__all__ = ["Certificate", "JudgedRun", "certify", "read_certificate", "write_certificate"]
