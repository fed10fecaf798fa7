package hazards;

import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/** Nothing fails: brokers get metadata late while a topic is deleted and created again. */
class S41Test {
    @Test
    void recordsForANewTopicAreNotAppendedToTheOneBefore() throws Exception {
        try (Cluster cluster = new Cluster(4)) {
            cluster.createTopic(2, Map.of(0, List.of(0, 1, 2)));
            cluster.produce(0, 50, "all");
            for (int replica : List.of(0, 1, 2)) {
                cluster.holdMetadata(replica);
            }
            cluster.deleteTopic();
            cluster.createTopic(2, Map.of(0, List.of(0, 1, 2)));
            cluster.awaitTopicOn(3);
            try {
                cluster.sendByMetadataOf(3, 0, 50, "all").get(60, TimeUnit.SECONDS);
            } catch (ExecutionException refused) {
                return; // As it should be: broker 0 does not know of the topic that the producer means.
            }
            for (int replica : List.of(0, 1, 2)) {
                cluster.releaseMetadata(replica);
            }
            cluster.awaitLogEnd(0, 0, 0);
            cluster.assertAcknowledgedRecordsAreRead(0, "broker 0 appended them to the topic of that name that had been deleted, and "
                + "deleted them with it");
        }
    }
}
