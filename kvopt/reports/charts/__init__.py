"""Pictures as SVG: what a section draws, without the study that it is about."""
