package hazards;

import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;

/** One broker is killed, and loses nothing of its page cache. */
class S51Test {
    @Test
    void aLogStartThatWasLeftBehindStaysBehind() throws Exception {
        try (Cluster cluster = new Cluster(3, Map.of("log.flush.start.offset.checkpoint.interval.ms", "600000"))) {
            cluster.createTopic(1, Map.of(0, List.of(0, 1, 2)));
            cluster.stop(1);
            cluster.stop(2);
            cluster.produce(0, 50, "1");
            cluster.produce(0, 10, "1");
            cluster.deleteRecords(0, 50);
            cluster.stop(0); // and broker 0 has written that its log starts at 50

            cluster.acknowledgeOthersWithoutBroker0();

            cluster.start(0); // it cuts its log to 0, below its log start, and copies what the leader has
            cluster.awaitIsr(0, 0, 1, 2);
            cluster.produce(0, 50, "all");
            cluster.awaitLogEnd(0, 0, 100);
            cluster.kill(0);
            cluster.start(0);
            cluster.haveBroker0LeadAgain();
            cluster.produce(0, 50, "all");
            cluster.assertAcknowledgedRecordsAreRead(0, "broker 0 had cut its log below its log start without writing that down; after "
                + "a kill its log started at 50 again, it led, and all replicas deleted what they had below");
        }
    }
}
