"""Node processes: shells that receive, step the core, execute its effects, and repeat."""
