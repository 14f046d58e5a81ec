"""Hand-written fakes, one module per port, each held to the contract test of the real edge."""
