"""What must hold of a simulated cluster, checked from outside the core."""
