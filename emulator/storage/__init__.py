"""Files: partition logs in Apache Kafka's formats, the controller's metadata log, and what a power loss does to both.

Everything below goes through ``filesystem.FileSystem``; see the folder's README for a map.
"""
