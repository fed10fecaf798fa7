"""The controller: decides on brokers, partitions and topics, and writes each decision down as metadata records."""
