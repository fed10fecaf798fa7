// toxiproxy-server as Laststand starts it: the same proxies and the same API, for those who show the run's token.
//
// The original answers whoever reaches its port: any local user could cut links, or have this process listen on every
// interface. Here each request carries the token in a header, "laststand-token". It is in the file that
// LASTSTAND_TOKEN_FILE names, which is read for each request, because it may be made after this process starts. Without
// that variable nothing is answered. The flags are those of the original that Laststand uses; each variable whose name
// begins with LASTSTAND_PROXIES_ has proxies to make at the start, as the original takes them from a file.
package main

import (
	"crypto/subtle"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

const (
	header         = "laststand-token"
	variable       = "LASTSTAND_TOKEN_FILE"
	proxiesPrefix  = "LASTSTAND_PROXIES_"
	tokenLength    = 64
	requestBytes   = 16 << 20
	headerBytes    = 16 << 10
	requestTimeout = 10 * time.Second
	answerTimeout  = 30 * time.Second
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		os.Exit(0)
	}()
	host := flag.String("host", "localhost", "where the API listens")
	port := flag.String("port", "8474", "port of the API")
	seed := flag.Int64("seed", time.Now().UnixNano(), "of toxics that draw numbers")
	flag.Parse()
	rand.Seed(*seed)

	level, err := zerolog.ParseLevel(os.Getenv("LOG_LEVEL"))
	if err != nil || level == zerolog.NoLevel {
		level = zerolog.InfoLevel
	}
	logger := zerolog.New(os.Stdout).With().Timestamp().Logger().Level(level)
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), logger)
	if err := makeProxies(server); err != nil {
		logger.Fatal().Err(err).Msg("a proxy cannot be made")
	}
	api := &http.Server{
		Handler:        withToken(routes(server)),
		Addr:           net.JoinHostPort(*host, *port),
		MaxHeaderBytes: headerBytes,
		ReadTimeout:    requestTimeout,
		WriteTimeout:   answerTimeout,
	}
	logger.Fatal().Err(api.ListenAndServe()).Msg("the API has ended")
}

func makeProxies(server *toxiproxy.ApiServer) error {
	for _, entry := range os.Environ() {
		name, proxies, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, proxiesPrefix) {
			if _, err := server.Collection.PopulateJson(server, strings.NewReader(proxies)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// routes returns the API, as Toxiproxy's own ApiServer.Listen serves it.
func routes(server *toxiproxy.ApiServer) http.Handler {
	router := mux.NewRouter()
	router.HandleFunc("/reset", server.ResetState).Methods("POST")
	router.HandleFunc("/proxies", server.ProxyIndex).Methods("GET")
	router.HandleFunc("/proxies", server.ProxyCreate).Methods("POST")
	router.HandleFunc("/populate", server.Populate).Methods("POST")
	router.HandleFunc("/proxies/{proxy}", server.ProxyShow).Methods("GET")
	router.HandleFunc("/proxies/{proxy}", server.ProxyUpdate).Methods("POST")
	router.HandleFunc("/proxies/{proxy}", server.ProxyDelete).Methods("DELETE")
	router.HandleFunc("/proxies/{proxy}/toxics", server.ToxicIndex).Methods("GET")
	router.HandleFunc("/proxies/{proxy}/toxics", server.ToxicCreate).Methods("POST")
	router.HandleFunc("/proxies/{proxy}/toxics/{toxic}", server.ToxicShow).Methods("GET")
	router.HandleFunc("/proxies/{proxy}/toxics/{toxic}", server.ToxicUpdate).Methods("POST")
	router.HandleFunc("/proxies/{proxy}/toxics/{toxic}", server.ToxicDelete).Methods("DELETE")
	router.HandleFunc("/version", server.Version).Methods("GET")
	return router
}

// withToken lets requests pass that show the token; of others nothing is read but their headers.
func withToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		token, known := readToken()
		shown := []byte(request.Header.Get(header))
		if !known || subtle.ConstantTimeCompare(shown, token) != 1 {
			writer.Header().Set("Connection", "close")
			http.Error(writer, "this request does not show the run's token", http.StatusUnauthorized)
			return
		}
		request.Body = http.MaxBytesReader(writer, request.Body, requestBytes)
		next.ServeHTTP(writer, request)
	})
}

func readToken() ([]byte, bool) {
	file, err := os.Open(os.Getenv(variable))
	if err != nil {
		return nil, false
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, tokenLength+1))
	text := strings.TrimSpace(string(content))
	return []byte(text), err == nil && len(text) == tokenLength
}
