/** Wire shapes of the public routes: liveness, readiness and what the server says about itself. */

import { type Static, Type } from '@sinclair/typebox';

/** The same body for liveness and readiness. */
export const Health = Type.Object({ status: Type.Literal('ok') }, { $id: 'Health' });
export type Health = Static<typeof Health>;

/** Why readiness is refused; `reason` when the database is why, with its SQLSTATE if it gave one. */
export const NotReady = Type.Object(
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
  { $id: 'NotReady' },
);
export type NotReady = Static<typeof NotReady>;

/** `version` is the server's own semantic version; labels are null when not set. */
export const Info = Type.Object(
  {
    version: Type.String(),
    storage_schema_version: Type.Integer(),
    contract_schema_version: Type.Integer(),
    env_label: Type.Union([Type.String(), Type.Null()]),
    env_color: Type.Union([Type.String(), Type.Null()]),
  },
  { $id: 'Info' },
);
export type Info = Static<typeof Info>;

/** Raised when the wire contract changes in a way that a client could notice. */
export const CONTRACT_VERSION = 1;

/** The description of the API; OpenAPI has a schema of its own. */
export const OpenApiDocument = Type.Object(
  { openapi: Type.String(), info: Type.Object({}), paths: Type.Object({}) },
  { $id: 'OpenApiDocument' },
);
export type OpenApiDocument = Static<typeof OpenApiDocument>;

export const AssetParams = Type.Object({ file: Type.String({ maxLength: 255 }) });
export type AssetParams = Static<typeof AssetParams>;
