"""Real processes on one machine: started, connected through proxies, paused, killed, and never left behind."""
