"""What is submitted to a cluster, and what becomes of it."""
