# Starts a Sentinel. What it rewrites is for its own run; what outlasts it is the name of the master and its epoch, which
# lie beside the data (watch.sh).
. "$(dirname "$0")/common.sh"

look
known_epoch=0 known_master=${NODES%% *}
if [ -s "$MEMORY" ]; then
  read -r known_epoch known_master < "$MEMORY"
fi
if [ $EPOCH -lt "$known_epoch" ] || [ -z "$MASTER" ]; then
  EPOCH=$known_epoch MASTER=$known_master
fi

identity() {
  printf '%s' "$1" | sha1sum | cut -c 1-40
}

# Epochs: 0 of a master that nobody has seen, 1 of one that has run (watch.sh), 2 and more of those after it.
# Where all have to start, the last master is waited for: it has what was written last. watch.sh sets the time that holds
# from then on.
umask 077
{
  listen_on $SENTINEL_PORT
  password=$(password_of_all)
  cat << CONF
dir $RUN
aclfile $USERS/sentinel.acl
sentinel resolve-hostnames yes
sentinel announce-hostnames yes
sentinel announce-ip $ME
sentinel announce-port $SENTINEL_PORT
sentinel sentinel-user $NODES_USER
sentinel sentinel-pass $password
sentinel myid $(identity "$ME")
sentinel monitor $MASTER_NAME $MASTER $REDIS_PORT 2
sentinel auth-user $MASTER_NAME $NODES_USER
sentinel auth-pass $MASTER_NAME $password
sentinel down-after-milliseconds $MASTER_NAME $DOWN_AFTER_AT_START
sentinel failover-timeout $MASTER_NAME $FAILOVER_TIMEOUT
sentinel parallel-syncs $MASTER_NAME 1
sentinel config-epoch $MASTER_NAME $EPOCH
sentinel current-epoch $((EPOCH > 0 ? EPOCH : 1))
CONF
  # All are known from the start: a Sentinel that is alone has no majority, and where the master has no data left, or does
  # not come back, another can be made the master at once.
  for node in $NODES; do
    [ "$node" = "$ME" ] || echo "sentinel known-sentinel $MASTER_NAME $node $SENTINEL_PORT $(identity "$node")"
    [ "$node" = "$MASTER" ] || echo "sentinel known-replica $MASTER_NAME $node $REDIS_PORT"
  done
} > "$RUN/sentinel.conf"

sh "$(dirname "$0")/watch.sh" sentinel &
sh "$(dirname "$0")/names.sh" &
exec redis-server "$RUN/sentinel.conf" --sentinel
