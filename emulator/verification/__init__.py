"""The oracle: judges what runs left behind, with Spark. Import its modules directly; none imports pyspark at once."""
