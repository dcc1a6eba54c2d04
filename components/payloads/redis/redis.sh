# Starts Redis as a master or as a replica, as the Sentinels say.
. "$(dirname "$0")/common.sh"

# Names that end with another domain than the cluster's are never found.
domain=${ME#*.*.*.svc.}
clusters=$(tr ' ' '\n' < "${RESOLV_CONF:-/etc/resolv.conf}" | sed -n 's/^svc\.//p' | tail -n 1)
if [ -n "$clusters" ] && [ "$clusters" != "$domain" ]; then
  echo "redis.clusterDomain is '$domain', and the names of this cluster end with '$clusters': say so in the stack file" >&2
  exit 1
fi

# Two servers must not have one volume: a pod that is deleted by force still ends while its successor starts.
exec 9> "$DATA/lock"
until flock -n 9; do
  echo "waiting: another server has the data, and ends"
  sleep 1
done

# A node that the Sentinels name and that has no data would take them from its replicas. While it waits, the Sentinels
# make another the master.
would_wipe() {
  [ "$MASTER" = "$ME" ] && [ ! -e "$DATA/appendonlydir" ] && [ -n "$SEEN" ]
}

# A master that died and is back before the Sentinels have failed over would be one for a moment only: it and who follows
# it are told ten seconds later (seen with Redis 7.0), and until then no replica confirms a write. RUN outlasts the
# container, not the pod. Where the Sentinels choose nobody within five seconds, it is the master again.
turns=10
is_missed() {
  [ "$MASTER" = "$ME" ] && [ -e "$RUN/redis.conf" ] && [ $turns -gt 0 ]
}

replicaof=''
if [ -n "$MASTER_NAME" ]; then
  look
  while [ $ANSWERS -lt $MAJORITY ] || would_wipe || is_missed; do
    echo "waiting: $ANSWERS Sentinels answer, $MAJORITY have to; the master is ${MASTER:-not known}, this is $ME"
    sleep 0.5
    look
    turns=$((turns - 1))
  done
  if [ "$MASTER" != "$ME" ]; then
    replicaof="replicaof $MASTER $REDIS_PORT"
  fi
fi

umask 077
{
  listen_on $REDIS_PORT
  cat << CONF
dir $DATA
aclfile $USERS/redis.acl
masteruser $NODES_USER
masterauth $(password_of_all)
appendonly yes
appendfsync $FSYNC
save ""
maxmemory $MAXMEMORY
maxmemory-policy noeviction
replica-announce-ip $ME
replica-announce-port $REDIS_PORT
repl-diskless-sync-delay 0
client-output-buffer-limit replica $OUTPUT_BUFFER $OUTPUT_BUFFER 0
client-output-buffer-limit normal $CLIENTS $CLIENTS 0
maxmemory-clients $CLIENTS
min-replicas-to-write $MIN_REPLICAS
min-replicas-max-lag 10
$replicaof
CONF
} > "$RUN/redis.conf"

sh "$(dirname "$0")/watch.sh" redis 9>&- &
if [ -n "$MASTER_NAME" ]; then
  sh "$(dirname "$0")/follow.sh" 9>&- &
fi
redis-server "$RUN/redis.conf" &
server=$!
# Not a preStop hook: a kubelet gives that a second where a pod is deleted by force.
trap 'sh "$(dirname "$0")/stop.sh"; kill "$server"; wait "$server"; exit' TERM
wait "$server"
