import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;

/** What a shop was told is stored outlives its leader's loss of power. */
class ShopTest {
    @Test
    void ordersOutliveTheirLeader() throws Exception {
        String printed = laststand("up", "--name", "shop", "--kafka");
        String servers = printed.lines().filter(line -> line.contains("bootstrap.servers=")).findFirst().orElseThrow();
        Map<String, Object> properties = Map.of("bootstrap.servers", servers.split("=")[1], "client.id", "shop");
        try (Admin admin = Admin.create(properties);
                Producer<String, String> shop =
                        new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
            NewTopic orders = new NewTopic("orders", 1, (short) 3).configs(Map.of("min.insync.replicas", "2"));
            admin.createTopics(List.of(orders)).all().get();
            for (int order = 0; order < 100; order++) {
                shop.send(new ProducerRecord<>("orders", "order " + order)).get();
                if (order == 50) laststand("chaos", "step", "--dir", "shop", "power_loss: {node: leader(orders-0), keep: none}");
            }
        } finally {
            laststand("down", "shop");
        }
        laststand("verify", "shop");
    }

    private static String laststand(String... arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of("laststand"));
        command.addAll(List.of(arguments));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String printed = new String(process.getInputStream().readAllBytes());
        assertEquals(0, process.waitFor(), printed);
        return printed;
    }
}
