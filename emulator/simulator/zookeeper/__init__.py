"""A ZooKeeper cluster in virtual time; see ``README.md`` in this folder for the map."""
