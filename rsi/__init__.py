"""rsi: recursive self-improvement of versioned model-harness pairs."""
