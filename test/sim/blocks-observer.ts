/**
 * Watches what blocks see of one another, and what runs behind a failure. Each output of a worker has a token of
 * its own, which is merged into the data, and steps with the handler `transform` tell what they see of the data
 * and of the outputs (`shapes.ts`). So items that run side by side see no token of another one, outputs are
 * those of the same item, pass or run, an error is seen in the lists of the block that caught it, and no
 * try list runs behind its catch list.
 */

import type { JsonValue } from '../../src/base/json.js';
import { entryOf } from '../helpers/entry.js';
import { type Change, contextData, type Row } from './memory-tables.js';
import { type Around, loopsIn, mayRepeat, pathOf, placesOf } from './places.js';
import { Violation } from './violation.js';
import { Watcher } from './watcher.js';

/** A token is kept under this and the id of the step, in its output and in the data. */
export const TOKEN = 'of_';

type Path = readonly number[];

interface Place {
  readonly instance: string;
  readonly block: string;
  readonly path: Path;
  readonly around: readonly Around[];
}

/** What a `transform` tells. */
interface Seen {
  readonly data: Readonly<Record<string, JsonValue>>;
  /** By step: the token in its output. */
  readonly tokens: Readonly<Record<string, JsonValue>>;
}

interface Known {
  /** Step → iteration → the token that it gave there. */
  readonly given: Map<string, Map<string, string>>;
  /** Those whose catch lists have run, by block and iteration. */
  readonly caught: Set<string>;
}

export class BlocksObserver extends Watcher {
  readonly #instances = new Map<string, Known>();
  readonly #tokens = new Map<string, Place>();
  readonly #ofEarlierRuns = new Set<string>();
  readonly #touched = new Set<string>();
  /** Catch lists that ran in the commit. */
  readonly #catching: (() => unknown)[] = [];

  /** @throws Violation */
  look({ table, key, before, after }: Change): void {
    if (table === 'instances') {
      this.#touched.add(key);
      if (after === undefined) this.#instances.delete(key);
      else if (before === undefined) this.#checkMade(after);
      return;
    }
    if (table !== 'block_outputs' && table !== 'worker_tasks') return;
    if ((before === undefined) === (after === undefined)) return;
    const row = (after ?? before)!;
    const place = this.#placeOf(row);
    if (place === undefined) return;
    const known = this.#knownOf(place);
    const isOutput = table === 'block_outputs' && row.output_ref === null;
    if (after === undefined) {
      known.given.get(place.block)?.delete(String(row.iteration));
      if (isOutput) this.#forgetRun(place);
      return;
    }
    // A child may have to clean up before the catch list goes on.
    this.#checkOrder(known, place, place.block.startsWith('child'));
    if (!isOutput) return;
    const output = (row.output ?? {}) as Readonly<Record<string, JsonValue>>;
    const token = output[TOKEN + place.block];
    if (typeof token === 'string') {
      this.#tokens.set(token, place);
      entryOf(known.given, place.block, () => new Map()).set(String(row.iteration), token);
    }
    if (output.tokens !== undefined) this.#checkSeen(known, place, output as unknown as Seen);
  }

  /** To be called when all changes of a commit were looked at. @throws Violation */
  check(): void {
    for (const instance of this.#touched) this.#checkData(instance);
    this.#touched.clear();
    for (const note of this.#catching.splice(0)) note();
  }

  /** A for_each that runs again sees what its items merged in the run before as values from outside. */
  #forgetRun({ instance, block }: Place): void {
    for (const [token, by] of this.#tokens) {
      const isIn = by.around.some((around) => isSideBySide(around) && around.block.id === block);
      if (isIn && by.instance === instance) this.#ofEarlierRuns.add(token);
    }
  }

  #placeOf(row: Row): Place | undefined {
    const [instance, block] = [String(row.instance_id), String(row.block_id)];
    const around = placesOf(this.tables, instance).get(block);
    const path = pathOf(row);
    return around && path && { instance, block, path, around };
  }

  #knownOf({ instance }: Place): Known {
    return entryOf(this.#instances, instance, () => ({ given: new Map(), caught: new Set() }));
  }

  /** No child is made there, though one that is there may have to clean up; in which pass of a loop, its row does not say. */
  #checkMade({ parent_instance_id: parent, metadata }: Row): void {
    if (typeof parent !== 'string') return;
    const block = String((metadata as Row)._parent_block_id);
    const around = placesOf(this.tables, parent).get(block) ?? [];
    const place = { instance: parent, block, path: [], around };
    if (loopsIn(around).length === 0) this.#checkOrder(this.#knownOf(place), place);
  }

  #checkOrder(
    { caught }: Known,
    { instance, block, path, around }: Place,
    mayCleanUp = false,
  ): void {
    for (const [i, { block: one, list }] of around.entries()) {
      if (one.type !== 'try_catch' || mayRepeat(around.slice(0, i))) continue;
      const name = `${one.id} ${path.slice(0, loopsIn(around.slice(0, i)).length)}`;
      // In which order the rows of one commit came about is not known.
      if (list === 1) this.#catching.push(() => caught.add(name));
      if (list !== 0 || mayCleanUp || !caught.has(name)) continue;
      throw new Violation(
        `${block} ran in the try list of ${name}, behind the catch list`,
        instance,
      );
    }
  }

  /** What was merged last, in the order of items and passes, is there in the end. */
  #checkData(instance: string): void {
    const row = this.tables.row('instances', instance);
    if (row === undefined) return;
    const { state } = row;
    const values = contextData(row);
    if (state === 'completed' && values._error !== undefined) {
      throw new Violation(`is completed with ${JSON.stringify(values._error)}`, instance);
    }
    const places = placesOf(this.tables, instance);
    for (const [block, given] of this.#instances.get(instance)?.given ?? []) {
      const last = lastOf([...given.values()], this.#tokens);
      if (last === undefined || mayRepeat(places.get(block) ?? [])) continue;
      const value = values[TOKEN + block];
      if (value === last) continue;
      throw new Violation(`its data has ${value} of ${block}, the last one is ${last}`, instance);
    }
  }

  // ---------------------------------------------------------------- what is seen

  #checkSeen({ given }: Known, place: Place, { data, tokens }: Seen): void {
    const complain = (text: string): never => {
      throw new Violation(`${place.block} in ${place.path} sees ${text}`, place.instance);
    };
    this.#checkError(place, data._error, complain);
    const lane = laneOf(place);
    for (const [key, value] of Object.entries(data)) {
      const token = String(value);
      if (!key.startsWith(TOKEN) || this.#ofEarlierRuns.has(token)) continue;
      const by = this.#tokens.get(token);
      if (by !== undefined && isOfOther(by, place))
        complain(`what item ${by.path} merged: ${token}`);
    }
    for (const [block, ofBlock] of given) {
      const own = [...ofBlock.values()].filter((token) => {
        const { path, around } = this.#tokens.get(token)!;
        const isIn = loopsIn(around)[lane]?.block.id === loopsIn(place.around)[lane]?.block.id;
        return isIn && !mayRepeat(around) && isSame(path, place.path, lane + 1);
      });
      const last = lane < 0 ? undefined : lastOf(own, this.#tokens);
      const isSeen = last === undefined || mayRepeat(place.around) || data[TOKEN + block] === last;
      if (!isSeen) complain(`${data[TOKEN + block]}, and its own item merged ${last}`);
    }
    for (const [block, token] of Object.entries(tokens)) {
      const by = this.#tokens.get(String(token));
      if (by !== undefined && isOfOtherPass(by, place))
        complain(`the output ${token} of ${by.path}`);
      const around = placesOf(this.tables, place.instance).get(block) ?? [];
      const loops = loopsIn(around).length;
      const isDeeper = loopsIn(around.slice(0, commonOf(around, place.around))).length < loops;
      if (isDeeper || mayRepeat(around)) continue;
      const own = given.get(block)?.get(place.path.slice(0, loops).join('.'));
      if (own !== undefined && token !== own) complain(`${token}, and ${block} gave ${own}`);
    }
    this.counts.add('seen by a step', Object.keys(tokens).length);
  }

  /** It is that of the innermost block which has caught one. */
  #checkError({ around }: Place, error: JsonValue | undefined, complain: (text: string) => never) {
    const catching = around.findLast(
      ({ block: { type }, list }) =>
        (type === 'try_catch' && list > 0) || (type === 'saga' && list % 2 === 1),
    );
    const seen = (error ?? {}) as { block_id?: string; failed_step?: unknown; code?: string };
    const isFinally = catching?.block.type === 'try_catch' && catching.list === 2;
    const mayBeNone = catching === undefined || isFinally;
    const isOwn = seen.block_id === catching?.block.id;
    if (!isOwn && !(mayBeNone && seen.block_id === undefined)) {
      complain(`the error of ${seen.block_id}, in a list of ${catching?.block.id}`);
    }
    // Nothing has failed in a saga that was cut off.
    const isCut = catching?.block.type === 'saga' && seen.failed_step === null;
    if (isCut !== (isOwn && seen.code === 'cancelled')) {
      complain(`the code ${seen.code} of the step ${seen.failed_step}`);
    }
    if (catching !== undefined) this.counts.add('seen of an error');
  }
}

/** How many blocks are around both. */
function commonOf(one: readonly Around[], other: readonly Around[]): number {
  const apart = one.findIndex(({ block }, i) => block.id !== other[i]?.block.id);
  return apart < 0 ? one.length : apart;
}

function isSame(one: Path, other: Path, length: number): boolean {
  return one.slice(0, length).join() === other.slice(0, length).join();
}

/** The loops around both, from the first on that both are in another pass of. */
function apartIn(one: Place, other: Place): Around[] {
  const loops = loopsIn(one.around.slice(0, commonOf(one.around, other.around)));
  const apart = loops.findIndex((_, i) => one.path[i] !== other.path[i]);
  return apart < 0 ? [] : loops.slice(apart);
}

const isSideBySide = ({ block }: Around) => block.type === 'for_each' && block.concurrency != null;

/** The number of the innermost loop around the place whose items run side by side; -1: none. */
function laneOf({ around }: Place): number {
  return loopsIn(around).findLastIndex(isSideBySide);
}

/** Whether that was in an item beside the one that sees it. */
function isOfOther(by: Place, place: Place): boolean {
  const [apart] = apartIn(by, place);
  return by.instance !== place.instance || (apart !== undefined && isSideBySide(apart));
}

/** Whether the output of that is nothing to see here: what a loop gave before is seen until it comes again. */
function isOfOtherPass(by: Place, place: Place): boolean {
  const apart = apartIn(by, place);
  if (by.instance !== place.instance) return true;
  if (apart.some(({ block }) => block.type !== 'loop')) return true;
  const last = commonOf(by.around, place.around) - 1;
  const [its, own] = [by.around[last], place.around[last]];
  return apart.length > 0 && its?.list === own?.list && its!.at < own!.at;
}

function lastOf(tokens: readonly string[], places: ReadonlyMap<string, Place>): string | undefined {
  const pathOfToken = (token: string) => places.get(token)!.path;
  return tokens.reduce<string | undefined>((last, token) => {
    if (last === undefined) return token;
    const [one, other] = [pathOfToken(last), pathOfToken(token)];
    const apart = one.findIndex((number, i) => number !== other[i]);
    return apart >= 0 && one[apart]! > other[apart]! ? last : token;
  }, undefined);
}
