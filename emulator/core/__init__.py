"""The replication protocol as pure state machines; see ``README.md`` in this folder for the map."""
