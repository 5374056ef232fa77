/**
 * The catalogue of errors that callers can receive, with a stable `code` per cause. The body is `{"error": message}`;
 * the code is sent in the header `x-error-code` and written to the log. Errors cross threads as `ErrorData`, because
 * structured clone drops custom fields. Outcomes of steps are values, not errors.
 */

/** The HTTP status of every error code. */
export const ERROR_STATUS = {
  ENG_INVALID_JSON: 400,
  ENG_VALIDATION: 400,
  ENG_INVALID_TRANSITION: 400,
  ENG_REFUSED_DATA: 400,
  ENG_UNAUTHENTICATED: 401,
  ENG_FORBIDDEN: 403,
  ENG_NOT_FOUND: 404,
  ENG_METHOD_NOT_ALLOWED: 405,
  ENG_CONFLICT: 409,
  ENG_STALE_EPOCH: 409,
  ENG_RESULT_REPEATED: 409,
  ENG_GONE: 410,
  ENG_TOO_LARGE: 413,
  ENG_UNSUPPORTED_ENCODING: 415,
  ENG_WRONG_CELL: 421,
  ENG_INPUT_SCHEMA: 422,
  ENG_TEMPLATE: 422,
  ENG_TENANT_LIMIT: 429,
  ENG_TOO_MANY_CONNECTIONS: 429,
  ENG_TOO_MANY_REQUESTS: 429,
  ENG_TOO_MANY_STREAMS: 429,
  ENG_TOO_MANY_WEBHOOKS: 429,
  ENG_TENANT_SHARE: 429,
  ENG_HEADERS_TOO_LARGE: 431,
  ENG_INTERNAL: 500,
  ENG_DELIVERY_FAILED: 502,
  ENG_DATABASE_DOWN: 503,
  ENG_OVERLOADED: 503,
  ENG_SLOW_READ: 503,
  ENG_DIRECTORY_DOWN: 503,
  ENG_NO_CELL: 503,
  ENG_NO_KEYS: 503,
  ENG_STANDBY: 503,
  ENG_STARTING: 503,
  ENG_STOPPING: 503,
  ENG_SHARD_RESTARTING: 503,
  ENG_TENANT_MOVING: 503,
} as const;

export type ErrorCode = keyof typeof ERROR_STATUS;

type CodesOf<Status extends number> = {
  [Code in ErrorCode]: (typeof ERROR_STATUS)[Code] extends Status ? Code : never;
}[ErrorCode];

/** An error as it is posted to another thread. `retryAfterMs` is present on 429 and 503 only. */
export interface ErrorData {
  readonly code: ErrorCode;
  readonly message: string;
  readonly retryAfterMs?: number;
  readonly members?: AnswerMembers;
}

/** Members of the response body beside `error`: plain data. */
export interface AnswerMembers {
  /** The cell that owns the tenant; also in the header x-cell. */
  readonly cell?: string;
  readonly [member: string]: unknown;
}

/** An error of the catalogue. Any other thrown value is a defect: a 500. */
export class EngineError extends Error {
  override readonly name = 'EngineError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  readonly members: AnswerMembers | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    retryAfterMs?: number,
    cause?: unknown,
    members?: AnswerMembers,
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.status = ERROR_STATUS[code];
    this.retryAfterMs = retryAfterMs;
    this.members = members;
  }

  toData(): ErrorData {
    const { code, message, retryAfterMs, members } = this;
    return {
      code,
      message,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      ...(members === undefined ? {} : { members }),
    };
  }
}

export function fromErrorData(data: ErrorData): EngineError {
  return new EngineError(data.code, data.message, data.retryAfterMs, undefined, data.members);
}

const RETRY_AFTER_MS = 1_000;

export const invalid = (message: string, members?: AnswerMembers) =>
  new EngineError('ENG_VALIDATION', `invalid argument: ${message}`, undefined, undefined, members);
export const notFound = (what: string) => new EngineError('ENG_NOT_FOUND', `not found: ${what}`);
/** The creation does not fit its sequence. */
export const unprocessable = (message: string) =>
  new EngineError('ENG_INPUT_SCHEMA', `unprocessable entity: ${message}`);
export const conflict = (message: string, members?: AnswerMembers) =>
  new EngineError('ENG_CONFLICT', `conflict: ${message}`, undefined, undefined, members);
export const unsupportedEncoding = (encoding: string) =>
  new EngineError(
    'ENG_UNSUPPORTED_ENCODING',
    `unsupported media type: a body with content-encoding ${encoding} is not read, only identity`,
  );
export const tooLarge = (message: string) =>
  new EngineError('ENG_TOO_LARGE', `payload too large: ${message}`);
export const tenantLimit = (message: string, retryAfterMs: number) =>
  new EngineError('ENG_TENANT_LIMIT', `too many requests: ${message}`, retryAfterMs);
export const forbidden = (message: string) =>
  new EngineError('ENG_FORBIDDEN', `forbidden: ${message}`);
export const unavailable = (code: CodesOf<503>, message: string, retryAfterMs = RETRY_AFTER_MS) =>
  new EngineError(code, `unavailable: ${message}`, retryAfterMs);

/** The tenant has reached its share of a resource that other tenants can still use. */
export const shareTaken = (message: string, retryAfterMs = RETRY_AFTER_MS) =>
  new EngineError('ENG_TENANT_SHARE', `too many requests: ${message}`, retryAfterMs);

/** The thread that should answer is being replaced. */
export const RESTARTING = unavailable('ENG_SHARD_RESTARTING', 'a part of the engine is restarting');
/** The read failed: the database is unavailable, or lacks an object that the query needs. */
export const DATABASE_AWAY = unavailable('ENG_DATABASE_DOWN', 'the database cannot be read');

/** The connection or thread that carried the change was lost before it was acknowledged. */
export const UNKNOWN_OUTCOME = unavailable(
  'ENG_DATABASE_DOWN',
  'the outcome is unknown; ask again, with an idempotency key where there is one',
);
