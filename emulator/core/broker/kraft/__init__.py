"""The broker of a KRaft cluster; see ``README.md`` in this folder for the map."""
