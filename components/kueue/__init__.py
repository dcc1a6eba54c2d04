"""Kueue: it suspends RayClusters until their queue has room for them."""
