/** Wire shapes of the public routes: liveness, readiness and what the server says about itself. */

import { type Static, Type } from '@sinclair/typebox';
import { named } from './common.js';

/** The same body for liveness and readiness. */
export const Health = named('Health', { status: Type.Literal('ok') });
export type Health = Static<typeof Health>;

/** Why readiness is refused. */
export const NotReady = named(
  'NotReady',
  '`reason` is there when the database is why, with its SQLSTATE if it answered.',
  {
    error: Type.String(),
    reason: Type.Optional(
      Type.Object({
        kind: Type.Union(
          [
            'unreachable',
            'disk-full',
            'resources',
            'descriptors',
            'connections',
            'rights',
            'schema',
            'read-only',
            'lease',
            'other',
          ].map((kind) => Type.Literal(kind)),
        ),
        sql_state: Type.Optional(Type.String()),
      }),
    ),
  },
);
export type NotReady = Static<typeof NotReady>;

/** `version` is the server's own semantic version; labels are null when not set. */
export const Info = named('Info', {
  version: Type.String(),
  storage_schema_version: Type.Integer(),
  contract_schema_version: Type.Integer(),
  env_label: Type.Union([Type.String(), Type.Null()]),
  env_color: Type.Union([Type.String(), Type.Null()]),
});
export type Info = Static<typeof Info>;

/** Raised when the wire contract changes in a way that a client could notice. */
export const CONTRACT_VERSION = 1;

/** The description of the API; OpenAPI has a schema of its own. */
export const OpenApiDocument = named('OpenApiDocument', {
  openapi: Type.String(),
  info: Type.Object({}),
  paths: Type.Object({}),
});
export type OpenApiDocument = Static<typeof OpenApiDocument>;

export const AssetParams = Type.Object({ file: Type.String({ maxLength: 255 }) });
export type AssetParams = Static<typeof AssetParams>;
