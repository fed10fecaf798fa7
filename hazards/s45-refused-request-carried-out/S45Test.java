package hazards;

import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.protocol.Errors;

import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;

import static org.junit.jupiter.api.Assertions.assertEquals;

/** One request is sent twice, and its first copy arrives after its second. */
class S45Test {
    @Test
    void aRefusedRequestIsNotCarriedOutLater() throws Exception {
        try (Cluster cluster = new Cluster(3)) {
            cluster.createTopic(2, Map.of(0, List.of(0, 2, 1)));
            cluster.produce(0, 50, "all");
            cluster.stop(2);
            cluster.awaitIsr(0, 0, 1);

            long epoch = cluster.register(2, cluster.brokerEpoch(2)); // broker 2 comes back, and is fenced
            AlterPartitionRequestData request = cluster.isrChange(0, 0, 0, 1, 2);
            assertEquals(Errors.INELIGIBLE_REPLICA, cluster.deliver(request));
            cluster.produce(0, 50, "all"); // by ISR 0 and 1: broker 2 lacks them

            cluster.unfence(2, epoch);
            Errors answer = cluster.deliver(request); // the copy that was delayed
            assertEquals(Errors.INVALID_UPDATE_VERSION, answer, "50 records that were acknowledged with acks=all are gone once "
                + "broker 0 stops: the controller refused to add broker 2 to the ISR, so that broker 0 acknowledged them without "
                + "it, and then added it by an older copy of the same request; broker 2 leads next, and lacks them");
        }
    }
}
