/**
 * Validates parameters and outputs with schemas of any library: Standard Schema (zod, valibot, arktype), `parse`, or
 * `Check` and `Errors` (compiled TypeBox).
 */

/** The part of https://standardschema.dev that is used. */
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

/** Maximum number of issues in a message. */
const ISSUES_TOLD = 5;

/** @throws TypeError for an object that cannot validate, such as a plain JSON Schema */
export function expectSchema(schema: object, what: string): void {
  if ('~standard' in schema || 'parse' in schema || 'Check' in schema) return;
  throw new TypeError(
    `${what} cannot validate a value: use a Standard Schema, such as one of zod, an object with parse(), ` +
      'or a TypeBox schema compiled with TypeCompiler.Compile',
  );
}

/**
 * @returns the value as the schema returns it
 * @throws Error that lists the issues
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
  if (issues.length === 0) return 'it does not match the schema';
  const more = issues.length - ISSUES_TOLD;
  return issues.slice(0, ISSUES_TOLD).join('; ') + (more > 0 ? `; and ${more} more` : '');
}
