import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A client of the tests, see README.md: Client SERVERS create|produce|consume TOPIC. */
public class Client {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("client.id", "java");
        String topic = arguments[2];
        switch (arguments[1]) {
            case "create" -> create(properties, topic);
            case "produce" -> produce(properties, topic);
            case "consume" -> consume(properties, topic);
            default -> throw new IllegalArgumentException(arguments[1]);
        }
    }

    private static void create(Properties properties, String topic) throws Exception {
        try (Admin admin = Admin.create(properties)) {
            NewTopic asked = new NewTopic(topic, 1, (short) 3).configs(Map.of("min.insync.replicas", "2"));
            admin.createTopics(List.of(asked)).all().get();
        }
        say("created " + topic);
    }

    private static void produce(Properties properties, String topic) throws Exception {
        properties.put("acks", "all");
        properties.put("enable.idempotence", "true");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String value = line;
                producer.send(new ProducerRecord<>(topic, value), (acked, error) -> say(
                        error == null ? "acked " + value + " " + acked.offset() : "failed " + value + " " + error));
            }
        }
    }

    private static void consume(Properties properties, String topic) throws Exception {
        properties.put("enable.auto.commit", "false");
        properties.put("auto.offset.reset", "earliest");
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            while (true) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    say("read " + record.value() + " " + record.offset());
                }
            }
        } catch (RuntimeException error) {
            say("error " + error);
            System.exit(1);
        }
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
