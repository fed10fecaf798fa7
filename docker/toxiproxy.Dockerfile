# The image of a toxiproxy-server that this machine has built already; its context is the folder of the program.
FROM scratch
COPY toxiproxy-server /toxiproxy
USER 10001
EXPOSE 8474
ENTRYPOINT ["/toxiproxy"]
CMD ["-host=0.0.0.0"]
