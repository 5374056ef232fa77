#!/bin/sh
# Run once, on the first primary. $1: how to connect as superuser.
set -eu
# psql quotes the password itself, whatever is in it.
psql --set=ON_ERROR_STOP=1 --set=password="$DATABASE_PASSWORD" "$1" <<'SQL'
create role engine login password :'password';
create role engine_reader nologin;
grant engine_reader to engine;
create database engine owner engine;
SQL
