"""Tests of `ray-platform runs`."""
