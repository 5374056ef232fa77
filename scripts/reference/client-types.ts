/**
 * The shapes of the document as TypeScript, which is what users of the client read: `client/src/generated/types.ts`.
 * A shape that a request holds takes whatever JSON can be made of; one that is only answered says what comes back.
 */

import type { JsonValue } from '../../src/base/json.js';

type Schema = { readonly [keyword: string]: JsonValue | undefined };
type Schemas = Readonly<Record<string, Schema>>;

/** Shapes and words without a name in the document, by a place where they stand. */
const NAMED_HERE: Readonly<Record<string, string>> = {
  InstanceState: 'TaskInstance.state',
  Priority: 'TaskInstance.priority',
  FailureCode: 'Failure.code',
  BlockState: 'TreeNode.state',
  WorkerTaskState: 'WorkerTask.state',
  WaitKind: 'Wait.kind',
  Capability: 'ApiKey.capabilities[]',
  SequenceStatus: 'SequenceDefinition.status',
  OverlapPolicy: 'CronSchedule.overlap_policy',
  CredentialKind: 'Credential.kind',
  BulkJobState: 'BulkJob.state',
  SignalStatus: 'StoredSignal.status',
  EventStatus: 'StoredEvent.status',
  TriggerType: 'Trigger.trigger_type',
  ReleaseState: 'Release.state',
  Severity: 'SemanticDiff.max_severity',
  EffectState: 'EffectReceipt.state',
  HandoffState: 'Handoff.state',
  MigrationVerdict: 'MigrationPlan.verdict',
  WebhookEventType: 'DeliveryAttempt.event_type',
  DeliveryErrorClass: 'DeliveryAttempt.error_class',
  Retry: 'StepBlock.retry',
  Delay: 'StepBlock.delay',
  SendWindow: 'StepBlock.send_window',
  WaitForInput: 'StepBlock.wait_for_input',
};

/** Bodies leave these to the client, which knows them. */
export const FILLED: readonly string[] = ['tenant_id', 'namespace'];

/** Writes types; whether a schema is used in requests decides which fields are optional. */
export class TypeWriter {
  readonly #schemas: Schemas;
  readonly #asked: ReadonlySet<string>;
  readonly #filling: ReadonlySet<string>;
  readonly #names: ReadonlyMap<string | undefined, string>;

  /**
   * @param asked components that requests are made of
   * @param filling those among them whose tenant and namespace the client fills in
   */
  constructor(schemas: Schemas, asked: ReadonlySet<string>, filling: ReadonlySet<string>) {
    this.#schemas = schemas;
    this.#asked = asked;
    this.#filling = filling;
    const places = Object.entries(NAMED_HERE).map(
      ([name, place]) => [name, schemaAt(schemas, place)] as const,
    );
    this.#names = new Map(
      [...Object.entries(schemas), ...places].map(([name, schema]) => [bare(schema), name]),
    );
  }

  /** All components, and what is named here, in alphabetical order. */
  declarations(): string {
    const named = Object.entries(NAMED_HERE).map(([name, place]) => {
      const isAsked = this.#asked.has(place.split('.')[0] ?? '');
      return [name, this.#declare(name, schemaAt(this.#schemas, place), isAsked)] as const;
    });
    const components = Object.entries(this.#schemas).map(
      ([name, schema]) => [name, this.#declare(name, schema, this.#asked.has(name))] as const,
    );
    return [...named, ...components]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, text]) => text)
      .join('\n\n');
  }

  /** An interface of fields, such as the parameters of a query. */
  declareFields(name: string, note: string, fields: Schema, required: readonly string[]): string {
    const shape = { type: 'object', properties: fields, required: [...required] } as Schema;
    return `${comment(note, '')}export interface ${name} ${this.#fields(shape, true, '', [])}`;
  }

  /** The type of a schema where it stands in the text. */
  typeOf(schema: Schema, isAsked = false, indent = ''): string {
    return this.#type(schema, isAsked, indent);
  }

  #declare(name: string, schema: Schema, isAsked: boolean): string {
    const note = comment(String(schema.description ?? ''), '');
    if (schema.properties === undefined) {
      return `${note}export type ${name} = ${this.#unnamed(schema, isAsked, '')};`;
    }
    const filled = this.#filling.has(name) ? FILLED : [];
    return `${note}export interface ${name} ${this.#fields(schema, isAsked, '', filled)}`;
  }

  #type(schema: Schema, isAsked: boolean, indent: string): string {
    if (schema.$ref !== undefined) return String(schema.$ref).split('/').at(-1) ?? '';
    const what = bare(schema);
    const name = what === undefined ? undefined : this.#names.get(what);
    if (name === undefined) return this.#unnamed(schema, isAsked, indent);
    return union([name, ...(acceptsNull(schema) ? ['null'] : [])]);
  }

  #unnamed(schema: Schema, isAsked: boolean, indent: string): string {
    const either = (schema.oneOf ?? schema.anyOf) as Schema[] | undefined;
    if (either !== undefined) {
      return union(either.map((one) => this.#type(one, isAsked, indent)));
    }
    if (schema.enum !== undefined) return union((schema.enum as JsonValue[]).map(literal));
    if (schema.const !== undefined) return literal(schema.const);
    if (isNull(schema)) return 'null';
    const types = nonNullTypes(schema).map((type) =>
      this.#typeNamed(type, schema, isAsked, indent),
    );
    if (types.length === 0) return isAsked ? 'unknown' : 'JsonValue';
    return union([...types, ...([schema.type].flat().includes('null') ? ['null'] : [])]);
  }

  #typeNamed(type: string, schema: Schema, isAsked: boolean, indent: string): string {
    if (type === 'integer' || type === 'number') return 'number';
    if (type === 'array') {
      const item = this.#type((schema.items ?? {}) as Schema, isAsked, indent);
      return `readonly ${/[ |]/.test(item) && !item.startsWith('{') ? `(${item})` : item}[]`;
    }
    if (type !== 'object') return type;
    const { properties, additionalProperties: rest } = schema;
    if (Object.keys((properties ?? {}) as object).length > 0) {
      return this.#fields(schema, isAsked, indent, []);
    }
    if (typeof rest === 'object' && rest !== null) {
      return `{ readonly [name: string]: ${this.#type(rest as Schema, isAsked, indent)} }`;
    }
    return isAsked ? 'object' : 'JsonObject';
  }

  #fields(schema: Schema, isAsked: boolean, indent: string, filled: readonly string[]): string {
    const required = (schema.required ?? []) as string[];
    const lines = Object.entries(schema.properties as Schemas).map(([field, property]) => {
      const isFilled = filled.includes(field) && required.includes(field);
      const isRequired = required.includes(field) && !isFilled;
      const type = this.#type(property, isAsked, `${indent}  `);
      const given =
        isRequired || !isAsked || type === 'unknown' ? type : union([type, 'undefined']);
      const note = comment(noteOf(property, isFilled), `${indent}  `);
      const name = /^[\w$]+$/.test(field) ? field : JSON.stringify(field);
      return `${note}${indent}  readonly ${name}${isRequired ? '' : '?'}: ${given};\n`;
    });
    return `{\n${lines.join('')}${indent}}`;
  }
}

function noteOf(property: Schema, isFilled: boolean): string {
  const description = String(property.description ?? '');
  const byDefault = property.default;
  return [
    description,
    property.format === 'date-time' && description === '' ? 'ISO 8601.' : '',
    byDefault === undefined || byDefault === null ? '' : `Default: ${JSON.stringify(byDefault)}.`,
    isFilled ? "The client's own when absent." : '',
  ]
    .filter((text) => text !== '')
    .join(' ');
}

/** A doc comment in lines that fit, or nothing. */
export function comment(text: string, indent: string): string {
  if (text === '') return '';
  const lines: string[] = [''];
  for (const word of text.replaceAll('*/', '*\\/').split(/\s+/)) {
    const line = lines.at(-1) as string;
    if (line !== '' && indent.length + line.length + word.length > 94) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}\n`).join('')}${indent} */\n`;
}

export function union(types: readonly string[]): string {
  return [
    ...new Set(types.flatMap((type) => (type.includes('{') ? [type] : type.split(' | ')))),
  ].join(' | ');
}

function literal(value: JsonValue): string {
  return typeof value === 'string' ? `'${value.replaceAll("'", "\\'")}'` : JSON.stringify(value);
}

const nonNullTypes = (schema: Schema): string[] =>
  ([schema.type ?? []].flat() as string[]).filter((type) => type !== 'null');

const isNull = (schema: Schema) => schema.type === 'null';

const acceptsNull = (schema: Schema): boolean =>
  [schema.type].flat().includes('null') || ((schema.anyOf ?? []) as Schema[]).some(isNull);

/** One schema beside null is that schema. */
function withoutNull(schema: Schema): Schema {
  const others = ((schema.anyOf ?? []) as Schema[]).filter((one) => !isNull(one));
  if (schema.anyOf !== undefined && others.length === 1) return others[0] as Schema;
  return schema.type === undefined ? schema : { ...schema, type: nonNullTypes(schema) };
}

/** What makes two schemas one type, whatever is said about the place. */
function bare(schema: Schema): string | undefined {
  const { enum: words, properties } = withoutNull(schema);
  if (words !== undefined) return JSON.stringify(words);
  // With few fields, two shapes that mean something else may look alike.
  const isTelling = Object.keys((properties ?? {}) as object).length > 3;
  return isTelling ? JSON.stringify(properties) : undefined;
}

function schemaAt(schemas: Schemas, place: string): Schema {
  const [component = '', field = ''] = place.split('.');
  const properties = (schemas[component]?.properties ?? {}) as Schemas;
  const property = properties[field.replace('[]', '')];
  if (property === undefined) throw new Error(`the document has no ${place}`);
  return withoutNull(field.endsWith('[]') ? ((property.items ?? {}) as Schema) : property);
}
