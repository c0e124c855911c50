"""Read and write text and JSON of any content."""
