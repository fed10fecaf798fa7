"""Clusters with a real ZooKeeper server: processes of our own around ZooKeeper's."""
