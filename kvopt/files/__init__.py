"""Reading and writing the files of the contract; no solver is imported here."""

from kvopt.files.atomic import write_atomically
from kvopt.files.instances import (
    instance_from_json,
    instance_to_json,
    read_instance,
    write_instance,
)
from kvopt.files.schedules import (
    read_either_schedule,
    read_paused_schedule,
    read_schedule,
    write_schedule,
)

__all__ = [
    "instance_from_json",
    "instance_to_json",
    "read_either_schedule",
    "read_instance",
    "read_paused_schedule",
    "read_schedule",
    "write_atomically",
    "write_instance",
    "write_schedule",
]
