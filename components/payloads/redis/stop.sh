# Before Redis is stopped: where it is the master, another node becomes it. Writes are held meanwhile, so that the other
# lacks none of them.
. "$(dirname "$0")/common.sh"

# A pod that is deleted by force may open no connection any more, as soon as it is no object of the cluster's. Then it is
# better gone: while it answers on those it has, the Sentinels do not miss it.
PATIENCE=1

[ -n "$MASTER_NAME" ] || exit 0
case $(ask "$HERE" $REDIS_PORT INFO replication) in
  *role:master*) ;;
  *) exit 0 ;;
esac

# Who answers, all asked at the same time. The Sentinel of this pod ends now, too.
answering=$(
  for node in $NODES; do
    [ "$node" = "$ME" ] || { master_says "$node" > /dev/null && echo "$node"; } &
  done
  wait
)
[ -z "$answering" ] || ask "$HERE" $REDIS_PORT CLIENT PAUSE 5000 WRITE > /dev/null
for node in $answering; do
  [ "$(ask "$node" $SENTINEL_PORT SENTINEL FAILOVER "$MASTER_NAME")" = OK ] || continue
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    sleep 0.5
    said=$(master_says "$node") && [ "$said" != "$ME" ] && exit 0
  done
done
echo "no other node became the master: the Sentinels will notice that this one has gone"
