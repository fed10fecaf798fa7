package org.apache.kafka.common.test;

import java.util.Map;

/**
 * Stands for the class of this name in the test kit of Kafka 4.4, which makes keys for every cluster by classes whose jar is not
 * published. No listener here uses TLS. Older kits have no such class.
 */
public class SslManager {
    public Map<String, Object> createSslConfig() {
        return Map.of();
    }

    public Map<String, Object> createClientSslConfig() {
        return Map.of();
    }

    public void close() {
    }
}
