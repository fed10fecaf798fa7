"""gRPC between nodes: messages of the core in, messages of the core out; protobuf stays inside this package."""
