/**
 * Stored definitions, as JSON text. Reads only. The unique index `sequences_by_name` serves names,
 * versions and the order of the list alike.
 */

import { Conditions, type PageBounds, type Query } from './query.js';
import type { Page, Reader } from './reader.js';
import { type SequenceWireRow, sequenceText } from './wire.js';

export interface SequenceName {
  readonly namespace: string;
  readonly name: string;
}

const SEQUENCE_COLUMNS =
  'id, tenant_id, namespace, name, version, deprecated, status, definition, created_at';

export const SEQUENCE_SQL = {
  get: `select ${SEQUENCE_COLUMNS} from sequences where id = $1::uuid`,
  newest:
    `select ${SEQUENCE_COLUMNS} from sequences where tenant_id = $1::text ` +
    'and namespace = $2::text and name = $3::text and not deprecated ' +
    'order by version desc limit 1',
  version:
    `select ${SEQUENCE_COLUMNS} from sequences where tenant_id = $1::text ` +
    'and namespace = $2::text and name = $3::text and version = $4::integer',
} as const;

const CHEAPER_LIST = 'name the tenant and the namespace, or ask for a smaller offset and limit';
const CHEAPER_LOOKUP = 'try again later';

export class SequenceReads {
  readonly #reader: Reader;

  constructor(reader: Reader) {
    this.#reader = reader;
  }

  /** The `SequenceDefinition`; undefined when the tenant ('' is any) has none of that id. */
  async get(id: string, tenant: string): Promise<string | undefined> {
    const row = await this.#one('get', [id]);
    return row !== undefined && (tenant === '' || row.tenant_id === tenant)
      ? sequenceText(row)
      : undefined;
  }

  /** One version, deprecated or not; without `version` the newest that is not deprecated. */
  async byName(
    tenant: string,
    { namespace, name }: SequenceName,
    version: number | undefined,
  ): Promise<string | undefined> {
    const row =
      version === undefined
        ? await this.#one('newest', [tenant, namespace, name])
        : await this.#one('version', [tenant, namespace, name, version]);
    return row === undefined ? undefined : sequenceText(row);
  }

  /** The versions of a name that are not deprecated, newest first, of all tenants without one. */
  versions(tenant: string | undefined, name: SequenceName): Promise<Page> {
    return this.#page(versionsQuery(tenant, name));
  }

  /** By tenant, namespace, name and descending version. */
  list(
    tenant: string | undefined,
    namespace: string | undefined,
    bounds: PageBounds,
  ): Promise<Page> {
    return this.#page(sequenceListQuery(tenant, namespace, bounds));
  }

  #page(query: Query): Promise<Page> {
    return this.#reader.page<SequenceWireRow>({
      query,
      toText: sequenceText,
      cheaper: CHEAPER_LIST,
    });
  }

  async #one(
    name: keyof typeof SEQUENCE_SQL,
    values: readonly unknown[],
  ): Promise<SequenceWireRow | undefined> {
    const [row] = await this.#reader.rows<SequenceWireRow>({
      name: `reads_sequence_${name}`,
      text: SEQUENCE_SQL[name],
      values,
      cheaper: CHEAPER_LOOKUP,
    });
    return row;
  }
}

export function sequenceListQuery(
  tenant: string | undefined,
  namespace: string | undefined,
  bounds: PageBounds,
): Query {
  const conditions = new Conditions();
  if (tenant) conditions.add(`tenant_id = ${conditions.param(tenant)}::text`);
  if (namespace) conditions.add(`namespace = ${conditions.param(namespace)}::text`);
  return conditions.query(
    `select ${SEQUENCE_COLUMNS} from sequences ${conditions.where} ` +
      `order by tenant_id, namespace, name, version desc ${conditions.page(bounds)}`,
  );
}

export function versionsQuery(
  tenant: string | undefined,
  { namespace, name }: SequenceName,
): Query {
  const conditions = new Conditions();
  if (tenant) conditions.add(`tenant_id = ${conditions.param(tenant)}::text`);
  conditions.add(`namespace = ${conditions.param(namespace)}::text`);
  conditions.add(`name = ${conditions.param(name)}::text`);
  conditions.add('not deprecated');
  return conditions.query(
    `select ${SEQUENCE_COLUMNS} from sequences ${conditions.where} ` +
      'order by tenant_id, namespace, name, version desc',
  );
}
