// A client of the tests, see README.md: sarama SERVERS create|produce|consume TOPIC.
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"

	"github.com/IBM/sarama"
)

func main() {
	servers, topic := strings.Split(os.Args[1], ","), os.Args[3]
	config := sarama.NewConfig()
	config.ClientID = "sarama"
	switch os.Args[2] {
	case "create":
		create(servers, config, topic)
	case "produce":
		produce(servers, config, topic)
	case "consume":
		consume(servers, config, topic)
	}
}

func create(servers []string, config *sarama.Config, topic string) {
	admin, err := sarama.NewClusterAdmin(servers, config)
	check(err)
	minimum := "2"
	detail := &sarama.TopicDetail{
		NumPartitions: 1, ReplicationFactor: 3, ConfigEntries: map[string]*string{"min.insync.replicas": &minimum}}
	check(admin.CreateTopic(topic, detail, false))
	fmt.Println("created", topic)
}

func produce(servers []string, config *sarama.Config, topic string) {
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1 // sarama asks for it with idempotence
	config.Producer.Retry.Max = 100
	config.Producer.Return.Successes = true
	producer, err := sarama.NewAsyncProducer(servers, config)
	check(err)
	var outcomes sync.WaitGroup
	outcomes.Add(2)
	go func() {
		defer outcomes.Done()
		for record := range producer.Successes() {
			value, _ := record.Value.Encode()
			fmt.Println("acked", string(value), record.Offset)
		}
	}()
	go func() {
		defer outcomes.Done()
		for failure := range producer.Errors() {
			value, _ := failure.Msg.Value.Encode()
			fmt.Println("failed", string(value), failure.Err)
		}
	}()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		producer.Input() <- &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(lines.Text())}
	}
	producer.AsyncClose()
	outcomes.Wait()
}

func consume(servers []string, config *sarama.Config, topic string) {
	config.Consumer.Return.Errors = true
	consumer, err := sarama.NewConsumer(servers, config)
	check(err)
	partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	check(err)
	for {
		select {
		case record, isOpen := <-partition.Messages():
			if !isOpen {
				return
			}
			fmt.Println("read", string(record.Value), record.Offset)
		case failure := <-partition.Errors():
			if failure != nil {
				fmt.Println("error", failure.Err)
			}
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
