"""The broker of a ZooKeeper cluster; see ``README.md`` in this folder for the map."""
