"""What Apache Kafka itself writes and speaks: metadata records, and its protocol on a socket."""
