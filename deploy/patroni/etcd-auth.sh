#!/bin/sh
# Run once, before Patroni: from then on nobody without a password reads or writes what etcd keeps, of which
# Patroni has its own part. Run again, it goes on where it was broken off, or finds that all is done.
set -eu
# Without a name: until it is asked for.
until etcdctl role list >/dev/null 2>&1; do
  if etcdctl --user root --password "$ETCD_ROOT_PASSWORD" role list >/dev/null 2>&1; then exit 0; fi
  sleep 1
done

has() { etcdctl "$1" list 2>/dev/null | grep -qx "$2"; }
has role patroni || etcdctl role add patroni
etcdctl role grant-permission patroni --prefix=true readwrite /service/
has user patroni || printf '%s\n' "$ETCD_PASSWORD" | etcdctl user add --interactive=false patroni
etcdctl user grant-role patroni patroni
has user root || printf '%s\n' "$ETCD_ROOT_PASSWORD" | etcdctl user add --interactive=false root
etcdctl user grant-role root root
etcdctl auth enable
