# The engine beside one Postgres: DATABASE_URL and ENGINE_API_KEY must be given at run time.
#
# Debian 13, because the native file of uWebSockets.js wants glibc 2.38; on an older image the server
# serves with node:http.
#
# Node 22, since the JSON parser of Node 24 may change names of members: src/server/program.ts.
FROM node:22-trixie-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
# Nothing that the build needs is made by install scripts, so that none of them runs here.
RUN npm ci --no-audit --no-fund --ignore-scripts
COPY tsconfig.json ./
COPY client ./client
COPY cli ./cli
COPY scripts ./scripts
COPY schema ./schema
COPY actors ./actors
COPY src ./src
COPY bench ./bench
COPY test ./test
COPY examples ./examples
COPY ui ./ui
# The compiler is an optional package, so these go only now; with them goes the embedded database,
# which is for newcomers' machines.
# Of the native files of uWebSockets.js, one for each platform and version of Node, this image keeps its own.
RUN npm run build && npm prune --omit=dev --omit=optional && \
  find node_modules/uWebSockets.js -name '*.node' \
    ! -name "$(node -p '`uws_${process.platform}_${process.arch}_${process.versions.modules}.node`')" -delete

FROM node:22-trixie-slim
ENV NODE_ENV=production \
    ENGINE_HTTP_ADDR=0.0.0.0:8080
WORKDIR /app
COPY --from=build /app/package.json ./
COPY LICENSE NOTICE THIRD-PARTY-LICENSES.txt ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist/server ./dist/server
COPY --from=build /app/dist/swagger-ui ./dist/swagger-ui
COPY --from=build /app/dist/ui ./dist/ui
COPY --from=build /app/src/db/migrations ./src/db/migrations
COPY --from=build /app/src/cluster/schema.sql ./src/cluster/schema.sql
# The command line: `docker run … durable-workflow-engine doctor`.
RUN ln -s /app/dist/server/cli.js /usr/local/bin/durable-workflow-engine
USER node
EXPOSE 8080
# A standby is healthy and not ready: the orchestrator must not restart it.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.ENGINE_HTTP_ADDR || ':8080').split(':').pop() + '/health/live').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Node as process 1 gets SIGTERM itself; the engine answers what it has accepted and exits within 3 s.
STOPSIGNAL SIGTERM
CMD ["node", "dist/server/cli.js", "start"]
