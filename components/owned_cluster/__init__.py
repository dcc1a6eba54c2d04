"""What the RayCluster of a RayJob or RayService needs beside it."""
