/**
 * How the Python client writes the shapes of the OpenAPI document: which class or words stand for a schema. Shapes
 * without a name of their own are named after the place where they stand, and those that say the same are one.
 */

import type { JsonObject, JsonValue } from '../../src/base/json.js';

/** A schema of the document. */
export type Shape = JsonObject;

/** A class to be written. */
export interface Model {
  readonly name: string;
  readonly shape: Shape;
}

/** The first place of words that stand in many, where its own name would be no good one for them. */
const WORDS_NAMES: Readonly<Record<string, string>> = {
  'TaskInstance.state': 'InstanceState',
  'TaskInstance.priority': 'ShownPriority',
  'CreateInstance.priority': 'Priority',
  'TreeNode.state': 'NodeState',
  'WorkerTask.state': 'TaskState',
  'CreateSequence.status': 'SequenceStatus',
  'MintKey.capabilities': 'Capability',
  'Release.state': 'ReleaseState',
  'CreateCredential.kind': 'CredentialKind',
  'CreateSchedule.overlap_policy': 'OverlapPolicy',
  'CreateSubscription.events': 'WebhookEvent',
  'CreateTrigger.trigger_type': 'TriggerType',
  'RuntimeCapabilities.kind': 'RuntimeKind',
  'RuntimeCapabilities.trust': 'RuntimeTrust',
  'RuntimeCapabilities.connectivity': 'RuntimeConnectivity',
};

/** The same for shapes. */
const SHAPE_NAMES: Readonly<Record<string, string>> = {
  'BlocksInjected.warning': 'DefinitionWarning',
  'RouterBlock.route': 'Route',
  'StepBlock.delay': 'Delay',
  'StepBlock.retry': 'Retry',
  'StepBlock.send_window': 'SendWindow',
  'StepBlock.wait_for_input': 'WaitForInput',
};

/** Words of Python, and names that a model of pydantic has for itself. */
const TAKEN = new Set(['async', 'from', 'import', 'schema', 'copy', 'json', 'dict']);

/** The name of a member in Python. */
export const memberName = (name: string): string => (TAKEN.has(name) ? `${name}_` : name);

/** `instances.patchState` as `patch_state`. */
export const snakeCase = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** `try_block` and `tryBlock` as `TryBlock`. */
export const pascalCase = (name: string): string =>
  name.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());

const PREFIX = '#/components/schemas/';

const nameIn = (shape: Shape): string | undefined =>
  typeof shape.$ref === 'string' ? shape.$ref.slice(PREFIX.length) : undefined;

export const propertiesOf = (shape: Shape): Record<string, Shape> =>
  (shape.properties ?? {}) as Record<string, Shape>;

/** What was found while the document was read, for the file of models and for the operations. */
export class PythonTypes {
  readonly #components: Readonly<Record<string, Shape>>;
  readonly #models = new Map<string, Model>();
  /** Names by what the shape says. */
  readonly #known = new Map<string, string>();
  readonly #words = new Map<string, string>();

  constructor(components: Readonly<Record<string, Shape>>) {
    this.#components = components;
    for (const [place, name] of Object.entries(WORDS_NAMES)) this.#nameWords(place, name);
    for (const [name, shape] of Object.entries(components)) {
      if (shape.oneOf === undefined) this.#add(name, shape);
    }
    for (const { name, shape } of [...this.#models.values()]) this.#visit(name, shape);
  }

  /** Classes by their names. */
  get models(): readonly Model[] {
    return [...this.#models.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Lists of words by their names. */
  get words(): readonly (readonly [name: string, words: string])[] {
    return [...this.#words].map(([words, name]) => [name, words] as const).sort();
  }

  /** Shapes that are one of several classes, by their names. */
  get unions(): readonly (readonly [name: string, members: readonly string[], tag: string])[] {
    return Object.entries(this.#components).flatMap(([name, shape]) => {
      if (shape.oneOf === undefined) return [];
      const members = (shape.oneOf as Shape[]).map((one) => nameIn(one) ?? '');
      return [[name, members, String((shape.discriminator as JsonObject).propertyName)] as const];
    });
  }

  /** Whether a member tells the classes of a union apart. */
  isTag(parent: string, member: string): boolean {
    return this.unions.some(([, members, tag]) => tag === member && members.includes(parent));
  }

  component(name: string): Shape {
    return this.#components[name] ?? {};
  }

  /**
   * @param place `Parent.member`, after which a shape is named that has no name
   * @param way `given`: what a caller hands in, who may also write an object as a mapping and a time as text
   */
  typeOf(shape: Shape, place: string, way: 'kept' | 'given' = 'kept'): string {
    const { anyOf, type } = shape;
    if (Array.isArray(anyOf)) {
      return either((anyOf as Shape[]).map((one) => this.typeOf(one, place, way)));
    }
    if (Array.isArray(type)) {
      const one = (name: JsonValue) =>
        name === 'null' ? { type: name } : { ...shape, type: name };
      return either(type.map((name) => this.typeOf(one(name), place, way)));
    }
    return this.#plainType(shape, place, way);
  }

  #plainType(shape: Shape, place: string, way: 'kept' | 'given'): string {
    const name = nameIn(shape) ?? this.#nameOf(shape, place);
    const prefix = way === 'given' ? 'models.' : '';
    if (name !== undefined) return `${prefix}${name}${way === 'given' ? ' | JsonObject' : ''}`;
    if (Array.isArray(shape.enum)) {
      const words = this.#words.get(wordsOf(shape));
      return words === undefined ? `Literal[${wordsOf(shape)}]` : `${prefix}${words}`;
    }
    if (shape.const !== undefined) return `Literal[${literal(shape.const)}]`;
    switch (shape.type) {
      case 'string':
        if (shape.format !== 'date-time') return 'str';
        return way === 'given' ? 'datetime | str' : 'datetime';
      case 'integer':
        return 'int';
      case 'number':
        return 'float';
      case 'boolean':
        return 'bool';
      case 'null':
        return 'None';
      case 'array': {
        const item = this.typeOf((shape.items ?? {}) as Shape, place, way);
        return way === 'given' ? `Sequence[${item}]` : `list[${item}]`;
      }
      case 'object': {
        const values = shape.additionalProperties;
        if (way === 'given' && !isShape(values)) return 'JsonObject';
        const value = isShape(values) ? this.typeOf(values, place, way) : 'Any';
        return `${way === 'given' ? 'Mapping' : 'dict'}[str, ${value}]`;
      }
      default:
        return 'Any';
    }
  }

  #add(name: string, shape: Shape): void {
    this.#models.set(name, { name, shape });
    const said = saidBy(shape);
    if (!this.#known.has(said)) this.#known.set(said, name);
  }

  /** Names what stands inside of a class. */
  #visit(name: string, shape: Shape): void {
    for (const [member, inner] of Object.entries(propertiesOf(shape))) {
      this.#name(inner, `${name}.${member}`);
    }
  }

  #name(shape: Shape, place: string): void {
    for (const one of (shape.anyOf ?? []) as Shape[]) this.#name(one, place);
    if (isShape(shape.items)) this.#name(shape.items, singular(place));
    if (isShape(shape.additionalProperties)) this.#name(shape.additionalProperties, place);
    const [parent = '', member = ''] = place.split('.');
    if (Array.isArray(shape.enum) && !this.isTag(parent, member)) {
      this.#nameWords(place, nameAt(place), shape);
    }
    if (shape.properties !== undefined && !this.#known.has(saidBy(shape))) {
      const name = SHAPE_NAMES[place] ?? nameAt(place);
      if (this.#models.has(name)) throw new Error(`two shapes would be named ${name}`);
      this.#add(name, shape);
      this.#visit(name, shape);
    }
  }

  #nameWords(place: string, name: string, shape = this.#shapeAt(place)): void {
    const words = wordsOf(shape);
    if (words.includes(', ') && !this.#words.has(words)) this.#words.set(words, name);
  }

  /** The words at a place, also inside of a list or beside null. */
  #shapeAt(place: string): Shape {
    const [parent = '', member = ''] = place.split('.');
    let shape = propertiesOf(this.component(parent))[member] ?? {};
    while (shape.enum === undefined) {
      const inner = shape.items ?? (shape.anyOf as Shape[] | undefined)?.[0];
      if (!isShape(inner)) throw new Error(`there are no words at ${place}`);
      shape = inner;
    }
    return shape;
  }

  #nameOf(shape: Shape, place: string): string | undefined {
    if (shape.properties === undefined) return undefined;
    return this.#known.get(saidBy(shape)) ?? nameAt(place);
  }
}

const isShape = (value: JsonValue | undefined): value is Shape =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Of a list that is named in the plural, what one of its items is called. */
const singular = (place: string): string => place.replace(/ies$/, 'y').replace(/(?<=[^s])s$/, '');

const nameAt = (place: string): string => place.split('.').map(pascalCase).join('');

/** Each once, and None last. */
function either(types: readonly string[]): string {
  const distinct = new Set(types.filter((type) => type !== 'None'));
  return [...distinct, ...(types.includes('None') ? ['None'] : [])].join(' | ');
}

/** A value as Python writes it. */
export function literal(value: JsonValue): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return JSON.stringify(value);
}

const wordsOf = ({ enum: words }: Shape): string =>
  (Array.isArray(words) ? words : []).map(literal).join(', ');

/** The same for shapes that say the same, whatever they are described with, and whether null may stand there. */
function saidBy(shape: Shape): string {
  const { required, properties } = shape;
  const members = Object.entries((properties ?? {}) as Record<string, Shape>).map(
    ([name, inner]) => [name, withoutWords(inner)],
  );
  return JSON.stringify([[...((required ?? []) as string[])].sort(), members]);
}

function withoutWords(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutWords);
  if (!isShape(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([keyword]) => keyword !== 'description' && keyword !== 'examples')
      .map(([keyword, inner]) => [keyword, withoutWords(inner as JsonValue)])
      .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)),
  );
}
