/** What the programs of the model leave behind and read again: the data, the outputs, the rows. */

import type { Block, ForEachBlock } from '../../schema/blocks.js';
import type { JsonObject, JsonValue } from '../../src/core/json.js';
import { listsOf } from './block-trees.js';
import type { Frame } from './model-frames.js';
import type { View } from './model-values.js';

/** The loops around a block: their counters, and the items of the for_each blocks by their names. */
export interface Iteration {
  readonly iteration: readonly number[];
  readonly items: JsonObject | null;
}

export interface ModelRow {
  readonly block: string;
  readonly iteration: string;
  readonly number: number;
  readonly attempt: number;
  readonly output: JsonValue;
  readonly isError: boolean;
}

export class Context {
  data: JsonObject;
  rows: ModelRow[] = [];
  /** What `context.data._error` was set to in the last instant in which it was. */
  errors: JsonObject[] = [];
  #errorsAt = 0;
  /** Counts the events that were taken in. */
  instant = 0;
  /** What was collected depends on the order of branches within one instant. */
  isTie = false;
  readonly #instants = new Map<ModelRow, number>();
  #outputs: JsonObject = {};
  /** What loops say of their passes: no outputs. */
  readonly #notes = new Set<ModelRow>();
  readonly #rowCounts = new Map<string, number>();

  constructor(data: JsonObject) {
    this.data = data;
  }

  view({ items }: Iteration): View {
    return { data: { ...this.data, ...items }, outputs: this.#outputs };
  }

  /**
   * The row of a try. What is shown as its attempt is the try, and inside of loops the number of the
   * block's row, which counts on over all iterations.
   */
  row(block: Block, place: Iteration, number: number, output: JsonValue): void {
    this.store(block, place, { number, output, isError: false });
  }

  errorRow(block: Block, place: Iteration, number: number, retryable: boolean): void {
    const output = { __error__: true, retryable };
    this.store(block, place, { number, output, isError: true });
  }

  /** What a loop says of its passes. */
  note(block: Block, place: Iteration, attempt: number, output: JsonObject): void {
    this.#notes.add(this.store(block, place, { number: 0, attempt, output, isError: false }));
  }

  /** The last output of each item, from the rows that there are. */
  collectedRow(block: ForEachBlock, place: Iteration, count: number): void {
    const inside = new Set(idsIn(block.body));
    const output = Array.from({ length: count }, (_, item) => {
      const path = [...place.iteration, item];
      const last = this.rows.findLast(
        (row) =>
          inside.has(row.block) &&
          !row.isError &&
          !this.#notes.has(row) &&
          `${row.iteration}.`.startsWith(`${path.join('.')}.`),
      );
      if (last !== undefined && this.#hasTwin(last, block.body)) this.isTie = true;
      return last?.output ?? null;
    });
    this.store(block, place, { number: 0, attempt: count, output, isError: false });
  }

  /** Whether a block in another branch has left a row in the same instant. */
  #hasTwin(row: ModelRow, body: readonly Block[]): boolean {
    const instant = this.#instants.get(row);
    return this.rows.some(
      (other) =>
        this.#instants.get(other) === instant &&
        other.iteration.split('.')[0] === row.iteration.split('.')[0] &&
        areBeside(body, other.block, row.block),
    );
  }

  /** The output of the last block of the list that has one. */
  resultOf(list: readonly Block[], { inside }: Frame): JsonValue | undefined {
    for (const block of list.toReversed()) {
      const frame = inside.get(block.id);
      if (frame?.end !== 'completed') continue;
      const found = this.#resultOfBlock(block, frame);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #resultOfBlock(block: Block, frame: Frame): JsonValue | undefined {
    const own = this.#outputs[block.id];
    const inner = () => this.resultOf(listsOf(block).flat(), frame);
    switch (block.type) {
      case 'step':
      case 'race':
        return own;
      case 'for_each':
        return frame.items === undefined ? undefined : own;
      case 'ab_split':
        return inner() ?? own;
      case 'try_catch': {
        const isCaught = block.try_block.some(({ id }) => frame.inside.get(id)?.end === 'failed');
        const [tried, caught, last] = listsOf(block);
        return this.resultOf([...tried!, ...(isCaught ? caught! : []), ...last!], frame);
      }
      default:
        return inner();
    }
  }

  store(
    { id }: Block,
    { iteration }: Iteration,
    row: Omit<ModelRow, 'block' | 'iteration' | 'attempt'> & { readonly attempt?: number },
  ): ModelRow {
    const count = this.#rowCounts.get(id) ?? 0;
    this.#rowCounts.set(id, count + 1);
    const attempt = iteration.length === 0 ? (row.attempt ?? row.number) : count;
    const stored = { block: id, iteration: iteration.join('.'), ...row, attempt };
    this.rows.push(stored);
    this.#instants.set(stored, this.instant);
    this.#outputs = { ...this.#outputs, [id]: row.output };
    return stored;
  }

  /** Shallow: top-level keys replace those of the data. */
  merge(values: JsonObject): void {
    this.data = { ...this.data, ...values };
  }

  noteError(error: JsonObject, now: number): void {
    if (this.#errorsAt !== now) this.errors = [];
    this.#errorsAt = now;
    this.errors.push(error);
    this.merge({ _error: error });
  }

  /** For a retry of the instance. */
  dropErrors(): void {
    this.rows = this.rows.filter(({ isError }) => !isError);
    const isKept = (output: JsonValue | undefined) =>
      typeof output !== 'object' || output === null || !('__error__' in output);
    const kept = Object.entries(this.#outputs).filter(([, output]) => isKept(output));
    this.#outputs = Object.fromEntries(kept);
  }
}

function idsIn(blocks: readonly Block[]): string[] {
  return blocks.flatMap((block) => [block.id, ...idsIn(listsOf(block).flat())]);
}

/** Whether the two blocks stand in different branches of a parallel or a race. */
function areBeside(blocks: readonly Block[], one: string, other: string): boolean {
  return blocks.some((block) => {
    const lists = listsOf(block);
    const at = (id: string) => lists.findIndex((list) => idsIn(list).includes(id));
    const [a, b] = [at(one), at(other)];
    if (a < 0 || b < 0) return false;
    if (a === b) return areBeside(lists[a]!, one, other);
    return block.type === 'parallel' || block.type === 'race';
  });
}
