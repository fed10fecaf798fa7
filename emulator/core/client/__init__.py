"""Producer and consumer as pure state machines, shared by the client process and the simulator."""
