"""Judge: what the world that an agent left is worth, in a box that the agent never saw."""
