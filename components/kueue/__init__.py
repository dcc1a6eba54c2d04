"""Kueue: what holds RayClusters back until their queue has room for them."""
