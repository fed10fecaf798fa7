"""Files: partition logs in Apache Kafka's formats, the controller's metadata log, and what a power loss does to both.

All file access goes through ``filesystem.FileSystem``; the folder's README has a map.
"""
