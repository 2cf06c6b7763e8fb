"""What is handed in to a cluster, and what becomes of it."""
