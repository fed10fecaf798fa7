// A client of the tests, see README.md: franz SERVERS create|produce|consume|pipe TOPIC.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	topic := os.Args[3]
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(os.Args[1], ",")...),
		kgo.ClientID("franz-go"),
		kgo.DefaultProduceTopic(topic),
	}
	if os.Args[2] == "consume" {
		options = append(options, kgo.ConsumePartitions(
			map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	}
	if os.Args[2] == "pipe" {
		pipe(options, topic)
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	switch os.Args[2] {
	case "create":
		create(client, topic)
	case "produce":
		produce(client)
	case "consume":
		consume(client)
	}
}

func create(client *kgo.Client, topic string) {
	minimum := "2"
	configs := map[string]*string{"min.insync.replicas": &minimum}
	answer, err := kadm.NewClient(client).CreateTopic(context.Background(), 1, 3, configs, topic)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("created", answer.Topic)
}

// Producers are idempotent and wait for all replicas, unless told otherwise.
func produce(client *kgo.Client) {
	var saying sync.Mutex
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		client.Produce(context.Background(), kgo.StringRecord(lines.Text()), func(record *kgo.Record, err error) {
			saying.Lock()
			defer saying.Unlock()
			if err != nil {
				fmt.Println("failed", string(record.Value), err)
			} else {
				fmt.Println("acked", string(record.Value), record.Offset)
			}
		})
	}
	if err := client.Flush(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func consume(client *kgo.Client) {
	for {
		fetches := client.PollFetches(context.Background())
		fetches.EachError(func(_ string, _ int32, err error) { fmt.Println("error", err) })
		fetches.EachRecord(func(record *kgo.Record) { fmt.Println("read", string(record.Value), record.Offset) })
	}
}

func pipe(options []kgo.Opt, topic string) {
	session, err := kgo.NewGroupTransactSession(append(options,
		kgo.TransactionalID(topic),
		kgo.ConsumerGroup(topic),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.DefaultProduceTopic(topic+"-out"))...)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for {
		records := session.PollRecords(ctx, 5).Records()
		if len(records) == 0 {
			continue
		}
		if err := session.Begin(); err != nil {
			log.Fatal(err)
		}
		promise := kgo.AbortingFirstErrPromise(session.Client())
		for _, record := range records {
			session.Produce(ctx, kgo.StringRecord(string(record.Value)), promise.Promise())
		}
		committed, err := session.End(ctx, promise.Err() == nil)
		if err != nil {
			fmt.Println("error", err)
		}
		if committed {
			for _, record := range records {
				fmt.Println("piped", string(record.Value))
			}
		}
	}
}
