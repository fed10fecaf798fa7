"""The driver of a simulated cluster: it steps nodes, executes effects and passes time."""
