package hazards;

import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import kafka.tools.StorageTool;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.utils.Time;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.stream.Collectors;

import scala.Option;

/**
 * Controllers, mostly one, and some brokers of Apache Kafka in this JVM: what its start-up class makes of directories that its storage
 * tool has formatted. Kafka's own tests have a kit for that, which 4.0 does not publish, and which differs from release to
 * release; these classes do not, from 3.9 on.
 */
final class Servers {
    /** Whether this release has eligible leader replicas (KIP-966); formatted clusters have the feature then. */
    static final boolean HAVE_ELR = exists("org.apache.kafka.server.common.EligibleLeaderReplicasVersion");
    private static final int CONTROLLER = 3000;

    final String clusterId = Uuid.randomUuid().toString();
    /** Those that run, by their places: 0, 1, 2. */
    final Map<Integer, ControllerServer> controllers = new TreeMap<>();
    final Map<Integer, BrokerServer> brokers = new HashMap<>();
    private final Path directory = Files.createTempDirectory("hazards");
    private final Map<Integer, Integer> controllerPorts = new TreeMap<>();
    private final Map<String, String> properties;

    /** Starts controllers, which are static voters, and brokers 0, 1, 2, … with properties of their own. */
    Servers(int controllers, int brokers, Map<String, String> properties) throws Exception {
        this.properties = properties;
        for (int place = 0; place < controllers; place++) {
            try (ServerSocket free = new ServerSocket(0)) {
                controllerPorts.put(CONTROLLER + place, free.getLocalPort());
            }
        }
        for (int place = 0; place < controllers; place++) {
            startController(place);
        }
        for (int broker = 0; broker < brokers; broker++) {
            BrokerServer server = server(broker, "broker");
            server.startup();
            this.brokers.put(broker, server);
        }
    }

    /** The log directory of a node. */
    Path directory(int node) {
        return directory.resolve(String.valueOf(node));
    }

    String bootstrapServers(Collection<Integer> running) {
        return running.stream().map(broker -> "localhost:" + brokers.get(broker).boundPort(new ListenerName("PLAINTEXT")))
            .collect(Collectors.joining(","));
    }

    String bootstrapControllers() {
        return controllerPorts.values().stream().map(port -> "localhost:" + port).collect(Collectors.joining(","));
    }

    /** Starts a controller that is down, and formats its directory if there is none. */
    void startController(int place) throws Exception {
        ControllerServer server = server(CONTROLLER + place, "controller");
        server.startup();
        controllers.put(place, server);
    }

    void stopController(int place) {
        controllers.remove(place).shutdown();
    }

    /** Gives a controller that is down an empty disk. */
    void replaceControllerDisk(int place) throws IOException {
        Cluster.delete(directory(CONTROLLER + place));
    }

    @SuppressWarnings("unchecked")
    private <T> T server(int node, String role) throws Exception {
        Properties all = new Properties();
        all.putAll(properties);
        all.put("node.id", String.valueOf(node));
        all.put("process.roles", role);
        all.put("listeners", role.equals("broker") ? "PLAINTEXT://localhost:0" : "CONTROLLER://localhost:" + controllerPorts.get(node));
        all.put("listener.security.protocol.map", "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT");
        all.put("controller.listener.names", "CONTROLLER");
        all.put("controller.quorum.voters", controllerPorts.entrySet().stream()
            .map(voter -> voter.getKey() + "@localhost:" + voter.getValue()).collect(Collectors.joining(",")));
        all.put("log.dirs", directory(node).toString());
        if (Files.notExists(directory(node))) {
            Files.createDirectory(directory(node));
            format(all);
        }
        KafkaRaftServer server = new KafkaRaftServer(new KafkaConfig(all), Time.SYSTEM);
        Field part = KafkaRaftServer.class.getDeclaredField(role);
        part.setAccessible(true);
        return ((Option<T>) part.get(server)).get();
    }

    private void format(Properties properties) throws IOException {
        Path file = Files.createTempFile(directory, "server", ".properties");
        try (var out = Files.newOutputStream(file)) {
            properties.store(out, null);
        }
        List<String> command = new ArrayList<>(List.of("format", "--cluster-id", clusterId, "--config", file.toString()));
        if (HAVE_ELR) {
            command.addAll(List.of("--feature", "eligible.leader.replicas.version=1"));
        }
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        if (StorageTool.execute(command.toArray(String[]::new), new PrintStream(said)) != 0) {
            throw new IllegalStateException(said.toString());
        }
    }

    /** Ends the controllers; brokers have to be down. */
    void close() throws IOException {
        controllers.values().forEach(ControllerServer::shutdown);
        Cluster.delete(directory);
    }

    private static boolean exists(String name) {
        try {
            Class.forName(name, false, Servers.class.getClassLoader());
            return true;
        } catch (ClassNotFoundException absent) {
            return false;
        }
    }
}
