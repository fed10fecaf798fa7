"""The network of a simulated cluster: messages between nodes, and faults on them."""
