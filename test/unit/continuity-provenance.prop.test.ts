/** The chain of provenance, receipts of effects, keys and statements, and the service that leads executions. */

import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, hkdfSync } from 'node:crypto';
import { beforeEach, describe, test } from 'node:test';
import fc from 'fast-check';
import { pino } from 'pino';
import { Plans } from '../../actors/catalog/plans.js';
import {
  nextProvenanceEntry,
  type ProvenanceFacts,
  verifyProvenance,
} from '../../actors/continuity/core/provenance.js';
import {
  type GrantFacts,
  openStatement,
  signStatement,
} from '../../actors/continuity/core/statements.js';
import { ExecutionService } from '../../actors/continuity/execution-service.js';
import { boundaryOf } from '../../actors/continuity/front/reads.js';
import {
  ContinuityRows,
  executionView,
  type ShownExecutionRow,
} from '../../actors/continuity/rows.js';
import { EXECUTION as EXECUTION_ROW } from '../../actors/continuity/tables.js';
import {
  type ApprovalGrant,
  approvalToken,
  verifiedGrant,
} from '../../actors/instance/core/approval-link.js';
import type { Order } from '../../actors/instance/orders.js';
import { CommitLog } from '../../actors/runtime/commit-log.js';
import type { PeerMessage } from '../../actors/runtime/protocol.js';
import { Turn } from '../../actors/runtime/turn.js';
import type { ProvenanceEntry } from '../../schema/continuity.js';
import {
  EFFECT_STATES,
  forbidsRollback,
  HANDOFF_STATES,
  holdsExecution,
  isEffectInDoubt,
  MIGRATION_STATES,
  mayMoveEffect,
  mayMoveHandoff,
  mayMoveMigration,
  PROVENANCE_KINDS,
} from '../../schema/continuity-words.js';
import type { ImportReceipt } from '../../schema/handoff.js';
import { ConfigError } from '../../src/base/config-error.js';
import { conflict, type EngineError } from '../../src/base/errors.js';
import { IN_PLACE } from '../../src/base/offload.js';
import {
  type EffectResolution,
  effectRequest,
  type InProcessFacts,
  inProcessReceipt,
  resolveEffect,
  type TaskFacts,
  taskReceipt,
} from '../../src/core/effects.js';
import { base64Length, decodeBase64 } from '../../src/core/sealing/base64.js';
import { canonicalSha256 } from '../../src/core/sealing/canonical-json.js';
import {
  isSignedBy,
  parsePublicKey,
  privateKeyOf,
  publicKeyOf,
  signText,
} from '../../src/core/sealing/ed25519.js';
import { createKeyring, keyringOf, parseTransferKey } from '../../src/core/sealing/keys.js';
import type { UnitEnvelope } from '../../src/db/units.js';
import { readConfig } from '../../src/server/config.js';
import { column } from '../helpers/columns.js';
import { at, id, NOW } from '../helpers/continuity-facts.js';
import { check } from '../helpers/properties.js';

// Turns need the indexes of the mutations.
import '../../actors/shard/store.js';

const CONTINUITY = '0198c0de-0000-7000-8000-0000000000aa';
const KEYRING = createKeyring(Buffer.alloc(32, 1));
const OTHER = createKeyring(Buffer.alloc(32, 2));

const facts = (i: number, more: Partial<ProvenanceFacts> = {}): ProvenanceFacts => ({
  id: `0198c0de-0000-7000-8000-00000000000${i}`,
  continuity_id: CONTINUITY,
  tenant_id: 't',
  epoch: i,
  kind: 'execution_created',
  redacted_summary: `entry ${i}`,
  payload_sha256: createHash('sha256').update(`${i}`).digest('hex'),
  created_at: '2026-01-01T00:00:00.000Z',
  ...more,
});

function chainOf(length: number, signer = KEYRING.signing): ProvenanceEntry[] {
  const chain: ProvenanceEntry[] = [];
  for (let i = 0; i < length; i += 1) {
    chain.push(nextProvenanceEntry(chain.at(-1) ?? null, facts(i), signer));
  }
  return chain;
}

const verify = (chain: readonly ProvenanceEntry[], head?: string) =>
  verifyProvenance(chain, KEYRING.trusted, head);

test('the hash is over the framed parts, the predecessor behind its mark', () => {
  const length = (text: string) => {
    const bytes = Buffer.alloc(8);
    bytes.writeUInt32BE(Buffer.byteLength(text), 4);
    return bytes;
  };
  const framed = (text: string) => Buffer.concat([length(text), Buffer.from(text)]);
  const [first, second] = chainOf(2);
  assert.ok(first !== undefined && second !== undefined);
  const common = (entry: ProvenanceEntry) => [
    Buffer.from('engine-provenance-v2\0'),
    Buffer.from('0198c0de0000700080000000000000aa', 'hex'),
    Buffer.from([0, 0, 0, 0, 0, 0, 0, entry.epoch]),
    framed('execution_created'),
    framed(entry.redacted_summary ?? ''),
    framed(entry.payload_sha256),
  ];
  const hash = (parts: Buffer[]) => createHash('sha256').update(Buffer.concat(parts)).digest('hex');
  assert.equal(first.previous_sha256, null);
  assert.equal(first.entry_sha256, hash([...common(first), Buffer.from([0])]));
  assert.equal(second.previous_sha256, first.entry_sha256);
  const link = [Buffer.from([1]), framed(first.entry_sha256)];
  assert.equal(second.entry_sha256, hash([...common(second), ...link]));
});

test('a chain as it was written is valid, with keys and without', () => {
  const chain = chainOf(3);
  const head = chain.at(-1)?.entry_sha256 ?? '';
  const sound = { valid: true, first_invalid_index: null, code: null };
  const expected = { ...sound, entries_checked: 3, head_sha256: head };
  assert.deepEqual(verify(chain), expected);
  assert.deepEqual(verify(chain, head.toUpperCase()), expected);
  const unsigned = nextProvenanceEntry(chain[2] ?? null, facts(4), undefined);
  assert.deepEqual([unsigned.signing_key_id, unsigned.signature], [null, null]);
  assert.ok(verify([...chain, unsigned]).valid);
});

test('another head than the expected one is told', () => {
  const chain = chainOf(2);
  const result = verify(chain, chain[0]?.entry_sha256);
  const seen = [result.valid, result.code, result.first_invalid_index, result.head_sha256];
  assert.deepEqual(seen, [false, 'PROVENANCE_HEAD_MISMATCH', null, chain[1]?.entry_sha256]);
  assert.equal(verify([], 'a'.repeat(64)).code, 'PROVENANCE_HEAD_MISMATCH');
});

const withChange = (chain: ProvenanceEntry[], change: Partial<ProvenanceEntry>, at: number) =>
  chain.map((entry, i) => (i === at ? { ...entry, ...change } : entry));

function codeOf(change: Partial<ProvenanceEntry>, at: number): string | null {
  const result = verify(withChange(chainOf(3), change, at));
  assert.equal(result.valid, false);
  assert.equal(result.first_invalid_index, at);
  assert.equal(result.entries_checked, at + 1);
  return result.code;
}

test('each fault has its code', () => {
  const faults: readonly (readonly [Partial<ProvenanceEntry>, string])[] = [
    [{ previous_sha256: 'a'.repeat(64) }, 'LINK_MISMATCH'],
    [{ epoch: 7 }, 'HASH_MISMATCH'],
    [{ epoch: -1 }, 'HASH_MISMATCH'],
    [{ signature: null }, 'SIGNATURE_INCOMPLETE'],
    [{ signing_key_id: null }, 'SIGNATURE_INCOMPLETE'],
    [{ signing_key_id: 'else' }, 'SIGNING_KEY_UNTRUSTED'],
    [{ signature: Buffer.alloc(64).toString('base64') }, 'SIGNATURE_INVALID'],
  ];
  for (const [change, code] of faults) {
    for (const at of [0, 1]) assert.equal(codeOf(change, at), `PROVENANCE_${code}`);
  }
  const badKey = new Map([[KEYRING.signing.id, 'no key']]);
  assert.equal(verifyProvenance(chainOf(1), badKey).code, 'PROVENANCE_PUBLIC_KEY_INVALID');
  const foreign = verifyProvenance(chainOf(1, OTHER.signing), KEYRING.trusted);
  assert.equal(foreign.code, 'PROVENANCE_SIGNING_KEY_UNTRUSTED');
});

const digits = fc.stringMatching(/^[0-9a-f]{64}$/);
/** Another value for one of the fields that the hash or the signature covers. */
const change: fc.Arbitrary<Partial<ProvenanceEntry>> = fc.oneof(
  fc.record({ continuity_id: fc.uuid() }),
  fc.record({ epoch: fc.nat() }),
  fc.record({ kind: fc.constantFrom(...PROVENANCE_KINDS) }),
  fc.record({ redacted_summary: fc.string({ minLength: 1 }) }),
  fc.record({ payload_sha256: digits }),
  fc.record({ previous_sha256: fc.option(digits) }),
  fc.record({ entry_sha256: digits }),
  fc.record({ signing_key_id: fc.option(fc.string()) }),
  fc.record({ signature: fc.option(fc.base64String()) }),
  fc.record({ signature: fc.constant(OTHER.signing.publicKey) }),
);

test('any change of any entry is found', (t) => {
  const chain = chainOf(4);
  check(t, 300, fc.tuple(change, fc.nat(3)), ([changed, at]) => {
    const isChanged = Object.entries(changed).some(
      ([field, value]) => chain[at]?.[field as keyof ProvenanceEntry] !== value,
    );
    const result = verify(withChange(chain, changed, at), chain.at(-1)?.entry_sha256);
    assert.equal(result.valid, !isChanged);
  });
});

test('entries that are missing, doubled or in another order are found', (t) => {
  const chain = chainOf(4);
  const head = chain.at(-1)?.entry_sha256 ?? '';
  check(t, 200, fc.array(fc.nat(3), { maxLength: 6 }), (order) => {
    const picked = order.flatMap((i) => chain[i] ?? []);
    const isWhole = order.join() === '0,1,2,3';
    assert.equal(verify(picked, head).valid, isWhole);
  });
});

const PLACE = {
  ...{ tenant_id: 't', continuity_id: 'c', epoch: 3 },
  ...{ instance_id: 'i', block_id: 'b', attempt: 1 },
};

const task = (more: Partial<TaskFacts> = {}): TaskFacts => ({
  ...PLACE,
  id: 'task-1',
  handler_name: 'ship',
  params: { url: 'https://x', amount: 3, idempotency_key: 'k-1' },
  ...{ state: 'pending', is_reported: false, is_touched: false, output: null, created_at: at(0) },
  updated_at: null,
  ...more,
});

const inProcess = (more: Partial<InProcessFacts> = {}): InProcessFacts => ({
  ...PLACE,
  ...effectRequest('http_request', { url: 'https://x' }),
  ...{ id: 'effect-1', handler_name: 'http_request', outcome: 'in_flight', output: null },
  ...{ created_at: at(0), updated_at: null },
  ...more,
});

const resolution = (state: EffectResolution['state']): EffectResolution => {
  return { state, provider_receipt_id: null, updated_at: at(5_000) };
};

test('the state follows from what became of the task', () => {
  const state = (more: Partial<TaskFacts>) => taskReceipt(task(more)).state;
  const touched = { is_touched: true };
  const reported = { ...touched, is_reported: true };
  assert.equal(state({ state: 'pending' }), 'prepared');
  assert.equal(state({ state: 'claimed', ...touched }), 'dispatched');
  assert.equal(state({ state: 'completed', ...touched }), 'committed');
  // The word of a worker is known; a time-out or a cancellation behind its back is not.
  assert.equal(state({ state: 'failed', ...reported }), 'failed');
  assert.equal(state({ state: 'failed', ...touched }), 'unknown');
  assert.equal(state({ state: 'failed' }), 'abandoned');
  // Given back after silence.
  assert.equal(state({ state: 'pending', ...touched }), 'unknown');
});

test('the fingerprint is over what says where the request goes, and nothing else', () => {
  const names = ['url', 'provider', 'model', 'topic', 'queue', 'resource'];
  const destination = { ...Object.fromEntries(names.map((name) => [name, name])), endpoint: null };
  const of = (handler: string, params: Parameters<typeof effectRequest>[1]) =>
    effectRequest(handler, params).destination_fingerprint;
  const expected = canonicalSha256({ handler: 'ship', destination });
  assert.equal(of('ship', destination), expected);
  assert.equal(of('ship', { amount: 1, ...destination }), expected);
  assert.notEqual(of('ship', { ...destination, url: 'v' }), expected);
  assert.notEqual(of('send', destination), expected);
  assert.equal(of('ship', ['url']), canonicalSha256({ handler: 'ship', destination: {} }));
});

test('an idempotency key is a text of at most 256 bytes', () => {
  const key = (idempotency_key: string | number | null) =>
    effectRequest('ship', { idempotency_key }).idempotency_key;
  assert.equal(key('é'.repeat(128)), 'é'.repeat(128));
  assert.deepEqual([key(`${'é'.repeat(128)}x`), key(1), key(null)], [null, null, null]);
  assert.equal(effectRequest('ship', null).idempotency_key, null);
});

test('a request notes the key that was sent: its own, in whatever case, or that of the step', () => {
  const key = (params: object) =>
    effectRequest('http_request', params as { url: string }, 'k').idempotency_key;
  assert.equal(key({ url: 'https://x' }), 'k');
  assert.equal(key({ headers: { 'IDEMPOTENCY-Key': 'mine' } }), 'mine');
  assert.equal(key({ headers: { 'idempotency-key': 5 } }), 'k');
});

test('the receipt id of the provider comes from the output of a completed task', () => {
  const given = (output: TaskFacts['output']) =>
    taskReceipt(task({ state: 'completed', output })).provider_receipt_id;
  assert.equal(given({ provider_receipt_id: 'a', receipt_id: 'b', request_id: 'c' }), 'a');
  assert.equal(given({ receipt_id: 'b', request_id: 'c' }), 'b');
  assert.equal(given({ provider_receipt_id: 1, request_id: 'c' }), 'c');
  assert.deepEqual([given({ request_id: 'x'.repeat(257) }), given('a')], [null, null]);
  assert.equal(taskReceipt(task({ output: { request_id: 'c' } })).provider_receipt_id, null);
});

test('a step of the engine is dispatched, committed, failed or unknown', () => {
  const receipt = inProcessReceipt(inProcess());
  assert.deepEqual([receipt.kind, receipt.state], ['http', 'dispatched']);
  const output = { request_id: 'r-1', status: 200 };
  const done = inProcessReceipt(inProcess({ outcome: 'success', output, updated_at: at(7) }));
  const seen = [done.state, done.provider_receipt_id, done.updated_at];
  assert.deepEqual(seen, ['committed', 'r-1', at(7)]);
  assert.equal(inProcessReceipt(inProcess({ outcome: 'failure' })).state, 'failed');
  assert.equal(inProcessReceipt(inProcess({ outcome: 'lost' })).state, 'unknown');
});

test('an effect is resolved only to where its state leads', () => {
  const receipt = taskReceipt(task({ state: 'failed', is_touched: true }));
  for (const from of EFFECT_STATES) {
    for (const to of EFFECT_STATES) {
      const result = resolveEffect({ ...receipt, state: from }, to, undefined, NOW);
      assert.equal(result.ok, mayMoveEffect(from, to), `${from} to ${to}`);
      if (result.ok) assert.equal(result.value.state, to);
      else assert.match(result.message, new RegExp(`${from} cannot become ${to}$`));
    }
  }
});

test('the receipt id that is known stays when none is given', () => {
  const committed = taskReceipt(task({ state: 'completed', output: { receipt_id: 'r-1' } }));
  for (const [given, kept] of [
    [undefined, 'r-1'],
    [null, 'r-1'],
    ['r-2', 'r-2'],
  ] as const) {
    const result = resolveEffect(committed, 'compensated', given, NOW);
    assert.ok(result.ok);
    assert.equal(result.value.provider_receipt_id, kept);
  }
});

test('an effect that was resolved as unknown is committed when the worker reports it done', () => {
  const facts = task({ state: 'completed', output: { receipt_id: 'r-1' }, updated_at: at(9_000) });
  const receipt = taskReceipt(facts, resolution('unknown'));
  const seen = [receipt.state, receipt.provider_receipt_id, receipt.updated_at];
  assert.deepEqual(seen, ['committed', 'r-1', at(9_000)]);
});

test('a final resolution stays, whatever the engine sees later', () => {
  for (const state of ['compensated', 'abandoned', 'verified', 'committed'] as const) {
    for (const seen of ['pending', 'completed', 'failed'] as const) {
      // Only a committed effect that is seen as committed is what it was anyway.
      assert.equal(taskReceipt(task({ state: seen }), resolution(state)).state, state);
    }
  }
  const still = taskReceipt(task({ state: 'claimed' }), resolution('unknown'));
  assert.deepEqual([still.state, still.updated_at], ['unknown', at(5_000)]);
});

const CHECKPOINT = {
  id: 'p-1',
  instance_id: 'i-1',
  created_at: '2026-01-01T00:00:00.000Z',
};

const LOCATION = {
  ...{ continuity_id: 'c-1', tenant_id: 't', epoch: 2, runtime_id: 'r-1', instance_id: 'i-1' },
  ...{ handoff_id: null, entered_at: '2026-01-01T00:00:00.000Z' },
  ...{ id: 'p-1', sequence_id: 's-1', sequence_version: 4 },
};

const blockIn = (data: unknown) =>
  boundaryOf(LOCATION, { ...CHECKPOINT, checkpoint_data: JSON.stringify(data) }).block_id;

test('the block is named by safe_boundary, else by block_id, else unknown', () => {
  assert.equal(blockIn({ safe_boundary: 'a', block_id: 'b' }), 'a');
  assert.equal(blockIn({ safe_boundary: 1, block_id: 'b' }), 'b');
  for (const data of [{}, null, 'a', ['a'], { safe_boundary: null }]) {
    assert.equal(blockIn(data), 'unknown_boundary');
  }
});

const ROW: ShownExecutionRow = {
  ...{ continuity_id: id(1), tenant_id: 't', current_instance_id: id(1), owner_runtime_id: id(2) },
  ...{ epoch: 1, state: 'owned', version: 4, updated_at: at(5), ended: null },
  ...{ instance_state: 'running', instance_updated_at: at(9) },
};

const seen = (more: Partial<ShownExecutionRow>) => {
  const { state, updated_at } = executionView({ ...ROW, ...more });
  return [state, updated_at];
};

test('it is owned until its instance ends, and again once that is retried', () => {
  for (const instance_state of ['scheduled', 'running', 'waiting', 'paused'] as const) {
    assert.deepEqual(seen({ instance_state }), ['owned', at(5)]);
  }
  for (const instance_state of ['completed', 'failed', 'cancelled'] as const) {
    assert.deepEqual(seen({ instance_state }), [instance_state, at(9)]);
    assert.deepEqual(seen({ instance_state, instance_updated_at: at(1) })[1], at(5));
    // Nothing ends behind a fence.
    assert.deepEqual(seen({ instance_state, state: 'transferring' }), ['transferring', at(5)]);
  }
});

test('of an instance that is not here it says what was written down when that was removed', () => {
  const gone = { instance_state: null, instance_updated_at: null };
  assert.deepEqual(seen(gone), ['owned', at(5)]);
  assert.deepEqual(seen({ ...gone, ended: 'completed' }), ['completed', at(5)]);
  assert.deepEqual(seen({ ...gone, ended: 'failed', state: 'transferring' })[0], 'transferring');
});

/** The moves that are allowed, as `from→to|to`. */
const moves = <S extends string>(states: readonly S[], may: (from: S, to: S) => boolean) =>
  states.flatMap((from) => {
    const next = states.filter((to) => may(from, to));
    return next.length === 0 ? [] : [`${from}→${next.sort().join('|')}`];
  });

test('a handoff moves as listed, and in no other way', () => {
  assert.deepEqual(moves(HANDOFF_STATES, mayMoveHandoff).sort(), [
    'accepted→failed|resumed',
    'exported→accepted|expired|failed|revoked',
    'quiescing→exported|failed',
    'requested→failed|quiescing|rejected',
    'resumed→completed|failed',
  ]);
});

test('an execution belongs to a handoff while it is quiescing or exported', () => {
  assert.deepEqual(HANDOFF_STATES.filter(holdsExecution), ['quiescing', 'exported']);
});

test('an effect moves as listed, and in no other way', () => {
  assert.deepEqual(moves(EFFECT_STATES, mayMoveEffect).sort(), [
    'committed→compensated',
    'dispatched→committed|failed|unknown',
    'failed→abandoned|compensated|verified',
    'planned→abandoned|prepared',
    'prepared→abandoned|dispatched',
    'unknown→abandoned|committed|compensated|failed|verified',
    'verified→compensated',
  ]);
});

test('an effect is in doubt while somebody is at it or silent, and what went out forbids a rollback', () => {
  assert.deepEqual(EFFECT_STATES.filter(isEffectInDoubt), ['dispatched', 'unknown']);
  const out = ['dispatched', 'committed', 'failed', 'unknown', 'verified'];
  assert.deepEqual(EFFECT_STATES.filter(forbidsRollback), out);
});

test('a migration is applied once and rolled back once', () => {
  const shown = moves(MIGRATION_STATES, mayMoveMigration).sort();
  assert.deepEqual(shown, ['applied→rolled_back', 'planned→applied']);
});

const EXECUTION = '01950000-0000-7000-8000-000000000001';
const OTHER_EXECUTION = '01950000-0000-7000-8000-000000000002';

let service: ExecutionService;
let commits: CommitLog;
let now: number;
/** Orders that were sent, by their shards. */
let sent: { readonly shard: number; readonly order: Order }[];
/** What was answered, as `7: 201 {}` or `7: ENG_CONFLICT`. */
let answers: string[];
/** What waits for the writer; undefined while that is known. */
let waiting: (() => void)[] | undefined;

beforeEach(() => {
  now = 1_000;
  commits = new CommitLog();
  sent = [];
  answers = [];
  waiting = undefined;
  service = newService();
});

function newService(): ExecutionService {
  return new ExecutionService({
    shard: 0,
    shards: 2,
    commits,
    rows: new ContinuityRows({ query: () => assert.fail('no rows are read') } as never),
    plans: new Plans({} as never),
    keyring: undefined,
    settings: { unpoliciedRetry: 'fail', maxContextBytes: 0 },
    log: pino({ level: 'silent' }),
    offload: IN_PLACE,
    now: () => now,
    newIdLike: (id) => id,
    schedule: (work) => work(),
    whenWriterKnown: (then) => {
      if (waiting === undefined) then();
      else waiting.push(then);
    },
    release: (effects) => {
      for (const effect of effects) {
        if (effect.kind === 'reply')
          answers.push(`${effect.request}: ${effect.status} ${effect.body}`);
        if (effect.kind === 'error') answers.push(`${effect.request}: ${effect.error.code}`);
        if (effect.kind === 'peer') take(effect.shard, effect.message);
      }
    },
  });
}

function take(shard: number, message: PeerMessage): void {
  assert.ok(message.kind === 'continuity.order');
  sent.push({ shard, order: JSON.parse(message.order) as Order });
}

/** Until promises that are settled have been heard. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

const lineOf = (id: string) => () => Promise.resolve(id);

/** A unit that says which it is. */
function unit(name: string): Turn {
  const turn = new Turn();
  turn.put(EXECUTION_ROW.update, EXECUTION, JSON.stringify({ name }));
  return turn;
}

const names = (units: readonly UnitEnvelope[]) =>
  units.map(({ mutations }) => (JSON.parse(String(mutations[2])) as { name: string }).name);

const VIEW = {
  state: 'paused',
  sequenceId: OTHER_EXECUTION,
  currentStep: null,
  nextFireAt: null,
} as const;
const EXPECT = { expect: {}, changes: [] };
const ordered = (instance: string) => ({ current_instance_id: instance, tenant_id: 't' });

describe('the execution service', () => {
  test('serves requests about one execution one after the other, and others meanwhile', async () => {
    const serve = (request: number, id: string, name: string) =>
      service.serve(request, 201, lineOf(id), async () => {
        await service.commit(unit(name));
        return {};
      });
    serve(1, EXECUTION, 'first');
    serve(2, EXECUTION, 'second');
    serve(3, OTHER_EXECUTION, 'other');
    await settled();
    const units = commits.take();
    assert.deepEqual(names(units), ['first', 'other']);
    commits.settle(units.map(({ seq }) => ({ seq, outcome: 'committed' })));
    await settled();
    assert.deepEqual(answers, ['1: 201 {}', '3: 201 {}']);
    assert.deepEqual(names(commits.take()), ['second']);
  });

  test('goes on with the line after an error', async () => {
    const rejects = (error: Error) => () => Promise.reject(error);
    const away = Object.assign(new Error('away'), { code: 'ECONNREFUSED' });
    service.serve(1, 200, lineOf(EXECUTION), rejects(conflict('no')));
    service.serve(2, 200, lineOf(EXECUTION), rejects(new TypeError('defect')));
    service.serve(3, 200, lineOf(EXECUTION), rejects(away));
    service.serve(4, 200, rejects(conflict('no')), async () => assert.fail('not begun'));
    service.serve(5, 200, lineOf(EXECUTION), async () => ({}));
    await settled();
    assert.deepEqual(answers.sort(), [
      ...['1: ENG_CONFLICT', '2: ENG_INTERNAL', '3: ENG_DATABASE_DOWN'],
      ...['4: ENG_CONFLICT', '5: 200 {}'],
    ]);
  });

  test('reads no rows while the units of a dead writer are not settled', async () => {
    waiting = [];
    let reads = 0;
    const read = async () => {
      reads += 1;
      return EXECUTION;
    };
    service.serve(1, 200, read, async () => ({}));
    await settled();
    assert.deepEqual([reads, answers], [0, []]);
    const held = waiting;
    waiting = undefined;
    for (const then of held) then();
    await settled();
    assert.deepEqual([reads, answers], [1, ['1: 200 {}']]);
  });

  test('answers 409 to a unit that was decided on an older version, and 503 when nobody can tell', async () => {
    const codes: (string | undefined)[] = [];
    const commit = () =>
      service.commit(unit('a')).then(
        () => codes.push(undefined),
        (error: EngineError) => codes.push(error.code),
      );
    void commit();
    void commit();
    const [stale, twice] = commits.take();
    assert.ok(stale && twice);
    commits.settle([
      { seq: stale.seq, outcome: 'refused', sqlState: '22P02', reason: 'invalid input syntax' },
      { seq: twice.seq, outcome: 'refused', sqlState: '23505', reason: 'duplicate key' },
    ]);
    void commit();
    commits.lose();
    await settled();
    assert.deepEqual(codes, ['ENG_CONFLICT', 'ENG_CONFLICT', 'ENG_DATABASE_DOWN']);
  });

  test('sends an order to the shard of the instance, with its mutations', async () => {
    const view = service.order(
      ordered(EXECUTION),
      { expect: { epoch: 3 }, changes: [] },
      unit('a'),
    );
    const [message] = sent;
    assert.ok(message);
    const seen = [message.shard, message.order.replyTo, message.order.expect];
    assert.deepEqual(seen, [1, 0, { epoch: 3 }]);
    assert.equal(message.order.mutations.length, 3);
    service.answered(message.order.ticket, { ok: true, view: VIEW });
    assert.deepEqual(await view, VIEW);
  });

  test('does not know what became of an order whose shard died, and of no other one', async () => {
    const lost = service.order(ordered(EXECUTION), EXPECT);
    const kept = service.order(ordered(OTHER_EXECUTION), EXPECT);
    service.shardBack(1);
    await assert.rejects(lost, { code: 'ENG_DATABASE_DOWN' });
    service.answered(sent[1]?.order.ticket ?? 0, { ok: true, view: VIEW });
    assert.deepEqual(await kept, VIEW);
  });

  test('that took the place of another one does not take its answers', async () => {
    void service.order(ordered(EXECUTION), EXPECT);
    now += 1;
    service = newService();
    let isAnswered = false;
    void service.order(ordered(EXECUTION), EXPECT).then(() => {
      isAnswered = true;
    });
    service.answered(sent[0]?.order.ticket ?? 0, { ok: true, view: VIEW });
    await settled();
    assert.equal(isAnswered, false);
  });
});

const MASTER = Buffer.alloc(32, 7);
const FORMER = Buffer.alloc(32, 8);

const raw = (key: string) => Buffer.from(key, 'base64');

test('the signing and the payload key are derived under labels of their own', () => {
  const { signing, payload } = createKeyring(MASTER);
  const derived = (label: string) => Buffer.from(hkdfSync('sha256', MASTER, '', label, 32));
  const seed = derived('engine-continuity-signing-v1');
  assert.equal(signing.publicKey, publicKeyOf(privateKeyOf(seed)));
  assert.deepEqual(payload.key, derived('engine-continuity-payload-v1'));
  assert.ok(!payload.key.equals(seed) && !payload.key.equals(MASTER));
});

test('after a rotation the former key still opens, and its signatures are still believed', () => {
  const former = createKeyring(FORMER);
  const rotated = createKeyring(MASTER, FORMER);
  const present = createKeyring(MASTER);
  assert.deepEqual(column(rotated.opening, 'id'), [present.payload.id, former.payload.id]);
  assert.equal(rotated.signing.publicKey, present.signing.publicKey);
  assert.equal(rotated.trusted.get(former.signing.id), former.signing.publicKey);
});

test('a configured key cannot take the place of an own one', () => {
  const own = createKeyring(MASTER).signing;
  const configured = new Map(Object.entries({ [own.id]: 'else', x: 'y' }));
  const { trusted } = createKeyring(MASTER, undefined, configured);
  assert.equal(trusted.get(own.id), own.publicKey);
  assert.equal(trusted.get('x'), 'y');
});

test('a transfer key is base64 of 32 bytes', () => {
  assert.ok(parseTransferKey(MASTER.toString('base64'))?.key.equals(MASTER));
  for (const bytes of [0, 31, 33]) {
    assert.equal(parseTransferKey(Buffer.alloc(bytes).toString('base64')), undefined);
  }
  assert.equal(parseTransferKey(MASTER.toString('hex')), undefined);
});

test('base64 has one text for each sequence of bytes', () => {
  for (const length of [0, 1, 2, 3, 32, 64]) {
    const text = Buffer.alloc(length, 0xfe).toString('base64');
    assert.equal(text.length, base64Length(length));
    assert.deepEqual(decodeBase64(text), Buffer.alloc(length, 0xfe));
  }
  // Spare bits that are not zero, no padding, too much of it, the other alphabet, white space.
  for (const text of ['/v==', '/g', '/g=', '/g===', '_g==', ' /g==', '/g==\n', 'a', '====', 'é']) {
    assert.equal(decodeBase64(text), undefined, text);
  }
});

test('keys and signatures are those of RFC 8032', () => {
  const seed = '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60';
  const publicKey = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a';
  const signature =
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555' +
    'fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b';
  const privateKey = privateKeyOf(Buffer.from(seed, 'hex'));
  assert.equal(raw(publicKeyOf(privateKey)).toString('hex'), publicKey);
  assert.equal(raw(signText(privateKey, '')).toString('hex'), signature);
  const key = parsePublicKey(publicKeyOf(privateKey));
  assert.ok(key !== undefined);
  assert.ok(isSignedBy(key, '', signText(privateKey, '')));
  assert.ok(!isSignedBy(key, 'x', signText(privateKey, '')));
  assert.ok(!isSignedBy(key, '', ''));
});

test('a public key is the encoding of a point of the curve', () => {
  for (let i = 0; i < 20; i += 1) {
    const { publicKey } = generateKeyPairSync('ed25519');
    const der = publicKey.export({ format: 'der', type: 'spki' }).subarray(12);
    assert.ok(parsePublicKey(der.toString('base64')) !== undefined);
  }
  const point = (hex: string) => parsePublicKey(Buffer.from(hex, 'hex').toString('base64'));
  // The base point and the neutral element.
  assert.ok(point(`58${'66'.repeat(31)}`) !== undefined);
  assert.ok(point(`01${'00'.repeat(31)}`) !== undefined);
  // y = 0, whose numerator is negative before it is reduced.
  assert.ok(point('00'.repeat(32)) !== undefined);
  // y = 2 has no x; the neutral element has no twin; y must be below the prime.
  assert.equal(point(`02${'00'.repeat(31)}`), undefined);
  assert.equal(point(`01${'00'.repeat(30)}80`), undefined);
  assert.equal(point(`ed${'ff'.repeat(30)}7f`), undefined);
  assert.equal(point('ff'.repeat(32)), undefined);
  assert.equal(parsePublicKey(Buffer.alloc(31).toString('base64')), undefined);
  assert.equal(parsePublicKey('no key'), undefined);
});

const TRUSTED = 'ENGINE_CONTINUITY_TRUSTED_SIGNING_KEYS_JSON';
const [PRESENT_HEX, FORMER_HEX] = ['11'.repeat(32), '22'.repeat(32)];
const stranger = createKeyring(Buffer.alloc(32, 3)).signing;

const read = (env: Record<string, string>) => readConfig({ ENGINE_API_KEY: 'k', ...env }, []);

test('trusted keys that are no JSON object of texts stop the start', () => {
  for (const text of ['{', '[]', '"key"', 'null', '{"a": 1}']) {
    const isNamed = (error: unknown) =>
      error instanceof ConfigError && error.message.startsWith(`${TRUSTED}: `);
    assert.throws(() => read({ [TRUSTED]: text }), isNamed, text);
  }
});

test('keys that are not 64 hexadecimal digits stop the start', () => {
  for (const name of ['ENGINE_ENCRYPTION_KEY', 'ENGINE_OLD_ENCRYPTION_KEY']) {
    for (const text of ['ab', 'xy'.repeat(32)]) {
      assert.throws(() => read({ [name]: text }), ConfigError, `${name}=${text}`);
    }
  }
});

test('the key ring signs with the present key and trusts the former one and those that are named', () => {
  const config = read({
    ENGINE_ENCRYPTION_KEY: PRESENT_HEX,
    ENGINE_OLD_ENCRYPTION_KEY: FORMER_HEX,
    [TRUSTED]: JSON.stringify({ [stranger.id]: stranger.publicKey }),
  });
  const { encryptionKey: master, oldEncryptionKey, trustedSigningKeys: trusted } = config;
  const keyring = keyringOf({ master, former: oldEncryptionKey, trusted });
  const [present, former] = [PRESENT_HEX, FORMER_HEX].map((hex) =>
    createKeyring(Buffer.from(hex, 'hex')),
  );
  assert.equal(keyring?.signing.id, present?.signing.id);
  assert.deepEqual(
    [...(keyring?.trusted.values() ?? [])].sort(),
    [stranger.publicKey, present?.signing.publicKey, former?.signing.publicKey].sort(),
  );
});

const { signing } = createKeyring(Buffer.alloc(32, 1));
const { signing: other } = createKeyring(Buffer.alloc(32, 2));
const TRUSTED_KEYS = [other.publicKey, signing.publicKey];

const FACTS: GrantFacts = {
  kind: 'ownership_granted',
  tenant_id: 't',
  capsule_id: '01950000-0000-7000-8000-000000000001',
  continuity_id: '01950000-0000-7000-8000-000000000002',
  epoch: 1,
  owner_runtime_id: '01950000-0000-7000-8000-000000000003',
  instance_id: '01950000-0000-7000-8000-000000000004',
  handoff_id: '01950000-0000-7000-8000-000000000005',
  importer_public_key: other.publicKey,
};

test('a statement is what was stated, and is the same whenever it is made', () => {
  const signed = signStatement(signing, FACTS);
  assert.deepEqual(openStatement(signed, TRUSTED_KEYS), FACTS);
  assert.deepEqual(signStatement(signing, { ...FACTS }), signed);
});

test('a statement counts only by a trusted key', () => {
  const signed = signStatement(signing, FACTS);
  assert.equal(openStatement(signed, []), undefined);
  assert.equal(openStatement(signed, [other.publicKey]), undefined);
  assert.equal(openStatement({ ...signed, public_key: other.publicKey }, TRUSTED_KEYS), undefined);
  assert.equal(openStatement({ ...signed, public_key: 'AAAA' }, ['AAAA']), undefined);
});

test('a statement of which any character is another one counts no more', (t) => {
  const signed = signStatement(signing, FACTS);
  const part = fc.constantFrom<keyof ImportReceipt>('statement', 'public_key', 'signature');
  const changes = fc.tuple(part, fc.nat(), fc.integer({ min: 1, max: 94 }));
  check(t, 100, changes, ([name, place, shift]) => {
    const text = signed[name];
    const at = place % text.length;
    const code = 33 + ((text.charCodeAt(at) - 33 + shift) % 94);
    if (code === text.charCodeAt(at)) return;
    const changed = text.slice(0, at) + String.fromCharCode(code) + text.slice(at + 1);
    assert.equal(openStatement({ ...signed, [name]: changed }, TRUSTED_KEYS), undefined);
  });
});

const [LINK_KEY, FORMER_LINK_KEY, OTHER_LINK_KEY] = [1, 2, 3].map((byte) => Buffer.alloc(32, byte));
const { links } = createKeyring(LINK_KEY!, FORMER_LINK_KEY);
const GRANT: ApprovalGrant = {
  approval: '01890000-0000-7000-8000-000000000001',
  expiresAt: 1_700_000_000_000,
  value: 'yes "ü"',
  recipient: null,
};

test('a link says what it was made with, also after the key was changed', () => {
  assert.deepEqual(verifiedGrant(approvalToken(GRANT, links), links), GRANT);
  const before = approvalToken({ ...GRANT, value: null }, createKeyring(FORMER_LINK_KEY!).links);
  assert.deepEqual(verifiedGrant(before, links), { ...GRANT, value: null });
});

test('a link is nothing when any character of it is another, or another server has signed it', () => {
  const token = approvalToken(GRANT, links);
  for (let at = 0; at < token.length; at += 1) {
    const other = token[at] === 'A' ? 'B' : 'A';
    const forged = token.slice(0, at) + other + token.slice(at + 1);
    assert.equal(verifiedGrant(forged, links), undefined, `character ${at}`);
  }
  const others = createKeyring(OTHER_LINK_KEY!).links;
  const cut = ['', '.', 'x.y', token.slice(0, -1), token.split('.')[0]!];
  for (const text of [...cut, `${token}=`, `${token}.x`, approvalToken(GRANT, others)]) {
    assert.equal(verifiedGrant(text, links), undefined, text);
  }
});
