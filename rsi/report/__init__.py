"""Generation reports: figures and one self-contained page."""
