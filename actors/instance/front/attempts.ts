/** `GET /instances/{id}/attempts`: what tells steps of the process from those of workers is the definition. */

import type { Block } from '../../../schema/blocks.js';
import { type BuiltinName, isBuiltin } from '../../../schema/handlers.js';
import { kindOf } from '../../../src/core/blocks/kinds.js';
import { rowOf } from '../../../src/db/reads/lookup.js';
import { type Operation, pageReply } from '../../../src/http/operation.js';
import { treeOf } from '../../release/core/block-tree.js';
import { attemptList, instanceBlocks, type KnownSteps } from './attempt-reads.js';

export const instanceAttempts: Operation<'instances.attempts'> = async (deps, call) => {
  const { query, params, tenant } = call;
  const row = await rowOf(deps.reads, instanceBlocks, 'instance', params.id, tenant);
  const definition = JSON.parse(row.definition ?? '{}') as { readonly blocks?: readonly Block[] };
  const injected = JSON.parse(row.injected ?? '[]') as readonly Block[];
  const steps = stepsOf([...(definition.blocks ?? []), ...injected]);
  return pageReply(
    call,
    { ...query, offset: 0 },
    await deps.reads.page(attemptList(params.id, steps, query)),
  );
};

function stepsOf(blocks: readonly Block[]): KnownSteps {
  const excluded: string[] = [];
  const retried: string[] = [];
  const handlers = new Map<string, string>();
  const loopsAround = new Map<string, number>();
  for (const [id, { block, parent }] of treeOf(blocks)) {
    const isLooped = parent !== undefined && kindOf(parent).repeats !== 'never';
    loopsAround.set(id, (loopsAround.get(parent?.id ?? '') ?? 0) + (isLooped ? 1 : 0));
    if (block.type === 'step') handlers.set(id, block.handler);
    if (!isOfProcess(block)) excluded.push(id);
    else if (mayBeTriedAgain(block)) retried.push(id);
  }
  const nested = new Set([...loopsAround].flatMap(([id, loops]) => (loops > 1 ? [id] : [])));
  return { excluded, retried, handlers, nested };
}

function isOfProcess(block: Block): boolean {
  return block.type === 'step' ? isBuiltin(block.handler) : block.type === 'sub_sequence';
}

/** The others fail for good, if at all. */
function mayBeTriedAgain(block: Block): boolean {
  return block.type === 'step' && (block.retry != null || FALLIBLE.has(block.handler));
}

const FALLIBLE: ReadonlySet<string> = new Set(['http_request', 'fail'] satisfies BuiltinName[]);
