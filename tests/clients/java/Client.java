import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A client of the tests, see README.md: Client SERVERS create|produce|consume|pipe TOPIC. */
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
            case "pipe" -> pipe(properties, topic);
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

    private static void pipe(Properties properties, String topic) {
        properties.put("enable.auto.commit", "false");
        properties.put("auto.offset.reset", "earliest");
        properties.put("isolation.level", "read_committed");
        properties.put("group.id", topic);
        properties.put("max.poll.records", "5");
        properties.put("transactional.id", topic);
        try (KafkaProducer<String, String> producer =
                        new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
                KafkaConsumer<String, String> consumer =
                        new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer())) {
            producer.initTransactions();
            consumer.subscribe(List.of(topic));
            while (true) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                if (records.isEmpty()) {
                    continue;
                }
                Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
                producer.beginTransaction();
                try {
                    for (ConsumerRecord<String, String> record : records) {
                        producer.send(new ProducerRecord<>(topic + "-out", record.value()));
                        TopicPartition partition = new TopicPartition(record.topic(), record.partition());
                        positions.put(partition, new OffsetAndMetadata(record.offset() + 1));
                    }
                    producer.sendOffsetsToTransaction(positions, consumer.groupMetadata());
                    producer.commitTransaction();
                    records.forEach(record -> say("piped " + record.value()));
                } catch (ProducerFencedException error) {
                    throw error;
                } catch (KafkaException error) {
                    producer.abortTransaction();
                    rewind(consumer);
                }
            }
        } catch (RuntimeException error) {
            say("error " + error);
            System.exit(1);
        }
    }

    private static void rewind(KafkaConsumer<String, String> consumer) {
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
        committed.forEach((partition, position) -> {
            if (position == null) {
                consumer.seekToBeginning(List.of(partition));
            } else {
                consumer.seek(partition, position);
            }
        });
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
