"""Apache Kafka's own formats: metadata records, and its protocol on a socket."""
