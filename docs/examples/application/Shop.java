import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** A shop in Java: an application under test, which knows nothing of Laststand. */
class Shop {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> properties =
                Map.of("bootstrap.servers", System.getenv("BOOTSTRAP_SERVERS"), "client.id", "java-shop", "acks", "all");
        try (Producer<String, String> shop =
                new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
            for (int order = 0; order < 100; order++) {
                shop.send(new ProducerRecord<>("orders", "java-" + order, "order " + order)).get();
            }
        }
    }
}
