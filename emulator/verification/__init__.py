"""The oracle: judges runs from their files, with Spark. Import its modules directly; none imports pyspark at once."""
