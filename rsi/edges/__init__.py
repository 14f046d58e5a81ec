"""One outside library each: everything that touches the world."""
