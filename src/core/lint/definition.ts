/**
 * Everything that is or may be wrong in a definition that somebody wants to store, at once and each with its
 * place (docs/reference/definitions.md): errors refuse it, warnings never do. Stored definitions are not
 * looked at again: they run as the rules say.
 */

import type { TSchema } from '@sinclair/typebox';
import {
  BLOCKS_MAX,
  HOOK_LISTS,
  HOOKS_MAX,
  ITEM_VAR_DEFAULT,
  type SagaBlock,
} from '../../../schema/blocks.js';
import {
  type Finding,
  findingOf,
  isWithin,
  joinPath,
  type ShapeErrors,
  shownName,
} from '../../../schema/finding.js';
import type { BuiltinName } from '../../../schema/handlers.js';
import { BUILTIN_HANDLERS, HANDLER_PARAMS, isBuiltin } from '../../../schema/handlers.js';
import { type BlockPlace, walkDefinition } from '../../../schema/members.js';
import { misspelt, suggest } from '../../../schema/suggest.js';
import { clip } from '../../base/bounds.js';
import { isJsonObject, type JsonObject, ownValue } from '../../base/json.js';
import type { ExpressionUse } from '../block-compiler.js';
import type { Condition, Parsed } from '../condition.js';
import { ROOT_NAMES } from '../expression/scope.js';
import { ALONE, type Crowd, concurrencyOf, TreeRules } from '../tree-rules.js';
import { type BlockAudience, namesIn, readBlock } from './block-reader.js';
import { FindingList } from './finding-list.js';
import { partialActions } from './partial-actions.js';
import { whyNever } from './references.js';
import { mendedCondition, type Remarks, readCondition, readTemplate } from './texts.js';

export interface Findings {
  readonly errors: readonly Finding[];
  readonly warnings: readonly Finding[];
}

export interface LintOptions {
  /** What the definition is called, such as `a sequence`. */
  readonly name: string;
  /** What the validators found wrong with its shape; absent when that is right. */
  readonly shape?: ShapeErrors;
  /** Blocks that stand elsewhere and run before. */
  readonly known?: ReadonlySet<string>;
  /** The check of the parameters of built-in handlers. */
  readonly checkParams?: (
    handler: BuiltinName,
    params: JsonObject,
  ) => readonly (Finding & { readonly isFatal: boolean })[];
}

/** @param value valid by the schema, but for the errors of its shape */
export function lintDefinition(schema: TSchema, value: unknown, options: LintOptions): Findings {
  return new Lint(options).look(schema, value);
}

const NO_ERRORS: ShapeErrors = { found: [], extent: 'all' };

/** More texts with braces than a definition of the most blocks has anywhere but in parameters. */
const BRACES_MAX = 20_000;

/** Of many blocks only so many are compared with a name that no block has. */
const IDS_COMPARED_MAX = 500;

class Lint implements BlockAudience {
  readonly #options: LintOptions;
  readonly #errors = new FindingList();
  readonly #warnings = new FindingList();
  readonly #places: BlockPlace[] = [];
  readonly #byId = new Map<string, BlockPlace>();
  /** Texts with braces by their places; what is evaluated is taken out. */
  readonly #braces = new Set<string>();
  #isCrowded = false;
  /** The block that is looked at. */
  #reader: BlockPlace | undefined;

  constructor(options: LintOptions) {
    this.#options = options;
  }

  look(schema: TSchema, value: unknown): Findings {
    const { name, shape = NO_ERRORS } = this.#options;
    for (const error of shape.found) this.#errors.add(() => error);
    if (shape.extent !== 'first') this.#walk(schema, value, name);
    if (shape.extent === 'all') this.#lookAtBlocks(shape.found);
    return { errors: this.#errors.all(), warnings: this.#warnings.all() };
  }

  #walk(schema: TSchema, value: unknown, name: string): void {
    walkDefinition(schema, value, name, {
      block: (place) => {
        if (this.#places.length <= BLOCKS_MAX) this.#places.push(place);
      },
      unknown: (describe) => this.#warnings.add(describe),
      text: (path, text) => {
        if (text.includes('{{') && this.#braces.size < BRACES_MAX) this.#braces.add(path);
      },
    });
    this.#takeHooks(value as JsonObject);
    this.#checkTree();
  }

  /** Each list as one that runs after the blocks, and that nothing else reads. */
  #takeHooks(definition: JsonObject): void {
    if (!isJsonObject(definition)) return;
    for (const [number, name] of HOOK_LISTS.entries()) {
      const hooks = ownValue(definition, name);
      if (!Array.isArray(hooks)) continue;
      for (const [position, block] of hooks.slice(0, HOOKS_MAX).entries()) {
        if (!isJsonObject(block)) continue;
        const path = `${name}[${position}]`;
        const place = { parent: undefined, list: number + 1, position, depth: 1 };
        // What is refused in hooks may be false there, which is absent.
        const said = Object.entries(block).filter(([, member]) => member !== false);
        this.#places.push({ block: Object.fromEntries(said), path, ...place });
      }
    }
  }

  #lookAtBlocks(errors: readonly Finding[]): void {
    const unsound = this.#unsound(errors);
    for (const place of this.#places) this.#lookAt(place, !unsound.has(place));
    if (errors.length === 0) this.#lookAtSagas();
    for (const path of this.#braces) {
      if ([...unsound].some((place) => isWithin(path, place.path))) continue;
      this.#warn(path, 'has braces, and is no place for a template: it stays as it is');
    }
  }

  #lookAtSagas(): void {
    for (const { block, path } of this.#places) {
      if (block.type !== 'saga') continue;
      for (const { member, step, done, failing } of partialActions(block as unknown as SagaBlock)) {
        const [first, second] = [clip(done), clip(failing)];
        const where = first === second ? `${second} fails in a later iteration` : `${second} fails`;
        this.#warn(
          `${path}.${member}`,
          `when ${where}, what ${first} has done is not compensated, since step ${clip(step)} has not completed, and ` +
            'a retry does it again: give each a step of its own, or take it back in a try_catch inside the action',
        );
      }
    }
  }

  #checkTree(): void {
    const rules = new TreeRules();
    const told = new Set<string>();
    const tell = (path: string, problem: string | undefined) => {
      if (problem === undefined || told.has(problem)) return;
      told.add(problem);
      this.#errors.add(() => findingOf(path, problem));
    };
    for (const place of this.#places) {
      const { block, path, depth } = place;
      if (typeof block.id === 'string') {
        if (!this.#byId.has(block.id)) this.#byId.set(block.id, place);
        this.#checkCrowd(rules, place);
        tell(`${path}.id`, rules.problemOf(block.id, depth));
      }
      for (const own of namesIn(block)) {
        tell(`${path}.${own.path}`, rules.claim(own.id, `${String(block.type)} step`));
      }
    }
  }

  /** Told once, of the for_each that has the most. */
  #checkCrowd(rules: TreeRules, place: BlockPlace): void {
    const crowded = rules.crowdedBy(crowdOf(place));
    const path = this.#byId.get(crowded?.id ?? '')?.path;
    if (crowded === undefined || path === undefined || this.#isCrowded) return;
    this.#isCrowded = true;
    this.#errors.add(() => findingOf(`${path}.concurrency`, crowded.problem));
  }

  /** The blocks whose own members are not as their kinds expect them. */
  #unsound(errors: readonly Finding[]): Set<BlockPlace> {
    const unsound = new Set<BlockPlace>();
    for (const { path } of errors) {
      let inmost: BlockPlace | undefined;
      for (const place of this.#places) if (isWithin(path, place.path)) inmost = place;
      if (inmost !== undefined) unsound.add(inmost);
    }
    return unsound;
  }

  #lookAt(place: BlockPlace, isSound: boolean): void {
    this.#reader = place;
    const { block, path } = place;
    if (block.type === 'step' && typeof block.handler === 'string') {
      this.#checkHandler(block.handler, block.params ?? {}, path);
      this.#checkBreachHandler(block.on_deadline_breach, `${path}.on_deadline_breach`);
    }
    if (isSound) readBlock(place, this);
  }

  // -------------------------------------------------------------- handlers

  #checkHandler(handler: string, params: unknown, path: string): void {
    if (!isBuiltin(handler)) {
      const meant = misspelt(handler, BUILTIN_HANDLERS);
      if (meant === undefined) return;
      this.#warn(
        `${path}.handler`,
        `the handler ${clip(handler)} is left to external workers`,
        meant,
      );
      return;
    }
    this.#checkBuiltin(handler, params, path);
  }

  /** What is called when a deadline has passed; one that cannot be is refused by the step. */
  #checkBreachHandler(given: unknown, path: string): void {
    if (typeof given !== 'object' || given === null) return;
    const { handler, params } = given as { readonly handler?: unknown; readonly params?: unknown };
    if (typeof handler === 'string' && isBuiltin(handler)) {
      this.#checkBuiltin(handler, params ?? {}, path);
    }
  }

  #checkBuiltin(handler: BuiltinName, params: unknown, path: string): void {
    if (!isJsonObject(params as JsonObject)) return;
    this.#checkParamNames(handler, params as JsonObject, `${path}.params`);
    for (const problem of this.#options.checkParams?.(handler, params as JsonObject) ?? []) {
      const { isFatal, ...finding } = problem;
      const told = {
        ...finding,
        path: `${path}.${problem.path}`,
        message: `${path}.${problem.message}`,
      };
      (isFatal ? this.#errors : this.#warnings).add(() => told);
    }
  }

  #checkParamNames(handler: BuiltinName, params: JsonObject, path: string): void {
    const { properties, additionalProperties } = HANDLER_PARAMS[handler];
    if (additionalProperties === true) return;
    const known = Object.keys(properties);
    for (const key of Object.keys(params)) {
      if (known.includes(key)) continue;
      this.#warnings.add(() => {
        const list = known.length === 0 ? 'which has none' : `which has ${known.join(', ')}`;
        const told = `${shownName(key)} is no parameter of ${handler}, ${list}`;
        return findingOf(joinPath(path, key), told, suggest(key, known));
      });
    }
  }

  // -------------------------------------------------------------- what kinds say

  warn(path: string, message: string, suggestion?: string): void {
    this.#warn(path, message, suggestion);
  }

  refuse(path: string, message: string): void {
    this.#errors.add(() => findingOf(path, message));
  }

  condition(path: string, text: string, parsed: Parsed<Condition>, use: ExpressionUse): void {
    this.#braces.delete(path);
    if (parsed.ok) {
      readCondition(parsed.value, this.#remarksAt(path, use.isRepeated === true));
      return;
    }
    const told = `does not parse and ${use.unparsed}: ${parsed.message}`;
    this.#warnings.add(() => findingOf(path, told, mendedCondition(text)));
  }

  template(path: string, text: string): void {
    this.#braces.delete(path);
    if (!this.#warnings.isOver) readTemplate(text, this.#remarksAt(path, false));
  }

  // -------------------------------------------------------------- what texts say

  #remarksAt(path: string, isRepeated: boolean): Remarks {
    return {
      note: (message, guess) => this.#warnings.add(() => findingOf(path, message, guess?.())),
      reference: (root, block) => this.#checkReference(path, root, block, isRepeated),
      unknownRoot: (root) =>
        this.#warnings.add(() => {
          const told = `will fail: unknown template root "${clip(root)}"`;
          return findingOf(path, told, this.#rootMeantBy(root));
        }),
      dataPath: ([first = '', block]) => {
        if (block === undefined || !this.#byId.has(block)) return;
        const root = misspelt(first, ['outputs', 'steps']);
        if (root !== undefined)
          this.#warn(path, `${clip(first)} is looked up in context.data`, root);
      },
      bareText: (text) => {
        const [first = ''] = text.split('.', 1);
        if (first === text || !this.#items().includes(first)) return;
        this.#warn(path, `compares with the text "${clip(text)}"`, `data.${clip(text)}`);
      },
    };
  }

  #checkReference(path: string, root: string, id: string, isRepeated: boolean): void {
    const target = this.#byId.get(id);
    const named = `${root}.${clip(id)}`;
    if (target === undefined) {
      if (this.#options.known?.has(id) === true) return;
      this.#warnings.add(() => {
        const ids = [...this.#byId.keys()].slice(0, IDS_COMPARED_MAX);
        const told = `${named} is always null: there is no block ${clip(id)}`;
        return findingOf(path, told, misspelt(id, ids));
      });
      return;
    }
    const reason = whyNever(this.#reader as BlockPlace, target, isRepeated);
    if (reason !== undefined) {
      this.#warn(path, `${named} is always null here: block ${clip(id)} ${reason}`);
    }
  }

  #rootMeantBy(root: string): string | undefined {
    if (this.#items().includes(root)) return `data.${root}`;
    if (this.#byId.has(root)) return `outputs.${root}`;
    return misspelt(root, ROOT_NAMES) ?? (/^[\w-]{1,64}$/.test(root) ? `data.${root}` : undefined);
  }

  /** What the items of the loops around the block are called. */
  #items(): string[] {
    const names: string[] = [];
    for (let at = this.#reader; at !== undefined; at = at.parent) {
      if (at.block.type !== 'for_each') continue;
      names.push(String(ownValue(at.block, 'item_var') ?? ITEM_VAR_DEFAULT));
      const index = ownValue(at.block, 'index_var');
      if (typeof index === 'string') names.push(index);
    }
    return names;
  }

  #warn(path: string, message: string, suggestion?: string): void {
    this.#warnings.add(() => findingOf(path, message, suggestion));
  }
}

/** The for_each blocks around the block that run items side by side. */
function crowdOf({ parent }: BlockPlace): Crowd {
  let crowd = ALONE;
  for (let at = parent; at !== undefined; at = at.parent) {
    const { type, id, concurrency } = at.block;
    const copies = type === 'for_each' ? concurrencyOf(concurrency) : 1;
    if (copies > 1) crowd = { id: crowd.id ?? String(id), times: crowd.times * copies };
  }
  return crowd;
}
