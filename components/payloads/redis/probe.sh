# What the kubelet asks: `alive` or `ready`, then `redis` or `sentinel`.
. "$(dirname "$0")/common.sh"

# On a node whose CPUs are all taken the question takes seconds, and a restart would only make it worse.
PATIENCE=8

case $2 in
  redis) own_port=$REDIS_PORT ;;
  sentinel) own_port=$SENTINEL_PORT ;;
esac
answer=$(ask "$HERE" $own_port PING) || exit 1

# A script of the gateway takes milliseconds. One that makes the server busy (after five seconds, busy-reply-threshold)
# may run for ever, and everyone waits for it. One that has written cannot be killed alone: then the server ends, whose
# file has nothing of a script that has not ended.
case $answer in
  *BUSY*)
    killed=$(ask "$HERE" $own_port SCRIPT KILL)
    echo "a script that did not end is killed: $killed"
    case $killed in *UNKILLABLE*) ask "$HERE" $own_port SHUTDOWN NOSAVE NOW ;; esac
    exit 1
    ;;
esac

# Who loads data, or has lost its master, answers with an error and lives.
[ "$1" = ready ] || exit 0
[ "$answer" = PONG ] || exit 1
[ "$2" = redis ] || exit 0

# A replica is ready when it has what its master has.
replication=$(ask "$HERE" $own_port INFO replication) || exit 1
case $replication in
  *role:master* | *master_link_status:up*) exit 0 ;;
esac
echo "the replica has no link to its master"
exit 1
