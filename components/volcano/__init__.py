"""Volcano: its scheduler, controllers and webhook."""
