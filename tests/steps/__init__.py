"""Tests of steps."""
