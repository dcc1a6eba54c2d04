"""Tests of the run history."""
