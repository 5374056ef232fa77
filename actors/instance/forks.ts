/** Forks: new instances with the finished top-level blocks of a source, and their outputs. */

import { COMPLETED, type Execution, emptyExecution, SKIPPED } from '../../schema/execution.js';
import { PRIORITIES } from '../../schema/states.js';
import { EngineError } from '../../src/base/errors.js';
import type { JsonObject } from '../../src/base/json.js';
import { LIMITS } from '../../src/base/limits.js';
import { isoTime } from '../../src/base/time.js';
import { blocksBetween } from '../../src/core/paths.js';
import type { PlanNode } from '../../src/core/plan.js';
import type { Turn } from '../runtime/turn.js';
import { advance, checkContextSize } from './advance.js';
import { cancelProblem } from './creation.js';
import { amendedData, signalsOf, takeSignals, topLevelBlock } from './edits.js';
import { type LiveInstance, liveInstance, nextId, type Preparation } from './live-instance.js';
import { checkBytes } from './memory.js';
import type { MessageOf } from './messages.js';
import type { StoredOutput } from './output-loads.js';
import { OUTPUT } from './output-tables.js';
import { putAudit } from './progress.js';
import { newRecord } from './record.js';
import { settleNew } from './settling.js';
import { checkRoom } from './signals.js';
import { INJECTION } from './tables.js';

type Fork = MessageOf<'fork'>;

const ROW_BYTES = 256;

export const fork: Preparation<'fork'> = async (source, { rows, plans, createBeside }, message) => {
  const { record, plan } = source;
  const { snapshot } = record;
  const root = topLevelBlock(plan, message.body.from_block_id);
  const copied = plan.roots
    .slice(0, root.position)
    .map((index) => plan.nodes[index] as PlanNode)
    .filter(({ index }) => isFinished(snapshot.execution, index));
  const data = amendedData(snapshot.data, message.body);
  checkContextSize(source, data, snapshot.config, []);
  checkRoom(source, signalsOf(message), []);
  const { config } = snapshot;
  const problem = cancelProblem({ plan }, { id: record.id, data, config });
  if (problem !== undefined) {
    throw new EngineError('ENG_INPUT_SCHEMA', `unprocessable entity: ${problem}`);
  }
  const blocks = copied.flatMap(({ index, end }) => blocksBetween(plan, index, end));
  const totals = await rows.outputTotals(record.id, blocks);
  const bytes = totals.bytes + ROW_BYTES * totals.rows;
  checkBytes('the outputs to copy are', bytes, LIMITS.forkBytesMax);
  const outputs = await rows.outputRows(record.id, blocks);
  return () => {
    plans.checkUsable(record.sequence_id);
    const child = childOf(source, message, data, copied);
    createBeside(child, (turn) => begin(child, turn, source, message, copied, outputs));
    return undefined;
  };
};

function isFinished({ d }: Execution, index: number): boolean {
  const code = d[index]?.[0];
  return code === COMPLETED || code === SKIPPED;
}

/** On the shard of the source: both ids have the same route. */
function childOf(
  source: LiveInstance,
  { body, traceparent }: Fork,
  data: JsonObject,
  copied: readonly PlanNode[],
): LiveInstance {
  const { record, plan, env } = source;
  const { from_block_id: blockId } = body;
  const dryRun = body.dry_run ?? true;
  const marks = { forked_from: record.id, forked_at_block: blockId, sandbox: dryRun };
  const child = newRecord(
    {
      id: nextId(source),
      body: {
        sequence_id: record.sequence_id,
        tenant_id: record.tenant_id,
        namespace: record.namespace,
        priority: PRIORITIES[record.priority] ?? null,
        timezone: record.snapshot.timezone,
        metadata: { ...record.metadata, ...marks },
        context: { data, config: record.snapshot.config },
        timeout: record.snapshot.timeoutMs ?? null,
        dry_run: dryRun,
      },
      traceparent,
    },
    env.now(),
    plan,
  );
  child.injected = record.injected;
  const { i, E: cancelOn } = child.snapshot.execution;
  child.snapshot.execution = {
    ...finishedParts(record.snapshot.execution, copied),
    ...(i !== undefined && { i }),
    ...(cancelOn && { E: cancelOn }),
  };
  for (const [id, output] of record.snapshot.outputs) {
    const index = plan.indexOf.get(id) ?? -1;
    const isCopied = copied.some((root) => root.index <= index && index < root.end);
    if (isCopied) child.snapshot.outputs.set(id, output);
  }
  return liveInstance(child, plan, env);
}

/** Only the finished blocks. Their times are cleared, because they precede the fork. */
function finishedParts({ d, c }: Execution, copied: readonly PlanNode[]): Execution {
  const execution = emptyExecution();
  const counts: Record<number, number> = {};
  for (const { index: first, end } of copied) {
    for (let index = first; index < end; index += 1) {
      const done = d[index];
      const count = c?.[index];
      if (done !== undefined) execution.d[index] = [done[0], 0, 0];
      if (count !== undefined) counts[index] = count;
    }
  }
  return Object.keys(counts).length === 0 ? execution : { ...execution, c: counts };
}

/** Fills the unit that creates the fork, including the reply. */
function begin(
  child: LiveInstance,
  turn: Turn,
  source: LiveInstance,
  message: Fork,
  copied: readonly PlanNode[],
  outputs: readonly StoredOutput[],
): void {
  const { record, plan } = child;
  const { request, body: requested } = message;
  const { from_block_id: blockId } = requested;
  settleNew(child, turn, () => {
    putAudit(child, turn, [
      { eventType: 'forked', blockId, details: { forked_from: source.record.id } },
    ]);
    if (record.injected.length > 0) {
      turn.put(INJECTION.set, record.id, { instance_id: record.id, blocks: record.injected });
    }
    for (const { output, ...rest } of outputs) {
      const id = nextId(child);
      const created_at = isoTime(child.env.now());
      const columns = JSON.stringify({ id, instance_id: record.id, ...rest, created_at });
      // Text, which is not parsed.
      turn.put(OUTPUT.insert, id, `${columns.slice(0, -1)},"output":${output ?? 'null'}}`);
    }
    const scheduled = advance(child, turn, { kind: 'reschedule', at: null });
    return takeSignals(child, turn, message) ?? scheduled;
  });
  const done = new Set(copied.map(({ index }) => index));
  const body = {
    id: record.id,
    forked_from: source.record.id,
    state: 'scheduled',
    copied_blocks: copied.map(({ id }) => id),
    rerun_blocks: plan.roots.filter((root) => !done.has(root)).map((root) => plan.nodes[root]?.id),
    dry_run: requested.dry_run ?? true,
  };
  turn.reply(request, 201, JSON.stringify(body));
}
