// A cluster of kfake, the broker in memory of franz-go: prints its addresses, and removes and adds brokers as it is told.
//
//	curl 127.0.0.1:PORT/remove/0
//	curl 127.0.0.1:PORT/add/0
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3))
	if err != nil {
		panic(err)
	}
	ports := map[int32]int{}
	for id, address := range cluster.ListenAddrs() {
		_, port, _ := net.SplitHostPort(address)
		ports[int32(id)], _ = strconv.Atoi(port)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	http.HandleFunc("/remove/{id}", func(answer http.ResponseWriter, request *http.Request) {
		finish(answer, cluster.RemoveNode(broker(request)))
	})
	http.HandleFunc("/add/{id}", func(answer http.ResponseWriter, request *http.Request) {
		id := broker(request)
		_, _, err := cluster.AddNode(id, ports[id])
		finish(answer, err)
	})
	fmt.Println(strings.Join(cluster.ListenAddrs(), ","), listener.Addr())
	os.Stdout.Close()
	panic(http.Serve(listener, nil))
}

func broker(request *http.Request) int32 {
	id, _ := strconv.Atoi(request.PathValue("id"))
	return int32(id)
}

func finish(answer http.ResponseWriter, err error) {
	if err != nil {
		http.Error(answer, err.Error(), http.StatusConflict)
	}
}
