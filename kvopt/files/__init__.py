"""Reading and writing text and JSON, whatever is in it."""
