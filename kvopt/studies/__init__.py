"""Studies: many instances, many policies, every ratio certified."""
