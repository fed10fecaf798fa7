"""The broker's half of the replication protocol; see ``README.md`` in this folder for the map."""
