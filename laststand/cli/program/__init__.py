"""The begin and the end of the program: needs, signals, streams, errors, exit codes."""
