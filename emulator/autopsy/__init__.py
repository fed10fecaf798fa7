"""What the replicas of a real cluster hold, read from copies of their log directories: ``laststand autopsy``."""
