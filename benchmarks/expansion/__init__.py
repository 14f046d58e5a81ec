"""The study of Expansion: who covers tasks that the frozen model fails, in how many attempts."""
