"""Clusters with a real ZooKeeper server: Laststand's processes around ZooKeeper's."""
