"""How the program begins and ends: needs, signals, streams, errors, exit codes."""
