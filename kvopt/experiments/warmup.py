"""Compile everything once: small problems that go through every compiled loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kvopt.bounds.prices import NothingKnown as NothingKnown
from kvopt.certificates import certify
