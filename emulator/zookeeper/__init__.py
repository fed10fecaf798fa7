"""A real ZooKeeper server, from outside: its sessions, and its transaction log."""
