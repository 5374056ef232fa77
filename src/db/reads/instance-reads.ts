/** Lists and reports about instances, as JSON text. Reads only. */

import type { JsonValue } from '../../core/json.js';
import type { InstanceState } from '../../core/states.js';
import {
  auditQuery,
  type Candidate,
  candidatesQuery,
  childrenQuery,
  deadLetterQuery,
  INSTANCE_SQL,
  type InstanceFilter,
  instanceListQuery,
  laterOutputsQuery,
  outputsQuery,
  transitionsQuery,
} from './instance-queries.js';
import type { PageBounds, Place } from './query.js';
import type { Batch, Page, Reader } from './reader.js';
import {
  contextText,
  type InstanceWireRow,
  instanceText,
  type OutputWireRow,
  outputText,
} from './wire.js';

export interface TimelineOptions {
  readonly offset: number;
  readonly limit: number;
  /** False leaves out the payloads: outputs and the context. */
  readonly includeOutputs: boolean;
}

interface TransitionRow {
  /** The text of a `StoredAuditEntry`. */
  readonly entry: string;
  readonly created_at: string;
}

export interface AuditRow extends TransitionRow {
  readonly tenant_id: string;
}

/** An entry as the instance's actor packs it; what is not set may be null or absent. */
interface StoredAuditEntry {
  readonly id: string;
  readonly event_type: string;
  readonly from_state?: InstanceState | null;
  readonly to_state?: InstanceState | null;
  readonly block_id?: string | null;
  readonly details: JsonValue;
}

/** Audit entries shown of an instance. */
const AUDIT_ENTRIES_MAX = 200;
/** State transitions in a timeline, the newest ones: the timeline pages its entries only. */
const TRANSITIONS_MAX = 1_000;

/** Outputs handed to a stream at once: what a client that does not read can make the server hold. */
const STREAM_BATCH_BYTES = 1024 * 1024;

const CHEAPER_LIST =
  'name the tenant or a sequence_id, use a smaller offset, or ask /instances/dlq for failed ones';
const CHEAPER_PAGE = 'ask for a smaller offset and limit';
const CHEAPER_BULK = 'narrow the filter with a sequence_id and repeat the call';
const CHEAPER_LOOKUP = 'try again later';

export class InstanceReads {
  readonly #reader: Reader;

  constructor(reader: Reader) {
    this.#reader = reader;
  }

  /** `TaskInstance` records, newest first. */
  list(filter: InstanceFilter, bounds: PageBounds): Promise<Page> {
    return this.#reader.page<InstanceWireRow>({
      query: instanceListQuery(filter, bounds),
      toText: instanceText,
      cheaper: CHEAPER_LIST,
    });
  }

  /** The failed ones among them. */
  deadLetters(filter: Omit<InstanceFilter, 'states'>, bounds: PageBounds): Promise<Page> {
    return this.#reader.page<InstanceWireRow>({
      query: deadLetterQuery(filter, bounds),
      toText: instanceText,
      cheaper: CHEAPER_LIST,
    });
  }

  /** The instances that one started, oldest first. */
  children(parentId: string, bounds: PageBounds): Promise<Page> {
    return this.#reader.page<InstanceWireRow>({
      query: childrenQuery(parentId, bounds),
      toText: instanceText,
      cheaper: CHEAPER_PAGE,
    });
  }

  /**
   * `BlockOutput` records, oldest first, without notes on unfinished tries
   * (docs/reference/instances.md).
   */
  outputs(instanceId: string, bounds: PageBounds): Promise<Page> {
    return this.#reader.page<OutputWireRow>({
      query: outputsQuery(instanceId, bounds, 'outputs'),
      toText: outputText,
      cheaper: CHEAPER_PAGE,
    });
  }

  /** The next `BlockOutput` records after a row, all kinds of them, oldest first; none: the first. */
  outputsAfter(instanceId: string, row: OutputWireRow | undefined): Promise<Batch<OutputWireRow>> {
    const after: Place | undefined = row && { at: row.created_at, id: row.id };
    return this.#reader.batch<OutputWireRow>({
      query: laterOutputsQuery(instanceId, after),
      toText: outputText,
      cheaper: CHEAPER_LOOKUP,
      bytesMax: STREAM_BATCH_BYTES,
    });
  }

  /** Whose instance it is; undefined when there is none of that id. */
  async tenantOf(id: string): Promise<string | undefined> {
    const [row] = await this.#reader.rows<{ tenant_id: string }>({
      name: 'reads_instance_tenant',
      text: INSTANCE_SQL.tenant,
      values: [id],
      cheaper: CHEAPER_LOOKUP,
    });
    return row?.tenant_id;
  }

  /** The newest `AuditEntry` records, newest first; fewer when they fill an answer. */
  async audit(instanceId: string): Promise<string> {
    const page = await this.#reader.page<AuditRow>({
      query: auditQuery(instanceId, AUDIT_ENTRIES_MAX),
      toText: (row) => auditText(instanceId, row),
      cheaper: CHEAPER_LOOKUP,
    });
    return page.text;
  }

  /** `Timeline`; undefined when the tenant has no such instance. */
  async timeline(
    id: string,
    tenant: string,
    options: TimelineOptions,
  ): Promise<string | undefined> {
    const [row] = await this.#reader.rows<InstanceWireRow>({
      name: 'reads_instance',
      text: INSTANCE_SQL.instance,
      values: [id],
      cheaper: CHEAPER_LOOKUP,
    });
    if (row === undefined || (tenant !== '' && row.tenant_id !== tenant)) return undefined;
    const { offset, limit, includeOutputs } = options;
    const entries = await this.#reader.page<OutputWireRow>({
      // One more than asked shows whether there are more.
      query: outputsQuery(id, { offset, limit: limit + 1 }, 'everything'),
      toText: (output) => timelineEntryText(output, includeOutputs),
      cheaper: CHEAPER_PAGE,
      rowsMax: limit,
    });
    const transitions = await this.#reader.page<TransitionRow>({
      query: transitionsQuery(id, TRANSITIONS_MAX),
      toText: transitionText,
      cheaper: CHEAPER_LOOKUP,
    });
    return (
      `{"instance":${timelineHeadText(row, includeOutputs)},"state_transitions":${transitions.text}` +
      `,"entries":${entries.text},"offset":${offset},"limit":${limit},"has_more":${entries.isCut}}`
    );
  }

  /** Instances that a change of many may concern, newest first, after `after`. */
  candidates(
    filter: InstanceFilter,
    after: Place | undefined,
    limit: number,
    terminal: 'left out' | 'included' = 'left out',
  ): Promise<Candidate[]> {
    const query = candidatesQuery(filter, after, limit, terminal);
    return this.#reader.rowsOf<Candidate>(query, CHEAPER_BULK);
  }
}

/** `AuditEntry`. */
export function auditText(instanceId: string, row: AuditRow): string {
  const entry = JSON.parse(row.entry) as StoredAuditEntry;
  return JSON.stringify({
    id: entry.id,
    instance_id: instanceId,
    tenant_id: row.tenant_id,
    event_type: entry.event_type,
    from_state: entry.from_state ?? undefined,
    to_state: entry.to_state ?? undefined,
    block_id: entry.block_id ?? undefined,
    details: entry.details,
    created_at: row.created_at,
  });
}

/** `StateTransition`. */
function transitionText(row: TransitionRow): string {
  const entry = JSON.parse(row.entry) as StoredAuditEntry;
  return JSON.stringify({
    from_state: entry.from_state ?? undefined,
    to_state: entry.to_state ?? undefined,
    at: row.created_at,
  });
}

function timelineHeadText(row: InstanceWireRow, includeContext: boolean): string {
  return (
    `{"id":"${row.id}","sequence_id":"${row.sequence_id}","state":"${row.state}"` +
    `,"created_at":"${row.created_at}","updated_at":"${row.updated_at}"` +
    `${includeContext ? `,"context":${contextText(row)}` : ''}}`
  );
}

/** `TimelineEntry`: a row whose reference is a mark of the engine is no output of a block. */
function timelineEntryText(row: OutputWireRow, includeOutput: boolean): string {
  return (
    `{"block_id":${JSON.stringify(row.block_id)},"attempt":${row.attempt}` +
    `,"completed_at":"${row.created_at}"` +
    (includeOutput ? `,"output":${row.output}` : '') +
    (row.output_ref === null ? '' : `,"output_ref":${JSON.stringify(row.output_ref)}`) +
    `,"is_sentinel":${row.output_ref?.startsWith('__') === true}}`
  );
}
