"""RayClusters that nobody uses are suspended, and are woken when somebody asks."""
