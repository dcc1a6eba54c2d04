"""The Redis gateway with real nodes and Sentinels, and with a real Ray."""
