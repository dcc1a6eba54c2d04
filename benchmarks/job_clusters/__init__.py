"""The same jobs on standing RayClusters and on RayClusters of their own."""
