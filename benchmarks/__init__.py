"""Speed, memory and endurance: a command each, printing a small table and JSON."""
