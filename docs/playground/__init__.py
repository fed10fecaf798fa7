"""The playground: the simulator in a browser."""
