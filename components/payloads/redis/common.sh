# What the other scripts share. For any POSIX shell, because images of Redis have bash, dash or busybox.
#
# The environment says: ME, this node's name; NODES, all nodes' names; LISTEN, the one address to listen on, or nothing
# for all; USERS, DATA, RUN, TLS: folders with the users, the data, what is written at each start, and the certificates,
# the last empty without TLS; MASTER_NAME, or nothing where there are no Sentinels.

# Users' key patterns hold asterisks.
set -f

NODES_USER=_nodes
REDIS_PORT=6379
SENTINEL_PORT=26379
HERE=${LISTEN:-127.0.0.1}
PATIENCE=2
MEMORY=$DATA/master

tls_options() {
  [ -z "$TLS" ] || echo "--tls --cacert $TLS/ca.crt --cert $TLS/tls.crt --key $TLS/tls.key"
}

# say HOST PORT PASSWORD COMMAND...: what is answered to the nodes' user within PATIENCE seconds. The password is in no
# command line.
say() {
  host=$1 port=$2
  export REDISCLI_AUTH="$3"
  shift 3
  # shellcheck disable=SC2046
  printf '%s\n' "$*" | timeout "$PATIENCE" redis-cli -h "$host" -p "$port" --user $NODES_USER --no-auth-warning \
    $(tls_options) 2>&1
}

refused() {
  case $1 in *WRONGPASS* | *NOAUTH*) return 0 ;; esac
  return 1
}

# ask HOST PORT COMMAND...: the same, with the newest password that is taken. Fails where nobody answers.
ask() {
  at_host=$1 at_port=$2
  shift 2
  answer='Could not connect'
  while read -r password; do
    answer=$(say "$at_host" "$at_port" "$password" "$@") || answer="Could not connect: $answer"
    refused "$answer" || break
  done < "$USERS/passwords"
  case $answer in *'Could not connect'*) return 1 ;; esac
  printf '%s\n' "$answer"
}

# The newest password that no node and no Sentinel refuses: each learns of a new one at a time of its own.
password_of_all() {
  while read -r candidate; do
    taken=yes
    for node in $NODES; do
      for each_port in $REDIS_PORT ${MASTER_NAME:+$SENTINEL_PORT}; do
        ! refused "$(say "$node" "$each_port" "$candidate" PING)" || taken=
      done
    done
    [ -z "$taken" ] || break
  done < "$USERS/passwords"
  printf '%s' "$candidate"
}

# field NAME ANSWER: a value of an answer of names and values, each on a line of its own.
field() {
  printf '%s\n' "$2" | sed -n "/^$1\$/{n;p;q;}"
}

# Sets MASTER and EPOCH as the Sentinels say them, of several the one with the greatest epoch; ANSWERS: how many said it;
# MAJORITY: how many have to; SEEN: whether one has seen a master run, so that there may be data.
look() {
  MASTER='' EPOCH=-1 ANSWERS=0 SEEN=''
  MAJORITY=$(($(echo "$NODES" | wc -w) / 2 + 1))
  for node in $NODES; do
    said=$(ask "$node" $SENTINEL_PORT SENTINEL MASTER "$MASTER_NAME") || continue
    epoch=$(field config-epoch "$said")
    [ -n "$epoch" ] || continue
    ANSWERS=$((ANSWERS + 1))
    [ "$epoch" -eq 0 ] && [ -z "$(field runid "$said")" ] || SEEN=yes
    if [ "$epoch" -gt "$EPOCH" ]; then
      # Not what SENTINEL MASTER says: until a failover has ended, it shows the old address with the new epoch.
      named=$(master_says "$node") && [ -n "$named" ] && MASTER=$named EPOCH=$epoch
    fi
  done
}

# master_says HOST: who a Sentinel says is the master.
master_says() {
  address=$(ask "$1" $SENTINEL_PORT SENTINEL GET-MASTER-ADDR-BY-NAME "$MASTER_NAME") || return 1
  printf '%s\n' "$address" | head -n 1
}

listen_on() {
  echo "bind ${LISTEN:-* -::*}"
  # Who may do what is said by users: the default one is off.
  echo "protected-mode no"
  if [ -z "$TLS" ]; then
    echo "port $1"
  else
    printf '%s\n' "port 0" "tls-port $1" "tls-replication yes" "tls-ca-cert-file $TLS/ca.crt" \
      "tls-cert-file $TLS/tls.crt" "tls-key-file $TLS/tls.key" "tls-auth-clients no"
  fi
}
