#!/bin/sh
# Plays last-replica-standing beside two shops that know nothing of it, through a tap: sh last-replica-standing.sh ERA
# The run directory is run-ERA; the exit code that of its verdict.
set -e
era=${1:-kafka-3.9}
run=run-$era

step() { laststand chaos step "$1" --dir "shop-$era"; }
cleanup() { kill -INT "$tap" 2>/dev/null || true; laststand down "shop-$era" >/dev/null 2>&1 || true; }

test -d target/lib || mvn --batch-mode --quiet dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=target/lib
servers=$(laststand up --name "shop-$era" --era "$era" --kafka | sed -n 's/.*bootstrap.servers=//p')
trap cleanup EXIT
laststand topics create orders --replication-factor 3 --config min.insync.replicas=2 --dir "shop-$era"
laststand tap --upstream "$servers" --listen 127.0.0.1:0 --era "$era" --keys --out "$run" 2>"$run.log" &
tap=$!
until grep -q bootstrap.servers= "$run.log"; do kill -0 "$tap"; sleep 0.1; done
BOOTSTRAP_SERVERS=$(sed -n 's/.*bootstrap.servers=//p' "$run.log")
export BOOTSTRAP_SERVERS

step "isolate: {node: 0}"
step "until: {partition: orders-0, leader: 1, isr: [1, 2]}"
python3 shop.py
java -cp "target/lib/*" Shop.java
step "isolate: {node: 1}"
step "until: {partition: orders-0, leader: 2, isr: [2]}"
step "power_loss: {node: 2, keep: none}"
step "until: {partition: orders-0, leader: none}"
step "start: {node: 2}"
step "until: {node: 2, unfenced: true}"
step "heal: all"
step "until: {partition: orders-0, isr: [0, 1, 2]}"
kill -INT "$tap"
wait "$tap"
laststand verify "$run" --judge here
