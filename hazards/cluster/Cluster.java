package hazards;

import kafka.server.BrokerServer;
import kafka.server.ControllerServer;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.DuplicateBrokerRegistrationException;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.controller.ControllerRequestContext;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.TopicImage;
import org.apache.kafka.image.loader.LoaderManifest;
import org.apache.kafka.image.loader.MetadataLoader;
import org.apache.kafka.image.publisher.MetadataPublisher;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.PartitionRegistration;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Collectors;

import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordingFile;

import static org.junit.jupiter.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

/**
 * KRaft controllers, mostly one, and some brokers of Apache Kafka in this JVM, with clients of their own, and what breaks them.
 * Brokers are 0, 1, 2, …; the topic is "orders". Every method waits, with a deadline, until what it asked for has happened.
 */
final class Cluster implements AutoCloseable {
    static final String TOPIC = "orders";
    private static final Duration DEADLINE = Duration.ofSeconds(60);

    private final Servers servers;
    private final Set<Integer> running = new HashSet<>();
    private final Map<Integer, Set<String>> acknowledged = new ConcurrentHashMap<>();
    private int sent = 0;
    private int holds = 0;
    /** What holds the metadata of brokers, by broker. */
    private final Map<Integer, CountDownLatch> gates = new ConcurrentHashMap<>();
    /** The metadata as the controller has it. */
    private volatile MetadataImage metadata = MetadataImage.EMPTY;

    /** Starts a cluster; its partitions have eligible leader replicas (KIP-966) where the release has them. */
    Cluster(int brokers) throws Exception {
        this(brokers, Map.of());
    }

    Cluster(int brokers, Map<String, String> properties) throws Exception {
        this(1, brokers, properties);
    }

    /** Starts a cluster whose controllers are static voters (kraft.version 0). */
    Cluster(int controllers, int brokers, Map<String, String> properties) throws Exception {
        Map<String, String> all = new HashMap<>(Map.of(
            "broker.session.timeout.ms", "10000",
            "broker.heartbeat.interval.ms", "500",
            "replica.lag.time.max.ms", "20000",
            "auto.leader.rebalance.enable", "false",
            "num.network.threads", "1",
            "num.io.threads", "2"));
        all.putAll(properties);
        servers = new Servers(controllers, brokers, all);
        running.addAll(servers.brokers.keySet());
        for (ControllerServer controller : servers.controllers.values()) {
            observe(controller);
        }
    }

    /** Has a test end here where this release has no eligible leader replicas: it cannot have the hazard. */
    static void assumeEligibleLeaderReplicas() {
        assumeTrue(Servers.HAVE_ELR, "this release has no eligible leader replicas");
    }

    BrokerServer broker(int broker) {
        return servers.brokers.get(broker);
    }

    // What an administrator asks for

    void createTopic(int minInSyncReplicas, Map<Integer, List<Integer>> replicas) throws Exception {
        createTopic(replicas, Map.of("min.insync.replicas", String.valueOf(minInSyncReplicas)));
    }

    void createTopic(Map<Integer, List<Integer>> replicas, Map<String, String> configs) throws Exception {
        try (Admin admin = admin()) {
            admin.createTopics(List.of(new NewTopic(TOPIC, replicas).configs(configs))).all().get();
        }
        for (int partition : replicas.keySet()) {
            awaitIsr(partition, replicas.get(partition).toArray(Integer[]::new));
        }
    }

    /** Deletes the topic; nothing that was acknowledged for it is a promise any more. */
    void deleteTopic() throws Exception {
        try (Admin admin = admin()) {
            admin.deleteTopics(Set.of(TOPIC)).all().get();
        }
        await("the topic is deleted", () -> metadata.topics().getTopic(TOPIC) == null);
        acknowledged.clear();
    }

    /** Sets min ISR, and waits for the brokers that get metadata. */
    void setMinInSyncReplicas(int minInSyncReplicas) throws Exception {
        String value = String.valueOf(minInSyncReplicas);
        setConfig("min.insync.replicas", value);
        await("brokers have the new min ISR", () -> running.stream().filter(broker -> !gates.containsKey(broker)).allMatch(
            broker -> value.equals(broker(broker).metadataCache().topicConfig(TOPIC).get("min.insync.replicas"))));
    }

    private void setConfig(String name, String value) throws Exception {
        try (Admin admin = admin()) {
            admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.TOPIC, TOPIC),
                List.of(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)))).all().get();
        }
    }

    void updateFeature(String feature, short level, FeatureUpdate.UpgradeType type) throws Exception {
        Properties properties = new Properties();
        properties.put(AdminClientConfig.BOOTSTRAP_CONTROLLERS_CONFIG, servers.bootstrapControllers());
        try (Admin admin = Admin.create(properties)) {
            admin.updateFeatures(Map.of(feature, new FeatureUpdate(level, type)), new UpdateFeaturesOptions()).all().get();
        }
    }

    /** Starts a reassignment and does not wait for its end. */
    void reassign(int partition, Integer... replicas) throws Exception {
        try (Admin admin = admin()) {
            admin.alterPartitionReassignments(Map.of(at(partition),
                Optional.of(new NewPartitionReassignment(List.of(replicas))))).all().get();
        }
    }

    void cancelReassignment(int partition) throws Exception {
        try (Admin admin = admin()) {
            admin.alterPartitionReassignments(Map.of(at(partition), Optional.empty())).all().get();
        }
    }

    void electLeader(ElectionType type, int partition) throws Exception {
        try (Admin admin = admin()) {
            admin.electLeaders(type, Set.of(at(partition))).all().get();
        }
    }

    void deleteRecords(int partition, long beforeOffset) throws Exception {
        try (Admin admin = admin()) {
            admin.deleteRecords(Map.of(at(partition), RecordsToDelete.beforeOffset(beforeOffset))).all().get();
        }
    }

    // What happens to brokers

    /** Stops a broker in order: by a controlled shutdown, with its logs synced and its clean-shutdown file written. */
    void stop(int broker) throws Exception {
        broker(broker).shutdown();
        running.remove(broker);
        await("broker " + broker + " is fenced", () -> isFenced(broker));
    }

    void start(int broker) throws Exception {
        broker(broker).startup();
        running.add(broker);
        await("broker " + broker + " is unfenced", () -> !isFenced(broker));
    }

    /** Leaves a broker that is down with a disk that has nothing but its identity. */
    void loseDisk(int broker) throws IOException {
        try (var entries = Files.newDirectoryStream(servers.directory(broker))) {
            for (Path entry : entries) {
                if (!entry.endsWith("meta.properties") && !entry.getFileName().toString().startsWith("__cluster")) {
                    delete(entry);
                }
            }
        }
    }

    /**
     * Ends a broker that is not a leader as a kill does: its files are what they were a moment before it ended.
     * A kill loses nothing of the page cache; what the broker had not written yet is not there.
     */
    void kill(int broker) throws Exception {
        endAsKilled(broker, () -> stop(broker));
    }

    /** Ends a broker as {@link #kill} does, and without a word to the controller, which will not miss it before its session ends. */
    void vanish(int broker) throws Exception {
        endAsKilled(broker, () -> {
            broker(broker).lifecycleManager().close(); // no heartbeat, and no wish for a controlled shutdown
            broker(broker).shutdown();
            running.remove(broker);
        });
    }

    private void endAsKilled(int broker, ThrowingRunnable end) throws Exception {
        Path image = copy(servers.directory(broker), Files.createTempDirectory("killed"));
        end.run();
        loseDisk(broker);
        copy(image, servers.directory(broker));
        delete(image);
    }

    /** Copies what a broker has of a partition's segments; it is down, or nothing is written. */
    Path copySegments(int broker, int partition) throws IOException {
        Path copy = Files.createTempDirectory("segments");
        replaceSegments(log(broker, partition), copy);
        return copy;
    }

    /** Begins to record what this JVM syncs, by its Flight Recorder. */
    static Recording recordSyncs() {
        Recording syncs = new Recording();
        syncs.enable("jdk.FileForce").withThreshold(Duration.ZERO);
        syncs.start();
        return syncs;
    }

    /** Ends a recording, and returns whether it saw a sync of a segment of a broker's log. */
    boolean hasSyncedSegments(Recording syncs, int broker, int partition) throws IOException {
        Path file = Files.createTempFile("syncs", ".jfr");
        try (syncs) {
            syncs.stop();
            syncs.dump(file);
            return RecordingFile.readAllEvents(file).stream().map(event -> Path.of(event.getString("path")))
                .anyMatch(synced -> synced.getParent().equals(log(broker, partition)) && synced.toString().endsWith(".log"));
        } finally {
            Files.delete(file);
        }
    }

    /** Gives a broker that is down the segments of a copy; its checkpoints stay. */
    void restoreSegments(int broker, int partition, Path copy) throws IOException {
        replaceSegments(copy, log(broker, partition));
    }

    // What happens to controllers

    /** Returns the place of the active controller, once there is one. */
    int activeController() throws Exception {
        await("a controller is active", () -> servers.controllers.values().stream().anyMatch(Cluster::isActive));
        return servers.controllers.entrySet().stream().filter(place -> isActive(place.getValue())).findFirst().get().getKey();
    }

    void stopController(int place) {
        servers.stopController(place);
    }

    void startController(int place) throws Exception {
        servers.startController(place);
        observe(servers.controllers.get(place));
    }

    /** Gives a controller that is down an empty disk, which the storage tool formats: with static voters it is the same voter. */
    void replaceControllerDisk(int place) throws IOException {
        servers.replaceControllerDisk(place);
    }

    /** Heartbeats in the place of a broker, so that its session outlasts those of others, until it leads a partition. */
    void keepAliveUntilItLeads(int broker, int partition) throws Exception {
        await("broker " + broker + " leads partition " + partition, () -> {
            // What was observed may still be the metadata of former controllers, or none.
            BrokerRegistration known = metadata.cluster().broker(broker);
            PartitionRegistration state = partition(partition);
            if (known == null || state == null) {
                return false;
            }
            controller().processBrokerHeartbeat(context(ApiKeys.BROKER_HEARTBEAT),
                new BrokerHeartbeatRequestData().setBrokerId(broker).setBrokerEpoch(known.epoch())
                    .setCurrentMetadataOffset(Long.MAX_VALUE).setWantFence(false)).get();
            return state.leader == broker;
        });
    }

    /** Stops a broker from fetching what it follows, until it follows a leader of another epoch. */
    void freezeFetching(int broker) {
        broker(broker).replicaManager().replicaFetcherManager().closeAllFetchers();
    }

    /** Holds metadata back from a broker; once released, it gets all at once, as after a lost connection. */
    void holdMetadata(int broker) throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        CountDownLatch isClosed = new CountDownLatch(1);
        CountDownLatch isInstalled = new CountDownLatch(1);
        observe(broker(broker).sharedServer().loader(), image -> {
            if (isInstalled.getCount() == 0 && gate.getCount() > 0) {
                isClosed.countDown();
                awaitQuietly(gate);
            }
        });
        isInstalled.countDown();
        gates.put(broker, gate);
        // The loader publishes one change more before it waits: this one, which means nothing.
        setConfig("file.delete.delay.ms", String.valueOf(60000 + ++holds));
        await("broker " + broker + " has no metadata any more", () -> isClosed.getCount() == 0);
    }

    void releaseMetadata(int broker) {
        gates.remove(broker).countDown();
    }

    /** Stops a broker in order while metadata is held back from it; releases it once another broker leads the partition. */
    void stopBehindMetadata(int broker, int partition, int nextLeader) throws Exception {
        CompletableFuture<Void> end = CompletableFuture.runAsync(() -> broker(broker).shutdown());
        awaitLeader(partition, nextLeader);
        releaseMetadata(broker);
        end.get(DEADLINE.toSeconds(), TimeUnit.SECONDS);
        running.remove(broker);
    }

    // What brokers send to the controller, sent by the test

    /** Registers a broker that is down, as its next process does; returns its new epoch. It is fenced. */
    long register(int broker, long previousBrokerEpoch) throws Exception {
        BrokerRegistration last = metadata.cluster().broker(broker);
        BrokerRegistrationRequestData request = new BrokerRegistrationRequestData()
            .setBrokerId(broker)
            .setClusterId(servers.clusterId)
            .setIncarnationId(Uuid.randomUuid())
            .setPreviousBrokerEpoch(previousBrokerEpoch)
            .setLogDirs(last.directories());
        last.listeners().forEach((name, endpoint) -> request.listeners().add(new BrokerRegistrationRequestData.Listener()
            .setName(name).setHost(endpoint.host()).setPort(endpoint.port())
            .setSecurityProtocol(endpoint.securityProtocol().id)));
        last.supportedFeatures().forEach((name, versions) -> request.features().add(new BrokerRegistrationRequestData.Feature()
            .setName(name).setMinSupportedVersion(versions.min()).setMaxSupportedVersion(versions.max())));
        await("broker " + broker + " is registered anew, once its session has expired", () -> {
            try {
                controller().registerBroker(context(ApiKeys.BROKER_REGISTRATION), request).get();
            } catch (ExecutionException refused) {
                if (refused.getCause() instanceof DuplicateBrokerRegistrationException) {
                    return false;
                }
                throw refused;
            }
            return metadata.cluster().broker(broker).incarnationId().equals(request.incarnationId());
        });
        return brokerEpoch(broker);
    }

    /** Has the controller unfence a broker that the test registered. */
    void unfence(int broker, long brokerEpoch) throws Exception {
        await("broker " + broker + " is unfenced", () -> !controller().processBrokerHeartbeat(
            context(ApiKeys.BROKER_HEARTBEAT),
            new BrokerHeartbeatRequestData().setBrokerId(broker).setBrokerEpoch(brokerEpoch)
                .setCurrentMetadataOffset(Long.MAX_VALUE).setWantFence(false)).get().isFenced());
        await("broker " + broker + " is unfenced", () -> !isFenced(broker));
    }

    long brokerEpoch(int broker) {
        return metadata.cluster().broker(broker).epoch();
    }

    /** A leader's request to change the ISR of a partition as it is now. */
    AlterPartitionRequestData isrChange(int leader, int partition, Integer... isr) {
        PartitionRegistration state = partition(partition);
        AlterPartitionRequestData.PartitionData change = new AlterPartitionRequestData.PartitionData()
            .setPartitionIndex(partition)
            .setLeaderEpoch(state.leaderEpoch)
            .setPartitionEpoch(state.partitionEpoch)
            .setNewIsrWithEpochs(java.util.Arrays.stream(isr).map(broker -> new AlterPartitionRequestData.BrokerState()
                .setBrokerId(broker).setBrokerEpoch(brokerEpoch(broker))).collect(Collectors.toList()));
        return new AlterPartitionRequestData().setBrokerId(leader).setBrokerEpoch(brokerEpoch(leader)).setTopics(List.of(
            new AlterPartitionRequestData.TopicData().setTopicId(metadata.topics().getTopic(TOPIC).id())
                .setPartitions(List.of(change))));
    }

    /** Delivers a request to the controller, and returns its answer for the one partition. */
    Errors deliver(AlterPartitionRequestData request) throws Exception {
        return Errors.forCode(controller().alterPartition(context(ApiKeys.ALTER_PARTITION), request.duplicate()).get()
            .topics().get(0).partitions().get(0).errorCode());
    }

    // What clients see

    /** Sends records and returns once all are acknowledged; those of acks=all must be read in the end. */
    void produce(int partition, int records, String acks) throws Exception {
        send(partition, records, acks).get(DEADLINE.toSeconds(), TimeUnit.SECONDS);
    }

    /** Sends records once each, and returns what completes once all are acknowledged. */
    CompletableFuture<Void> send(int partition, int records, String acks) {
        return send(partition, records, acks, running, Integer.MAX_VALUE);
    }

    /** Sends records by the metadata that one broker has; what is refused is not sent again. */
    CompletableFuture<Void> sendByMetadataOf(int broker, int partition, int records, String acks) {
        return send(partition, records, acks, Set.of(broker), 0);
    }

    private CompletableFuture<Void> send(int partition, int records, String acks, Set<Integer> bootstrapBrokers, int retries) {
        Properties properties = new Properties();
        properties.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, servers.bootstrapServers(bootstrapBrokers));
        properties.put(ProducerConfig.ACKS_CONFIG, acks);
        properties.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, "false");
        properties.put(ProducerConfig.RETRIES_CONFIG, String.valueOf(retries));
        properties.put(ProducerConfig.REQUEST_TIMEOUT_MS_CONFIG, "240000"); // nothing is sent again that may have been appended
        properties.put(ProducerConfig.DELIVERY_TIMEOUT_MS_CONFIG, "250000");
        KafkaProducer<String, String> producer =
            new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
        CompletableFuture<?>[] answers = new CompletableFuture<?>[records];
        for (int i = 0; i < records; i++) {
            String value = "record-" + sent++;
            CompletableFuture<Void> answer = new CompletableFuture<>();
            answers[i] = answer;
            producer.send(new ProducerRecord<>(TOPIC, partition, null, value), (metadata, error) -> {
                if (error != null) {
                    answer.completeExceptionally(error);
                    return;
                }
                if (acks.equals("all")) {
                    acknowledged.computeIfAbsent(partition, any -> ConcurrentHashMap.newKeySet()).add(value);
                }
                answer.complete(null);
            });
        }
        return CompletableFuture.allOf(answers).whenCompleteAsync((done, error) -> producer.close(Duration.ZERO));
    }

    /** Returns whether all that was sent is acknowledged within a minute. */
    static boolean isAcknowledged(CompletableFuture<Void> sent) throws Exception {
        try {
            sent.get(DEADLINE.toSeconds(), TimeUnit.SECONDS);
            return true;
        } catch (TimeoutException waits) {
            return false;
        }
    }

    /** While broker 0 is down, broker 1, which never had its records, is elected, and 50 others are acknowledged by ISR 1, 2. */
    void acknowledgeOthersWithoutBroker0() throws Exception {
        start(1);
        electLeader(ElectionType.UNCLEAN, 0);
        awaitLeader(0, 1);
        start(2);
        awaitIsr(0, 1, 2);
        setMinInSyncReplicas(2);
        produce(0, 50, "all");
    }

    /** Broker 0, which runs again, joins the ISR, and leads by a preferred election. */
    void haveBroker0LeadAgain() throws Exception {
        awaitIsr(0, 0, 1, 2);
        electLeader(ElectionType.PREFERRED, 0);
        awaitLeader(0, 0);
    }

    /** Fails if a consumer that reads the partition from its beginning does not get every record acknowledged with acks=all. */
    void assertAcknowledgedRecordsAreRead(int partition, String why) throws Exception {
        Set<String> lost = new LinkedHashSet<>(acknowledged.get(partition));
        int expected = lost.size();
        lost.removeAll(read(partition));
        if (!lost.isEmpty()) {
            fail(lost.size() + " of " + expected + " records that were acknowledged with acks=all are gone: " + why);
        }
    }

    private List<String> read(int partition) {
        Properties properties = new Properties();
        properties.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, servers.bootstrapServers(running));
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer =
                 new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(List.of(at(partition)));
            consumer.seekToBeginning(List.of(at(partition)));
            long end = consumer.endOffsets(List.of(at(partition)), DEADLINE).get(at(partition));
            while (consumer.position(at(partition), DEADLINE) < end) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                    values.add(record.value());
                }
            }
        }
        return values;
    }

    // What the controller has decided

    PartitionRegistration partition(int partition) {
        TopicImage topic = metadata.topics().getTopic(TOPIC);
        return topic == null ? null : topic.partitions().get(partition);
    }

    void awaitIsr(int partition, Integer... brokers) throws Exception {
        awaitPartition(partition, "ISR " + List.of(brokers), state -> setOf(state.isr).equals(Set.of(brokers)));
    }

    void awaitReplicas(int partition, Integer... brokers) throws Exception {
        awaitPartition(partition, "replicas " + List.of(brokers) + " and no reassignment", state ->
            setOf(state.replicas).equals(Set.of(brokers)) && state.addingReplicas.length + state.removingReplicas.length == 0);
    }

    void awaitLeader(int partition, int broker) throws Exception {
        awaitPartition(partition, "leader " + broker, state -> state.leader == broker);
    }

    void awaitPartition(int partition, String what, Function<PartitionRegistration, Boolean> holds) throws Exception {
        await("partition " + partition + " has " + what, () -> {
            PartitionRegistration state = partition(partition);
            return state != null && holds.apply(state);
        });
    }

    /** Waits until a broker has the topic as the controller has it. */
    void awaitTopicOn(int broker) throws Exception {
        await("broker " + broker + " has the topic", () ->
            broker(broker).metadataCache().getTopicId(TOPIC).equals(metadata.topics().getTopic(TOPIC).id()));
    }

    /** Waits until a broker has no log of a partition, or has one. */
    void awaitLog(int broker, int partition, boolean exists) throws Exception {
        await("broker " + broker + (exists ? " has a" : " has no") + " log of partition " + partition, () ->
            broker(broker).logManager().getLog(at(partition), false).isEmpty() != exists);
    }

    void awaitLogEnd(int broker, int partition, long end) throws Exception {
        await("the log of broker " + broker + " ends at " + end, () -> {
            var log = broker(broker).logManager().getLog(at(partition), false);
            return !log.isEmpty() && log.get().logEndOffset() == end;
        });
    }

    /** Waits until a leader knows from a follower's fetches that its log ends there. */
    void awaitSeenLogEnd(int leader, int partition, int follower, long end) throws Exception {
        await("broker " + leader + " has seen the log of broker " + follower + " end at " + end, () -> {
            var replica = broker(leader).replicaManager().getPartitionOrException(at(partition)).getReplica(follower);
            return !replica.isEmpty() && replica.get().stateSnapshot().logEndOffset() == end;
        });
    }

    /** Waits until a broker's checkpoint of leader epochs has so many entries of a partition. */
    void awaitWrittenEpochs(int broker, int partition, int entries) throws Exception {
        Path checkpoint = log(broker, partition).resolve("leader-epoch-checkpoint");
        await(checkpoint + " has " + entries + " entries", () ->
            Files.readAllLines(checkpoint).get(1).equals(String.valueOf(entries)));
    }

    static void await(String what, Callable<Boolean> holds) throws Exception {
        long deadline = System.nanoTime() + DEADLINE.toNanos();
        while (!holds.call()) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("not seen within " + DEADLINE.toSeconds() + " s: " + what);
            }
            Thread.sleep(50);
        }
    }

    @Override
    public void close() throws Exception {
        gates.values().forEach(CountDownLatch::countDown);
        for (int broker : running) {
            broker(broker).shutdown(Duration.ofSeconds(1));
        }
        servers.close();
    }

    private boolean isFenced(int broker) {
        BrokerRegistration registration = metadata.cluster().broker(broker);
        return registration == null || registration.fenced();
    }

    private Controller controller() throws Exception {
        return servers.controllers.get(activeController()).controller();
    }

    private static boolean isActive(ControllerServer server) {
        return server.controller().isActive();
    }

    private void observe(ControllerServer controller) throws Exception {
        observe(controller.sharedServer().loader(), image -> metadata = image);
    }

    private static ControllerRequestContext context(ApiKeys request) {
        RequestHeaderData header = new RequestHeaderData()
            .setRequestApiKey(request.id).setRequestApiVersion(request.latestVersion());
        return new ControllerRequestContext(header, KafkaPrincipal.ANONYMOUS, OptionalLong.empty());
    }

    private interface ThrowingRunnable {
        void run() throws Exception;
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    private static void observe(MetadataLoader loader, Consumer<MetadataImage> observer) throws Exception {
        loader.installPublishers(List.of(new MetadataPublisher() {
            @Override
            public String name() {
                return "hazards-" + System.identityHashCode(this);
            }

            @Override
            public void onMetadataUpdate(MetadataDelta delta, MetadataImage image, LoaderManifest manifest) {
                observer.accept(image);
            }
        })).get();
    }

    private Admin admin() {
        Properties properties = new Properties();
        properties.put(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, servers.bootstrapServers(running));
        return Admin.create(properties);
    }

    private Path log(int broker, int partition) {
        return servers.directory(broker).resolve(TOPIC + "-" + partition);
    }

    static TopicPartition at(int partition) {
        return new TopicPartition(TOPIC, partition);
    }

    private static Set<Integer> setOf(int[] brokers) {
        return java.util.Arrays.stream(brokers).boxed().collect(Collectors.toSet());
    }

    private static boolean isOfSegment(Path file) {
        return file.getFileName().toString().matches("\\d{20}\\..*");
    }

    private static void replaceSegments(Path from, Path to) throws IOException {
        try (var files = Files.newDirectoryStream(to, Cluster::isOfSegment)) {
            for (Path file : files) {
                Files.delete(file);
            }
        }
        try (var files = Files.newDirectoryStream(from, Cluster::isOfSegment)) {
            for (Path file : files) {
                Files.copy(file, to.resolve(file.getFileName()));
            }
        }
    }

    /** Copies a tree over another. */
    private static Path copy(Path from, Path to) throws IOException {
        try (var paths = Files.walk(from)) {
            for (Path path : (Iterable<Path>) paths::iterator) {
                Path target = to.resolve(from.relativize(path).toString());
                if (Files.isDirectory(path)) {
                    Files.createDirectories(target);
                } else {
                    Files.copy(path, target, StandardCopyOption.REPLACE_EXISTING);
                }
            }
        }
        return to;
    }

    static void delete(Path path) throws IOException {
        Files.walkFileTree(path, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
                Files.delete(file);
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult postVisitDirectory(Path directory, IOException error) throws IOException {
                Files.delete(directory);
                return FileVisitResult.CONTINUE;
            }
        });
    }
}
