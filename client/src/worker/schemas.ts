/**
 * Schemas of parameters and outputs, whichever library made them: whatever is a Standard Schema (zod, valibot,
 * arktype), has `parse`, or has `Check` and `Errors`, as what TypeBox compiles.
 */

/** https://standardschema.dev, as far as it is needed. */
export interface StandardSchema<T> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => unknown;
    readonly types?: { readonly input: unknown; readonly output: T } | undefined;
  };
}

interface ParsingSchema<T> {
  parse(value: unknown): T;
}

/** `TypeCompiler.Compile(schema)` of TypeBox. */
interface CheckingSchema<T> {
  Check(value: unknown): value is T;
  Errors?(value: unknown): Iterable<{ readonly path: string; readonly message: string }>;
}

export type Schema<T> = StandardSchema<T> | ParsingSchema<T> | CheckingSchema<T>;

interface Judgement {
  readonly value?: unknown;
  readonly issues?: readonly Issue[] | undefined;
}

interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** So many are told of a value. */
const ISSUES_TOLD = 5;

/** @throws TypeError when it is no schema that can judge a value, such as a bare JSON schema */
export function expectSchema(schema: object, what: string): void {
  if ('~standard' in schema || 'parse' in schema || 'Check' in schema) return;
  throw new TypeError(
    `${what} cannot judge a value: give a Standard Schema, such as that of zod, something with parse(), ` +
      'or what TypeCompiler.Compile makes of a TypeBox schema',
  );
}

/**
 * @returns the value as the schema gives it back
 * @throws Error whose message says what does not conform
 */
export async function conforming(schema: Schema<unknown>, value: unknown): Promise<unknown> {
  if ('~standard' in schema) {
    const judged = (await schema['~standard'].validate(value)) as Judgement;
    if (judged.issues === undefined) return judged.value;
    throw new Error(told(judged.issues.map(textOfIssue)));
  }
  if ('parse' in schema) return schema.parse(value);
  if (schema.Check(value)) return value;
  const errors = [...(schema.Errors?.(value) ?? [])];
  throw new Error(told(errors.map(({ path, message }) => `${path || '/'}: ${message}`)));
}

function textOfIssue({ message, path = [] }: Issue): string {
  const keys = path.map((part) => String(typeof part === 'object' ? part.key : part));
  return `/${keys.join('/')}: ${message}`;
}

function told(issues: readonly string[]): string {
  if (issues.length === 0) return 'it does not conform';
  const more = issues.length - ISSUES_TOLD;
  return issues.slice(0, ISSUES_TOLD).join('; ') + (more > 0 ? `; and ${more} more` : '');
}
