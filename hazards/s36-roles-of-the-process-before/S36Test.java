package hazards;

import org.apache.kafka.common.ElectionType;

import org.junit.jupiter.api.Test;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** One power loss, where min ISR allows one; another broker was stopped in order for a while. */
class S36Test {
    @Test
    void aBrokerTakesNoRoleBeforeItIsRegistered() throws Exception {
        try (Cluster cluster = new Cluster(3, Map.of(
                "replica.lag.time.max.ms", "240000", "broker.session.timeout.ms", "20000"))) {
            cluster.createTopic(2, Map.of(0, List.of(0, 1, 2)));
            cluster.produce(0, 50, "all");
            for (int follower : List.of(1, 2)) {
                cluster.awaitLogEnd(follower, 0, 50);
                cluster.freezeFetching(follower);
            }
            cluster.produce(0, 50, "1"); // broker 0 alone has these
            cluster.stop(0);
            cluster.awaitLeader(0, 1);
            cluster.produce(0, 50, "all"); // brokers 1 and 2 have others
            Path synced = cluster.copySegments(1, 0);
            cluster.produce(0, 50, "all");
            cluster.reassign(0, 2, 1, 0);
            cluster.electLeader(ElectionType.PREFERRED, 0);
            cluster.awaitWrittenEpochs(2, 0, 3);
            cluster.produce(0, 50, "all");
            cluster.reassign(0, 1, 0, 2);
            cluster.electLeader(ElectionType.PREFERRED, 0);
            cluster.awaitWrittenEpochs(1, 0, 4);
            cluster.produce(0, 50, "all");
            cluster.awaitWrittenEpochs(2, 0, 4);

            cluster.vanish(1);
            cluster.restoreSegments(1, 0, synced); // a power loss takes its last 150 records
            cluster.start(1); // within its session: it leads by the metadata of the process before it, and is registered after that
            cluster.awaitLeader(0, 2);
            cluster.awaitIsr(0, 1, 2);
            cluster.stop(2);
            cluster.awaitLeader(0, 1);
            cluster.start(0);
            cluster.awaitIsr(0, 0, 1);
            cluster.stop(1);
            cluster.awaitLeader(0, 0);
            cluster.start(1);
            cluster.start(2);
            cluster.awaitIsr(0, 0, 1, 2);
            cluster.assertAcknowledgedRecordsAreRead(0, "broker 1 led by old metadata before it was registered, noted that its epoch "
                + "begins where its log ended, and so forgot where epochs begin once it followed; it did not see that broker 0 has "
                + "other records below, which joined the ISR, and leads");
        }
    }
}
