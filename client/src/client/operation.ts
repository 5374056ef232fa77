/** What an operation is, what every call of one may be told, and what lists and streams give back. */

/** How an operation is sent; `client/src/generated/operations.ts` has the rows. */
export interface OperationRow {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Without the prefix; parameters in braces. */
  readonly path: string;
  /** What follows the parameters of the path in a call. */
  readonly takes?: 'body' | 'query' | 'body and query';
  /** The member of the body whose items are filled in, in place of the body itself. */
  readonly each?: string;
  /** What the client fills in where it is left out: in the body, or in the query where there is no body. */
  readonly fills?: readonly ('tenant_id' | 'namespace')[];
  /** By which the server knows a repetition. The client makes one, so that what is sent again is done once. */
  readonly key?: string;
  /** It may be sent again although it may have been done, beside what the method says. */
  readonly isRepeatable?: true;
  /** The answer may wait for as long as the body says. */
  readonly isParked?: true;
  /** How a list goes on: by the cursor of a header or of the body, or by counting. */
  readonly pages?: 'cursor' | 'offset' | 'page' | 'changes';
  /** Absent: JSON, or nothing. */
  readonly answers?: 'text' | 'events';
}

/** What a single call may be told; the client's own settings count for what is left out. */
export interface CallOptions {
  /** Ends the call, waits between tries among it; it then rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
  /** How long one try may take, in milliseconds. */
  readonly timeoutMs?: number | undefined;
  /** How long all tries may take with the waits between them, in milliseconds. */
  readonly totalTimeoutMs?: number | undefined;
  /** How often it is tried again; 0: never. */
  readonly retries?: number | undefined;
  /** The tenant that the call is for. */
  readonly tenant?: string | undefined;
  /** Headers beside the client's own, such as `traceparent` or `x-request-id`. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Of a creation. */
export interface CreationOptions extends CallOptions {
  /** By which a repetition is recognised. Absent: that of the body, else a new one for this call. */
  readonly idempotencyKey?: string | undefined;
}

/** One page of a list. */
export interface Page<T> {
  readonly items: readonly T[];
  /** The `cursor` that the next page is asked with; absent on the last one, and where lists count. */
  readonly nextCursor?: string;
  readonly hasMore: boolean;
  /** How many there are on all pages, where the server counts them. */
  readonly total?: number;
}

/** A list: `await` gives its first page, `for await` every item of all pages. */
export interface List<T> extends PromiseLike<Page<T>>, AsyncIterable<T> {
  /** The pages, one after the other. */
  pages(): AsyncIterable<Page<T>>;
}

/** A server-sent event. */
export interface StreamEvent {
  /** Its kind, such as `state` or `change`. */
  readonly event: string;
  /** As it came: JSON. */
  readonly data: string;
  /** Where to go on behind it: '' before the stream has told one. */
  readonly id: string;
}

/** The events of one connection, which is opened by the first read. */
export type EventStream = AsyncIterable<StreamEvent>;
