"""What a trial and a call cost in rsi's sandboxes, in plain Docker, and in other harnesses."""
