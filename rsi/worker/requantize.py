"""Writes the served form of a base: `python -m rsi.worker.requantize SOURCE.gguf TARGET.gguf`."""

import sys
from pathlib import Path

from rsi.worker.convert import write_q8
from rsi.worker.llama import open_gguf


def main() -> None:
    """Writes the target whole or not at all; a fault ends the process with its own words."""
    source, target = (Path(word) for word in sys.argv[1:3])
    write_q8(open_gguf(source), target)


if __name__ == "__main__":
    main()
