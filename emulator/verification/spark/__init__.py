"""The Spark session, its JVM and its executors. Nothing here knows what a run holds."""
